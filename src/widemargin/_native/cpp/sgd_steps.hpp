// What all steps of stochastic gradient descent on a budget share: counts, sums, the margin test, the average's weights.
//
//     min_w  lam/2 |w|^2 + mean_i s_i max(0, 1 - y_i f(x_i)),   w a combination of at most `budget` points
//
// A step of size 1 / (lam t) on row i that first scales w by 1 - 1 / t gives
//
//     lam t w_{t+1} = lam (t - 1) w_t + s_i y_i phi(x_i) [y_i f(x_i) < 1]
//
// so the left side is what is kept: nothing is ever scaled, nothing can underflow. The average over steps has weights
// v_t that grow like t^3, and by a factor of 1 + 1 / budget where points change. The clock is sum_t v_t / t, and every
// coefficient has a second sum, of the same terms times the clock when each was added: clock * coef - coef_sum is then
// lam times the weighted sum over steps of the true coefficient.
//
// The average restarts at the current machine once it has misclassified 4 rows more than the current machine, by the
// cumulative sum S <- max(0, S + [average wrong] - [current wrong]) over every fourth row before its step (Page's CUSUM
// test): so it follows a stream whose labels change, and nothing happens where the average is the better one.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "span.hpp"

namespace wm {

struct StepRule {
    Index budget;
    double inverse_lam;
    double intercept;  // 1 or 0: whether there is one, regularised as the coefficient of a constant feature
};

struct StepTotals {
    // The order of the arrays `counts` and `sums` of Python's machines, and of their files.
    enum Count { kSteps, kFront, kBack, kViolations, kMergers, kRemovals, kDoubt, kCounts };
    enum Sum { kIntercept, kInterceptSum, kClock, kWeight, kWeights, kHinge, kDegradation, kSums };

    static constexpr Index kComparedRows = 4, kMostDoubt = 4;

    std::array<Index, kCounts> counts{};
    std::array<double, kSums> sums{};

    StepTotals(Span<const Index> c, Span<const double> s) {
        std::copy_n(c.data, counts.size(), counts.data());
        std::copy_n(s.data, sums.size(), sums.data());
    }
    void store(Span<Index> c, Span<double> s) const {
        std::copy_n(counts.data(), counts.size(), c.data);
        std::copy_n(sums.data(), sums.size(), s.data);
    }

    // Count a step on a row of output f (in units of 1 / (lam t)); returns whether it is within the margin.
    bool begin_step(double f, double signed_weight, const StepRule& rule) {
        const auto n_before = static_cast<double>(most<Index>(counts[kSteps]++, 1));
        const double margin = (signed_weight > 0.0 ? f : -f) * rule.inverse_lam / n_before;
        if (!(margin < 1.0) || signed_weight == 0.0) return false;
        counts[kViolations] += 1;
        sums[kHinge] += std::abs(signed_weight) * (1.0 - margin);
        sums[kIntercept] += rule.intercept * signed_weight;
        sums[kInterceptSum] += rule.intercept * signed_weight * sums[kClock];
        return true;
    }

    // Whether this row's outputs are to be compared.
    bool is_compared() const { return counts[kSteps] % kComparedRows == 0 && sums[kWeights] > 0.0; }

    // Enter the outputs of the current machine and of the second sums on the row of a coming step into the cumulative
    // sum of mistakes; where that reaches its limit, restart the average.
    void compare(double f, double f_sum, double signed_weight, Span<double> coef_sums) {
        if (signed_weight == 0.0) return;
        const double sign = signed_weight > 0.0 ? 1.0 : -1.0, average = sums[kClock] * f - f_sum;
        const Index difference = Index(!(sign * average > 0.0)) - Index(!(sign * f > 0.0));
        counts[kDoubt] = most<Index>(0, counts[kDoubt] + difference);
        if (counts[kDoubt] < kMostDoubt) return;
        counts[kDoubt] = 0;
        for (const Sum at : {kInterceptSum, kClock, kWeights}) sums[at] = 0.0;
        sums[kWeight] = 1.0;
        for (double& sum : coef_sums) sum = 0.0;
    }

    // Enter the squared norm of what a change of points did to w, in the kept units.
    void add_degradation(double squared_norm, const StepRule& rule) {
        const double unit = rule.inverse_lam / static_cast<double>(counts[kSteps]);
        sums[kDegradation] += squared_norm * unit * unit;
    }

    // Enter the step into the average; growth: 1 / budget where points changed, else 0.
    void end_step(double growth, Span<double> coef_sums) {
        const auto t = static_cast<double>(counts[kSteps]);
        sums[kWeight] *= 1.0 + 3.0 / t + growth;
        sums[kClock] += sums[kWeight] / t;
        sums[kWeights] += sums[kWeight];
        if (!(sums[kWeight] > 1e100)) return;
        const double unit = 1.0 / sums[kWeight];
        for (const Sum at : {kInterceptSum, kClock, kWeight, kWeights}) sums[at] *= unit;
        for (double& sum : coef_sums) sum *= unit;
    }
};

}  // namespace wm
