// Budgeted stochastic gradient descent with the Gaussian kernel: steps, and budget maintenance by merging. Points are stored
// feature by feature, so that the inner products of a row with all points are a sum of rows of `points`, one for each
// non-zero: all loops over slots are vectorised, for dense and sparse rows.
#pragma once
#include <array>
#include <numeric>
#include <vector>

#include "csr.hpp"
#include "merge_partner.hpp"
#include "registers.hpp"
#include "sgd_state.hpp"

namespace wm {

using FloatVector = Register<float>;

// The machine. Point j is column j of `points` times slots[kScale][j], plus `shift`. Points with positive coefficients
// fill the slots from the front, the others from the back; empty slots have coefficient 0. The number of slots is an
// odd multiple of kSlotGroup: at a stride of a power of two, a column's values would fall into few sets of the cache.
struct MergingState {
    enum Slot { kCoef, kCoefSum, kScaledNorm, kScale, kSlotRows };  // kScaledNorm: gamma |x|^2

    MergingState(Index d, Index most_points)
        : n_features(d), budget(most_points), n_slots(kSlotGroup * ((most_points / kSlotGroup + 1) | 1)), points(d * n_slots),
          slots(kSlotRows * n_slots), counts(StepState::kCounts), sums(StepState::kSums), shift(d) {
        sums[StepState::kLastWeight] = 1.0;
    }

    const Index n_features, budget, n_slots;
    AlignedArray<float> points;   // (n_features, n_slots)
    AlignedArray<double> slots;   // (4, n_slots)
    AlignedArray<Index> counts;   // StepState::Count
    AlignedArray<double> sums;    // StepState::Sum
    AlignedArray<float> shift;    // (n_features,)
};

// Dense rows (n, d), less a shift (d,).
struct DenseRows {
    Matrix<const float> X;
    Span<const float> shift;

    // The largest number of entries of one of some rows
    Index max_entries(Span<const Index>) const { return X.columns; }
    void prefetch(Index i) const {
        for (Index k = 0; k < minimum<Index>(X.columns, 64); k += 16) WM_PREFETCH(X.data + i * X.stride + k);
    }
    // Write the non-zeros of a row and their columns; returns how many.
    Index gather(Index i, float* __restrict values, Column* __restrict columns) {
        const float* row = X[i].data;
        Index n = 0;
        for (Index k = 0; k < X.columns; ++k) {
            const float value = row[k] - shift.data[k];
            values[n] = value;  // overwritten if it is zero
            columns[n] = static_cast<std::int32_t>(k);
            n += value != 0.0f;
        }
        return n;
    }
};

// Sparse rows (n, d), less a shift (d,): `dense` (d,) is scratch for one row, or empty where the shift is zero.
struct SparseRows {
    CSR<float> X;
    Span<const float> shift;
    std::vector<float> dense;

    Index max_entries(Span<const Index> rows) const {
        Index most = 0;
        for (const Index i : rows) most = maximum(most, X.row_end(i) - X.row_begin(i));
        return most;
    }
    void prefetch(Index i) const {
        WM_PREFETCH(X.data.data + X.row_begin(i));
        WM_PREFETCH(X.indices.data + X.row_begin(i));
    }
    Index gather(Index i, float* __restrict values, Column* __restrict columns) {
        const Span<const float> row = X.values(i);
        const Span<const Column> row_columns = X.columns_of(i);
        if (!dense.empty()) {
            const Span<float> all = as_span(dense);
            for (float& value : all) value = 0.0f;
            for (Index t = 0; t < row.size; ++t) all[static_cast<Index>(row_columns[t])] += row[t];
            return DenseRows{{all.data, 1, all.size, all.size}, shift}.gather(0, values, columns);
        }
        Index n = 0;
        for (Index t = 0; t < row.size; ++t) {
            values[n] = row.data[t];
            columns[n] = row_columns.data[t];
            n += row.data[t] != 0.0f;
        }
        return n;
    }
};

inline DenseRows shifted_rows(Span<const float> shift, Matrix<const float> X) { return {X, shift}; }
inline SparseRows shifted_rows(Span<const float> shift, const CSR<float>& X) {
    const bool is_shifted = std::any_of(shift.begin(), shift.end(), [](float value) { return value != 0.0f; });
    return {X, shift, std::vector<float>(is_shifted ? X.columns : 0)};
}

// Inner products of one row, n non-zeros, with the points of N registers of slots.
template <int N>
inline void inner_products(const float* points, Index stride, const float* values, const Column* columns, Index n,
                           float* out) {
    FloatVector sum[N];  // registers
    WM_UNROLL
    for (int i = 0; i < N; ++i) sum[i] = FloatVector{};
    for (Index k = 0; k < n; ++k) {
        const auto* row = reinterpret_cast<const FloatVector*>(points + columns[k] * stride);
        WM_UNROLL
        for (int i = 0; i < N; ++i) sum[i] += values[k] * row[i];
    }
    WM_UNROLL
    for (int i = 0; i < N; ++i) reinterpret_cast<FloatVector*>(out)[i] = sum[i];
}

// inner_products<N> with N = n_vectors <= 8
template <int N = 8, class... Arguments> inline void inner_products_of(Index n_vectors, const Arguments&... arguments) {
    if (n_vectors == N) inner_products<N>(arguments...);
    else if constexpr (N > 1) inner_products_of<N - 1>(n_vectors, arguments...);
}

// Solve   min_w  lam/2 |w|^2 + mean_i s_i max(0, 1 - y_i f(x_i)) over machines of at most `budget` points, by
//         stochastic gradient steps
// Given   state, and its step_state, whose numbers of points are within the budget; grids for the look-up rules; gamma
//         of the kernel; rule of the steps, with the state's budget
// Returns state, updated in place, its counts and sums at the end of `run`
// Cost    a step: nnz + 20 vector operations on n_slots entries; a merger: the partner search and nnz strided writes
// Source  Wang, Crammer, Vucetic, JMLR 13, 2012; Glasmachers, Qaadan 2018, Algorithm 1
// Twin    tests/naive/budget.py::Machine.step with merge
template <MergeRule merge_rule> class MergingSteps {
  public:
    // step_state: a checked copy of the counts and sums of the state; max_entries: of a row
    MergingSteps(MergingState& state, const StepState& step_state, const MergeGrids& grids, double gamma,
                 const StepRule& rule, Index max_entries)
        : state_(state), points_{state.points.data(), state.n_features, state.n_slots, state.n_slots},
          coef_(row(MergingState::kCoef)), coef_sum_(row(MergingState::kCoefSum)),
          scaled_norm_(row(MergingState::kScaledNorm)), scale_(row(MergingState::kScale)), gamma_(gamma),
          rule_(rule), step_state_(step_state), search_(grids, state.n_slots),
          factor_float_(state.n_slots), scaled_norm_float_(state.n_slots), log_kappa_(state.n_slots),
          kappa_(state.n_slots), values_(maximum(max_entries, state.n_features)), columns_(values_.size()) {
        for (Index j = 0; j < coef_.size; ++j) round_to_float(j);
    }

    // One step on each of the rows in `order`; signed_weights: s_i y_i of every row of the data
    template <class Rows> void run(Rows& rows, Span<const Index> order, Span<const double> signed_weights) {
        constexpr Index kAhead = 4;  // rows to prefetch: their order is random
        for (Index t = 0; t < order.size; ++t) {
            if (t + kAhead < order.size) {
                rows.prefetch(order[t + kAhead]);
                WM_PREFETCH(&signed_weights[order[t + kAhead]]);
            }
            candidate_.nnz = rows.gather(order[t], values_.data(), columns_.data());
            step(signed_weights[order[t]]);
        }
        step_state_.store(state_.counts.span(), state_.sums.span());
    }

  private:
    // The point to insert or merge, most often the row of this step, less the shift: its nnz non-zeros are in values_, their
    // features in columns_; the rest as in a slot
    struct Candidate {
        double coef, coef_sum, scaled_norm;
        Index nnz;
    };

    MergingState& state_;
    const Matrix<float> points_;
    const Span<double> coef_, coef_sum_, scaled_norm_, scale_;
    const double gamma_;
    const StepRule rule_;
    StepState step_state_;
    PartnerSearch<merge_rule> search_;
    AlignedArray<float> factor_float_, scaled_norm_float_;  // of each slot, 2 gamma scale and gamma |x|^2 in float32
    AlignedArray<float> log_kappa_, kappa_;
    std::vector<float> values_;
    std::vector<std::int32_t> columns_;
    Candidate candidate_{};
    double least_coef_ = 0.0;  // a lower bound of all |coefficients|

    Span<double> row(MergingState::Slot which) {
        return {state_.slots.data() + which * state_.n_slots, state_.n_slots};
    }
    Index& n_front() { return step_state_.counts[StepState::kFront]; }
    Index& n_back() { return step_state_.counts[StepState::kBack]; }

    void step(double signed_weight) {
        double squared_norm = 0.0;
        for (Index k = 0; k < candidate_.nnz; ++k) squared_norm += static_cast<double>(values_[k]) * values_[k];
        candidate_.coef = signed_weight;
        candidate_.scaled_norm = gamma_ * squared_norm;
        evaluate_kernel_row();
        const double f = decision_value();
        if (step_state_.is_compared()) compare(f, signed_weight);
        candidate_.coef_sum = signed_weight * step_state_.sums[StepState::kStepSizeSum];
        double growth = 0.0;
        if (step_state_.begin_step(f, signed_weight, rule_)) {
            if (n_front() + n_back() < rule_.budget) {
                insert();
            } else {
                merge_lightest();
                growth = 1.0 / static_cast<double>(rule_.budget);
            }
        }
        step_state_.end_step(growth, coef_sum_);
    }

    // ln k and k of the candidate and all points
    void evaluate_kernel_row() {
        constexpr Index kWidth = kRegisterBytes / sizeof(float), kMostVectors = 8;
        float *log_kappa = log_kappa_.data(), *kappa = kappa_.data();  // log_kappa holds the inner products at first
        const Index n_vectors = points_.columns / kWidth;
        for (Index left = n_vectors, parts = count_blocks(n_vectors, kMostVectors); left > 0; --parts) {
            const Index n = count_blocks(left, parts), first = (n_vectors - left) * kWidth;
            inner_products_of(n, points_.data + first, points_.stride, values_.data(), columns_.data(), candidate_.nnz,
                              log_kappa + first);
            left -= n;
        }
        const auto own_norm = static_cast<float>(candidate_.scaled_norm);
        const float *factor = factor_float_.data(), *norm = scaled_norm_float_.data();
        WM_INDEPENDENT
        for (Index j = 0; j < points_.columns; ++j) {
            const float exponent = factor[j] * log_kappa[j] - own_norm - norm[j];
            log_kappa[j] = clip_nonpositive(exponent, -1e30f);  // no NaN is left
            kappa[j] = exp_of_nonpositive(log_kappa[j]);
        }
    }

    double decision_value() const {
        double f = step_state_.sums[StepState::kIntercept];
        const float* kappa = kappa_.data();
        for (Index j = 0; j < coef_.size; ++j) f += coef_.data[j] * kappa[j];
        return f;
    }

    // The test of StepState::compare, on the candidate. Not inlined: that would slow down the steps without a comparison.
    // The decision value of the coefficient sums is added up in kSlotGroup parts.
    [[gnu::noinline]] void compare(double f, double signed_weight) {
        std::array<double, kSlotGroup> partial{};
        const float* kappa = kappa_.data();
        for (Index j = 0; j < coef_sum_.size; j += kSlotGroup) {
            WM_UNROLL
            for (Index k = 0; k < kSlotGroup; ++k) partial[k] += coef_sum_.data[j + k] * kappa[j + k];
        }
        const double intercept_sum = step_state_.sums[StepState::kInterceptSum];
        const double f_sum = std::accumulate(partial.begin(), partial.end(), intercept_sum);
        step_state_.compare(f, f_sum, signed_weight, coef_sum_);
    }

    // The float32 copies of slot j, for evaluate_kernel_row
    void round_to_float(Index j) {
        factor_float_[j] = static_cast<float>(2.0 * gamma_ * scale_[j]);
        scaled_norm_float_[j] = static_cast<float>(scaled_norm_[j]);
    }

    // Insert the candidate into a free slot, at the end of its sign.
    void insert() {
        const bool is_front = candidate_.coef > 0.0;
        const Index at = is_front ? n_front() : points_.columns - 1 - n_back();
        (is_front ? n_front() : n_back()) += 1;
        for (Index k = 0; k < points_.rows; ++k) points_[k][at] = 0.0f;
        for (Index k = 0; k < candidate_.nnz; ++k) points_[columns_[k]][at] = values_[k];
        coef_[at] = candidate_.coef;
        coef_sum_[at] = candidate_.coef_sum;
        scaled_norm_[at] = candidate_.scaled_norm;
        scale_[at] = 1.0;
        round_to_float(at);
        least_coef_ = minimum(least_coef_, std::abs(candidate_.coef));
    }

    // The slot of the smallest |coefficient|, or -1 if none is smaller than the candidate's. Most often none is: with
    // equal sample weights a new point is the lightest. So a vectorised loop counts before another one looks for the slot.
    Index find_lighter() {
        double lightest = std::abs(candidate_.coef);
        Index n_lighter = 0, slot = -1;
        for (Index j = 0; j < coef_.size; ++j)
            n_lighter += (std::abs(coef_.data[j]) < lightest) & (coef_.data[j] != 0.0);
        for (Index j = 0; j < coef_.size && n_lighter > 0; ++j) {
            const bool is_used = j < n_front() || j >= coef_.size - n_back();
            if (!is_used || !(std::abs(coef_[j]) < lightest) || coef_[j] == 0.0) continue;
            slot = j;
            lightest = std::abs(coef_[j]);
        }
        return slot;
    }

    // Insert the candidate, and make point i the candidate; the last point of its sign moves to slot i.
    void swap_with_candidate(Index i) {
        const bool is_front = i < n_front();
        insert();
        const Index last = is_front ? n_front() - 1 : points_.columns - n_back();
        (is_front ? n_front() : n_back()) -= 1;
        const auto scale = static_cast<float>(scale_[i]);
        candidate_ = {coef_[i], coef_sum_[i], scaled_norm_[i], 0};
        for (Index k = 0; k < points_.rows; ++k) {
            const Span<float> feature = points_[k];
            values_[candidate_.nnz] = scale * feature[i];
            columns_[candidate_.nnz] = static_cast<std::int32_t>(k);
            candidate_.nnz += feature[i] != 0.0f;
            feature[i] = feature[last];
        }
        for (const Span<double>& slot : {coef_, coef_sum_, scaled_norm_, scale_}) slot[i] = slot[last];
        round_to_float(i);
        coef_[last] = coef_sum_[last] = 0.0;
    }

    // Merge the lightest point, most often the row of this step, with its best partner of the same sign.
    void merge_lightest() {
        if (std::abs(candidate_.coef) > least_coef_) {
            const Index lighter = find_lighter();
            if (lighter >= 0) {
                swap_with_candidate(lighter);
                evaluate_kernel_row();
            } else {
                least_coef_ = std::abs(candidate_.coef);
            }
        }
        const bool is_front = candidate_.coef > 0.0;
        const Index n_slots = coef_.size;
        const Merger merger = search_.find(candidate_.coef, coef_, log_kappa_.span(), kappa_.span(),
                                           is_front ? 0 : n_slots - n_back(), is_front ? n_front() : n_slots);
        const bool has_partner = merger.partner >= 0;
        if (has_partner) merge_into(merger);
        step_state_.counts[has_partner ? StepState::kMergers : StepState::kRemovals] += 1;
        step_state_.add_degradation(has_partner ? merger.degradation : candidate_.coef * candidate_.coef, rule_);
    }

    // Replace partner j and the candidate x by z = h x_j + (1 - h) x with the best coefficient, in slot j. Column j of
    // `points` is scaled by `scale_`, so that only the non-zeros of x are added. gamma |z|^2 = h gamma |x_j|^2 +
    // (1 - h) gamma |x|^2 + h (1 - h) ln k(x_j, x), where earlier rounding errors shrink with h.
    void merge_into(const Merger& merger) {
        const Index j = merger.partner;
        const double h = merger.h, away = 1.0 - h, log_kappa = log_kappa_[j];
        scaled_norm_[j] = h * scaled_norm_[j] + away * candidate_.scaled_norm + h * away * log_kappa;
        scale_[j] *= h;
        if (scale_[j] < 1e-15) {
            for (Index k = 0; k < points_.rows; ++k) points_[k][j] *= static_cast<float>(scale_[j]);
            scale_[j] = 1.0;
        }
        round_to_float(j);
        const auto share = static_cast<float>(away / scale_[j]);
        for (Index k = 0; k < candidate_.nnz; ++k) points_[columns_[k]][j] += share * values_[k];
        coef_[j] = coef_[j] * merger.at_partner + candidate_.coef * merger.at_candidate;
        coef_sum_[j] = coef_sum_[j] * merger.at_partner + candidate_.coef_sum * merger.at_candidate;
        least_coef_ = minimum(least_coef_, std::abs(coef_[j]));
    }
};

}  // namespace wm
