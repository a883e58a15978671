// Functions of two sets of rows, dense or CSR: inner products, the matrices of the RBF and the Laplacian kernel, and sums of
// their weighted rows. Products and distances are computed block by block, in the first-level cache, and no matrix of them
// is stored.
#pragma once
#include <algorithm>

#include "csr_tiles.hpp"
#include "dense_products.hpp"
#include "kernel_functions.hpp"
#include "kernel_rows.hpp"

namespace wm {

constexpr Index kBlockColumns = 128, kBlockEntries = kProductRows * kBlockColumns;  // of a block of products, at most
static_assert(kBlockColumns >= ProductScratch<float>::width && kBlockColumns >= Panel<float>::width);

// Scratch for the products of the rows of X and of Z.
template <class T> ProductScratch<T> product_scratch(Matrix<const T>, Matrix<const T> Z) {
    return ProductScratch<T>(Z.rows, Z.columns);
}
template <class T> PanelScratch<T> product_scratch(const CSR<T>& X, const CSR<T>&) {
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
    visit_sums<KernelArgument::inner_product>(x, z, scratch, [&](Index i, Index j, Matrix<T> block) {
        const Index w = minimum(block.columns, out.columns - j);
        for (Index k = 0; k < block.rows; ++k) std::copy_n(block[k].data, w, out[i + k].data + j);
    });
}

// Rows x of a kernel exp(-gamma D) of the squared or the L1 distance D, with the norms |x|^2, or |x|_1 of CSR rows:
// D = |x| + |z| - 2 s, where s is what visit_sums adds up. For L1 distances of dense rows s is D, and there are no norms.
template <KernelArgument distance, class Rows> struct KernelRows {
    static constexpr KernelArgument sum =
        distance == KernelArgument::squared_distance ? KernelArgument::inner_product : distance;
    Rows rows;
    Span<const double> norms;

    KernelRows slice(Index first, Index end) const {
        return {rows.slice(first, end), norms.size > 0 ? norms.slice(first, end) : norms};
    }
    double slope(double gamma) const { return norms.size > 0 ? 2.0 * gamma : -gamma; }  // of the exponent, as a function of s
};
template <class Rows> using RBFRows = KernelRows<KernelArgument::squared_distance, Rows>;
template <class Rows> using LaplacianRows = KernelRows<KernelArgument::l1_distance, Rows>;

// K (n, w) = exp(slope s - gamma |x| - gamma |z|) of the sums s (n, w), x_norms (n,) and z_norms (<= w,): |x|, |z|, or none.
// K and the sums may be the same memory.
template <class T, class P>
void exponentials_of_sums(Matrix<P> sums, Span<const double> x_norms, Span<const double> z_norms, double slope,
                          double gamma, Matrix<T> K) {
    P shift[kBlockColumns] = {};
    for (Index j = 0; j < z_norms.size; ++j) shift[j] = static_cast<P>(gamma * z_norms[j]);
    const P factor = static_cast<P>(slope);
    for (Index i = 0; i < K.rows; ++i) {
        const P* sum = sums[i].data;
        T* into = K[i].data;
        const P s = x_norms.size > 0 ? static_cast<P>(gamma * x_norms[i]) : P(0);
        WM_INDEPENDENT
        for (Index j = 0; j < K.columns; ++j)
            into[j] = exp_of_nonpositive(static_cast<T>(multiply_add(factor, sum[j], -shift[j]) - s));
    }
}

// Call visit(i, j, width, block, write) for blocks (n, w) of the kernel matrix, of which `width` columns are those of rows
// z: write(K) computes the kernel values into K (n, w), which may be the block itself.
template <KernelArgument distance, class X, class Z, class Scratch, class Visit>
void visit_kernel(const KernelRows<distance, X>& x, const KernelRows<distance, Z>& z, double gamma, Scratch& scratch,
                  const Visit& visit) {
    visit_sums<KernelRows<distance, X>::sum>(x.rows, z.rows, scratch, [&](Index i, Index j, auto block) {
        const Index end = minimum(j + block.columns, n_rows(z.rows));
        visit(i, j, end - j, block, [&](auto K) {
            exponentials_of_sums(block, x.slice(i, i + block.rows).norms, z.slice(j, end).norms, x.slope(gamma), gamma, K);
        });
    });
}

// The kernel matrix of two sets of rows: out (r, c) = exp(-gamma D(x, z))
//
// Given   x: r rows, z: c rows of numbers of any type; out of type T, overwritten
// Cost    the inner products or L1 distances, and 12 operations an entry
// Exact   an entry does not depend on the other rows
// Twin    tests/naive/kernels.py::rbf, laplacian
template <class T, KernelArgument distance, class X, class Z, class Scratch>
void kernel_matrix(const KernelRows<distance, X>& x, const KernelRows<distance, Z>& z, double gamma, Scratch& scratch,
                   Matrix<T> out) {
    visit_kernel(x, z, gamma, scratch, [&](Index i, Index j, Index width, auto block, const auto& write) {
        const Matrix<T> into{out[i].data + j, block.rows, block.columns, out.stride};
        if (width == block.columns) return write(into);
        alignas(kCacheLine) T values[kBlockEntries];
        const Matrix<T> K{values, block.rows, block.columns, block.columns};
        write(K);
        for (Index k = 0; k < K.rows; ++k) std::copy_n(K[k].data, width, into[k].data);
    });
}

// out (k, c) += coef K(x, z), where K (r, c) is the kernel matrix
//
// Given   x: r rows, coef (k, r), z: c rows
// Cost    the kernel matrix, and a multiply-add for each entry and coefficient that is not zero
// Exact   terms are added in the order of the rows x: a sum does not depend on the other rows z
// Twin    tests/naive/kernels.py::rbf, laplacian with out + coef @ K
template <KernelArgument distance, class X, class Z, class Scratch>
void add_kernel_product(const KernelRows<distance, X>& x, Matrix<const double> coef, const KernelRows<distance, Z>& z,
                        double gamma, Scratch& scratch, Matrix<double> out) {
    AlignedArray<double> sums(kBlockColumns);  // of whole registers, so that all columns are rounded alike
    visit_kernel(x, z, gamma, scratch, [&](Index i, Index j, Index width, auto K, const auto& write) {
        write(K);
        for (Index a = 0; a < out.rows; ++a) {
            double* const into = out[a].data + j;
            std::copy_n(into, width, sums.data());
            RowSum<typename decltype(K)::Value> sum(sums.span().head(K.columns));
            for (Index k = 0; k < K.rows; ++k)
                if (coef[a][i + k] != 0.0) sum.add(coef[a][i + k], K[k].data);
            sum.finish();
            std::copy_n(sums.data(), width, into);
        }
    });
}

}  // namespace wm
