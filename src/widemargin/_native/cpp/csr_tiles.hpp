// Tiles of inner products X Z' of the rows of two sparse matrices, or of what their L1 distances have in common with them,
// by dense panels.
#pragma once
#include <algorithm>
#include <vector>

#include "aligned.hpp"
#include "csr.hpp"
#include "pairwise.hpp"
#include "registers.hpp"

namespace wm {

constexpr Index kPanelPacks = 8;            // registers of a panel's row: fewer sums would wait for each other
constexpr Index kCachedPanelColumns = 192;  // of a panel of at most 96 KiB, a small part of a second-level cache
constexpr Index kMostPanelColumns = 4096;   // of a panel of at most 2 MiB, which a second-level cache holds
constexpr Index kPanelNonzeros = 8;         // of a row in the columns of a panel, wanted on average

// A block of columns of `width` rows of a sparse matrix, dense and transposed: (columns, width). A row of the panel
// fills kPanelPacks registers.
template <class T> struct Panel {
    static constexpr Index lanes = kRegisterBytes / static_cast<Index>(sizeof(T));
    static constexpr Index width = kPanelPacks * lanes;

    T* values;                 // zeros, but for what `fill_panel` has added
    Index first = 0, columns;  // of the sparse matrix
};

// The number of columns of a panel: enough for several non-zeros of a row, few enough for a cache.
template <class T> Index panel_columns(const CSR<T>& X) {
    const double row_nonzeros = static_cast<double>(X.nnz()) / static_cast<double>(maximum<Index>(X.rows(), 1));
    const double wanted = kPanelNonzeros * static_cast<double>(X.columns) / maximum(row_nonzeros, 1.0);
    const auto limit = static_cast<Index>(clip<double>(wanted, kCachedPanelColumns, kMostPanelColumns));
    return maximum<Index>(count_blocks(X.columns, maximum<Index>(count_blocks(X.columns, limit), 1)), 1);
}

// Memory for products of r rows: a panel of at most 2 MiB, O(r) numbers, and the products with a panel's rows: those of
// a block, or of all r rows where there are several panels.
template <class T> struct PanelScratch {
    const Index columns;        // of a panel
    AlignedArray<T> values;     // of a panel: zeros between calls
    AlignedArray<T> sums;
    AlignedArray<Index> positions;

    PanelScratch(Index r, Index n_columns, Index panel_columns)
        : columns(panel_columns), values(panel_columns * Panel<T>::width),
          sums((panel_columns < n_columns ? r : minimum(r, kProductRows)) * Panel<T>::width),
          positions(r + 2 * Panel<T>::width) {}
};

// Call f(offset, t) for the non-zeros t in [start, end) of a row whose column panel.first + offset is in the panel.
// Returns where those of the next panel begin; in rows that are not sorted every panel visits all non-zeros.
template <class T, class F>
inline Index for_each_in_panel(CSR<T> X, Index start, Index end, Panel<T> panel, F f) {
    const Column* const indices = X.indices.data;
    Index t = start;
    for (; t < end; ++t) {
        const Index offset = static_cast<Index>(indices[t]) - panel.first;
        if (static_cast<std::uint64_t>(offset) >= static_cast<std::uint64_t>(panel.columns)) {
            if (X.is_sorted) break;
            continue;
        }
        f(offset, t);
    }
    return X.is_sorted ? t : start;
}

// Add rows first .. first + w of X to a panel of zeros. begin[k]: the first non-zero of row k in the panel's columns.
// end[k], written: the first one after them. Returns the number of non-zeros added (for rows sorted by column).
template <class T>
Index fill_panel(CSR<T> X, Index first, Index w, Panel<T> panel, const Index* begin, Index* end) {
    Index n = 0;
    for (Index k = 0; k < w; ++k) {
        T* const into = panel.values + k;
        end[k] = for_each_in_panel(X, begin[k], X.row_end(first + k), panel,
                                   [&](Index offset, Index t) { into[offset * Panel<T>::width] += X.data.data[t]; });
        n += end[k] - begin[k];
    }
    return n;
}

// Write zeros where `fill_panel` has added n numbers.
template <class T>
void clear_panel(CSR<T> X, Index first, Index w, Panel<T> panel, const Index* begin, Index n) {
    if (n > panel.columns) {
        std::fill_n(panel.values, panel.columns * Panel<T>::width, T(0));
        return;
    }
    for (Index k = 0; k < w; ++k) {
        T* const into = panel.values + k;
        for_each_in_panel(X, begin[k], X.row_end(first + k), panel,
                          [&](Index offset, Index) { into[offset * Panel<T>::width] = 0; });
    }
}

// A non-zero x of a sparse row, as a summand of the sums over the features that it has in common with other rows.
template <KernelArgument kind, class T> struct Nonzero;

// x u
template <class T> struct Nonzero<KernelArgument::inner_product, T> {
    T x;
    template <class V> WM_INLINE void add_to(V& sum, V u) const { sum += x * u; }
};

// min(|x|, |u|) if x and u have the same sign, or else 0: |x - u| = |x| + |u| - 2 of it. It is 0 where u is, as x u.
template <class T> struct Nonzero<KernelArgument::l1_distance, T> {
    T sign, least, largest;

    // Without a comparison of x, of which GCC makes a branch that is taken at random.
    explicit Nonzero(T x) : sign(std::copysign(T(1), x)), least((x - std::abs(x)) / 2), largest(x - least) {}
    template <class V> WM_INLINE void add_to(V& sum, V u) const {
        const V low = V{} + least, high = V{} + largest;
        const V above = u > low ? u : low;
        sum += sign * (above < high ? above : high);
    }
};

// |x|_1 of each row of X, in float64.
template <class T> std::vector<double> l1_norms(const CSR<T>& X) {
    std::vector<double> norms(X.rows());
    for (Index i = 0; i < X.rows(); ++i)
        for (const T x : X.values(i)) norms[i] += std::abs(static_cast<double>(x));
    return norms;
}

// out (n, R registers) += X @ panel, or the sums of another kind; the non-zeros of row i from positions[i] on, which moves
// on. The sums of a row are in registers: a loop over memory would load and store them for each non-zero.
template <KernelArgument kind, int R, class T>
void add_common(CSR<T> X, Panel<T> panel, Index* positions, T* out, Index stride) {
    constexpr Index lanes = Panel<T>::lanes;
    using Sums = Pack<T, lanes>;
    const T* const data = X.data.data;
    for (Index i = 0; i < X.rows(); ++i, out += stride) {
        Sums sums[R] = {};
        if (panel.first > 0)
            for (int r = 0; r < R; ++r) sums[r] = *reinterpret_cast<const Sums*>(out + r * lanes);
        const auto add = [&](Index offset, Index t) {
            const T* const row = panel.values + offset * Panel<T>::width;
            const Nonzero<kind, T> nonzero{data[t]};
            for (int r = 0; r < R; ++r) nonzero.add_to(sums[r], *reinterpret_cast<const Sums*>(row + r * lanes));
        };
        positions[i] = for_each_in_panel(X, positions[i], X.row_end(i), panel, add);
        for (int r = 0; r < R; ++r) *reinterpret_cast<Sums*>(out + r * lanes) = sums[r];
    }
}

// Call visit(i, j, block) for blocks of inner products of two sets of CSR rows, or of (|x|_1 + |z|_1 - |x - z|_1) / 2 for
// L1 distances: block (n, w) has those of the rows i ... of X with the rows j ... of Z; visit may change it. Columns
// beyond the last row of Z are zeros.
//
// Given   for L1 distances, rows X without repeated columns

// Cost    nnz(X) c / width vector operations of width sums, three times as many for L1 distances; both sets are read d /
//         columns times, in parts
// Exact   a sum is added up in the order of the row's non-zeros: it does not depend on the other rows
template <KernelArgument kind, class T, class Visit>
void visit_sums(const CSR<T>& X, const CSR<T>& Z, PanelScratch<T>& scratch, const Visit& visit) {
    constexpr Index width = Panel<T>::width;
    const Index r = X.rows();
    const bool is_single_panel = scratch.columns >= X.columns;
    Index *positions = scratch.positions.data(), *begin = positions + r, *end = begin + width;
    for (Index first = 0; first < Z.rows(); first += width) {
        const Index w = minimum(width, Z.rows() - first);
        for (Index i = 0; i < r; ++i) positions[i] = X.row_begin(i);
        for (Index k = 0; k < w; ++k) begin[k] = Z.row_begin(first + k);
        Panel<T> panel{scratch.values.data(), 0, scratch.columns};
        do {
            const Index n = fill_panel(Z, first, w, panel, begin, end);
            const bool is_last = panel.first + panel.columns >= X.columns;
            with_registers<kPanelPacks>(count_blocks(w, Panel<T>::lanes), [&](auto registers) {
                for (Index i = 0; i < r; i += kProductRows) {
                    const CSR<T> rows = X.slice(i, minimum(i + kProductRows, r));
                    T* const sums = scratch.sums.data() + (is_single_panel ? 0 : i * width);
                    add_common<kind, registers.value>(rows, panel, positions + i, sums, width);
                    if (is_last) visit(i, first, Matrix<T>{sums, rows.rows(), registers.value * Panel<T>::lanes, width});
                }
            });
            clear_panel(Z, first, w, panel, begin, n);
            std::copy_n(end, w, begin);
            panel.first += panel.columns;
        } while (panel.first < X.columns);
    }
}

}  // namespace wm
