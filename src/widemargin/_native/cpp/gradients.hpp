// Gradients of kernel expansions: weighted sums of the signs of differences, for kernels of L1 distances.
#pragma once
#include "span.hpp"

namespace wm {

constexpr Index kSignColumns = 4;  // columns at a time: independent sums, which share the loads of the weights

// w sign(x - z); 0 where x = z
template <class T> WM_INLINE T signed_weight(T x, T z, T w) { return (z < x ? w : T(0)) - (z > x ? w : T(0)); }

// out (c, d): out_ik += sum_j W_ij sign(X_ik - Z_jk), the gradients by x_i of sum_j W_ij |x_i - z_j|_1
//
// Given   X (c, d), Zt (d, r): the transpose of Z; W (c, r); out in float64
// Cost    five operations for each of c r d differences, vectorised over j
// Exact   a sum does not depend on the other rows X
// Twin    tests/naive/kernels.py::gradient
template <class T>
void add_signed_sums(Matrix<const T> X, Matrix<const T> Zt, Matrix<const T> W, Matrix<double> out) {
    for (Index i = 0; i < X.rows; ++i) {
        const T* __restrict w = W[i].data;
        Index k = 0;
        for (; k + kSignColumns <= X.columns; k += kSignColumns) {
            const T *a = Zt[k].data, *b = Zt[k + 1].data, *c = Zt[k + 2].data, *d = Zt[k + 3].data;
            const Span<const T> x = X[i].slice(k, k + kSignColumns);
            T sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
            for (Index j = 0; j < Zt.columns; ++j) {
                sum_a += signed_weight(x.data[0], a[j], w[j]);
                sum_b += signed_weight(x.data[1], b[j], w[j]);
                sum_c += signed_weight(x.data[2], c[j], w[j]);
                sum_d += signed_weight(x.data[3], d[j], w[j]);
            }
            out[i][k] += sum_a, out[i][k + 1] += sum_b, out[i][k + 2] += sum_c, out[i][k + 3] += sum_d;
        }
        for (; k < X.columns; ++k) {
            const T* z = Zt[k].data;
            T sum = 0;
            for (Index j = 0; j < Zt.columns; ++j) sum += signed_weight(X[i][k], z[j], w[j]);
            out[i][k] += sum;
        }
    }
}

}  // namespace wm
