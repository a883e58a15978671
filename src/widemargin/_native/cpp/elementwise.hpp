// Elementwise kernel functions of a tile of inner products or distances.
#pragma once
#include "exponential.hpp"
#include "span.hpp"

namespace wm {

// G (r, c) = exp(factor G), in float32
//
// Given   factor G <= 0: positive exponents count as 0
// Cost    about 0.3 ns an entry
inline void exponential(Matrix<float> G, double factor) {
    const float slope = static_cast<float>(factor);
    for (Index i = 0; i < G.rows; ++i) {
        float* __restrict row = G[i].data;
        for (Index j = 0; j < G.columns; ++j) row[j] = exp_of_nonpositive(slope * row[j]);
    }
}

// G (r, c) = (gamma G + coef0)^degree, for inner products G
//
// Given   degree >= 0; scratch (c,)
// Cost    a multiply-add and about 1.5 log2(degree) multiplications an entry
// Twin    tests/naive/kernels.py::polynomial
template <class T> void polynomial(Matrix<T> G, double gamma, double coef0, Index degree, Span<T> scratch) {
    const T slope = static_cast<T>(gamma), shift = static_cast<T>(coef0);
    T* __restrict base = scratch.data;
    for (Index i = 0; i < G.rows; ++i) {
        T* __restrict row = G[i].data;
        for (Index j = 0; j < G.columns; ++j) {
            base[j] = slope * row[j] + shift;
            row[j] = T(1);
        }
        for (Index left = degree; left > 0; left /= 2) {
            if (left % 2 == 1)
                for (Index j = 0; j < G.columns; ++j) row[j] *= base[j];
            for (Index j = 0; j < G.columns; ++j) base[j] *= base[j];
        }
    }
}

}  // namespace wm
