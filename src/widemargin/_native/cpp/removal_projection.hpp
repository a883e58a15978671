// Budgeted stochastic gradient descent for any kernel, given as blocks of kernel values: steps, and budget maintenance by
// removal or projection. Support vectors are rows of the data.
#pragma once
#include <limits>
#include <vector>

#include "aligned.hpp"
#include "sgd_state.hpp"

namespace wm {

// A kernel machine whose points are rows of the data. Columns are its points and then the new rows, in order of arrival;
// coef is zero in columns that are not points.
struct SubsetMachine {
    Matrix<double> coef;          // (2, c): coefficients, and coefficient sums (StepState)
    Span<const double> diagonal;  // (c,): k(x, x)
    Matrix<double> inverse;       // (c, c): of the points' kernel matrix, zero elsewhere; unused by removal
};

enum class Maintenance { removal, projection };

// Solve   as MergingSteps, for any kernel
// Given   K (r, c) float32: kernel values of r new rows, whose columns are first, first + 1, ...; signed_weights (r,):
//         s_i y_i; step_state.counts[kFront]: the number of points
// Returns nothing; coef, inverse and step_state are updated
// Cost    c operations a step; projection: 2 budget c for a violation
// Source  Wang, Crammer, Vucetic, JMLR 13, 2012, sections 4.1 and 4.2
// Twin    tests/naive/budget.py::Machine.step with remove or project
template <Maintenance maintenance> class SubsetSteps {
  public:
    SubsetSteps(const SubsetMachine& machine, const StepRule& rule, StepState& step_state)
        : machine_(machine), rule_(rule), step_state_(step_state), k_(machine.diagonal.size), u_(k_.size()), p_(k_.size()) {}

    void run(Matrix<const float> K, Index first, Span<const double> signed_weights) {
        for (Index t = 0; t < K.rows; ++t) step(K[t].head(first + t + 1), signed_weights[t]);
    }

  private:
    // A new point at most at this squared distance, relative to k(x, x), from the span of the others is replaced by its
    // projection at once: the kernel matrix would be nearly singular.
    static constexpr double kDependent = 1e-4;
    const SubsetMachine machine_;
    const StepRule rule_;
    StepState& step_state_;
    // Scratch (c,), of projection: kernel values of the new row with the points; u = (P k, -1); the row P_i of the point to project
    std::vector<double> k_, u_, p_;

    Span<double> coef() const { return machine_.coef[0]; }
    Span<double> coef_sum() const { return machine_.coef[1]; }

    // row: kernel values with all columns up to the new row's own, the last
    void step(Span<const float> row, double signed_weight) {
        const double f = decision_value(row, coef(), StepState::kIntercept);
        if (step_state_.is_compared())
            step_state_.compare(f, decision_value(row, coef_sum(), StepState::kInterceptSum), signed_weight, coef_sum());
        double growth = 0.0;
        if (step_state_.begin_step(f, signed_weight, rule_)) {
            if constexpr (maintenance == Maintenance::projection) {
                const double distance = project(row), norm = machine_.diagonal[row.size - 1];
                if (distance <= kDependent * norm) add_projection(row.size, signed_weight, distance);
                else growth = add(row.size, signed_weight, distance);
            } else {
                growth = add(row.size, signed_weight, 0.0);
            }
        }
        step_state_.end_step(growth, coef_sum());
    }

    double decision_value(Span<const float> row, Span<const double> coef, StepState::Sum intercept) const {
        double f = step_state_.sums[intercept];
        for (Index j = 0; j < row.size; ++j) f += coef.data[j] * row.data[j];
        return f;
    }

    // Make the last of n columns a point and, over the budget, remove or project one; returns the growth of the
    // average's weight.
    double add(Index n, double signed_weight, double distance) {
        Index& n_points = step_state_.counts[StepState::kFront];
        coef()[n - 1] = signed_weight;
        coef_sum()[n - 1] = signed_weight * step_state_.sums[StepState::kStepSizeSum];
        const bool is_over = n_points >= rule_.budget;
        if constexpr (maintenance == Maintenance::projection) extend_inverse(n, distance, is_over);
        else if (is_over) remove_lightest(n);
        n_points += !is_over;
        step_state_.counts[StepState::kRemovals] += is_over;
        return is_over ? 1.0 / static_cast<double>(rule_.budget) : 0.0;
    }

    // Remove the point of least |coefficient|^2 k(x, x), the oldest of equals.
    void remove_lightest(Index n) {
        const double *a = coef().data, *diagonal = machine_.diagonal.data;
        Index best = n - 1;
        double lowest = std::numeric_limits<double>::infinity();
        for (Index j = 0; j < n; ++j) {
            const double weight = a[j] * a[j] * diagonal[j];
            if (a[j] == 0.0 || !(weight < lowest)) continue;
            best = j;
            lowest = weight;
        }
        coef()[best] = coef_sum()[best] = 0.0;
        step_state_.add_degradation(lowest, rule_);
    }

    // The projection of the new point onto the others' span: write its coefficients v = P k to u_, P the inverse of the
    // points' kernel matrix; returns the squared distance.
    double project(Span<const float> row) {
        const Index fresh = row.size - 1;
        double *k = k_.data(), *v = u_.data();
        for (Index j = 0; j < fresh; ++j) k[j] = row.data[j];
        double distance = machine_.diagonal[fresh];
        for (Index j = 0; j < fresh; ++j) {
            const double* inverse = machine_.inverse[j].data;
            double total = 0.0;
            if (inverse[j] != 0.0)
                for (Index i = 0; i < fresh; ++i) total += inverse[i] * k[i];
            v[j] = total;
            distance -= total * k[j];
        }
        return distance;
    }

    // Add the projection of the new point, the last of n columns, times its coefficient to the others' coefficients.
    void add_projection(Index n, double signed_weight, double distance) {
        const double sum_term = signed_weight * step_state_.sums[StepState::kStepSizeSum];
        for (Index j = 0; j + 1 < n; ++j) {
            coef()[j] += signed_weight * u_[j];
            coef_sum()[j] += sum_term * u_[j];
        }
        step_state_.add_degradation(signed_weight * signed_weight * maximum(distance, 0.0), rule_);
    }

    // Extend the inverse P by the last of n columns: P + u u' / distance with u = (v, -1). Over the budget, then
    // project the point with the least squared weight degradation coef_i^2 / P_ii onto the others: its coefficients
    // there are -P_ij / P_ii, by the inverse of a partitioned matrix.
    void extend_inverse(Index n, double distance, bool is_over) {
        double *u = u_.data(), *p = p_.data();
        u[n - 1] = -1.0;
        if (!is_over) {
            std::fill_n(p, n, 0.0);
            return update_inverse(n, 1.0 / distance, 0.0);
        }
        const Index best = find_least_degradation(n, distance);
        for (Index j = 0; j < n; ++j) p[j] = machine_.inverse[best][j] + u[j] * (u[best] / distance);
        const double pivot = p[best];
        step_state_.add_degradation(coef()[best] * coef()[best] / pivot, rule_);
        for (const Span<double>& row : {coef(), coef_sum()}) {
            const double share = row[best] / pivot;
            for (Index j = 0; j < n; ++j) row[j] -= share * p[j];
            row[best] = 0.0;
        }
        update_inverse(n, 1.0 / distance, 1.0 / pivot);
        for (Index j = 0; j < n; ++j) machine_.inverse[best][j] = machine_.inverse[j][best] = 0.0;
    }

    // The point of least coef_i^2 / P_ii, of the extended P
    Index find_least_degradation(Index n, double distance) const {
        Index best = n - 1;
        double lowest = std::numeric_limits<double>::infinity();
        for (Index j = 0; j < n; ++j) {
            const double pivot = machine_.inverse[j][j] + u_[j] * u_[j] / distance;
            if (!(pivot > 0.0) || !(coef()[j] * coef()[j] < lowest * pivot)) continue;
            best = j;
            lowest = coef()[j] * coef()[j] / pivot;
        }
        return best;
    }

    // P += scale_in u u' - scale_out p p', one pass over the points' rows
    void update_inverse(Index n, double scale_in, double scale_out) {
        const double *u = u_.data(), *p = p_.data();
        for (Index j = 0; j < n; ++j) {
            if (u[j] == 0.0 && p[j] == 0.0) continue;
            double* row = machine_.inverse[j].data;
            const double in = scale_in * u[j], out = scale_out * p[j];
            WM_INDEPENDENT
            for (Index i = 0; i < n; ++i) row[i] += in * u[i] - out * p[i];
        }
    }
};

}  // namespace wm
