// Inner products of the rows of two dense matrices, by packed panels.
//
// A panel is a block of features of a few rows of the second matrix, transposed: a register holds one feature of several
// rows, and is combined with one number of a row of the first. No sum is taken across a register. BLAS does the same,
// but packs both matrices: for tiles of a few hundred rows, which stay in the cache, that takes longer than the sums.
#pragma once
#include "aligned.hpp"
#include "registers.hpp"
#include "transpose.hpp"

namespace wm {

constexpr Index kPanelFeatures = 512;  // at most: a panel of 64 columns takes 128 KiB of the second-level cache
constexpr int kRegisterRows = 6;       // of the first matrix: their sums fill the registers
constexpr Index kDenseBlockRows = 8 * kRegisterRows;  // of a block: its products stay in the first-level cache
constexpr int kPanelRegisters = kRegisterBytes == 64 ? 4 : 2;  // of a row of a panel, at most

// panel (n, width) = the features first ... first + n - 1 of the rows of Z, transposed; the columns from Z.rows on are
// copies of the last one.
template <class T> void fill_panel(Matrix<const T> Z, Index first, Index n, Index width, T* panel) {
    constexpr Index size = kBlockSize<T>;
    for (Index j = 0; j < width; j += size) {
        const T* rows[size];
        for (Index k = 0; k < size; ++k) rows[k] = Z[least(j + k, Z.rows - 1)].data + first;
        Index f = 0;
        for (; f + size <= n; f += size) transpose_block<T>(rows, f, panel + f * width + j, width);
        for (; f < n; ++f)
            for (Index k = 0; k < size; ++k) panel[f * width + j + k] = rows[k][f];
    }
}

// out_r += (or, for the first features, =) x_r' panel for R rows x_r of n features, a panel of C registers a row.
template <int R, int C, class T>
void add_panel_products(const T* const (&x)[R], const T* panel, Index n, bool is_first, T* const (&out)[R]) {
    using V = Register<T>;
    using Unaligned = Pack<T, kRegisterBytes / sizeof(T)>;
    V sums[R][C] = {};
    if (!is_first) {
        WM_UNROLL
        for (int r = 0; r < R; ++r) {
            WM_UNROLL
            for (int c = 0; c < C; ++c) sums[r][c] = reinterpret_cast<const Unaligned*>(out[r])[c];
        }
    }
    const V* u = reinterpret_cast<const V*>(panel);
    for (Index k = 0; k < n; ++k, u += C) {
        WM_UNROLL
        for (int r = 0; r < R; ++r) {
            WM_UNROLL
            for (int c = 0; c < C; ++c) sums[r][c] += x[r][k] * u[c];
        }
    }
    WM_UNROLL
    for (int r = 0; r < R; ++r) {
        WM_UNROLL
        for (int c = 0; c < C; ++c) reinterpret_cast<Unaligned*>(out[r])[c] = sums[r][c];
    }
}

// Registers of a row of the panel for c rows: 1, 2 or kPanelRegisters.
template <class T> int panel_registers(Index c) {
    const Index n = count_blocks(c, kRegisterBytes / sizeof(T));
    return n <= 2 ? static_cast<int>(most<Index>(n, 1)) : kPanelRegisters;
}

// Memory for the products with c rows of d features: the panel, and one block.
template <class T> struct ProductScratch {
    static constexpr Index lanes = kRegisterBytes / sizeof(T), width = kPanelRegisters * lanes;
    AlignedArray<T> panel, block;

    ProductScratch(Index c, Index d)
        : panel(d * lanes * panel_registers<T>(c)), block(kDenseBlockRows * lanes * panel_registers<T>(c)) {}
};

// block (n, w) = X Z' for n <= kDenseBlockRows rows of X, from the panels of Z.
template <int C, class T> void multiply_block(Matrix<const T> X, const T* panel, T* block) {
    constexpr int R = kRegisterRows;
    constexpr Index width = C * Index(kRegisterBytes / sizeof(T));
    for (Index first = 0; first == 0 || first < X.columns; first += kPanelFeatures)
        for (Index i = 0; i < X.rows; i += R) {
            const T* x[R];
            T* into[R];
            WM_UNROLL
            for (int r = 0; r < R; ++r) {  // the last row again where fewer are left: every product is summed alike
                const Index row = least(i + r, X.rows - 1);
                x[r] = X[row].data + first;
                into[r] = block + row * width;
            }
            const Index n = least(kPanelFeatures, X.columns - first);
            add_panel_products<R, C>(x, panel + first * width, n, first == 0, into);
        }
}

// Call visit(i, j, block) for blocks of products: block (n, w) has those of the rows i ... of X with the rows j ... of
// Z, w a multiple of a register's numbers; visit may change it. Columns beyond the last row of Z repeat it.
template <int C, class T, class Visit>
void visit_panel(Matrix<const T> X, Matrix<const T> Z, Index j, ProductScratch<T>& scratch, const Visit& visit) {
    constexpr Index width = C * Index(kRegisterBytes / sizeof(T));
    for (Index first = 0; first < Z.columns; first += kPanelFeatures)
        fill_panel(Z, first, least(kPanelFeatures, Z.columns - first), width, scratch.panel.data() + first * width);
    for (Index i = 0; i < X.rows; i += kDenseBlockRows) {
        const Matrix<const T> rows = X.slice(i, least(i + kDenseBlockRows, X.rows));
        multiply_block<C>(rows, scratch.panel.data(), scratch.block.data());
        visit(i, j, Matrix<T>{scratch.block.data(), rows.rows, width, width});
    }
}

template <class T, class Visit>
void visit_products(Matrix<const T> X, Matrix<const T> Z, ProductScratch<T>& scratch, const Visit& visit) {
    constexpr Index width = ProductScratch<T>::width;
    for (Index j = 0; j < Z.rows; j += width) {
        const Matrix<const T> part = Z.slice(j, least(j + width, Z.rows));
        const int registers = panel_registers<T>(part.rows);
        if (registers == 1) visit_panel<1>(X, part, j, scratch, visit);
        else if (registers == 2) visit_panel<2>(X, part, j, scratch, visit);
        else visit_panel<kPanelRegisters>(X, part, j, scratch, visit);
    }
}

}  // namespace wm
