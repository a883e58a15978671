#include <nanobind/stl/tuple.h>

#include <initializer_list>

#include "arrays.hpp"
#include "bindings.hpp"
#include "hinge_intercept.hpp"
#include "signals.hpp"

namespace wm {
namespace {

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

// Arrays of the first and second numbers of all entries, in the order of the blocks.
template <class Entry> std::tuple<NewArray<double>, NewArray<double>> join_pairs(const BlockLists<Entry>& lists) {
    Owned<double> first(lists.size()), second(lists.size());
    lists.for_each([&](Index k, const Entry& entry) { std::tie(first[k], second[k]) = entry.pair(); });
    return {first.release(), second.release()};
}

auto scan(Team& team, Span<const double> f, Span<const double> f_end, double intercept, double intercept_end,
          Span<const double> signed_weights, double lo, double hi) {
    check_lengths(f.size, {{"f_end", f_end}, {"signed_weights", signed_weights}});
    BlockLists<Breakpoint> found(f.size);
    const auto slope = sum_row_blocks<1>(team, f.size, [&](const RowBlock& block) -> Sums<1> {
        const Segment segment{block.of(f), block.of(f_end), intercept, intercept_end - intercept};
        return {scan_breakpoints(segment, block.of(signed_weights), lo, hi, block.number, found)};
    });
    return std::tuple_cat(slope, join_pairs(found));
}

auto advance(Team& team, Span<double> f, Span<const double> f_end, Span<const double> signed_weights, double step, double mu,
             Span<double> coef) {
    check_lengths(f.size, {{"f_end", f_end}, {"signed_weights", signed_weights}, {"coef", coef}});
    return sum_row_blocks<2>(team, f.size, [&](const RowBlock& block) {
        return advance_block(block.of(f), block.of(f_end), block.of(signed_weights), step, mu, block.of(coef));
    });
}

auto smooth(Team& team, Span<const double> f, double intercept, Span<const double> signed_weights, double width,
            double positive_factor, double negative_factor, Span<double> coef) {
    check_lengths(f.size, {{"signed_weights", signed_weights}, {"coef", coef}});
    return sum_row_blocks<4>(team, f.size, [&](const RowBlock& block) {
        return smoothed_hinges(block.of(f), intercept, block.of(signed_weights), width, positive_factor, negative_factor,
                               block.of(coef));
    });
}

auto slopes(Team& team, Span<const double> f, double intercept, Span<const double> signed_weights, double width) {
    check_lengths(f.size, {{"signed_weights", signed_weights}});
    return sum_row_blocks<3>(team, f.size, [&](const RowBlock& block) {
        return smoothed_slopes(block.of(f), intercept, block.of(signed_weights), width);
    });
}

auto near_kink(Team& team, Span<const double> f, double intercept, Span<const double> signed_weights, double distance) {
    check_lengths(f.size, {{"signed_weights", signed_weights}});
    BlockLists<Index> found(f.size);
    sum_row_blocks<1>(team, f.size, [&](const RowBlock& block) -> Sums<1> {
        find_rows_near_kink(block.of(f), intercept, block.of(signed_weights), distance, block, found);
        return {0.0};
    });
    Owned<Index> rows(found.size());
    found.for_each([&](Index k, Index row) { rows[k] = row; });
    return rows.release();
}

auto collect(Team& team, Span<const double> f, Span<const double> f_end, double k, Span<const double> signed_weights, double lo,
             double hi, Span<double> residuals) {
    check_lengths(f.size, {{"f_end", f_end}, {"signed_weights", signed_weights}, {"residuals", residuals}});
    BlockLists<WeightedValue> found(f.size);
    const auto below_and_upto = sum_row_blocks<2>(team, f.size, [&](const RowBlock& block) {
        return collect_residuals(block.of(f), block.of(f_end), k, block.of(signed_weights), lo, hi, block.of(residuals),
                                 block.number, found);
    });
    return std::tuple_cat(below_and_upto, join_pairs(found));
}

std::tuple<double, double> advance_with_intercept(Team& team, Span<double> f, Span<const double> f_end,
                                                  Span<const double> signed_weights, double step, double intercept,
                                                  Span<const double> residuals, double plane_intercept, double plane_balance,
                                                  Span<double> coef) {
    check_lengths(f.size, {{"f_end", f_end}, {"signed_weights", signed_weights}, {"residuals", residuals}, {"coef", coef}});
    std::vector<Index> has_kink(count_row_blocks(f.size));
    const auto sums = sum_row_blocks<5>(team, f.size, [&](const RowBlock& block) {
        const auto sum = advance_block_with_intercept(block.of(f), block.of(f_end), block.of(signed_weights), step, intercept,
                                                      block.of(residuals), plane_intercept, block.of(coef));
        has_kink[block.number] = sum[3] > 0.0 || sum[4] > 0.0;
        return sum;
    });
    const auto [risk, offset, excess, positive, negative] = sums;
    const auto slopes = balanced_kink_slopes(excess + plane_balance, positive, negative);
    for (Index number = 0; number < static_cast<Index>(has_kink.size()); ++number) {
        if (!has_kink[number]) continue;  // few blocks have rows at the kink
        const RowBlock block(number, f.size);
        write_kink_weights(block.of(residuals), block.of(signed_weights), plane_intercept, slopes, block.of(coef));
    }
    return {risk, offset + slopes.positive * positive + slopes.negative * negative};
}

}  // namespace

void bind_hinge(nb::module_& m) {
    nb::module_ hinge = m.def_submodule(
        "hinge", "Hinge risks of decision values f. Vectors are (n,) float64; signed_weights = s y: sample weight times label.");
    hinge.def("scan_breakpoints", &scan, "team"_a, array("f"), array("f_end"), "intercept"_a,
              "intercept_end"_a, array("signed_weights"), "lo"_a, "hi"_a,
              "Of the risk on the segment from f + intercept, k = 0, to f_end + intercept_end, k = 1: the right derivative at\n"
              "k = lo; the breakpoints k in (lo, hi), and the jumps of the derivative there. hi must be finite.");
    hinge.def(
        "find_root",
        [](Span<const double> breakpoints, Span<const double> jumps, double curvature, double slope, double lo) {
            check_lengths(breakpoints.size, {{"jumps", jumps}});
            LockReleased unlocked;
            return find_root(breakpoints, jumps, curvature, slope, lo);
        },
        array("breakpoints"), array("jumps"), "curvature"_a, "slope"_a, "lo"_a,
        "The k >= lo where the derivative curvature k + slope + sum(jumps[breakpoints < k]) crosses zero; all breakpoints > lo.");
    hinge.def("advance", &advance, "team"_a, array("f"), array("f_end"), array("signed_weights"), "step"_a, "mu"_a,
              array("coef"),
              "Replace f by f + step (f_end - f); write the row weights coef of the cutting plane at f + mu (f_end - f).\n"
              "Returns the risk at the new f and the plane's offset. f may be f_end where step is 0.");
    hinge.def("smoothed_hinges", &smooth, "team"_a, array("f"), "intercept"_a, array("signed_weights"), "width"_a, "positive_factor"_a,
              "negative_factor"_a, array("coef"),
              "Smoothed hinges of half width `width` at f + intercept: their sum; the offset of the plane whose row weights are\n"
              "written to coef; how far that plane is below the hinges; the sum of the hinges. The plane's slopes of rows\n"
              "with positive and negative labels are multiplied by positive_factor and negative_factor.");
    hinge.def("smoothed_slopes", &slopes, "team"_a, array("f"), "intercept"_a, array("signed_weights"), "width"_a,
              "Absolute slopes of the smoothed hinges at f + intercept, summed over rows with positive and with negative labels,\n"
              "and the second derivative of the smoothed hinges in the intercept.");
    hinge.def("rows_near_kink", &near_kink, "team"_a, array("f"), "intercept"_a, array("signed_weights"), "distance"_a,
              "The rows of non-zero weight with |1 - y (f + intercept)| <= distance, in ascending order.");
    hinge.def(
        "weighted_quantile",
        [](Span<const double> values, Span<const double> weights, double level) {
            check_lengths(values.size, {{"weights", weights}});
            LockReleased unlocked;
            return weighted_quantile(values, weights, level);
        },
        array("values"), array("weights"), "level"_a,
        "The smallest v of the values (m,) with sum(weights[values <= v]) >= level; NaN if m = 0.");
    hinge.def("collect_residuals", &collect, "team"_a, array("f"), array("f_end"), "k"_a, array("signed_weights"), "lo"_a, "hi"_a,
              array("residuals"),
              "Write the residuals y - (f + k (f_end - f)). Returns sum(s[residuals < lo]), sum(s[residuals <= hi]), the\n"
              "residuals in [lo, hi], and their weights s.");
    hinge.def("advance_with_intercept", &advance_with_intercept, "team"_a, array("f"), array("f_end"), array("signed_weights"),
              "step"_a, "intercept"_a, array("residuals"), "plane_intercept"_a, "plane_balance"_a, array("coef"),
              "As advance: the risk at f + intercept, and the plane at the decision values whose residuals y - f are given, with\n"
              "their optimal intercept plane_intercept. Rows at the kink, residuals == plane_intercept, get slopes in [0, 1] for\n"
              "which coef sums to plane_balance.");
}

}  // namespace wm
