// Hinge risks sum_i s_i max(0, 1 - y_i f_i) of decision values f (n,), and smoothed hinges: one block of rows.
//
// Sample weights s and labels y are given as signed weights s_i y_i; a row of weight zero has label -1.
#pragma once
#include <cmath>

#include "row_blocks.hpp"
#include "quickselect.hpp"

namespace wm {

// A constant whose value the compiler does not know. GCC compiles `maximum` and `clip` with known bounds to comparisons
// and blends in vectorised loops, with unknown ones to one or two instructions.
inline double opaque(double constant) {
    const volatile double place = constant;
    return place;
}

inline double label_of(double signed_weight) { return signed_weight > 0.0 ? 1.0 : -1.0; }

// A segment of decision values f + b + k (f_end - f + c), k >= 0: vectors (n,), intercept b and its change c.
struct Segment {
    Span<const double> f, f_end;
    double intercept = 0.0, intercept_change = 0.0;
};

// A step k at which the derivative of a risk along a segment jumps, and the jump.
struct Breakpoint {
    double k, jump;
    std::pair<double, double> pair() const { return {k, jump}; }
};

// The breakpoints k in (lo, hi) of the risk along a segment, sum_i s_i max(0, 1 - y_i f_i(k)).
//
// Given   segment, signed_weights (n,): one block; hi finite; found: gets the block's list of breakpoints
// Returns the right derivative r'(lo)
// Cost    O(n), one vectorised pass; another over the rows found
// Source  Franc and Sonnenburg 2008, appendix A, table 5
// Twin    tests/naive/cutting_plane.py::hinge_slope
inline double scan_breakpoints(const Segment& segment, Span<const double> signed_weights, double lo, double hi,
                               Index block, BlockLists<Breakpoint>& found) {
    const double *f = segment.f.data, *f_end = segment.f_end.data, *signed_ = signed_weights.data;
    const double intercept = segment.intercept, change = segment.intercept_change;
    double slope = 0.0;
    const RowMask crossing(signed_weights.size, [&](Index first, auto count) {
        std::uint64_t word = 0;
        double sum = 0.0;
        for (Index j = 0; j < count; ++j) {
            const Index i = first + j;
            const double y = label_of(signed_[i]);
            const double rate = -y * (f_end[i] - f[i] + change), slack = 1.0 - y * (f[i] + intercept);
            const double at_lo = slack + lo * rate, at_hi = slack + hi * rate;
            sum += ((at_lo > 0.0) | ((at_lo == 0.0) & (rate > 0.0))) ? -signed_[i] * (f_end[i] - f[i] + change) : 0.0;
            word |= (at_lo > 0.0) != (at_hi > 0.0) ? kBits.at[j] : 0;
        }
        slope += sum;
        return word;
    });
    const Span<Breakpoint> list = found.reserve(crossing.count());
    Index count = 0;
    crossing.for_each([&](Index i) {
        const double y = label_of(signed_[i]), rate = -y * (f_end[i] - f[i] + change);
        const double k = (y * (f[i] + intercept) - 1.0) / rate;
        list[count] = {k, std::abs(signed_[i] * rate)};
        count += k > lo;
    });
    found.set(block, list.head(count));
    return slope;
}

// The step k of a line search.
//
// Solve   curvature k + slope + sum(jumps[breakpoints < k]) = 0: a derivative, linear and increasing but for upward jumps
// Given   breakpoints, jumps (m,), in any order: breakpoints > lo, jumps >= 0; curvature > 0
// Returns k >= lo; lo if the right derivative there is not negative
// Cost    O(m) expected
// Source  Franc and Sonnenburg 2008, appendix A, by selection instead of sorting
// Twin    tests/naive/cutting_plane.py::find_root
inline double find_root(Span<const double> breakpoints, Span<const double> jumps, double curvature, double slope,
                        double lo) {
    if (curvature * lo + slope >= 0.0) return lo;
    Quickselect remaining(breakpoints, jumps);
    while (remaining.size() > 0) {
        const double pivot = remaining.pivot();
        const auto split = remaining.split(pivot);
        const double before = curvature * pivot + slope + split.weight_below;
        if (before >= 0.0) {
            remaining.keep_below(pivot);
        } else if (before + split.weight_at >= 0.0) {
            return pivot;
        } else {
            slope += split.weight_below + split.weight_at;
            remaining.keep_above(pivot);
        }
    }
    return -slope / curvature;
}

// f += step (f_end - f). Where step is 0, f may be the f_end itself.
inline void move_along(Span<double> f, Span<const double> f_end, double step) {
    if (step == 0.0) return;
    for (Index i = 0; i < f.size; ++i) f.data[i] += step * (f_end.data[i] - f.data[i]);
}

// The risk at the minimiser of a line search, and the cutting plane at a point between it and the segment's end.
//
// Given   f, f_end, signed_weights (n,): one block. f is replaced by f + step (f_end - f); coef (n,), written: row
//         weights -s y pi of the plane at f + mu (f_end - f), f the new one
// Returns the risk at the new f; the plane's offset
// Cost    O(n), one vectorised pass after that of f
// Source  Franc and Sonnenburg 2008, equations 7 and 8 and the subgradient below 4
// Twin    tests/naive/cutting_plane.py::intercept_risk with b = 0; ocas, whose planes have the same weights
inline Sums<2> advance_block(Span<double> f, Span<const double> f_end, Span<const double> signed_weights, double step,
                              double mu, Span<double> coef) {
    move_along(f, f_end, step);
    const double *decision = f.data, *end = f_end.data, *signed_ = signed_weights.data;
    double* __restrict plane = coef.data;
    const double zero = opaque(0.0);
    double risk = 0.0, offset = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double s = std::abs(signed_[i]), y = label_of(signed_[i]);
        risk += s * maximum(zero, 1.0 - y * decision[i]);
        const bool is_violated = 1.0 - y * (decision[i] + mu * (end[i] - decision[i])) > 0.0;
        plane[i] = is_violated ? -signed_[i] : 0.0;
        offset += is_violated ? s : 0.0;
    }
    return {risk, offset};
}

// The slope a, before it is clipped to [0, 1], of a smoothed hinge max_(0 <= a <= 1) a z + width a (1 - a) of slack z;
// curvature = 0.5 / width, the second derivative where 0 < a < 1
inline double smoothed_slope(double slack, double curvature) { return 0.5 + slack * curvature; }

// Smoothed (Huberised) hinges s_i max_(0 <= a <= 1) a z_i + width a (1 - a) with slacks
// z_i = 1 - y_i (f_i + b), b the intercept.
//
// Given   f, signed_weights (n,): one block; width > 0; factors in [0, 1] of the slopes a of rows with positive and
//         with negative labels; coef (n,), written: -s y a with a times its factor, row weights of a plane below the
//         hinges
// Returns the sum of the smoothed hinges; the plane's offset sum_i s_i a_i; sum_i s_i (max(0, z_i) - a_i z_i), its
//         distance from the hinges; the sum of the hinges
// Cost    O(n), one vectorised pass
// Source  Nesterov, Smooth minimization of non-smooth functions, Mathematical Programming 103, 2005
// Twin    tests/naive/cutting_plane.py::smoothed_hinges
inline Sums<4> smoothed_hinges(Span<const double> f, double intercept, Span<const double> signed_weights, double width,
                               double positive_factor, double negative_factor, Span<double> coef) {
    const double *decision = f.data, *signed_ = signed_weights.data;
    double* __restrict plane = coef.data;
    const double curvature = 0.5 / width, zero = opaque(0.0), one = opaque(1.0);
    double value = 0.0, offset = 0.0, plane_gap = 0.0, risk = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double s = std::abs(signed_[i]);
        const double z = 1.0 - label_of(signed_[i]) * (decision[i] + intercept), hinge = maximum(zero, z);
        double a = clip(smoothed_slope(z, curvature), zero, one);
        risk += s * hinge;
        value += s * (a * z + width * a * (1.0 - a));
        a *= signed_[i] > 0.0 ? positive_factor : negative_factor;
        offset += s * a;
        plane_gap += s * (hinge - a * z);
        plane[i] = -signed_[i] * a;
    }
    return {value, offset, plane_gap, risk};
}

// Derivatives of the smoothed hinges in the intercept: the first, -sum_i s_i y_i a_i, in two parts, and the second.
//
// Given   f, intercept, signed_weights, width as for smoothed_hinges
// Returns sum_i s_i a_i over the rows with positive labels; the same over negative ones; the second derivative
// Cost    O(n), one vectorised pass
// Twin    tests/naive/cutting_plane.py::smoothed_hinges
inline Sums<3> smoothed_slopes(Span<const double> f, double intercept, Span<const double> signed_weights, double width) {
    const double *decision = f.data, *signed_ = signed_weights.data;
    const double curvature = 0.5 / width, zero = opaque(0.0), one = opaque(1.0);
    double positive = 0.0, negative = 0.0, kink_weight = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double w = signed_[i], slope = smoothed_slope(1.0 - label_of(w) * (decision[i] + intercept), curvature);
        const double a = clip(slope, zero, one);
        positive += maximum(w, zero) * a;
        negative += maximum(-w, zero) * a;
        kink_weight += ((slope > 0.0) & (slope < 1.0)) ? std::abs(w) : 0.0;
    }
    return {positive, negative, kink_weight * curvature};
}

// The rows of non-zero weight in the kink neighbourhood |1 - y (f + intercept)| <= distance.
//
// Given   f, signed_weights (n,): one block; found: gets the block's list of row numbers, ascending
// Cost    O(n), one vectorised pass; a second one over the rows found
// Twin    np.flatnonzero((np.abs(1 - np.sign(signed) * (f + intercept)) <= distance) & (signed != 0))
inline void find_rows_near_kink(Span<const double> f, double intercept, Span<const double> signed_weights, double distance,
                                const RowBlock& block, BlockLists<Index>& found) {
    const double *decision = f.data, *signed_ = signed_weights.data;
    const RowMask near(f.size, [&](Index first, auto count) {
        std::uint64_t word = 0;
        for (Index j = 0; j < count; ++j) {
            const double w = signed_[first + j], slack = 1.0 - label_of(w) * (decision[first + j] + intercept);
            word |= ((std::abs(slack) <= distance) & (w != 0.0)) ? kBits.at[j] : 0;
        }
        return word;
    });
    const Span<Index> rows = found.reserve(near.count());
    Index count = 0;
    near.for_each([&](Index i) { rows[count++] = block.first + i; });
    found.set(block.number, rows);
}

}  // namespace wm
