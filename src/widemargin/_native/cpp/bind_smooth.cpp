#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "signals.hpp"
#include "smooth_losses.hpp"

namespace wm {
namespace {

template <class Phi> nb::class_<Phi> bind_loss(nb::module_& m, const char* name, const char* doc) {
    return nb::class_<Phi>(m, name, doc)
        .def(
            "line_derivatives",
            [](const Phi& phi, Team& team, Span<const double> f, Span<const double> f_end, double intercept,
               double intercept_end, Span<const double> y, Span<const double> s, double k) {
                check_lengths(f.size, {{"f_end", f_end}, {"y", y}, {"s", s}});
                return sum_row_blocks<2>(team, f.size, [&](const RowBlock& block) {
                    const Segment segment{block.of(f), block.of(f_end), intercept, intercept_end - intercept};
                    return line_derivatives(phi, segment, block.of(y), block.of(s), k);
                });
            },
            "team"_a, array("f"), array("f_end"), "intercept"_a, "intercept_end"_a, array("y"), array("s"), "k"_a,
            "First and second derivative at k of the risk on the segment from f + intercept to f_end + intercept_end.")
        .def(
            "slope_sums",
            [](const Phi& phi, Team& team, Span<const double> f, Span<const double> f_end, double k, double intercept,
               Span<const double> y, Span<const double> s) {
                check_lengths(f.size, {{"f_end", f_end}, {"y", y}, {"s", s}});
                return sum_row_blocks<3>(team, f.size, [&](const RowBlock& block) {
                    return slope_sums(phi, block.of(f), block.of(f_end), k, intercept, block.of(y), block.of(s));
                });
            },
            "team"_a, array("f"), array("f_end"), "k"_a, "intercept"_a, array("y"), array("s"),
            "Weighted sums of the positive slopes at f + k (f_end - f) + intercept, of the negative ones, and of the\n"
            "second derivatives.")
        .def(
            "advance",
            [](const Phi& phi, Team& team, Span<double> f, Span<const double> f_end, double step, double intercept,
               Span<const double> y, Span<const double> s, double positive_factor, double negative_factor,
               Span<double> coef, Span<double> curvatures) {
                check_lengths(f.size, {{"f_end", f_end}, {"y", y}, {"s", s}, {"coef", coef}, {"curvatures", curvatures}});
                return sum_row_blocks<2>(team, f.size, [&](const RowBlock& block) {
                    return advance_block(phi, block.of(f), block.of(f_end), step, intercept, block.of(y), block.of(s),
                                         {positive_factor, negative_factor}, block.of(coef), block.of(curvatures));
                });
            },
            "team"_a, array("f"), array("f_end"), "step"_a, "intercept"_a, array("y"), array("s"), "positive_factor"_a,
            "negative_factor"_a, array("coef"), array("curvatures"),
            "Replace f by f + step (f_end - f); write the row weights coef of the cutting plane at f + intercept, positive\n"
            "and negative ones multiplied by factors in [0, 1], and the weighted second derivatives there. Returns the risk\n"
            "and the plane's offset. f may be f_end where step is 0.")
        .def(
            "model_slopes",
            [](const Phi& phi, Team& team, Span<const double> f, Span<const double> f_end, double shift,
               Span<const double> coef, Span<const double> curvatures, Span<const double> y, Span<const double> s,
               Span<double> out) {
                check_lengths(f.size, {{"f_end", f_end}, {"coef", coef}, {"curvatures", curvatures}, {"y", y}, {"s", s}});
                check_lengths(f.size, {{"out", out}});
                return sum_row_blocks<2>(team, f.size, [&](const RowBlock& block) {
                    return model_slopes(phi, block.of(f), block.of(f_end), shift, block.of(coef), block.of(curvatures),
                                        block.of(y), block.of(s), block.of(out));
                });
            },
            "team"_a, array("f"), array("f_end"), "shift"_a, array("coef"), array("curvatures"), array("y"), array("s"),
            array("out"),
            "Write the weighted slopes coef + curvatures (f_end - f + shift), clipped to those of the loss. Returns the sums\n"
            "of the positive and of the negative ones.")
        .def(
            "plane_offset",
            [](const Phi& phi, Team& team, Span<const double> y, Span<const double> s, double positive_factor,
               double negative_factor, Span<double> coef) {
                check_lengths(coef.size, {{"y", y}, {"s", s}});
                return std::get<0>(sum_row_blocks<1>(team, coef.size, [&](const RowBlock& block) -> Sums<1> {
                    return {plane_offset(phi, block.of(y), block.of(s), {positive_factor, negative_factor}, block.of(coef))};
                }));
            },
            "team"_a, array("y"), array("s"), "positive_factor"_a, "negative_factor"_a, array("coef"),
            "Multiply the weighted slopes coef by a factor in [0, 1] of the positive and of the negative ones; the offset of\n"
            "their plane, -sum s phi*(coef / s).");
}

}  // namespace

void bind_smooth(nb::module_& m) {
    nb::module_ smooth = m.def_submodule(
        "smooth", "Smooth losses sum s phi(f + intercept, y). Vectors are (n,) float64; y: targets, or labels 1 and -1.");
    bind_loss<SquaredHinge>(smooth, "SquaredHinge", "max(0, 1 - y z)^2").def(nb::init<>());
    bind_loss<Logistic>(smooth, "Logistic", "log(1 + exp(-y z))").def(nb::init<>());
    bind_loss<SquaredEpsilonInsensitive>(smooth, "SquaredEpsilonInsensitive", "max(0, |z - y| - epsilon)^2")
        .def(nb::init<double>(), "epsilon"_a);
}

}  // namespace wm
