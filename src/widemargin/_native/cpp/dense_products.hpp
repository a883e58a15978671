// Inner products and L1 distances of the rows of two dense matrices, by packed panels.
//
// A panel is a block of features of a few rows of the second matrix, transposed: a register holds one feature of several
// rows, and is combined with one number of a row of the first. No sum is taken across a register. BLAS does the same,
// but packs both matrices: for tiles of a few hundred rows, which stay in the cache, that takes longer than the sums.
#pragma once
#include "pairwise.hpp"
#include "transpose.hpp"

namespace wm {

constexpr Index kPanelFeatures = 512;  // at most: a panel of 64 columns takes 128 KiB of the second-level cache
constexpr int kRegisterRows = 6;       // of the first matrix: their sums fill the registers

// panel (n, width) = the features first ... first + n - 1 of the rows of Z, transposed; the columns from Z.rows on are
// copies of the last one.
template <class T> void fill_panel(Matrix<const T> Z, Index first, Index n, Index width, T* panel) {
    constexpr Index size = kBlockSize<T>;
    for (Index j = 0; j < width; j += size) {
        const T* rows[size];
        for (Index k = 0; k < size; ++k) rows[k] = Z[minimum(j + k, Z.rows - 1)].data + first;
        Index f = 0;
        for (; f + size <= n; f += size) transpose_block<T>(rows, f, panel + f * width + j, width);
        for (; f < n; ++f)
            for (Index k = 0; k < size; ++k) panel[f * width + j + k] = rows[k][f];
    }
}

// Memory for the products with c rows of d features: the panel, and one block.
template <class T> struct ProductScratch {
    static constexpr Index lanes = kRegisterBytes / sizeof(T), width = kMostColumns * lanes;
    AlignedArray<T> panel, block;

    ProductScratch(Index c, Index d) {
        with_registers<kMostColumns>(count_blocks(c, lanes), [&](auto registers) {
            panel = AlignedArray<T>(d * lanes * registers.value);
            block = AlignedArray<T>(kProductRows * lanes * registers.value);
        });
    }
};

// A term of a sum, as sum_tile takes it: of an L1 distance |x - u|, times a 1 that the compiler does not know where there are
// 32 registers. It is then added by a multiply-add, which AMD's processors run beside a subtraction: a sixth less time.
template <KernelArgument kind, class T> struct BlockTerm {
    static constexpr bool has_factor = kind == KernelArgument::l1_distance && kRegisterBytes == 64;
    Register<T> one = Register<T>{} + T(1);

    BlockTerm() {
        if constexpr (has_factor) asm("" : "+m"(one));
    }
    WM_INLINE Register<T> operator()(T x, Register<T> u) const {
        if constexpr (has_factor) return term<kind>(x, u) * one;
        return term<kind>(x, u);
    }
};

// block (n, w) = X Z', or the L1 distances, for n <= kProductRows rows of X, from the panel of Z with C registers a row.
// The rows of the block from n on are those of the last row of X: every sum is added up alike.
template <KernelArgument kind, int C, class T> void sum_block(Matrix<const T> X, const T* panel, T* block) {
    constexpr int R = kRegisterRows;
    constexpr Index width = C * ProductScratch<T>::lanes;
    static_assert(kProductRows % R == 0 && R * C >= 6);  // one sum a product
    const BlockTerm<kind, T> term_of;
    for (Index first = 0; first == 0 || first < X.columns; first += kPanelFeatures)
        for (Index i = 0; i < X.rows; i += R) {
            const T* x[R];
            for (int r = 0; r < R; ++r) x[r] = X[minimum(i + r, X.rows - 1)].data + first;
            sum_tile<Register<T>, R, C>(
                minimum(kPanelFeatures, X.columns - first), panel + first * width, block + i * width, width,
                [&](int r, Index k) { return x[r][k]; }, [](Index k) { return k; }, term_of, first > 0);
        }
}

// Call visit(i, j, block) for blocks of inner products or L1 distances: block (n, w) has those of the rows i ... of X with
// the rows j ... of Z, w a multiple of a register's numbers; visit may change it. Columns beyond the last row of Z repeat it.
template <KernelArgument kind, int C, class T, class Visit>
void visit_panel(Matrix<const T> X, Matrix<const T> Z, Index j, ProductScratch<T>& scratch, const Visit& visit) {
    constexpr Index width = C * Index(kRegisterBytes / sizeof(T));
    for (Index first = 0; first < Z.columns; first += kPanelFeatures)
        fill_panel(Z, first, minimum(kPanelFeatures, Z.columns - first), width, scratch.panel.data() + first * width);
    for (Index i = 0; i < X.rows; i += kProductRows) {
        const Matrix<const T> rows = X.slice(i, minimum(i + kProductRows, X.rows));
        sum_block<kind, C>(rows, scratch.panel.data(), scratch.block.data());
        visit(i, j, Matrix<T>{scratch.block.data(), rows.rows, width, width});
    }
}

template <KernelArgument kind, class T, class Visit>
void visit_sums(Matrix<const T> X, Matrix<const T> Z, ProductScratch<T>& scratch, const Visit& visit) {
    constexpr Index width = ProductScratch<T>::width;
    for (Index j = 0; j < Z.rows; j += width) {
        const Matrix<const T> part = Z.slice(j, minimum(j + width, Z.rows));
        with_registers<kMostColumns>(count_blocks(part.rows, ProductScratch<T>::lanes), [&](auto registers) {
            visit_panel<kind, registers.value>(X, part, j, scratch, visit);
        });
    }
}

}  // namespace wm
