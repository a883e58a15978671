// Quickselect on weighted values: roots of step functions and weighted quantiles in O(m) expected instead of a sort's
// O(m log m).
#pragma once
#include <memory>

#include "span.hpp"

namespace wm {

// The weighted values that the answer is still among: at first all, later a copy of a part of them.
class Quickselect {
  public:
    Quickselect(Span<const double> values, Span<const double> weights)
        : n_(values.size), values_(values), weights_(weights), scratch_(new double[2 * values.size]) {}

    Index size() const { return values_.size; }
    double value(Index i) const { return values_[i]; }

    // The median of three values at random; perhaps NaN if one of them is.
    double pivot() {
        const double a = random_value(), b = random_value(), c = random_value();
        return maximum(minimum(a, b), minimum(maximum(a, b), c));
    }

    struct Split {
        double weight_below = 0.0, weight_at = 0.0;
        Index n_below = 0, n_above = 0;
    };
    // Counts and weights of the values below, at and above the pivot; NaN counts nowhere.
    Split split(double pivot) const {
        const double *values = values_.data, *weights = weights_.data;
        Split all;
        for (Index i = 0; i < size(); ++i) {
            all.weight_below += values[i] < pivot ? weights[i] : 0.0;
            all.weight_at += values[i] == pivot ? weights[i] : 0.0;
            all.n_below += values[i] < pivot;
            all.n_above += values[i] > pivot;
        }
        return all;
    }
    void keep_below(double pivot) {
        keep([pivot](double value) { return value < pivot; });
    }
    void keep_above(double pivot) {
        keep([pivot](double value) { return value > pivot; });
    }

  private:
    const Index n_;
    Span<const double> values_, weights_;
    std::unique_ptr<double[]> scratch_;  // uninitialised
    std::uint64_t random_ = 0x9E3779B97F4A7C15;

    double random_value() {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        return values_[static_cast<Index>((random_ >> 33) % static_cast<std::uint64_t>(size()))];
    }
    // Compact the values that pass the test at the front of the scratch, without branches.
    template <class Test> void keep(const Test& is_kept) {
        double *values = scratch_.get(), *weights = values + n_;
        Index count = 0;
        for (Index i = 0; i < size(); ++i) {
            const double value = values_.data[i], weight = weights_.data[i];
            values[count] = value;
            weights[count] = weight;
            count += is_kept(value);
        }
        values_ = {values, count};
        weights_ = {weights, count};
    }
};

}  // namespace wm
