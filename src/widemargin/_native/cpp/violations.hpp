// KKT violations of the kernel machine's dual (`dual.hpp`), and the coordinates with the largest ones.
#pragma once
#include <cmath>

#include "span.hpp"
#include "tile_qp.hpp"

namespace wm {

constexpr int kBins = 256;  // of the histogram of violations

// The dual's terms of single coordinates, sum_i 1/2 D_i beta_i^2 + eps |beta_i| - t_i beta_i on lo_i <= beta_i <= hi_i, and
// the scale 1 / sqrt(K_ii + D_i) that gives tiles a unit diagonal: vectors (m,); no curvature: D = 0.
struct SeparableTerms {
    Span<const double> target, lo, hi, scale;
    double epsilon = 0.0;            // >= 0
    Span<const double> curvature{};  // D

    double curvature_of(Index i) const { return curvature.size ? curvature[i] : 0.0; }
    // Those of the coordinates [first, end).
    SeparableTerms slice(Index first, Index end) const {
        return {target.slice(first, end), lo.slice(first, end), hi.slice(first, end), scale.slice(first, end), epsilon,
                curvature.size ? curvature.slice(first, end) : curvature};
    }
};

// Midpoint of the KKT bounds of the intercept (0 without one), and the KKT violation.
struct Violation {
    double intercept = 0.0, largest = 0.0;
};

// The intercept midway between both extremes, and LIBSVM's m - M; without an intercept 0 and the largest projected
// gradient.
inline Violation intercept_and_violation(Extremes<double> e, bool has_intercept) {
    if (!has_intercept) return {0.0, maximum(maximum(-e.rise, e.fall), 0.0)};
    if (e.rise == kInfinity<double>) return {e.fall == -kInfinity<double> ? 0.0 : -e.fall, 0.0};
    if (e.fall == -kInfinity<double>) return {-e.rise, 0.0};
    return {-0.5 * (e.rise + e.fall), maximum(e.fall - e.rise, 0.0)};
}

// use(gradient), of a function of t: f - target + D beta, the derivatives without the term of epsilon.
template <class Use>
auto with_gradient(const SeparableTerms& terms, Span<const double> beta, Span<const double> f, const Use& use) {
    const double *__restrict values = f.data, *__restrict target = terms.target.data;
    if (!terms.curvature.size) return use([=](Index t) { return values[t] - target[t]; });
    const double *__restrict coef = beta.data, *__restrict curvature = terms.curvature.data;
    return use([=](Index t) { return values[t] - target[t] + curvature[t] * coef[t]; });
}

// The extremes of the derivatives at beta, f (m,): a point and its decision values K beta.
inline Extremes<double> derivative_extremes(const SeparableTerms& terms, Span<const double> beta, Span<const double> f) {
    const double *__restrict coef = beta.data, *__restrict lo = terms.lo.data, *__restrict hi = terms.hi.data;
    const double epsilon = terms.epsilon;
    return with_gradient(terms, beta, f, [=](const auto& gradient) {
        return extremes<double>(
            beta.size, [=](Index t) { return gradient(t) + (coef[t] >= 0.0 ? epsilon : -epsilon); },
            [=](Index t) { return gradient(t) + (coef[t] > 0.0 ? epsilon : -epsilon); },
            [=](Index t) { return coef[t] < hi[t]; }, [=](Index t) { return coef[t] > lo[t]; });
    });
}

// Write the KKT violation of each coordinate with this intercept to out (m,): positive where beta should rise, negative
// where it should fall.
inline void write_violations(const SeparableTerms& terms, Span<const double> beta, Span<const double> f, double intercept,
                             Span<double> out) {
    const double *__restrict coef = beta.data, *__restrict lo = terms.lo.data, *__restrict hi = terms.hi.data;
    double* __restrict violation = out.data;
    const double epsilon = terms.epsilon;
    with_gradient(terms, beta, f, [=](const auto& gradient) {
        for (Index t = 0; t < out.size; ++t) {
            const double rising = gradient(t) + (coef[t] >= 0.0 ? epsilon : -epsilon) + intercept;
            const double falling = gradient(t) + (coef[t] > 0.0 ? epsilon : -epsilon) + intercept;
            const double rise = coef[t] < hi[t] ? maximum(-rising, 0.0) : 0.0;
            const double fall = coef[t] > lo[t] ? maximum(falling, 0.0) : 0.0;
            violation[t] = rise - fall;
        }
    });
}

// KKT violation of each coordinate: positive where beta should rise, negative where it should fall.
//
// Given   terms of (m,) vectors; beta, f (m,): a feasible point and its decision values K beta; out (m,), written
// Returns the intercept, and the violation that is compared with the tolerance
// Cost    O(m), no allocation
// Source  Fan, Chen, Lin 2005, JMLR 6, section 2; without intercept: largest projected gradient
// Twin    tests/naive/dual.py::violation, equality_violation
inline Violation kkt_violation(const SeparableTerms& terms, Span<const double> beta, Span<const double> f,
                               bool has_intercept, Span<double> out) {
    const Violation found = intercept_and_violation(derivative_extremes(terms, beta, f), has_intercept);
    write_violations(terms, beta, f, found.intercept, out);
    return found;
}

// Write first + t to out, in order, for each t where the violation (m,) is not zero. Returns how many.
inline Index list_violators(Span<const double> violation, Index first, Index* out) {
    Index n = 0;
    for (Index t = 0; t < violation.size; ++t) {
        out[n] = first + t;
        n += violation[t] != 0.0;
    }
    return n;
}

// Whether to list violations of coordinates that should fall, of those that should rise, or all.
enum class Side { kFall = -1, kBoth = 0, kRise = 1 };

// The k largest violations of some coordinates, by a histogram: of the last bin that is taken, the first coordinates.
//
// Given   violation (m,) as kkt_violation writes it; violators (n,): coordinates; bins (>= n,), scratch;
//         out (>= min(k, n),), written
// Returns how many coordinates were written: at most k, in no order but that the top bins come first
// Cost    O(n), no sort
// Twin    tests/naive/dual.py::largest_rows
inline Index largest_violators(Span<const double> violation, Span<const Index> violators, Side side, Index k,
                               Span<std::int16_t> bins, Span<Index> out) {
    const double sign = static_cast<double>(side);
    const auto magnitude = [&](Index i) {
        const double v = violation[violators[i]];
        return side == Side::kBoth ? std::abs(v) : sign * v;
    };
    const Index n = violators.size;
    Bits<double> largest = 0;
    for (Index i = 0; i < n; ++i) largest = maximum(largest, bit_cast<Bits<double>>(magnitude(i)));
    const double top = bit_cast<double>(largest);
    if (!(top > 0.0) || k <= 0) return 0;
    for (Index i = 0; i < n; ++i) {  // vectorised, without the counts
        const double v = magnitude(i), share = v / top * kBins;
        const int bin = share < kBins ? static_cast<int>(share) : kBins;  // infinity / infinity: the top bin
        bins[i] = static_cast<std::int16_t>(v > 0.0 ? bin + 1 : 0);
    }
    Index count[kBins + 2] = {}, odd[kBins + 2] = {};  // bin 0: no violation on this side
    // two counters for even and odd places: most violations are in the same few bins, and increments of one counter wait
    // for each other
    for (Index i = 0; i < n; ++i) ++(i % 2 ? odd : count)[bins[i]];
    for (int bin = 0; bin < kBins + 2; ++bin) count[bin] += odd[bin];
    Index total = 0;
    int edge = kBins + 1;
    while (edge > 0 && total + count[edge] <= k) total += count[edge--];
    Index n_chosen = 0;
    for (const bool is_in_edge : {false, true})
        for (Index i = 0; i < n && n_chosen < k; ++i)
            if (bins[i] > 0 && (is_in_edge ? bins[i] == edge : bins[i] > edge)) out[n_chosen++] = violators[i];
    return n_chosen;
}

}  // namespace wm
