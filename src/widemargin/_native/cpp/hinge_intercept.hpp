// Hinge risks at their optimal intercept: r(f) = min_b sum_i s_i max(0, 1 - y_i (f_i + b)).
//
// With v_i = y_i - f_i the hinges are max(0, y_i (v_i - b)), and the optimal b is a weighted quantile: the smallest v up
// to which the weights s sum to those of the positive rows.
#pragma once
#include "hinge.hpp"

namespace wm {

// Solve   the smallest of the values up to which the weights sum to `level`
// Given   values, weights (m,), in any order
// Returns it; NaN where there are no values
// Cost    O(m) expected
// Twin    tests/naive/cutting_plane.py::profile_risk
inline double weighted_quantile(Span<const double> values, Span<const double> weights, double level) {
    if (values.size == 0) return std::nan("");
    Selection left(values, weights);
    while (left.size() > 1) {
        const double pivot = left.pivot();
        const auto split = left.split(pivot);
        if (level <= split.weight_below && split.n_below > 0) {
            left.keep_below(pivot);
        } else if (level <= split.weight_below + split.weight_here || split.n_above == 0) {
            return pivot;
        } else {
            level -= split.weight_below + split.weight_here;
            left.keep_above(pivot);
        }
    }
    return left.value(0);
}

struct WeightedValue {
    double value, weight;
    std::pair<double, double> pair() const { return {value, weight}; }
};

// Solve   the values y - f at f + k (target - f), among which a quantile in [lo, hi] is looked for
// Given   f, target, signed (n,) = s y: one block; values (n,): written
// Returns the weight of values below lo, and of those up to hi; found: one list more, the values in [lo, hi]
// Cost    O(n), one vectorised pass; another over those found
// Source  Floyd and Rivest, Expected Time Bounds for Selection, CACM 18, 1975, with weights
inline Sums<2> collect_residuals(Span<const double> f, Span<const double> target, double k,
                              Span<const double> signed_weights, double lo, double hi, Span<double> values, Index block,
                              BlockLists<WeightedValue>& found) {
    const double *g = f.data, *end = target.data, *signed_ = signed_weights.data;
    double* __restrict into = values.data;
    Sums<2> sums{};
    const RowMask in_between(f.size, [&](Index first, auto count) {
        std::uint64_t word = 0;
        double below = 0.0, between = 0.0;
        for (Index j = 0; j < count; ++j) {
            const Index i = first + j;
            const double s = std::abs(signed_[i]), value = label_of(signed_[i]) - (g[i] + k * (end[i] - g[i]));
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
    const Span<WeightedValue> room = found.reserve(in_between.count());
    Index count = 0;
    in_between.for_each([&](Index i) { room[count++] = {into[i], std::abs(signed_[i])}; });
    found.set(block, room);
    return sums;
}

// Solve   the risk at the best point of a segment, and a cutting plane near it, but for the rows on the border
// Given   f, target, signed (n,): one block. f is replaced by f + step (target - f); best: the new point's intercept;
//         values (n,), y - f near it, and near: their optimal intercept; coef (n,): written, the plane's weight of each
//         row
// Returns the risk at the new f; the plane's offset; the sum of s y over violating rows; the weight of positive and of
//         negative rows on the border, values == near
inline Sums<5> advance_block_with_intercept(Span<double> f, Span<const double> target, Span<const double> signed_weights,
                                         double step, double best, Span<const double> values, double near,
                                         Span<double> coef) {
    move_along(f, target, step);
    const double *g = f.data, *signed_ = signed_weights.data, *at = values.data;
    double* __restrict plane = coef.data;
    const double zero = unseen(0.0);
    double risk = 0.0, offset = 0.0, excess = 0.0, positive = 0.0, negative = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double w = signed_[i], s = std::abs(w);
        const double y = label_of(w);
        risk += s * most(zero, 1.0 - y * (g[i] + best));
        const bool is_violated = y * (at[i] - near) > 0.0, is_on_border = at[i] == near;
        offset += is_violated ? s : 0.0;
        excess += is_violated ? w : 0.0;
        plane[i] = is_violated ? -w : 0.0;
        positive += is_on_border ? most(w, 0.0) : 0.0;
        negative += is_on_border ? most(-w, 0.0) : 0.0;
    }
    return {risk, offset, excess, positive, negative};
}

// Which part of the positive and of the negative rows on the border counts as violating, so that the excess is balanced.
struct BorderShares {
    double positive = 0.0, negative = 0.0;
};
inline BorderShares share_border(double excess, double positive, double negative) {
    BorderShares part;
    if (excess < 0.0) part.positive = positive > 0.0 ? least(1.0, -excess / positive) : 0.0;
    else part.negative = negative > 0.0 ? least(1.0, excess / negative) : 0.0;
    return part;
}

// Write the plane's weights of rows on the border.
inline void weigh_border(Span<const double> values, Span<const double> signed_weights, double near, BorderShares part,
                         Span<double> coef) {
    for (Index i = 0; i < values.size; ++i)
        if (values[i] == near)
            coef[i] = -(signed_weights[i] > 0.0 ? part.positive : part.negative) * signed_weights[i];
}

}  // namespace wm
