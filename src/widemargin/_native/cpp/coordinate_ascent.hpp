// Dual coordinate ascent for hinges: one row after another, in an order that is given.
#pragma once
#include <cmath>
#include <limits>

#include "csr.hpp"
#include "registers.hpp"
#include "span.hpp"

namespace wm {

// What the ascent asks of rows, dense (n, d) and sparse.

template <class T> const T* row_of(const Matrix<const T>& X, Index i) { return X[i].data; }

template <class T> double inner(const Matrix<const T>& X, Index i, const double* w) {
    return inner_product(row_of(X, i), w, X.columns);
}
template <class T, class I> double inner(const CSR<T, I>& X, Index i, const double* __restrict w) {
    const Span<const T> x = X.values(i);
    const I* columns = X.columns_of(i).data;
    double product = 0.0;
    for (Index t = 0; t < x.size; ++t) product += x.data[t] * w[columns[t]];
    return product;
}

template <class T> double squared_norm(const Matrix<const T>& X, Index i) { return squared_norm(row_of(X, i), X.columns); }
template <class T, class I> double squared_norm(const CSR<T, I>& X, Index i) {
    return squared_norm(X.values(i).data, X.values(i).size);
}

// w += scale x_i
template <class T> void add_row(const Matrix<const T>& X, Index i, double scale, double* __restrict w) {
    add_scaled(row_of(X, i), scale, w, X.columns);
}
template <class T, class I> void add_row(const CSR<T, I>& X, Index i, double scale, double* __restrict w) {
    const Span<const T> x = X.values(i);
    const I* __restrict columns = X.columns_of(i).data;
    for (Index t = 0; t < x.size; ++t) w[columns[t]] += scale * x.data[t];
}

template <class T> Index n_rows(const Matrix<const T>& X) { return X.rows; }
template <class T, class I> Index n_rows(const CSR<T, I>& X) { return X.rows(); }
template <class T> Index count_values(const Matrix<const T>& X) { return X.rows * X.columns; }
template <class T, class I> Index count_values(const CSR<T, I>& X) { return X.nnz(); }

template <class T> T value_of(const Matrix<const T>&) { return {}; }
template <class T, class I> T value_of(const CSR<T, I>&) { return {}; }

// Row i is on its way when its turn comes: the processor foresees no random order, but the end of a row that has begun.
template <class T> WM_INLINE void prefetch_head(const T* x, Index n) {
    constexpr Index kBytes = 256;
    prefetch(x, x + least<Index>(n, kBytes / sizeof(T)));
}
template <class T> WM_INLINE void prefetch_row(const Matrix<const T>& X, Index i) { prefetch_head(row_of(X, i), X.columns); }
template <class T, class I> WM_INLINE void prefetch_row(const CSR<T, I>& X, Index i) {
    prefetch_head(X.columns_of(i).data, X.columns_of(i).size);
    prefetch_head(X.values(i).data, X.values(i).size);
}

// Sum of the squares of all values.
template <class Rows> double squared_norm(const Rows& X) {
    double total = 0.0;
    for (Index i = 0; i < n_rows(X); ++i) total += squared_norm(X, i);
    return total;
}

// What an epoch leaves: how many rows are not set aside, and the largest and the least projected gradient.
struct Epoch {
    Index n_kept;
    double largest, least;
};

// The point of an ascent: alpha (n,), 0 <= alpha_i <= C s_i; signed_weights (n,) = s y; w (d + 1,) = sum alpha_i y_i
// x_i, and last the intercept b + sigma sum alpha_i y_i.
struct DualPoint {
    Span<const double> signed_weights;
    double C, sigma;
    Span<double> alpha, w;
};

// One epoch: each dual variable in turn at its best.
//
// Solve   max_a  sum a - 1/2 |sum a_i y_i x_i|^2 - b sum a_i y_i - sigma/2 (sum a_i y_i)^2   s.t.  0 <= a_i <= C s_i
// Given   rows; their dual point, updated; sigma 0 for no intercept; order (m,), the rows to visit, replaced at its head
//         by those that are not set aside, in this order; shrink_above, shrink_below: the largest and the least projected
//         gradient of the epoch before: what lies at a bound beyond them is set aside
// Cost    three passes over a row that changes, one over the others
// Source  Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008, algorithm 3; the intercept by the method of multipliers
// Twin    tests/naive/cutting_plane.py::ascend
template <class Rows>
Epoch ascent_epoch(const Rows& X, const DualPoint& point, Span<Index> order, double shrink_above, double shrink_below) {
    constexpr Index kAhead = 8;  // rows: the memory's answer takes about as long as their steps
    constexpr Index kFar = 1 << 23;  // bytes that no cache is trusted to hold
    const bool is_far = count_values(X) * static_cast<Index>(sizeof(value_of(X))) > kFar;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double* w = point.w.data;
    double& intercept = point.w[point.w.size - 1];
    double largest = -kInfinity, smallest = kInfinity;
    Index n_kept = 0;
    for (Index k = 0; k < order.size; ++k) {
        const Index later = order[least(k + kAhead, order.size - 1)], i = order[k];
        if (is_far) {
            prefetch_row(X, later);
            WM_PREFETCH(point.signed_weights.data + later);
            WM_PREFETCH(point.alpha.data + later);
        }
        const double y = point.signed_weights[i] > 0.0 ? 1.0 : -1.0, upper = point.C * std::abs(point.signed_weights[i]);
        const double a = point.alpha[i], grad = y * (inner(X, i, w) + intercept) - 1.0;
        if ((a == 0.0 && grad > shrink_above) || (a == upper && grad < shrink_below)) continue;
        order[n_kept++] = i;
        const bool is_held = (a == 0.0 && grad >= 0.0) || (a == upper && grad <= 0.0);
        largest = most(largest, is_held ? 0.0 : grad);
        smallest = least(smallest, is_held ? 0.0 : grad);
        if (is_held) continue;
        const double curvature = squared_norm(X, i) + point.sigma, inverse = 1.0 / curvature;  // does not wait for grad
        const double next = curvature > 0.0 ? clip(a - grad * inverse, 0.0, upper) : upper;
        if (next == a) continue;
        point.alpha[i] = next;
        add_row(X, i, (next - a) * y, w);
        intercept += point.sigma * (next - a) * y;
    }
    return {n_kept, largest > 0.0 ? largest : kInfinity, smallest < 0.0 ? smallest : -kInfinity};
}

// w += sum_i coef_i x_i. Rows of weight 0 are not read.
template <class Rows> void add_rows(const Rows& X, Span<const double> coef, double* w) {
    for (Index i = 0; i < coef.size; ++i)
        if (coef[i] != 0.0) add_row(X, i, coef[i], w);
}

}  // namespace wm
