// Budgeted stochastic gradient descent: counts, sums, margin test and averaging, for any budget maintenance.
//
//     min_w  lam/2 |w|^2 + mean_i s_i max(0, 1 - y_i f(x_i)),   w a combination of at most `budget` points
//
// A step of size 1 / (lam t) on row i that first scales w by 1 - 1 / t gives
//
//     lam t w_{t+1} = lam (t - 1) w_t + s_i y_i phi(x_i) [y_i f(x_i) < 1]
//
// so the left side is stored: no coefficient is scaled at a step, and none can underflow. The averaged machine has
// weights v_t = v_(t-1) (1 + 3 / t + [budget maintained] / budget), which grow like t^3, and faster where the budget is
// maintained. With the step size sum S_t = sum_(i <= t) v_i / i, a coefficient sum is kept for every coefficient: of the
// same terms, each times the step size sum when it was added. Then S_t coef - coef_sum is lam times the weighted sum over
// steps of the true coefficient.
//
// The average restarts at the current machine once it has made 4 mistakes more than the current machine, by Page's
// CUSUM test: E <- max(0, E + [average wrong] - [current wrong]) over every fourth row, before its step. So it follows
// a stream whose labels drift, and is kept where it is the better machine.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "span.hpp"

namespace wm {

// What a step depends on beside the machine and the row.
struct StepRule {
    Index budget;
    double inverse_lam;
    double intercept;  // 1 or 0: whether there is one, regularised as the coefficient of a constant feature
};

// Counts and sums over steps; one step is begin_step, an insertion and budget maintenance if it returned true, end_step.
//
// Cost    O(1) a step, O(budget) where the sums are rescaled or the average restarts
// Twin    tests/naive/budget.py::Machine.step, average
struct StepState {
    // The order of the arrays `counts` and `sums` in Python, and in saved models.
    enum Count { kSteps, kFront, kBack, kViolations, kMergers, kRemovals, kExcessMistakes, kCounts };
    enum Sum { kIntercept, kInterceptSum, kStepSizeSum, kLastWeight, kWeightSum, kHingeSum, kDegradationSum, kSums };

    static constexpr Index kComparedRows = 4, kMostExcess = 4;  // compared on every 4th row; restart at 4 more mistakes

    std::array<Index, kCounts> counts{};
    std::array<double, kSums> sums{};

    StepState(Span<const Index> c, Span<const double> s) {
        std::copy_n(c.data, counts.size(), counts.data());
        std::copy_n(s.data, sums.size(), sums.data());
    }
    void store(Span<Index> c, Span<double> s) const {
        std::copy_n(counts.data(), counts.size(), c.data);
        std::copy_n(sums.data(), sums.size(), s.data);
    }

    // Count a step on a row of decision value f (in units of 1 / (lam t)); returns whether it violates the margin.
    bool begin_step(double f, double signed_weight, const StepRule& rule) {
        const auto n_before = static_cast<double>(maximum<Index>(counts[kSteps]++, 1));
        const double margin = (signed_weight > 0.0 ? f : -f) * rule.inverse_lam / n_before;
        if (!(margin < 1.0) || signed_weight == 0.0) return false;
        counts[kViolations] += 1;
        sums[kHingeSum] += std::abs(signed_weight) * (1.0 - margin);
        sums[kIntercept] += rule.intercept * signed_weight;
        sums[kInterceptSum] += rule.intercept * signed_weight * sums[kStepSizeSum];
        return true;
    }

    // Whether the current and the averaged machine are compared on this row.
    bool is_compared() const { return counts[kSteps] % kComparedRows == 0 && sums[kWeightSum] > 0.0; }

    // Update the cumulative sum of mistakes by the decision values of the current machine, f, and of the coefficient sums,
    // f_sum, on the row of the next step; restart the average where it reaches its limit.
    void compare(double f, double f_sum, double signed_weight, Span<double> coef_sums) {
        if (signed_weight == 0.0) return;
        const double sign = signed_weight > 0.0 ? 1.0 : -1.0, average = sums[kStepSizeSum] * f - f_sum;
        const Index difference = Index(!(sign * average > 0.0)) - Index(!(sign * f > 0.0));
        counts[kExcessMistakes] = maximum<Index>(0, counts[kExcessMistakes] + difference);
        if (counts[kExcessMistakes] < kMostExcess) return;
        counts[kExcessMistakes] = 0;
        for (const Sum at : {kInterceptSum, kStepSizeSum, kWeightSum}) sums[at] = 0.0;
        sums[kLastWeight] = 1.0;
        for (double& sum : coef_sums) sum = 0.0;
    }

    // Add the squared weight degradation of a budget maintenance, given in units of 1 / (lam t).
    void add_degradation(double squared_norm, const StepRule& rule) {
        const double unit = rule.inverse_lam / static_cast<double>(counts[kSteps]);
        sums[kDegradationSum] += squared_norm * unit * unit;
    }

    // Add the step to the average; growth: 1 / budget where the budget was maintained, else 0.
    void end_step(double growth, Span<double> coef_sums) {
        const auto t = static_cast<double>(counts[kSteps]);
        sums[kLastWeight] *= 1.0 + 3.0 / t + growth;
        sums[kStepSizeSum] += sums[kLastWeight] / t;
        sums[kWeightSum] += sums[kLastWeight];
        if (!(sums[kLastWeight] > 1e100)) return;
        const double unit = 1.0 / sums[kLastWeight];
        for (const Sum at : {kInterceptSum, kStepSizeSum, kLastWeight, kWeightSum}) sums[at] *= unit;
        for (double& sum : coef_sums) sum *= unit;
    }
};

}  // namespace wm
