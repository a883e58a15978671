// Hinge risks at their optimal intercept: R(f) = min_b sum_i s_i max(0, 1 - y_i (f_i + b)).
//
// With the residuals v_i = y_i - f_i the hinges are max(0, y_i (v_i - b)), and an optimal b is a weighted quantile: the
// smallest v_j for which the sum of s_i over v_i <= v_j is at least the sum of s over the rows with positive labels.
#pragma once
#include "hinge.hpp"

namespace wm {

// A weighted quantile: the smallest v of the values with sum(weights[values <= v]) >= level.
//
// Given   values, weights (m,), in any order
// Returns v; NaN if m = 0
// Cost    O(m) expected
// Twin    tests/naive/cutting_plane.py::optimal_intercept_risk
inline double weighted_quantile(Span<const double> values, Span<const double> weights, double level) {
    if (values.size == 0) return std::nan("");
    Quickselect remaining(values, weights);
    while (remaining.size() > 1) {
        const double pivot = remaining.pivot();
        const auto split = remaining.split(pivot);
        if (level <= split.weight_below && split.n_below > 0) {
            remaining.keep_below(pivot);
        } else if (level <= split.weight_below + split.weight_at || split.n_above == 0) {
            return pivot;
        } else {
            level -= split.weight_below + split.weight_at;
            remaining.keep_above(pivot);
        }
    }
    return remaining.value(0);
}

// A value and its weight.
struct WeightedValue {
    double value, weight;
    std::pair<double, double> pair() const { return {value, weight}; }
};

// The residuals y - (f + k (f_end - f)), and a list of those in an interval [lo, hi] that encloses their quantile.
//
// Given   f, f_end, signed_weights (n,): one block; residuals (n,), written; found: gets the block's list of those in
//         [lo, hi] and their weights s
// Returns the weights of the residuals < lo and of those <= hi
// Cost    O(n), one vectorised pass; a second one over those found
// Source  Floyd and Rivest, Expected Time Bounds for Selection, CACM 18, 1975, with weights
// Twin    np.sign(signed) - (f + k * (f_end - f)), and a mask of it
inline Sums<2> collect_residuals(Span<const double> f, Span<const double> f_end, double k,
                                 Span<const double> signed_weights, double lo, double hi, Span<double> residuals, Index block,
                                 BlockLists<WeightedValue>& found) {
    const double *decision = f.data, *end = f_end.data, *signed_ = signed_weights.data;
    double* __restrict into = residuals.data;
    Sums<2> sums{};
    const RowMask in_between(f.size, [&](Index first, auto count) {
        std::uint64_t word = 0;
        double below = 0.0, between = 0.0;
        for (Index j = 0; j < count; ++j) {
            const Index i = first + j;
            const double s = std::abs(signed_[i]), value = label_of(signed_[i]) - (decision[i] + k * (end[i] - decision[i]));
            into[i] = value;
            const bool is_between = (lo <= value) & (value <= hi);
            below += value < lo ? s : 0.0;
            between += is_between ? s : 0.0;
            word |= is_between ? kBits.at[j] : 0;
        }
        sums[0] += below;
        sums[1] += below + between;
        return word;
    });
    const Span<WeightedValue> list = found.reserve(in_between.count());
    Index count = 0;
    in_between.for_each([&](Index i) { list[count++] = {into[i], std::abs(signed_[i])}; });
    found.set(block, list);
    return sums;
}

// As advance_block, at optimal intercepts; the weights of rows at the kink, residuals == plane_intercept, are left to
// write_kink_weights.
//
// Given   f, f_end, signed_weights (n,): one block. f is replaced by f + step (f_end - f); intercept: the optimal one
//         of the new f; residuals (n,): y less the decision values where the plane touches the risk, plane_intercept:
//         their optimal intercept; coef (n,), written: the plane's row weights
// Returns the risk at the new f; the plane's offset without the rows at the kink; sum of s y over violating rows; sum
//         of s over the rows at the kink with positive labels, and with negative ones
// Cost    O(n), one vectorised pass after that of f
// Twin    tests/naive/cutting_plane.py::optimal_intercept_risk
inline Sums<5> advance_block_with_intercept(Span<double> f, Span<const double> f_end, Span<const double> signed_weights,
                                            double step, double intercept, Span<const double> residuals,
                                            double plane_intercept, Span<double> coef) {
    move_along(f, f_end, step);
    const double *decision = f.data, *signed_ = signed_weights.data, *residual = residuals.data;
    double* __restrict plane = coef.data;
    const double zero = opaque(0.0);
    double risk = 0.0, offset = 0.0, excess = 0.0, positive = 0.0, negative = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double w = signed_[i], s = std::abs(w), y = label_of(w);
        risk += s * maximum(zero, 1.0 - y * (decision[i] + intercept));
        const bool is_violated = y * (residual[i] - plane_intercept) > 0.0, is_at_kink = residual[i] == plane_intercept;
        offset += is_violated ? s : 0.0;
        excess += is_violated ? w : 0.0;
        plane[i] = is_violated ? -w : 0.0;
        positive += is_at_kink ? maximum(w, 0.0) : 0.0;
        negative += is_at_kink ? maximum(-w, 0.0) : 0.0;
    }
    return {risk, offset, excess, positive, negative};
}

// Slopes pi in [0, 1] of the rows at the kink, one for positive and one for negative labels. balanced_kink_slopes: those
// with excess + sum s y pi = 0, from the sums of s over the rows of either label.
struct KinkSlopes {
    double positive = 0.0, negative = 0.0;
};
inline KinkSlopes balanced_kink_slopes(double excess, double positive, double negative) {
    KinkSlopes slopes;
    if (excess < 0.0) slopes.positive = positive > 0.0 ? minimum(1.0, -excess / positive) : 0.0;
    else slopes.negative = negative > 0.0 ? minimum(1.0, excess / negative) : 0.0;
    return slopes;
}

// Write the plane's weights of the rows at the kink.
inline void write_kink_weights(Span<const double> residuals, Span<const double> signed_weights, double plane_intercept,
                               KinkSlopes slopes, Span<double> coef) {
    for (Index i = 0; i < residuals.size; ++i)
        if (residuals[i] == plane_intercept)
            coef[i] = -(signed_weights[i] > 0.0 ? slopes.positive : slopes.negative) * signed_weights[i];
}

}  // namespace wm
