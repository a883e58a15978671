// Partner search for merging: the partner of least weight degradation for a candidate, the point to be merged, by look-up
// tables or golden section search.
//
// Points x_i (the candidate, coefficient a) and x_j (its partner, a_j of the same sign, |a_j| >= |a|) are replaced by
// z = h x_j + (1 - h) x_i. With r = a_j / a >= 1, m = r / (r + 1), kappa = k(x_i, x_j), A = k(z, x_j) =
// kappa^((1 - h)^2) and B = k(z, x_i) = kappa^(h^2), the best h maximises s = m A + (1 - m) B, and lies in [1/2, 1].
#pragma once
#include <cmath>
#include <limits>

#include "aligned.hpp"
#include "exponential.hpp"
#include "span.hpp"

namespace wm {

// How h and the weight degradation are found: `RULES` of solvers/sgd/budgeted_machine.py, in another order.
enum class MergeRule { lookup_wd, lookup_h, gss, gss_precise, gss_paper };

constexpr Index kSlotGroup = 16;  // numbers of slots that loops visit are multiples of this: whole registers
inline Index whole_groups(Index n) { return count_blocks(n, kSlotGroup) * kSlotGroup; }

// Four neighbouring nodes of a look-up table, (i, j), (i + 1, j), (i, j + 1), (i + 1, j + 1): 16 bytes, one load.
struct TableCell {
    float corner[4];

    WM_INLINE float interpolate(float u, float v) const {
        const float low = corner[0] + v * (corner[2] - corner[0]), high = corner[1] + v * (corner[3] - corner[1]);
        return low + u * (high - low);
    }
};

// h and the root of wd = (squared weight degradation) / (a_i + a_j)^2 at the nodes of a t x t grid over m in [1/2, 1]
// and kappa in [0, 1], each node beside its successor in m: a cell is one load, and nodes are stored twice, not four
// times.
class MergeGrids {
  public:
    enum Which { kH, kRootWD };
    static constexpr Index kMostNodes = 4096;  // a side: float32 holds node numbers exactly up to 2^24

    // Given   grids (2, t, t), values in [0, 1]; 2 <= t <= kMostNodes
    explicit MergeGrids(Stack<const float> grids) : side_(grids.rows), pairs_(4 * (side_ - 1) * side_) {
        float* out = pairs_.data();
        for (Index which = 0; which < 2; ++which)
            for (Index i = 0; i + 1 < side_; ++i)
                for (Index j = 0; j < side_; ++j) {
                    *out++ = grids[which][i][j];
                    *out++ = grids[which][i + 1][j];
                }
    }

    Index side() const { return side_; }
    // The cell at nodes (i, j), i and j in [0, t - 1); at = i t + j
    TableCell cell(Which which, std::int32_t at) const {
        const Index first = 2 * (which * (side_ - 1) * side_ + at);
        WM_CHECK(0 <= at && first + 4 <= pairs_.size());
        TableCell found;
        std::memcpy(&found, pairs_.data() + first, sizeof found);
        return found;
    }

  private:
    Index side_;
    AlignedArray<float> pairs_;
};

// The best way to merge a candidate x_i: its partner x_j, -1 where there is none; h; the squared weight degradation.
struct Merger {
    Index partner = -1;
    double h = 0.0, degradation = 0.0;
    double at_partner = 0.0, at_candidate = 0.0;  // k(z, x_j), k(z, x_i)
};

// Squared weight degradation / a^2 = (1 - B^2) + r^2 (1 - A^2) - 2 r (A B - kappa), by expm1: 1 - s^2 would cancel
// for nearly equal points and for partners of much larger coefficients.
template <class Real> WM_INLINE Real relative_degradation(Real ratio, Real h, Real log_kappa) {
    const Real away = Real(1) - h;
    const Real a = expm1_of_nonpositive(away * away * log_kappa), b = expm1_of_nonpositive(h * h * log_kappa);
    const Real c = expm1_of_nonpositive(Real(2) * h * away * log_kappa);  // kappa / (A B) - 1
    const Real cross = Real(2) * ratio * (Real(1) + a) * (Real(1) + b) * c;
    const Real lost = cross - b * (Real(2) + b) - ratio * ratio * a * (Real(2) + a);
    return bit_cast<Real>(maximum(bit_cast<Bits<Real>>(lost), Bits<Real>(0)));  // max(lost, 0): bits as integers
}

// Solve   min over partners j and h of |a phi(x_i) + a_j phi(x_j) - a_z phi(z)|^2, a_z the best coefficient
// Given   grids (look-ups); capacity: the most slots, a multiple of kSlotGroup
// Returns the best merger of a candidate, by `find`
// Cost    lookup_wd: a table look-up and 25 vector operations a partner; lookup_h: a look-up and 3 exponentials; gss:
//         25 exponentials, to 0.01 in h and one step of Newton's method; gss_precise: the same in float64, to 1e-10: 97;
//         gss_paper, in float64: 27 exponentials, to 0.01 on [0, 1]
// Source  Glasmachers, Qaadan 2018, Algorithm 1
// Twin    tests/naive/budget.py::find_partner
template <MergeRule rule> class PartnerSearch {
  public:
    static constexpr bool kIsPaper = rule == MergeRule::gss_paper;
    using Real = std::conditional_t<kIsPaper || rule == MergeRule::gss_precise, double, float>;

    PartnerSearch(const MergeGrids& grids, Index capacity)
        : grids_(grids), ratio_(capacity), score_(capacity), h_(capacity), exponent_(capacity), low_(capacity),
          s0_(capacity), s1_(capacity), a_minus_1_(capacity), b_minus_1_(capacity), at_(capacity), cells_(capacity) {}

    // Given   a; coef, log_kappa, kappa: of `capacity` slots, log_kappa in [-1e30, 0]; partners: slots [first, end)
    // Returns the best merger, without a partner where there is no slot
    Merger find(double a, Span<const double> coef, Span<const float> log_kappa, Span<const float> kappa, Index first,
                Index end) {
        if (first >= end) return {};
        const Index begin = first / kSlotGroup * kSlotGroup;
        n_ = whole_groups(end) - begin;
        set_ratios(a, &coef[begin]);
        if constexpr (rule == MergeRule::lookup_wd) {
            look_up(MergeGrids::kRootWD, &kappa[begin], score_.data());
            WM_INDEPENDENT
            for (Index j = 0; j < n_; ++j) score_.data()[j] *= ratio_.data()[j] + 1.0f;
        } else {
            const Real* exponent = as_reals(&log_kappa[begin]);
            if constexpr (rule == MergeRule::lookup_h) look_up(MergeGrids::kH, &kappa[begin], h_.data());
            else search(exponent);
            set_degradations(exponent);
        }
        const Index best = find_least(first - begin, end - begin);
        return merger_of(begin + best, h_of(best), a, coef[begin + best], log_kappa[begin + best]);
    }

  private:
    static constexpr Real kGolden = Real(0.6180339887498949), kRest = Real(1) - kGolden;
    static constexpr Real kPrecision = Real(rule == MergeRule::gss_precise ? 1e-10 : 1e-2);

    const MergeGrids& grids_;
    Index n_ = 0;
    AlignedArray<Real> ratio_, score_, h_, exponent_, low_, s0_, s1_, a_minus_1_, b_minus_1_;
    AlignedArray<std::int32_t> at_;
    AlignedArray<TableCell> cells_;

    // r = a_j / a, at most 1e12: beyond that z is the partner to the last digit
    void set_ratios(double a, const double* coef) {
        const double inverse = 1.0 / a;
        Real* ratio = ratio_.data();
        WM_INDEPENDENT
        for (Index j = 0; j < n_; ++j)
            ratio[j] = maximum(Real(1), minimum(Real(1e12), static_cast<Real>(coef[j] * inverse)));  // in this order NaN becomes a bound
    }

    // log_kappa in the precision of the search
    const Real* as_reals(const float* log_kappa) {
        if constexpr (std::is_same_v<Real, float>) return log_kappa;
        else {
            WM_INDEPENDENT
            for (Index j = 0; j < n_; ++j) exponent_.data()[j] = log_kappa[j];
            return exponent_.data();
        }
    }

    // Bilinear interpolation for every partner: cell numbers, one load each, weights. Only the loads are scalar.
    void look_up(MergeGrids::Which which, const float* kappa, float* out) {
        const float last = static_cast<float>(grids_.side() - 1), top = last - 1.0f;
        const float* ratio = ratio_.data();
        std::int32_t* at = at_.data();
        float *u = s0_.data(), *v = s1_.data();
        WM_INDEPENDENT
        for (Index j = 0; j < n_; ++j) {
            const float a = (ratio[j] - 1.0f) / (ratio[j] + 1.0f) * last, b = kappa[j] * last;  // (2 m - 1) last
            const float row = minimum(std::floor(a), top), column = minimum(std::floor(b), top);
            at[j] = static_cast<std::int32_t>(row * (last + 1.0f) + column);
            u[j] = a - row;
            v[j] = b - column;
        }
        TableCell* cells = cells_.data();
        for (Index j = 0; j < n_; ++j) cells[j] = grids_.cell(which, at[j]);
        WM_INDEPENDENT
        for (Index j = 0; j < n_; ++j) out[j] = cells[j].interpolate(u[j], v[j]);
    }

    // Golden section search for the maximiser of s(h) on [1/2, 1], for all partners at once: their brackets have one
    // width. Then one step of Newton's method from the last point: for a large ratio the best 1 - h is smaller than any
    // bracket. gss_paper searches on [0, 1] and takes the better inner point of the last bracket.
    void search(const Real* exponent) {
        constexpr Real begin = Real(kIsPaper ? 0.0 : 0.5);
        const Real* ratio = ratio_.data();
        Real *low = low_.data(), *s0 = s0_.data(), *s1 = s1_.data(), width = Real(1) - begin;
        WM_INDEPENDENT
        for (Index j = 0; j < n_; ++j) {
            low[j] = begin;
            s1[j] = Terms(begin + kGolden * width, exponent[j]).sum(ratio[j]);
            s0[j] = Terms(begin + kRest * width, exponent[j]).sum(ratio[j]);
        }
        for (; width > kPrecision; width *= kGolden) narrow(exponent, width);
        if constexpr (kIsPaper) take_better_point(width);
        else step_by_newton(exponent, width);
    }

    void take_better_point(Real width) {
        const Real *low = low_.data(), *s0 = s0_.data(), *s1 = s1_.data();
        Real* h = h_.data();
        WM_INDEPENDENT
        for (Index j = 0; j < n_; ++j) h[j] = low[j] + (s0[j] > s1[j] ? kRest : kGolden) * width;
    }

    // One golden section step: brackets [low, low + width], with the values s0 and s1 at their inner points.
    void narrow(const Real* exponent, Real width) {
        const Real step = kRest * width, at0 = kRest * kGolden * width, at1 = kGolden * kGolden * width;
        const Real* ratio = ratio_.data();
        Real *low = low_.data(), *s0 = s0_.data(), *s1 = s1_.data(), *h = h_.data();
        Real *a_minus_1 = a_minus_1_.data(), *b_minus_1 = b_minus_1_.data();
        WM_INDEPENDENT
        for (Index j = 0; j < n_; ++j) {
            const Real old0 = s0[j], old1 = s1[j], old_low = low[j];
            const bool is_left = old0 > old1;
            low[j] = is_left ? old_low : old_low + step;
            h[j] = low[j] + (is_left ? at0 : at1);
            const Terms terms(h[j], exponent[j]);
            a_minus_1[j] = terms.a_minus_1;
            b_minus_1[j] = terms.b_minus_1;
            const Real fresh = terms.sum(ratio[j]), kept = is_left ? old0 : old1;
            s0[j] = is_left ? fresh : kept;
            s1[j] = is_left ? kept : fresh;
        }
    }

    // A - 1 and B - 1 at h
    struct Terms {
        Real a_minus_1, b_minus_1;
        WM_INLINE Terms(Real h, Real e)
            : a_minus_1(expm1_of_nonpositive((Real(1) - h) * (Real(1) - h) * e)),
              b_minus_1(expm1_of_nonpositive(h * h * e)) {}
        // (s - 1) / (1 - m), which is r A + B - r - 1
        WM_INLINE Real sum(Real ratio) const { return ratio * a_minus_1 + b_minus_1; }
    };

    // One step of Newton's method for s'(h) = 0, within the bracket; where s is not concave, the last point or h = 1, whichever
    // is better
    void step_by_newton(const Real* exponent, Real width) {
        const Real *ratio = ratio_.data(), *low = low_.data();
        const Real *a_minus_1 = a_minus_1_.data(), *b_minus_1 = b_minus_1_.data();
        Real* h = h_.data();
        WM_INDEPENDENT
        for (Index j = 0; j < n_; ++j) {
            const Real x = h[j], away = Real(1) - x, e = exponent[j];
            const Real a_term = ratio[j] * (Real(1) + a_minus_1[j]), b_term = Real(1) + b_minus_1[j];
            const Real minus_second =  // -s'' / (-2 e (1 - m)); below, away * a_term - x * b_term is s' / (-2 e (1 - m))
                a_term * (Real(1) + Real(2) * away * away * e) + b_term * (Real(1) + Real(2) * x * x * e);
            const Real fallback = ratio[j] * a_minus_1[j] + b_minus_1[j] > expm1_of_nonpositive(e) ? x : Real(1);
            const Real newton = x + (away * a_term - x * b_term) / (minus_second > Real(0) ? minus_second : Real(1));
            h[j] = minus_second > Real(0) ? clip(newton, low[j], low[j] + width) : fallback;
        }
    }

    void set_degradations(const Real* exponent) {
        const Real *ratio = ratio_.data(), *h = h_.data();
        Real* score = score_.data();
        WM_INDEPENDENT
        for (Index j = 0; j < n_; ++j) score[j] = relative_degradation(ratio[j], h[j], exponent[j]);
    }

    // The index of the least score in [first, end)
    Index find_least(Index first, Index end) {
        Real* score = score_.data();
        for (Index j = 0; j < first; ++j) score[j] = std::numeric_limits<Real>::infinity();
        for (Index j = end; j < n_; ++j) score[j] = std::numeric_limits<Real>::infinity();
        Bits<Real> lowest = std::numeric_limits<Bits<Real>>::max();
        for (Index j = 0; j < n_; ++j) lowest = minimum(lowest, bit_cast<Bits<Real>>(score[j]));
        Index best = first;
        while (best + 1 < end && bit_cast<Bits<Real>>(score[best]) != lowest) ++best;
        return best;
    }

    // h of a partner; lookup_wd: from the cell that its wd came from
    double h_of(Index best) const {
        if constexpr (rule == MergeRule::lookup_wd)
            return grids_.cell(MergeGrids::kH, at_.data()[best])
                .interpolate(s0_.data()[best], s1_.data()[best]);
        else return h_.data()[best];
    }

    // wd in float64: 2 m (1 - m) (kappa - 1) - (s - 1) (2 + (s - 1))
    static Merger merger_of(Index partner, double h, double a, double coef, double log_kappa) {
        const double m = coef / (coef + a);
        const double a_minus_1 = expm1_of_nonpositive((1.0 - h) * (1.0 - h) * log_kappa);
        const double b_minus_1 = expm1_of_nonpositive(h * h * log_kappa);
        const double s_minus_1 = m * a_minus_1 + (1.0 - m) * b_minus_1;
        const double lost = 2.0 * m * (1.0 - m) * expm1_of_nonpositive(log_kappa) - s_minus_1 * (2.0 + s_minus_1);
        return {partner, h, (coef + a) * (coef + a) * maximum(lost, 0.0), 1.0 + a_minus_1, 1.0 + b_minus_1};
    }
};

}  // namespace wm
