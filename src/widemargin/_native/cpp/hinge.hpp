// Hinge risks sum_i s_i max(0, 1 - y_i f_i) of the outputs f of a linear machine, and smoothed ones: one block of rows.
//
// Rows' weights and labels come as signed weights s_i y_i; a row of weight zero counts as a negative one.
#pragma once
#include <cmath>

#include "row_blocks.hpp"
#include "selection.hpp"

namespace wm {

// A constant that the compiler does not see. Where it sees the bounds of `most` or `clip`, GCC distinguishes cases and
// blends them in vectorised loops; where it does not, it emits one or two vector instructions.
inline double unseen(double constant) {
    const volatile double place = constant;
    return place;
}

inline double label_of(double signed_weight) { return signed_weight > 0.0 ? 1.0 : -1.0; }

// The segment from f to target, less their intercepts: a shift of f, and what is added to it on the way.
struct Segment {
    Span<const double> f, target;
    double shift = 0.0, shift_change = 0.0;
};

struct Breakpoint {
    double key, jump;
    std::pair<double, double> pair() const { return {key, jump}; }
};

// Solve   where does the derivative of r(k) = sum_i s_i max(0, 1 - y_i (f_i + k (target_i - f_i))) jump, for k in (lo, hi)?
// Given   segment, signed (n,) = s y: one block; hi finite
// Returns the derivative just after lo; found: one list more, the k and by how much
// Cost    O(n), one vectorised pass; another over the rows found
// Source  Franc and Sonnenburg 2008, appendix A, table 5
// Twin    tests/naive/cutting_plane.py::hinge_slope
inline double scan_breakpoints(const Segment& segment, Span<const double> signed_weights, double lo, double hi,
                               Index block, BlockLists<Breakpoint>& found) {
    const double *f = segment.f.data, *target = segment.target.data, *signed_ = signed_weights.data;
    const double shift = segment.shift, change = segment.shift_change;
    double slope = 0.0;
    const RowMask crossing(signed_weights.size, [&](Index first, auto count) {
        std::uint64_t word = 0;
        double sum = 0.0;
        for (Index j = 0; j < count; ++j) {
            const Index i = first + j;
            const double y = label_of(signed_[i]);
            const double rate = -y * (target[i] - f[i] + change), base = 1.0 - y * (f[i] + shift);
            const double at_lo = base + lo * rate, at_hi = base + hi * rate;
            sum += ((at_lo > 0.0) | ((at_lo == 0.0) & (rate > 0.0))) ? -signed_[i] * (target[i] - f[i] + change) : 0.0;
            word |= (at_lo > 0.0) != (at_hi > 0.0) ? kBits.at[j] : 0;
        }
        slope += sum;
        return word;
    });
    const Span<Breakpoint> room = found.reserve(crossing.count());
    Index count = 0;
    crossing.for_each([&](Index i) {
        const double y = label_of(signed_[i]), rate = -y * (target[i] - f[i] + change);
        const double key = (y * (f[i] + shift) - 1.0) / rate;
        room[count] = {key, std::abs(signed_[i] * rate)};
        count += key > lo;
    });
    found.set(block, room.head(count));
    return slope;
}

// Solve   0 in curvature k + slope + sum of jumps[keys < k]   (at a key: anything within its jump)
// Given   keys, jumps (m,), all keys > lo, jumps >= 0, in any order; curvature > 0
// Returns k >= lo; lo if the derivative is not negative just after it
// Cost    O(m) expected
// Source  Franc and Sonnenburg 2008, appendix A, with selection instead of their sort
// Twin    tests/naive/cutting_plane.py::find_root
inline double find_root(Span<const double> keys, Span<const double> jumps, double curvature, double slope, double lo) {
    if (curvature * lo + slope >= 0.0) return lo;
    Selection left(keys, jumps);
    while (left.size() > 0) {
        const double pivot = left.pivot();
        const auto split = left.split(pivot);
        const double before = curvature * pivot + slope + split.weight_below;
        if (before >= 0.0) {
            left.keep_below(pivot);
        } else if (before + split.weight_here >= 0.0) {
            return pivot;
        } else {
            slope += split.weight_below + split.weight_here;
            left.keep_above(pivot);
        }
    }
    return -slope / curvature;
}

// Move f along a segment: f + step (target - f). Where step is 0, f may be the target itself.
inline void move_along(Span<double> f, Span<const double> target, double step) {
    if (step == 0.0) return;
    for (Index i = 0; i < f.size; ++i) f.data[i] += step * (target.data[i] - f.data[i]);
}

// Solve   the risk at the best point of a segment, and a cutting plane near it, at f + mu (target - f) once f has moved
// Given   f, target, signed (n,): one block. f is replaced by f + step (target - f); coef (n,): written, the plane's
//         weight of each row
// Returns the risk at the new f; the plane's offset
// Source  Franc and Sonnenburg 2008, equations 7 and 8 and the subgradient below 4
inline Sums<2> advance_block(Span<double> f, Span<const double> target, Span<const double> signed_weights, double step,
                              double mu, Span<double> coef) {
    move_along(f, target, step);
    const double *g = f.data, *end = target.data, *signed_ = signed_weights.data;
    double* __restrict plane = coef.data;
    const double zero = unseen(0.0);
    double risk = 0.0, offset = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double s = std::abs(signed_[i]), y = label_of(signed_[i]);
        risk += s * most(zero, 1.0 - y * g[i]);
        const bool is_violated = 1.0 - y * (g[i] + mu * (end[i] - g[i])) > 0.0;
        plane[i] = is_violated ? -signed_[i] : 0.0;
        offset += is_violated ? s : 0.0;
    }
    return {risk, offset};
}

// The slope of a smoothed hinge max_(0 <= a <= 1) a margin + width a (1 - a), before it is clipped to [0, 1].
// Given   half = 0.5 / width
inline double smoothed_slope(double margin, double half) { return 0.5 + margin * half; }

// Solve   smoothed (Huberised) hinges, s_i max_(0 <= a <= 1) a m_i + width a (1 - a) with m = 1 - y (f + shift)
// Given   f (n,), less their intercept, shift; signed (n,); width > 0; factors in [0, 1] of the slopes a of positive
//         and of negative rows; coef (n,): written, -s y a
// Returns their sum; sum_i s_i a_i; sum_i s_i (max(0, m_i) - a_i m_i), by how much that plane is below the hinges; the
//         sum of the hinges
// Source  Nesterov, Smooth minimization of non-smooth functions, Mathematical Programming 103, 2005
// Twin    tests/naive/cutting_plane.py::rounded_hinges
inline Sums<4> smoothed_hinges(Span<const double> f, double shift, Span<const double> signed_weights, double width,
                               double on_positive, double on_negative, Span<double> coef) {
    const double *g = f.data, *signed_ = signed_weights.data;
    double* __restrict plane = coef.data;
    const double half = 0.5 / width, zero = unseen(0.0), one = unseen(1.0);
    double value = 0.0, offset = 0.0, loss = 0.0, risk = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double s = std::abs(signed_[i]);
        const double m = 1.0 - label_of(signed_[i]) * (g[i] + shift), hinge = most(zero, m);
        double a = clip(smoothed_slope(m, half), zero, one);
        risk += s * hinge;
        value += s * (a * m + width * a * (1.0 - a));
        a *= signed_[i] > 0.0 ? on_positive : on_negative;
        offset += s * a;
        loss += s * (hinge - a * m);
        plane[i] = -signed_[i] * a;
    }
    return {value, offset, loss, risk};
}

// Solve   how do smoothed hinges change with the shift?
// Given   as above
// Returns the sum of s a over positive rows, and over negative ones; minus the derivative of the first less the second
inline Sums<3> smoothed_slopes(Span<const double> f, double shift, Span<const double> signed_weights, double width) {
    const double *g = f.data, *signed_ = signed_weights.data;
    const double half = 0.5 / width, zero = unseen(0.0), one = unseen(1.0);
    double positive = 0.0, negative = 0.0, rate = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double w = signed_[i], slope = smoothed_slope(1.0 - label_of(w) * (g[i] + shift), half);
        const double a = clip(slope, zero, one);
        positive += most(w, zero) * a;
        negative += most(-w, zero) * a;
        rate += ((slope > 0.0) & (slope < 1.0)) ? std::abs(w) : 0.0;
    }
    return {positive, negative, rate * half};
}

// Solve   which rows with weight are within a distance of the kink of their hinge, |1 - y (f + shift)| <= distance?
// Given   f (n,), less their intercept, shift; signed (n,): one block
// Returns found: one list more, the rows' numbers in ascending order
// Twin    np.flatnonzero((np.abs(1 - np.sign(signed) * (f + shift)) <= distance) & (signed != 0))
inline void find_rows_near_kink(Span<const double> f, double shift, Span<const double> signed_weights, double distance,
                                const RowBlock& block, BlockLists<Index>& found) {
    const double *g = f.data, *signed_ = signed_weights.data;
    const RowMask near(f.size, [&](Index first, auto count) {
        std::uint64_t word = 0;
        for (Index j = 0; j < count; ++j) {
            const double w = signed_[first + j], margin = 1.0 - label_of(w) * (g[first + j] + shift);
            word |= ((std::abs(margin) <= distance) & (w != 0.0)) ? kBits.at[j] : 0;
        }
        return word;
    });
    const Span<Index> rows = found.reserve(near.count());
    Index count = 0;
    near.for_each([&](Index i) { rows[count++] = block.first + i; });
    found.set(block.number, rows);
}

// 1 where a row's class has this number, else -1.
template <class I> void one_vs_rest_signs(Span<const I> numbers, Index positive, Span<double> out) {
    double* __restrict into = out.data;
    for (Index i = 0; i < numbers.size; ++i) into[i] = numbers.data[i] == positive ? 1.0 : -1.0;
}

inline double absolute_sum(Span<const double> values) {
    double total = 0.0;
    for (Index i = 0; i < values.size; ++i) total += std::abs(values.data[i]);
    return total;
}

// Given   values (n,), n > 0; chosen (m,); out (m,): written, values[chosen]
// Returns whether all of them were in [0, n)
inline bool gather(Span<const double> values, Span<const Index> chosen, Span<double> out) {
    const auto n = static_cast<std::uint64_t>(values.size);
    double* __restrict into = out.data;
    bool is_wrong = false;
    for (Index i = 0; i < chosen.size; ++i) {
        const auto place = static_cast<std::uint64_t>(chosen.data[i]);  // a negative one is too large as well
        is_wrong |= place >= n;
        into[i] = values.data[place < n ? place : 0];
    }
    return !is_wrong;
}

}  // namespace wm
