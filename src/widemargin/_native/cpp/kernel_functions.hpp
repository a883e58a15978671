// Kernel functions of inner products or distances: of the entries of a tile, and of a row's numbers. To add one, write it
// here and in kernels/functions.py.
#pragma once
#include <cmath>

#include "exponential.hpp"
#include "pairwise.hpp"
#include "span.hpp"

namespace wm {

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

// A kernel function of one number: the inner product, squared distance or L1 distance of two points (KernelArgument).
struct KernelFunction {
    enum Kind { rbf, laplacian, polynomial, sigmoid, linear } kind;
    double gamma, coef0;
    Index degree;

    KernelArgument argument() const {
        if (kind == rbf) return KernelArgument::squared_distance;
        return kind == laplacian ? KernelArgument::l1_distance : KernelArgument::inner_product;
    }
};

struct NamedKind {
    const char* name;
    KernelFunction::Kind kind;
};
constexpr NamedKind kKernelNames[] = {{"rbf", KernelFunction::rbf}, {"laplacian", KernelFunction::laplacian},
                                      {"poly", KernelFunction::polynomial}, {"sigmoid", KernelFunction::sigmoid},
                                      {"linear", KernelFunction::linear}};

inline float hyperbolic_tangent(float x) {
    const float e = expm1_of_nonpositive(-2.0f * std::abs(x));
    return std::copysign(e / (2.0f + e), x);
}
inline double hyperbolic_tangent(double x) { return std::tanh(x); }

// Replace products or distances (n,) by kernel values; scratch (n,).
// Cost    an exponential each, or the degree's multiplications
// Twin    tests/naive/kernels.py
template <class T> void transform(const KernelFunction& kernel, Span<T> values, Span<T> scratch) {
    T* __restrict v = values.data;
    const T gamma = static_cast<T>(kernel.gamma), coef0 = static_cast<T>(kernel.coef0);
    switch (kernel.kind) {
        case KernelFunction::rbf:
        case KernelFunction::laplacian:
            for (Index j = 0; j < values.size; ++j) v[j] = exp_of_nonpositive(-gamma * v[j]);
            return;
        case KernelFunction::polynomial:
            return polynomial<T>({v, 1, values.size, values.size}, kernel.gamma, kernel.coef0, kernel.degree, scratch);
        case KernelFunction::sigmoid:
            for (Index j = 0; j < values.size; ++j) v[j] = hyperbolic_tangent(gamma * v[j] + coef0);
            return;
        case KernelFunction::linear: return;
    }
}

}  // namespace wm
