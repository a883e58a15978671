// Functions of the inner products of two sets of rows, dense or CSR: products, the RBF kernel's matrix, and sums of its
// weighted rows. Products are computed block by block, in the first-level cache, and no matrix of them is stored.
#pragma once
#include <algorithm>

#include "csr_tiles.hpp"
#include "dense_products.hpp"
#include "elementwise.hpp"
#include "kernel_rows.hpp"

namespace wm {

constexpr Index kBlockColumns = 128, kBlockEntries = kProductRows * kBlockColumns;  // of a block of products, at most
static_assert(kBlockColumns >= ProductScratch<float>::width && kBlockColumns >= Panel<float>::width);

// Scratch for the products of the rows of X and of Z.
template <class T> ProductScratch<T> product_scratch(Matrix<const T>, Matrix<const T> Z) {
    return ProductScratch<T>(Z.rows, Z.columns);
}
template <class T, class I, class J> PanelScratch<T> product_scratch(const CSR<T, I>& X, const CSR<T, J>&) {
    return PanelScratch<T>(X.rows(), X.columns, panel_columns(X));
}

// out (r, c) = X Z'
//
// Given   X (r, d), Z (c, d); out, overwritten
// Cost    r c d multiply-adds for dense rows, nnz(X) c for CSR rows
// Exact   a product does not depend on the other rows
// Twin    tests/naive/kernels.py::linear
template <class X, class Z, class Scratch, class T>
void inner_products(const X& x, const Z& z, Scratch& scratch, Matrix<T> out) {
    visit_products(x, z, scratch, [&](Index i, Index j, Matrix<T> block) {
        const Index w = minimum(block.columns, out.columns - j);
        for (Index k = 0; k < block.rows; ++k) std::copy_n(block[k].data, w, out[i + k].data + j);
    });
}

// Rows x with their squared norms |x|^2, `squares`.
template <class Rows> struct RBFRows {
    Rows rows;
    Span<const double> squares;
};

// K (n, w) = exp(-gamma |x - z|^2) from the inner products (n, w) and x_squares (n,), z_squares (<= w,): |x|^2, |z|^2. K and
// the products may be the same memory.
template <class T, class P>
void rbf_of_products(Matrix<P> products, Span<const double> x_squares, Span<const double> z_squares, double gamma,
                     Matrix<T> K) {
    P shift[kBlockColumns] = {};
    for (Index j = 0; j < z_squares.size; ++j) shift[j] = static_cast<P>(gamma * z_squares[j]);
    const P two_gamma = static_cast<P>(2.0 * gamma);
    for (Index i = 0; i < K.rows; ++i) {
        const P* product = products[i].data;
        T* into = K[i].data;
        const P s = static_cast<P>(gamma * x_squares[i]);
        WM_INDEPENDENT
        for (Index j = 0; j < K.columns; ++j)
            into[j] = exp_of_nonpositive(static_cast<T>(multiply_add(two_gamma, product[j], -shift[j]) - s));
    }
}

// Call visit(i, j, block, x_squares, z_squares) for blocks of inner products, as visit_products does, with |x|^2 of their
// rows and |z|^2 of their columns.
template <class X, class Z, class Scratch, class Visit>
void visit_rbf(const RBFRows<X>& x, const RBFRows<Z>& z, Scratch& scratch, const Visit& visit) {
    visit_products(x.rows, z.rows, scratch, [&](Index i, Index j, auto block) {
        const Index end = minimum(j + block.columns, z.squares.size);
        visit(i, j, block, x.squares.slice(i, i + block.rows), z.squares.slice(j, end));
    });
}

// The kernel matrix of two sets of rows: out (r, c) = exp(-gamma |x - z|^2)
//
// Given   x: r rows, z: c rows of numbers of any type; out of type T, overwritten
// Cost    the inner products, and 12 operations an entry
// Exact   an entry does not depend on the other rows
// Twin    tests/naive/kernels.py::rbf
template <class T, class X, class Z, class Scratch>
void rbf_matrix(const RBFRows<X>& x, const RBFRows<Z>& z, double gamma, Scratch& scratch, Matrix<T> out) {
    visit_rbf(x, z, scratch, [&](Index i, Index j, auto block, auto x_squares, auto z_squares) {
        const Matrix<T> into{out[i].data + j, block.rows, block.columns, out.stride};
        if (z_squares.size == block.columns) return rbf_of_products(block, x_squares, z_squares, gamma, into);
        alignas(kCacheLine) T values[kBlockEntries];
        const Matrix<T> K{values, block.rows, block.columns, block.columns};
        rbf_of_products(block, x_squares, z_squares, gamma, K);
        for (Index k = 0; k < K.rows; ++k) std::copy_n(K[k].data, z_squares.size, into[k].data);
    });
}

// out (k, c) += coef K(x, z), where K (r, c) is the kernel matrix
//
// Given   x: r rows, coef (k, r), z: c rows
// Cost    the kernel matrix, and a multiply-add for each entry and coefficient that is not zero
// Exact   terms are added in the order of the rows x: a sum does not depend on the other rows z
// Twin    tests/naive/kernels.py::rbf with out + coef @ K
template <class X, class Z, class Scratch>
void add_rbf_product(const RBFRows<X>& x, Matrix<const double> coef, const RBFRows<Z>& z, double gamma, Scratch& scratch,
                     Matrix<double> out) {
    AlignedArray<double> sums(kBlockColumns);  // of whole registers, so that all columns are rounded alike
    visit_rbf(x, z, scratch, [&](Index i, Index j, auto K, auto x_squares, auto z_squares) {
        rbf_of_products(K, x_squares, z_squares, gamma, K);
        for (Index a = 0; a < out.rows; ++a) {
            double* const into = out[a].data + j;
            std::copy_n(into, z_squares.size, sums.data());
            RowSum<typename decltype(K)::Value> sum(sums.span().head(K.columns));
            for (Index k = 0; k < K.rows; ++k)
                if (coef[a][i + k] != 0.0) sum.add(coef[a][i + k], K[k].data);
            sum.finish();
            std::copy_n(sums.data(), z_squares.size, into);
        }
    });
}

}  // namespace wm
