#include <nanobind/stl/tuple.h>

#include <initializer_list>

#include "arrays.hpp"
#include "bindings.hpp"
#include "hinge_intercept.hpp"

namespace wm {
namespace {

using Doubles = Vector<const double>;
template <class T> using NewArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// An uninitialised array that Python will own.
template <class T> class Owned {
  public:
    explicit Owned(Index n) : size_(static_cast<std::size_t>(n)), data_(new T[size_]) {}
    T& operator[](Index i) { return data_[static_cast<std::size_t>(i)]; }
    NewArray<T> release() {
        nb::capsule owner(data_.get(), [](void* data) noexcept { delete[] static_cast<T*>(data); });
        return NewArray<T>(data_.release(), {size_}, owner);
    }

  private:
    std::size_t size_;
    std::unique_ptr<T[]> data_;
};

// Call visit(block) for each block of n rows, with the interpreter's lock let go.
template <class Visit> void for_each_row_block(Team& team, Index n, const Visit& visit) {
    nb::gil_scoped_release unlocked;
    for_each_block(team, count_row_blocks(n), [&](Index block) { visit(RowBlock(block, n)); });
}

// The totals of the sums that visit(block) returns, added in the order of the blocks.
template <std::size_t k, class Visit> Sums<k> sum_row_blocks(Team& team, Index n, const Visit& visit) {
    std::vector<Sums<k>> sums(count_row_blocks(n));
    for_each_row_block(team, n, [&](const RowBlock& block) { sums[block.number] = visit(block); });
    Sums<k> totals{};
    for (const Sums<k>& sum : sums)
        for (std::size_t i = 0; i < k; ++i) totals[i] += sum[i];
    return totals;
}

struct Length {
    const char* name;
    Index size;
};
// That there is one number for each row.
void check_rows(Index n, std::initializer_list<Length> arrays) {
    for (const Length& array : arrays)
        if (array.size != n) check_size(("len(" + std::string(array.name) + ")").c_str(), array.size, n);
}

// Arrays of the lists' keys and values, in the order of the blocks.
template <class Entry> std::pair<NewArray<double>, NewArray<double>> join_pairs(const BlockLists<Entry>& lists) {
    Owned<double> keys(lists.size()), values(lists.size());
    lists.for_each([&](Index k, const Entry& entry) { std::tie(keys[k], values[k]) = entry.pair(); });
    return {keys.release(), values.release()};
}

std::tuple<double, NewArray<double>, NewArray<double>> scan(Team& team, const Doubles& f_, const Doubles& target_,
                                                            double shift, double target_shift, const Doubles& weights_,
                                                            double lo, double hi) {
    const auto f = span(f_), target = span(target_), weights = span(weights_);
    check_rows(f.size, {{"target", target.size}, {"signed_weights", weights.size}});
    BlockLists<Breakpoint> found(f.size);
    const auto [slope] = sum_row_blocks<1>(team, f.size, [&](const RowBlock& block) -> Sums<1> {
        const Segment segment{block.of(f), block.of(target), shift, target_shift - shift};
        return {scan_breakpoints(segment, block.of(weights), lo, hi, block.number, found)};
    });
    auto [keys, jumps] = join_pairs(found);
    return {slope, std::move(keys), std::move(jumps)};
}

std::tuple<double, double> advance(Team& team, const Vector<double>& f_, const Doubles& target_, const Doubles& weights_,
                                   double step, double mu, const Vector<double>& coef_) {
    const auto f = span(f_), coef = span(coef_);
    const auto target = span(target_), weights = span(weights_);
    check_rows(f.size, {{"target", target.size}, {"signed_weights", weights.size}, {"coef", coef.size}});
    const auto [risk, offset] = sum_row_blocks<2>(team, f.size, [&](const RowBlock& block) {
        return advance_block(block.of(f), block.of(target), block.of(weights), step, mu, block.of(coef));
    });
    return {risk, offset};
}

std::tuple<double, double, double, double> smooth(Team& team, const Doubles& f_, double shift, const Doubles& weights_,
                                                  double width, double on_positive, double on_negative,
                                                  const Vector<double>& coef_) {
    const auto f = span(f_), weights = span(weights_);
    const auto coef = span(coef_);
    check_rows(f.size, {{"signed_weights", weights.size}, {"coef", coef.size}});
    const auto [value, offset, loss, risk] = sum_row_blocks<4>(team, f.size, [&](const RowBlock& block) {
        return smoothed_hinges(block.of(f), shift, block.of(weights), width, on_positive, on_negative, block.of(coef));
    });
    return {value, offset, loss, risk};
}

std::tuple<double, double, double> slopes(Team& team, const Doubles& f_, double shift, const Doubles& weights_,
                                          double width) {
    const auto f = span(f_), weights = span(weights_);
    check_rows(f.size, {{"signed_weights", weights.size}});
    const auto [positive, negative, rate] = sum_row_blocks<3>(team, f.size, [&](const RowBlock& block) {
        return smoothed_slopes(block.of(f), shift, block.of(weights), width);
    });
    return {positive, negative, rate};
}

NewArray<Index> near_kink(Team& team, const Doubles& f_, double shift, const Doubles& weights_, double distance) {
    const auto f = span(f_), weights = span(weights_);
    check_rows(f.size, {{"signed_weights", weights.size}});
    BlockLists<Index> found(f.size);
    for_each_row_block(team, f.size, [&](const RowBlock& block) {
        find_rows_near_kink(block.of(f), shift, block.of(weights), distance, block, found);
    });
    Owned<Index> rows(found.size());
    found.for_each([&](Index k, Index row) { rows[k] = row; });
    return rows.release();
}

std::tuple<double, double, NewArray<double>, NewArray<double>> collect(Team& team, const Doubles& f_,
                                                                       const Doubles& target_, double k,
                                                                       const Doubles& weights_, double lo, double hi,
                                                                       const Vector<double>& values_) {
    const auto f = span(f_), target = span(target_), weights = span(weights_);
    const auto values = span(values_);
    check_rows(f.size, {{"target", target.size}, {"signed_weights", weights.size}, {"values", values.size}});
    BlockLists<WeightedValue> found(f.size);
    const auto [below, upto] = sum_row_blocks<2>(team, f.size, [&](const RowBlock& block) {
        return collect_residuals(block.of(f), block.of(target), k, block.of(weights), lo, hi, block.of(values),
                              block.number, found);
    });
    auto [some, theirs] = join_pairs(found);
    return {below, upto, std::move(some), std::move(theirs)};
}

std::tuple<double, double> advance_with_intercept(Team& team, const Vector<double>& f_, const Doubles& target_,
                                                const Doubles& weights_, double step, double best,
                                                const Doubles& values_, double near, double pull,
                                                const Vector<double>& coef_) {
    const auto f = span(f_), coef = span(coef_);
    const auto target = span(target_), weights = span(weights_), values = span(values_);
    check_rows(f.size, {{"target", target.size}, {"signed_weights", weights.size}, {"values", values.size}, {"coef", coef.size}});
    std::vector<Index> on_border(count_row_blocks(f.size));
    const auto sums = sum_row_blocks<5>(team, f.size, [&](const RowBlock& block) {
        const auto sum = advance_block_with_intercept(block.of(f), block.of(target), block.of(weights), step, best,
                                                block.of(values), near, block.of(coef));
        on_border[block.number] = sum[3] > 0.0 || sum[4] > 0.0;
        return sum;
    });
    const auto [risk, offset, excess, positive, negative] = sums;
    const auto part = share_border(excess + pull, positive, negative);
    for (Index number = 0; number < static_cast<Index>(on_border.size()); ++number) {
        if (!on_border[number]) continue;  // few blocks have such rows
        const RowBlock block(number, f.size);
        weigh_border(block.of(values), block.of(weights), near, part, block.of(coef));
    }
    return {risk, offset + part.positive * positive + part.negative * negative};
}

template <class I> void bind_signs(nb::module_& m) {
    m.def(
        "one_vs_rest_signs",
        [](Team& team, const Vector<const I>& classes_, Index positive, const Vector<double>& out_) {
            const auto classes = span(classes_);
            const auto out = span(out_);
            check_rows(classes.size, {{"out", out.size}});
            for_each_row_block(team, classes.size, [&](const RowBlock& block) {
                one_vs_rest_signs<I>(block.of(classes), positive, block.of(out));
            });
        },
        "team"_a, array("classes"), "positive"_a, array("out"), "Write 1.0 where a row's class has this number, else -1.0.");
}

void gather_rows(Team& team, const Doubles& values_, const Vector<const Index>& chosen_, const Vector<double>& out_) {
    const auto values = span(values_);
    const auto chosen = span(chosen_);
    const auto out = span(out_);
    check_rows(chosen.size, {{"out", out.size}});
    std::atomic<bool> is_wrong{values.size == 0 && chosen.size > 0};
    if (!is_wrong)
        for_each_row_block(team, chosen.size, [&](const RowBlock& block) {
            if (!gather(values, block.of(chosen), block.of(out))) is_wrong = true;
        });
    if (is_wrong) check_indices("chosen", chosen, values.size);
}

}  // namespace

void bind_hinge(nb::module_& m) {
    nb::module_ hinge = m.def_submodule(
        "hinge", "Hinge risks of a linear machine's outputs. Vectors are (n,) float64; signed = s y: weights, labels.");
    hinge.def("scan_breakpoints", &scan, "team"_a, array("f"), array("target"), "shift"_a, "target_shift"_a,
              array("signed_weights"), "lo"_a, "hi"_a,
              "The derivative, just after lo, of the risk of f + shift + k (target + target_shift - f - shift); and for\n"
              "lo < k < hi, where it jumps and by how much. hi must be finite.");
    hinge.def(
        "find_root",
        [](const Doubles& keys, const Doubles& jumps, double curvature, double slope, double lo) {
            check_rows(span(keys).size, {{"jumps", span(jumps).size}});
            nb::gil_scoped_release unlocked;
            return find_root(span(keys), span(jumps), curvature, slope, lo);
        },
        array("keys"), array("jumps"), "curvature"_a, "slope"_a, "lo"_a,
        "The k >= lo where curvature k + slope + sum of jumps[keys < k] crosses zero; all keys > lo.");
    hinge.def("advance", &advance, "team"_a, array("f"), array("target"), array("signed_weights"), "step"_a, "mu"_a,
              array("coef"),
              "Replace f by f + step (target - f); write into coef the plane's weight of each row at f + mu (target - f).\n"
              "Returns the risk at the new f and the plane's offset. f may be target where step is 0.");
    hinge.def("smoothed_hinges", &smooth, "team"_a, array("f"), "shift"_a, array("signed_weights"), "width"_a, "positive_factor"_a,
              "negative_factor"_a, array("coef"),
              "Smoothed hinges at f + shift: their sum, their plane's offset and loss against the hinges, the hinges' sum;\n"
              "writes coef. The slopes of positive and of negative rows are multiplied by on_positive and on_negative.");
    hinge.def("smoothed_slopes", &slopes, "team"_a, array("f"), "shift"_a, array("signed_weights"), "width"_a,
              "The slopes of smoothed hinges, summed over positive and over negative rows, and how their difference falls.");
    hinge.def("rows_near_kink", &near_kink, "team"_a, array("f"), "shift"_a, array("signed_weights"), "distance"_a,
              "The rows with weight where |1 - y (f + shift)| <= distance, in ascending order.");
    hinge.def(
        "weighted_quantile",
        [](const Doubles& values, const Doubles& weights, double level) {
            check_rows(span(values).size, {{"weights", span(weights).size}});
            nb::gil_scoped_release unlocked;
            return weighted_quantile(span(values), span(weights), level);
        },
        array("values"), array("weights"), "level"_a,
        "The smallest of the values up to which the weights sum to `level`; NaN if there are none.");
    hinge.def("collect_residuals", &collect, "team"_a, array("f"), array("target"), "k"_a, array("signed_weights"), "lo"_a, "hi"_a,
              array("values"),
              "Write values = y - f at f + k (target - f). Returns the weight of those below lo, and of those up to hi; the\n"
              "values in [lo, hi], and their weights.");
    hinge.def("advance_with_intercept", &advance_with_intercept, "team"_a, array("f"), array("target"), array("signed_weights"),
              "step"_a, "intercept"_a, array("values"), "plane_intercept"_a, "coef_sum"_a, array("coef"),
              "As advance, at the intercept `best`. values: y - f where the plane is, near: their optimal intercept.\n"
              "Rows on the border, values == near, count in part, so that coef sums to `pull`.");
    bind_signs<std::int8_t>(hinge);
    bind_signs<std::int64_t>(hinge);
    hinge.def(
        "absolute_sum",
        [](Team& team, const Doubles& values) {
            return sum_row_blocks<1>(team, span(values).size, [&](const RowBlock& block) -> Sums<1> {
                return {absolute_sum(block.of(span(values)))};
            })[0];
        },
        "team"_a, array("values"), "The sum of absolute values.");
    hinge.def("gather", &gather_rows, "team"_a, array("values"), array("chosen"), array("out"), "Write values[chosen].");
}

}  // namespace wm
