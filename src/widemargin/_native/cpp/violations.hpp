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

// Whether to list violations of coordinates that should fall, of those that should rise, or all.
enum class Side { kFall = -1, kBoth = 0, kRise = 1 };

// Violations of a block of coordinates: the largest one's bits, the numbers in each bin, and places in a list of the chosen.
struct Histogram {
    Bits<double> largest;
    Index count[kBins + 2];  // bin 0: no violation on this side
    Index first_above, first_in_edge, n_in_edge;
};

// Write the bin of each violation, a share of top, and count them.
template <class Magnitude>
void fill_histogram(Index n, const Magnitude& magnitude, double top, Span<std::int16_t> bins, Histogram& histogram) {
    for (Index i = 0; i < n; ++i) {  // vectorised, without the counts
        const double v = magnitude(i), share = v / top * kBins;
        const int bin = share < kBins ? static_cast<int>(share) : kBins;  // infinity / infinity: the top bin
        bins[i] = static_cast<std::int16_t>(v > 0.0 ? bin + 1 : 0);
    }
    // two counters for even and odd rows: most are in the same few bins, and increments of one counter wait for each other
    Index even[kBins + 2] = {}, odd[kBins + 2] = {};
    for (Index i = 0; i < n; ++i) ++(i % 2 ? odd : even)[bins[i]];
    for (int bin = 0; bin < kBins + 2; ++bin) histogram.count[bin] = even[bin] + odd[bin];
}

// The last bin that is taken, and how many violations are.
struct Edge {
    int bin = kBins + 1;
    Index n_chosen = 0;
};

// The edge for the k largest violations, and each block's places in their list: first those above the edge, block by block,
// then of the edge's bin as many as are missing.
inline Edge find_edge(Span<Histogram> histograms, Index k) {
    Edge edge;
    const auto total = [&](int bin) {
        Index sum = 0;
        for (const Histogram& one : histograms) sum += one.count[bin];
        return sum;
    };
    while (edge.bin > 0 && edge.n_chosen + total(edge.bin) <= k) edge.n_chosen += total(edge.bin--);
    Index above = 0;
    for (Histogram& one : histograms) {
        one.first_above = above;
        for (int bin = edge.bin + 1; bin < kBins + 2; ++bin) above += one.count[bin];
        one.first_in_edge = edge.n_chosen;
        one.n_in_edge = edge.bin > 0 ? minimum(one.count[edge.bin], k - edge.n_chosen) : 0;
        edge.n_chosen += one.n_in_edge;
    }
    return edge;
}

// Indices of the k largest violations, by a histogram: of the last bin that is taken, the least indices.
//
// Given   violation (m,) as kkt_violation writes it; bins (m,) and histograms, one for each block of block_rows coordinates:
//         scratch; out (>= min(k, m),), written; run(n, visit) calls visit(block) for n blocks, in any order
// Returns how many were written: at most k, those above the last bin first
// Cost    O(m), no sort
// Twin    the k largest of np.argsort(-violation), but for one bin
template <class Run>
Index largest_violators(Span<const double> violation, Side side, Index k, Index block_rows, Span<std::int16_t> bins,
                        Span<Histogram> histograms, Span<Index> out, const Run& run) {
    const double sign = static_cast<double>(side);
    const auto in_blocks = [&](const auto& visit) {
        run(histograms.size, [&](Index block) {
            const Index first = block * block_rows, end = minimum(first + block_rows, violation.size);
            const double* const own = violation.data + first;
            visit(first, end - first, [=](Index i) { return side == Side::kBoth ? std::abs(own[i]) : sign * own[i]; },
                  bins.slice(first, end), histograms[block]);
        });
    };
    in_blocks([](Index, Index n, const auto& magnitude, Span<std::int16_t>, Histogram& histogram) {
        Bits<double> largest = 0;
        for (Index i = 0; i < n; ++i) largest = maximum(largest, bit_cast<Bits<double>>(magnitude(i)));
        histogram.largest = largest;
    });
    Bits<double> largest = 0;
    for (const Histogram& one : histograms) largest = maximum(largest, one.largest);
    const double top = bit_cast<double>(largest);
    if (!(top > 0.0) || k <= 0) return 0;
    in_blocks([top](Index, Index n, const auto& magnitude, Span<std::int16_t> own, Histogram& histogram) {
        fill_histogram(n, magnitude, top, own, histogram);
    });
    const Edge edge = find_edge(histograms, k);
    in_blocks([&](Index first, Index n, const auto&, Span<std::int16_t> own, Histogram& histogram) {
        Index above = histogram.first_above, in_edge = histogram.first_in_edge;
        const Index end = in_edge + histogram.n_in_edge;
        for (Index i = 0; i < n; ++i) {
            if (own[i] > edge.bin) out[above++] = first + i;
            else if (own[i] == edge.bin && in_edge < end) out[in_edge++] = first + i;
        }
    });
    return edge.n_chosen;
}

}  // namespace wm
