#include <nanobind/stl/string_view.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "csr_matrix.hpp"
#include "removal_projection.hpp"
#include "merging.hpp"

namespace wm {
namespace {

constexpr Index kMostCounted = Index(1) << 62;

// Call f(std::integral_constant) of the rule with this name.
template <class F> auto with_rule(std::string_view name, F&& f) {
    const auto call = [&](auto rule) { return f(rule); };
    if (name == "lookup-wd") return call(std::integral_constant<MergeRule, MergeRule::lookup_wd>());
    if (name == "lookup-h") return call(std::integral_constant<MergeRule, MergeRule::lookup_h>());
    if (name == "gss") return call(std::integral_constant<MergeRule, MergeRule::gss>());
    if (name == "gss-precise") return call(std::integral_constant<MergeRule, MergeRule::gss_precise>());
    if (name == "gss-paper") return call(std::integral_constant<MergeRule, MergeRule::gss_paper>());
    raise_value_error("rule must be lookup-wd, lookup-h, gss, gss-precise or gss-paper, got '", name, "'");
}

void check_table(Stack<const float> grids) {
    check_size("len(grids)", grids.size, 2);
    check_at_least("grids.shape[1]", grids.rows, 2);
    check_size("grids.shape[2]", grids.columns, grids.rows);
    check_at_most("grids.shape[1]", grids.rows, MergeGrids::kMostNodes);
    bool is_within = true;
    for (Index i = 0; i < grids.size * grids.rows * grids.columns; ++i)
        is_within &= (grids.data[i] >= 0.0f) & (grids.data[i] <= 1.0f);
    if (!is_within) raise_value_error("grids must have values in [0, 1]");
}

// A checked copy of the state of steps, which no other thread can change. The numbers of points must be at most the budget.
StepState read_step_state(Span<const Index> counts, Span<const double> sums, Index budget) {
    const StepState step_state(counts, sums);
    for (const Index count : step_state.counts)
        if (count < 0 || count > kMostCounted)
            raise_value_error("counts must be in [0, 2^62], got ", count);
    const Index n_front = step_state.counts[StepState::kFront], n_back = step_state.counts[StepState::kBack];
    if (n_front > budget || n_back > budget - n_front)  // their sum may overflow
        raise_value_error("counts must be of at most ", budget, " points, got ", n_front, " and ", n_back);
    return step_state;
}

template <class RowArrays> void bind_run(nb::class_<MergingState>& state) {
    state.def(
        "run",
        [](MergingState& s, const RowArrays& X, Span<const Index> order, Span<const double> signed_weights,
           const MergeGrids& grids, std::string_view rule_name, double gamma, double inverse_lam, bool fit_intercept) {
            visit_rows_as<float>(X, [&](const auto& view) {
                check_size("X.shape[1]", view.columns, s.n_features);
                check_lengths(n_rows(view), {{"signed_weights", signed_weights}});
                const std::vector<Index> chosen = checked_copy("order", order, n_rows(view));
                const StepState step_state = read_step_state(s.counts.span(), s.sums.span(), s.budget);
                with_rule(rule_name, [&](auto merge_rule) {
                    LockReleased unlocked;
                    auto rows = shifted_rows(s.shift.span(), view);
                    const StepRule rule{s.budget, inverse_lam, fit_intercept ? 1.0 : 0.0};
                    MergingSteps<merge_rule()> steps(s, step_state, grids, gamma, rule, rows.max_entries(as_span(chosen)));
                    steps.run(rows, as_span(chosen), signed_weights);
                });
            });
        },
        array("X"), array("order"), array("signed_weights"), "grids"_a, "rule"_a, "gamma"_a, "inverse_lam"_a,
        "fit_intercept"_a,
        "One step of stochastic gradient descent on each of the rows X[order], X (n, d) float32; signed_weights (n,): sample\n"
        "weight times label; rule: of merging, lookup-wd, lookup-h, gss, gss-precise or gss-paper.");
}

void bind_state(nb::module_& budget) {
    nb::class_<MergingState> state(
        budget, "MergingState",
        "A Gaussian kernel machine of at most `budget` points, with budget maintenance by merging. The point of slot j is\n"
        "x_j = slots[3, j] points[:, j] + shift; slots[0, j] is lam t times its coefficient; slots[1, j] its coefficient sum: the\n"
        "terms of slots[0, j], each times the step size sum when it was added; slots[2, j] is gamma |x_j - shift|^2. Points with\n"
        "positive coefficients fill the slots from the front, the others from the back; empty slots have coefficient 0. The\n"
        "arrays may be written to between calls.");
    state.def(
        "__init__",
        [](MergingState* made, Index n_features, Index budget) {
            constexpr Index most_size = std::numeric_limits<std::int32_t>::max() / 2;
            check_at_least("n_features", n_features, 0);
            check_at_least("budget", budget, 1);
            if (n_features > most_size || budget > most_size)
                raise_value_error("n_features and budget must be below 2^30");
            new (made) MergingState(n_features, budget);
        },
        "n_features"_a, "budget"_a, "A machine without points.");
    state.def_prop_ro(
             "points", [](MergingState& s) { return view<float>({s.points.data(), s.n_features, s.n_slots, s.n_slots}); },
             "ndarray of shape (n_features, n_slots), float32")
        .def_prop_ro(
            "slots",
            [](MergingState& s) { return view<double>({s.slots.data(), MergingState::kSlotRows, s.n_slots, s.n_slots}); },
            "ndarray of shape (4, n_slots), float64")
        .def_prop_ro(
            "counts", [](MergingState& s) { return view(s.counts.span()); },
            "ndarray of shape (7,), int64: steps, points at the front, points at the back, margin violations, mergers, removals,\n"
            "cumulative sum of the mistakes of the average less those of the current machine")
        .def_prop_ro(
            "sums", [](MergingState& s) { return view(s.sums.span()); },
            "ndarray of shape (7,), float64: lam t times the intercept, its coefficient sum, step size sum, the latest step's weight\n"
            "in the average, and the sums of these weights, of hinge losses, of squared weight degradations")
        .def_prop_ro(
            "shift", [](MergingState& s) { return view(s.shift.span()); },
            "ndarray of shape (n_features,), float32: subtracted from all points and rows");
    bind_run<RowsArray<const float>>(state);
    bind_run<CSRMatrix>(state);
}

// find_partners, below, with `sizes` checked
template <MergeRule rule>
void find_all(Span<const double> candidates, Matrix<const double> coef, Matrix<const float> log_kappa, Span<const Index> sizes,
              const MergeGrids& grids, Span<Index> partners, Matrix<double> found) {
    const Index width = whole_groups(coef.columns);
    PartnerSearch<rule> search(grids, width);
    AlignedArray<double> a(width);
    AlignedArray<float> exponent(width), kappa(width);
    for (Index p = 0; p < candidates.size; ++p) {
        for (Index j = 0; j < sizes[p]; ++j) {
            a.data()[j] = coef[p].data[j];
            exponent.data()[j] = clip_nonpositive(log_kappa[p].data[j], -1e30f);
        }
        for (Index j = 0; j < width; ++j) kappa.data()[j] = exp_of_nonpositive(exponent.data()[j]);
        const Merger merger = search.find(candidates[p], a.span(), exponent.span(), kappa.span(), 0, sizes[p]);
        partners[p] = merger.partner;
        found[p][0] = merger.h;
        found[p][1] = merger.degradation;
    }
}

void bind_search(nb::module_& budget) {
    nb::class_<MergeGrids>(budget, "MergeGrids", "Look-up tables of h and of the root of wd over m and kappa.")
        .def(
            "__init__",
            [](MergeGrids* made, Stack<const float> grids) {
                check_table(grids);
                new (made) MergeGrids(grids);
            },
            array("grids"),
            "grids (2, t, t), float32 in [0, 1]: h and the root of wd at t values of m in [1/2, 1] and of kappa in [0, 1].");
    budget.def(
        "find_partners",
        [](Span<const double> candidates, Matrix<const double> coef, Matrix<const float> log_kappa, Span<const Index> sizes,
           const MergeGrids& grids, std::string_view rule_name, Span<Index> partners, Matrix<double> found) {
            const Index n = candidates.size;
            check_lengths(n, {{"coef", coef.rows}, {"sizes", sizes}, {"partners", partners}});
            check_shape("log_kappa", log_kappa, n, coef.columns);
            check_shape("found", found, n, 2);
            const std::vector<Index> checked_sizes = checked_copy("sizes", sizes, coef.columns + 1);
            with_rule(rule_name, [&](auto rule) {
                LockReleased unlocked;
                find_all<rule()>(candidates, coef, log_kappa, as_span(checked_sizes), grids, partners, found);
            });
        },
        array("candidates"), array("coef"), array("log_kappa"), array("sizes"), "grids"_a, "rule"_a, array("partners"),
        array("found"),
        "Solve p merging problems. candidates (p,): coefficients of the points to merge. The first sizes[i] entries of row i of\n"
        "coef and log_kappa (p, n), float64 and float32, are coefficients of possible partners, of the candidate's sign and in\n"
        "absolute value no smaller, and ln k of candidate and partner. Writes the best partners (p,), -1 where there is none,\n"
        "and found (p, 2): h and the squared weight degradation.");
}

template <Maintenance maintenance>
void run_subset_steps(Matrix<const float> K, Index first, Span<const double> diagonal, Span<const double> signed_weights,
                      Matrix<double> coef, Matrix<double> inverse, Span<Index> counts, Span<double> sums, Index budget,
                      double inverse_lam, bool fit_intercept) {
    const Index side = maintenance == Maintenance::projection ? K.columns : inverse.rows;
    check_shape("coef", coef, 2, K.columns);
    check_shape("inverse", inverse, side, side);
    check_lengths(K.columns, {{"diagonal", diagonal}});
    check_lengths(K.rows, {{"signed_weights", signed_weights}});
    check_lengths(StepState::kCounts, {{"counts", counts}});
    check_lengths(StepState::kSums, {{"sums", sums}});
    check_at_least("budget", budget, 1);
    check_at_least("first", first, 0);
    check_at_least("K.shape[1] - len(K)", K.columns - K.rows, first);
    StepState step_state = read_step_state(counts, sums, budget);
    LockReleased unlocked;
    const StepRule rule{budget, inverse_lam, fit_intercept ? 1.0 : 0.0};
    SubsetSteps<maintenance>({coef, diagonal, inverse}, rule, step_state).run(K, first, signed_weights);
    step_state.store(counts, sums);
}

template <Maintenance maintenance> void bind_subset_steps(nb::module_& budget, const char* name, const char* doc) {
    budget.def(name, &run_subset_steps<maintenance>, array("K"), "first"_a, array("diagonal"), array("signed_weights"),
               array("coef"), array("inverse"), array("counts"), array("sums"), "budget"_a, "inverse_lam"_a,
               "fit_intercept"_a, doc);
}

}  // namespace

void bind_budget(nb::module_& m) {
    nb::module_ budget = m.def_submodule("budget", "Budgeted stochastic gradient descent: steps, merging, look-up tables.");
    bind_search(budget);
    bind_state(budget);
    bind_subset_steps<Maintenance::removal>(
        budget, "removal_steps",
        "One step of stochastic gradient descent on each of r new rows. Columns are points and new rows, in order of arrival:\n"
        "row i is column first + i. Over the budget the point of least |coefficient|^2 k(x, x) is removed. K (r, c) float32:\n"
        "kernel values; diagonal (c,): k(x, x); signed_weights (r,); coef (2, c), coefficients and coefficient sums, counts (7,)\n"
        "and sums (7,), as in MergingState, are updated; inverse is not read.");
    bind_subset_steps<Maintenance::projection>(
        budget, "projection_steps",
        "As removal_steps; over the budget the point of least weight degradation is projected onto the span of the others.\n"
        "inverse (c, c), updated: the inverse of the points' kernel matrix, zero elsewhere.");
}

}  // namespace wm
