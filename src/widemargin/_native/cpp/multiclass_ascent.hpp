// Dual coordinate ascent for Crammer and Singer's multiclass hinge, on dense and sparse rows.
#pragma once
#include <algorithm>
#include <vector>

#include "coordinate_ascent.hpp"

namespace wm {

// f (k,) += W' x_i and W += x_i delta', for W (>= d, k) and row i of dense or sparse rows.
template <class T> void add_products(const Matrix<const T>& X, Index i, Matrix<const double> W, Span<double> f) {
    for (Index j = 0; j < X.columns; ++j) add_scaled(W[j].data, static_cast<double>(X[i].data[j]), f.data, f.size);
}
template <class T> void add_products(const CSR<T>& X, Index i, Matrix<const double> W, Span<double> f) {
    const Span<const T> x = X.values(i);
    const Column* const columns = X.columns_of(i).data;
    for (Index t = 0; t < x.size; ++t) add_scaled(W[columns[t]].data, static_cast<double>(x.data[t]), f.data, f.size);
}
template <class T> void add_outer(const Matrix<const T>& X, Index i, Span<const double> delta, Matrix<double> W) {
    for (Index j = 0; j < X.columns; ++j)
        add_scaled(delta.data, static_cast<double>(X[i].data[j]), W[j].data, delta.size);
}
template <class T> void add_outer(const CSR<T>& X, Index i, Span<const double> delta, Matrix<double> W) {
    const Span<const T> x = X.values(i);
    const Column* const columns = X.columns_of(i).data;
    for (Index t = 0; t < x.size; ++t)
        add_scaled(delta.data, static_cast<double>(x.data[t]), W[columns[t]].data, delta.size);
}

// A dual point: beta (n, k) with rows of sum 0, beta_ic <= C s_i for the class c = y_i and <= 0 for others; classes y (n,);
// s (n,); squared_norms (n,) = |x_i|^2; constant a: the value of a last feature of every row; W (d + 1, k) = [X, a]' beta.
struct MulticlassPoint {
    Span<const Index> y;
    Span<const double> s, squared_norms;
    double C, constant;
    Matrix<double> beta, W;
};

// The t where a row's dual variables min(u_c, (t - b_c) / A) sum to 0; u_y = upper for its class y, 0 for others.
//
// Given   kinks (k,) = b_c + A u_c, where variables reach their bounds, overwritten; A upper, >= 0
// Method  those with kinks below the t of all variables that are not at a bound are at theirs; t rises with each round
// Cost    O(k) a round, of which there are few, at most k
// Source  Michelot, A finite algorithm for finding the projection of a point onto the canonical simplex of R^n, JOTA 50,
//         1986
// Twin    tests/naive/cutting_plane.py::multiclass_ascend
inline double balancing_level(Span<double> kinks, double scaled_upper) {
    double sum = 0.0;
    for (const double kink : kinks) sum += kink;
    for (Index r = kinks.size;;) {
        const double level = (sum - scaled_upper) / static_cast<double>(r);
        Index kept = 0;
        sum = 0.0;
        for (Index c = 0; c < r; ++c) {
            if (!(kinks[c] > level)) continue;
            sum += kinks[c];
            kinks[kept++] = kinks[c];
        }
        if (kept == r || kept == 0) return level;
        r = kept;
    }
}

// One epoch of dual coordinate ascent: all variables of each row in turn are set to their maximiser.
//
// Solve   max_beta  sum_i beta_(i, y_i) - 1/2 |W|^2   s.t.  the bounds and sums of a MulticlassPoint
// Given   rows; a dual point, updated; order (m,): the rows to visit; go_on(), whether to continue, is called every 256
//         rows: if not, Stopped is thrown, with W that belongs to beta
// Returns the duality gap, a sum over the rows, each term as it was when its row was visited
// Cost    two passes over a row whose variables change, one over the others; k operations a value; no allocation but at
//         its start
// Source  Keerthi, Sundararajan, Chang, Hsieh, Lin, A Sequential Dual Method for Large Scale Multi-Class Linear SVMs, KDD
//         2008, algorithm 3.1, without its heuristics
// Twin    tests/naive/cutting_plane.py::multiclass_ascend
template <class Rows, class GoOn>
double multiclass_epoch(const Rows& X, const MulticlassPoint& point, Span<const Index> order, const GoOn& go_on) {
    constexpr Index kRowsBetweenCalls = 256;
    const Index k = point.W.columns;
    std::vector<double> gradients(k), kinks(k), steps(k);
    const Span<double> grad = as_span(gradients), kink = as_span(kinks), delta = as_span(steps);
    const Span<double> intercepts = point.W[point.W.rows - 1];
    double gap = 0.0;
    for (Index m = 0; m < order.size; ++m) {
        if (m % kRowsBetweenCalls == 0 && !go_on()) throw Stopped();
        const Index i = order[m], own = point.y[i];
        const double upper = point.C * point.s[i];
        const double curvature = point.squared_norms[i] + point.constant * point.constant;
        const Span<double> beta = point.beta[i];
        for (Index c = 0; c < k; ++c) grad[c] = (c == own ? 0.0 : 1.0) + point.constant * intercepts[c];
        add_products(X, i, point.W, grad);
        double largest = grad[own];
        for (Index c = 0; c < k; ++c) {
            largest = maximum(largest, grad[c]);
            gap += beta[c] * grad[c];
        }
        gap += upper * (largest - grad[own]);
        if (!(curvature > 0.0)) {  // an empty row: its loss is 1, and any other class does
            std::fill_n(beta.data, k, 0.0);
            beta[own] += upper;
            beta[own == 0 ? minimum<Index>(1, k - 1) : 0] -= upper;
            continue;
        }
        for (Index c = 0; c < k; ++c) kink[c] = grad[c] - curvature * (beta[c] - (c == own ? upper : 0.0));
        const double level = balancing_level(kink, curvature * upper);
        bool is_changed = false;
        for (Index c = 0; c < k; ++c) {
            const double next = minimum(c == own ? upper : 0.0, beta[c] + (level - grad[c]) / curvature);
            delta[c] = next - beta[c];
            is_changed |= delta[c] != 0.0;
            beta[c] = next;
        }
        if (!is_changed) continue;
        add_outer(X, i, delta, point.W);
        for (Index c = 0; c < k; ++c) intercepts[c] += point.constant * delta[c];
    }
    return gap;
}

}  // namespace wm
