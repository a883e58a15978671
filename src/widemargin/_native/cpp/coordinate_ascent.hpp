// Dual coordinate ascent for the hinge and the squared hinge, on dense and sparse rows.
#pragma once
#include <cmath>
#include <limits>

#include "csr_passes.hpp"
#include "registers.hpp"
#include "span.hpp"
#include "team.hpp"

namespace wm {

// Operations on row i of dense (n, d) or sparse rows: <x_i, w>; |x_i|^2.

template <class T> double inner(const Matrix<const T>& X, Index i, const double* w) {
    return inner_product(X[i].data, w, X.columns);
}
template <class T> double inner(const CSR<T>& X, Index i, const double* w) {
    return row_product(X.values(i).data, X.columns_of(i).data, X.values(i).size, w);
}

template <class T> double squared_norm(const Matrix<const T>& X, Index i) { return squared_norm(X[i].data, X.columns); }
template <class T> double squared_norm(const CSR<T>& X, Index i) {
    return squared_norm(X.values(i).data, X.values(i).size);
}

// w += scale x_i
template <class T> void add_row(const Matrix<const T>& X, Index i, double scale, double* __restrict w) {
    add_scaled(X[i].data, scale, w, X.columns);
}
template <class T> void add_row(const CSR<T>& X, Index i, double scale, double* __restrict w) {
    const Span<const T> x = X.values(i);
    const Column* __restrict columns = X.columns_of(i).data;
    for (Index t = 0; t < x.size; ++t) w[columns[t]] += scale * x.data[t];
}

template <class T> Index count_values(const Matrix<const T>& X) { return X.rows * X.columns; }
template <class T> Index count_values(const CSR<T>& X) { return X.nnz(); }

// Prefetch the first 256 bytes of row i: its rest is prefetched by the processor itself, which cannot know the random
// order of the rows.
template <class T> WM_INLINE void prefetch_head(const T* x, Index n) {
    constexpr Index kBytes = 256;
    prefetch(x, x + minimum<Index>(n, kBytes / sizeof(T)));
}
template <class T> WM_INLINE void prefetch_row(const Matrix<const T>& X, Index i) { prefetch_head(X[i].data, X.columns); }
template <class T> WM_INLINE void prefetch_row(const CSR<T>& X, Index i) {
    prefetch_head(X.columns_of(i).data, X.columns_of(i).size);
    prefetch_head(X.values(i).data, X.values(i).size);
}

// out (n,) = |x_i|^2
template <class Rows> void squared_norms(const Rows& X, Span<double> out) {
    for (Index i = 0; i < out.size; ++i) out[i] = squared_norm(X, i);
}

// What an epoch finds.
struct Epoch {
    Index n_unshrunk;     // rows that it has not shrunk
    double shrink_above;  // of the next epoch: the largest projected gradient, infinity where none is positive
    double shrink_below;  // of the next epoch: the least projected gradient, -infinity where none is negative
    double gap;           // duality gap, a sum over the rows, each term as it was when its row was visited
};

// A dual point: alpha (n,), 0 <= alpha_i <= C s_i, without the upper bound for squared hinges; signed_weights (n,) = s y;
// squared_norms (n,) = |x_i|^2; w (d + 1,) = sum alpha_i y_i x_i, and last the intercept b + sigma sum alpha_i y_i.
struct DualPoint {
    Span<const double> signed_weights, squared_norms;
    double C, sigma;
    Span<double> alpha, w;
};

// One epoch of dual coordinate ascent with shrinking: each dual variable in turn is set to its maximiser.
//
// Solve   max_a  sum a - 1/2 |sum a_i y_i x_i|^2 - b sum a_i y_i - sigma/2 (sum a_i y_i)^2   s.t.  0 <= a_i <= C s_i
//         of squared hinges less 1/2 sum d_i a_i^2, d_i = 1 / (2 C s_i), without upper bounds
// Given   rows; a dual point, updated; sigma: 0 without an intercept; order (m,): the rows to visit; its first entries
//         are replaced by those that are not shrunk, in this order; shrink_above, shrink_below: those of the last epoch:
//         variables at a bound with gradients beyond them are shrunk; go_on(), whether to continue, is called every 1,024
//         rows: if not, Stopped is thrown, with w that belongs to alpha
// Returns an Epoch; its gap is sum a_i g_i + C s_i max(0, -g_i) with g = -gradient of the maximised function; of squared
//         hinges a sum of g_i^2 / (2 d_i), or a_i g_i - d_i a_i^2 / 2 outside the margin
// Cost    two passes over a row whose variable changes, one over the others
// Source  Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008, algorithm 3; the intercept by the method of multipliers
// Twin    tests/naive/cutting_plane.py::ascend
template <bool is_squared, class Rows, class GoOn>
Epoch ascent_epoch(const Rows& X, const DualPoint& point, Span<Index> order, double shrink_above, double shrink_below,
                   const GoOn& go_on) {
    constexpr Index kRowsBetweenCalls = 1024;
    constexpr Index kAhead = 8;  // rows: their steps take about as long as a load from memory
    constexpr Index kCacheBytes = 1 << 23;  // larger data are prefetched
    const bool is_prefetched = count_values(X) * static_cast<Index>(sizeof(typename Rows::Value)) > kCacheBytes;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double* w = point.w.data;
    double& intercept = point.w[point.w.size - 1];
    double largest = -kInfinity, least = kInfinity, gap = 0.0;
    Index n_unshrunk = 0;
    for (Index k = 0; k < order.size; ++k) {
        if (k % kRowsBetweenCalls == 0 && !go_on()) throw Stopped();
        const Index later = order[minimum(k + kAhead, order.size - 1)], i = order[k];
        if (is_prefetched) {
            prefetch_row(X, later);
            WM_PREFETCH(point.signed_weights.data + later);
            WM_PREFETCH(point.alpha.data + later);
            WM_PREFETCH(point.squared_norms.data + later);
        }
        const double y = point.signed_weights[i] > 0.0 ? 1.0 : -1.0, weight = point.C * std::abs(point.signed_weights[i]);
        const double upper = is_squared ? kInfinity : weight;
        const double damping = is_squared ? 0.5 / maximum(weight, std::numeric_limits<double>::min()) : 0.0;
        const double a = point.alpha[i], grad = y * (inner(X, i, w) + intercept) - 1.0 + damping * a;
        if ((a == 0.0 && grad > shrink_above) || (a == upper && grad < shrink_below)) continue;
        order[n_unshrunk++] = i;
        if constexpr (is_squared) gap += grad < damping * a ? weight * grad * grad : a * (grad - 0.5 * damping * a);
        else gap += a * grad - upper * minimum(grad, 0.0);
        const bool is_optimal = (a == 0.0 && grad >= 0.0) || (a == upper && grad <= 0.0);  // projected gradient 0
        largest = maximum(largest, is_optimal ? 0.0 : grad);
        least = minimum(least, is_optimal ? 0.0 : grad);
        if (is_optimal) continue;
        const double curvature = point.squared_norms[i] + point.sigma + damping, inverse = 1.0 / curvature;  // the division need not wait for grad
        const double next = curvature > 0.0 ? clip(a - grad * inverse, 0.0, upper) : upper;
        if (next == a) continue;
        point.alpha[i] = next;
        add_row(X, i, (next - a) * y, w);
        intercept += point.sigma * (next - a) * y;
    }
    return {n_unshrunk, largest > 0.0 ? largest : kInfinity, least < 0.0 ? least : -kInfinity, gap};
}

}  // namespace wm
