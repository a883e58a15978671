// Second moments A' A (d, d) of weighted, centred rows A (m, d): a symmetric matrix product in tiles of registers.
#pragma once
#include <memory>

#include "dense.hpp"
#include "registers.hpp"

namespace wm {

constexpr Index kPanelColumns = 3 * kLanes;  // of A, in a panel; kLanes x kPanelColumns sums are held in registers
constexpr Index kPackedRows = 256;           // of A, packed at a time: two panels of these fit a first-level cache

// Up to kPackedRows rows of A, packed by panels of columns: panels (n_panels, kPackedRows, kPanelColumns). Columns beyond d
// are zero up to a multiple of kLanes.
class PackedRows {
  public:
    explicit PackedRows(Index d)
        : d_(d), n_panels_(count_blocks(d, kPanelColumns)), panels_(new double[n_panels_ * kPanelColumns * kPackedRows]) {}

    Index n_panels() const { return n_panels_; }
    const double* panel(Index p) const { return panels_.get() + p * kPanelColumns * kPackedRows; }

    // Row r = (x - centre) * factor.
    template <class T> void write(Index r, const T* x, const double* centre, double factor) {
        Index c = 0;
        for (; c + kLanes <= d_; c += kLanes)
            store_lanes(place(r, c), (load_lanes(x + c) - load_lanes(centre + c)) * factor);
        if (c == d_) return;
        double* into = place(r, c);
        for (Index k = 0; k < kLanes; ++k) into[k] = c + k < d_ ? (x[c + k] - centre[c + k]) * factor : 0.0;
    }

  private:
    Index d_, n_panels_;
    std::unique_ptr<double[]> panels_;

    double* place(Index r, Index c) {
        return panels_.get() + (c / kPanelColumns * kPackedRows + r) * kPanelColumns + c % kPanelColumns;
    }
};

// out[:rows, :columns] += A' B, with A (n, kLanes) and B (n, wide kLanes): columns of panels.
template <Index wide>
void add_tile(const double* A, const double* B, Index n, Index rows, Index columns, double* out, Index stride) {
    Lanes sums[kLanes][wide] = {};
    for (Index r = 0; r < n; ++r, A += kPanelColumns, B += kPanelColumns) {
        Lanes b[wide];
            WM_UNROLL
        for (Index v = 0; v < wide; ++v) b[v] = load_lanes(B + v * kLanes);
            WM_UNROLL
        for (Index i = 0; i < kLanes; ++i)
            WM_UNROLL
            for (Index v = 0; v < wide; ++v) sums[i][v] += A[i] * b[v];
    }
    double flat[kLanes][wide * kLanes];
    std::memcpy(flat, sums, sizeof flat);
    for (Index i = 0; i < rows; ++i, out += stride)
        for (Index j = 0; j < columns; ++j) out[j] += flat[i][j];
}

// out += (panel p)' (panel q), p <= q: the upper triangle, and less than a tile below the diagonal.
inline void add_panel_product(const PackedRows& X, Index p, Index q, Index n, Matrix<double> out) {
    for (Index i = p * kPanelColumns; i < minimum((p + 1) * kPanelColumns, out.rows); i += kLanes) {
        const Index first = maximum(q * kPanelColumns, i), columns = minimum((q + 1) * kPanelColumns, out.columns) - first;
        const auto add = count_blocks(columns, kLanes) == 3   ? add_tile<3>
                         : count_blocks(columns, kLanes) == 2 ? add_tile<2>
                                                              : add_tile<1>;
        add(X.panel(p) + i % kPanelColumns, X.panel(q) + first % kPanelColumns, n, minimum(kLanes, out.rows - i), columns,
            out[i].data + first, out.stride);
    }
}

// A' A for the rows A = (X[chosen] - centre) * factors[:, None].
//
// Given   X (n, d); chosen (m,), rows of X; centre (d,), factors (m,); out (d, d), written
// Cost    m d^2 / 2 multiply-adds; memory for 256 packed rows
// Twin    A.T @ A
template <class T, class Run>
void second_moments(Matrix<const T> X, Span<const Index> chosen, Span<const double> centre, Span<const double> factors,
                    Matrix<double> out, const Run& run) {
    constexpr Index kBlock = 32;  // rows in a block that one thread packs
    PackedRows packed(X.columns);
    const Index n_panels = packed.n_panels();
    for (Index i = 0; i < out.rows; ++i)
        for (double& value : out[i]) value = 0.0;
    for (Index first = 0; first < chosen.size; first += kPackedRows) {
        const Index n = minimum(kPackedRows, chosen.size - first);
        run(count_blocks(n, kBlock), [&](Index block) {
            for (Index r = block * kBlock; r < minimum((block + 1) * kBlock, n); ++r) {
                const T* later = X[chosen[minimum(first + r + kAheadRows, chosen.size - 1)]].data;
                prefetch(later, later + X.columns);
                packed.write(r, X[chosen[first + r]].data, centre.data, factors[first + r]);
            }
        });
        run(n_panels * n_panels, [&](Index pair) {
            if (pair / n_panels <= pair % n_panels) add_panel_product(packed, pair / n_panels, pair % n_panels, n, out);
        });
    }
    for (Index i = 0; i < out.rows; ++i)
        for (Index j = 0; j < i; ++j) out[i][j] = out[j][i];
}

}  // namespace wm
