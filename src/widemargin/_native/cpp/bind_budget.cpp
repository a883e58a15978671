#include <nanobind/stl/string_view.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "csr_matrix.hpp"
#include "fixed_points.hpp"
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
    throw nb::value_error(("there is no rule '" + std::string(name) + "' of merging").c_str());
}

void check_table(Stack<const float> grids) {
    check_size("len(grids)", grids.size, 2);
    check_at_least("grids.shape[1]", grids.rows, 2);
    check_size("grids.shape[2]", grids.columns, grids.rows);
    if (grids.rows > MergeTables::kMostNodes)
        throw nb::value_error(("grids must have at most " + std::to_string(MergeTables::kMostNodes) +
                               " nodes a side, got " + std::to_string(grids.rows))
                                  .c_str());
    bool is_within = true;
    for (Index i = 0; i < grids.size * grids.rows * grids.columns; ++i)
        is_within &= (grids.data[i] >= 0.0f) & (grids.data[i] <= 1.0f);
    if (!is_within) throw nb::value_error("grids must have values in [0, 1]");
}

// A copy of totals, which no other thread can change. The numbers of points must be at most the budget.
StepTotals read_totals(Span<const Index> counts, Span<const double> sums, Index budget) {
    const StepTotals totals(counts, sums);
    for (const Index count : totals.counts)
        if (count < 0 || count > kMostCounted)
            throw nb::value_error(("counts must be in [0, 2^62], got " + std::to_string(count)).c_str());
    const Index n_front = totals.counts[StepTotals::kFront], n_back = totals.counts[StepTotals::kBack];
    if (n_front > budget || n_back > budget - n_front)  // their sum may overflow
        throw nb::value_error(("counts must be of at most " + std::to_string(budget) + " points, got " +
                               std::to_string(n_front) + " and " + std::to_string(n_back))
                                  .c_str());
    return totals;
}

template <class Rows>
void run_merging(MergingState& state, Rows& rows, Index longest, Span<const Index> order,
                 Span<const double> signed_weights, const MergeTables& tables, std::string_view rule_name, double gamma,
                 const StepRule& rule) {
    const StepTotals totals = read_totals(state.counts.span(), state.sums.span(), state.budget);
    with_rule(rule_name, [&](auto merge_rule) {
        nb::gil_scoped_release unlocked;
        MergingSteps<merge_rule()>(state, totals, tables, gamma, rule, longest).run(rows, order, signed_weights);
    });
}

void check_rows(const MergingState& state, Index n_rows, Index n_columns, Span<const Index> order,
                Span<const double> signed_weights) {
    check_size("X.shape[1]", n_columns, state.n_features);
    check_size("len(signed_weights)", signed_weights.size, n_rows);
    check_indices("order", order, n_rows);
}

void bind_state(nb::module_& budget) {
    nb::class_<MergingState> state(
        budget, "MergingState",
        "A machine of at most `budget` points that are merged. Its arrays may be written to between calls: coefficient j\n"
        "times lam t is slots[0, j], of the point slots[3, j] points[:, j] + shift; slots[1] is the same sum with each\n"
        "term times the clock at which it came, slots[2] is gamma |points[:, j] slots[3, j]|^2. Points of positive\n"
        "coefficient fill the slots from the front, the others from the back; empty slots have coefficient 0.");
    state.def(
        "__init__",
        [](MergingState* made, Index n_features, Index budget) {
            constexpr Index most_size = std::numeric_limits<std::int32_t>::max() / 2;
            check_at_least("n_features", n_features, 0);
            check_at_least("budget", budget, 1);
            if (n_features > most_size || budget > most_size)
                throw nb::value_error("n_features and budget must be below 2^30");
            new (made) MergingState(n_features, budget);
        },
        "n_features"_a, "budget"_a, "An empty machine.");
    using Floats = nb::ndarray<nb::numpy, float, nb::ndim<2>, nb::c_contig>;
    using Doubles = nb::ndarray<nb::numpy, double, nb::ndim<2>, nb::c_contig>;
    const auto as_size = [](Index n) { return static_cast<std::size_t>(n); };
    state.def_prop_ro(
        "points",
        [as_size](MergingState& s) { return Floats(s.points.data(), {as_size(s.n_features), as_size(s.n_slots)}); },
        "ndarray of shape (n_features, n_slots), float32");
    state.def_prop_ro(
        "slots",
        [as_size](MergingState& s) {
            return Doubles(s.slots.data(), {std::size_t(MergingState::kSlotRows), as_size(s.n_slots)});
        },
        "ndarray of shape (4, n_slots), float64");
    state.def_prop_ro(
        "counts",
        [](MergingState& s) {
            return nb::ndarray<nb::numpy, Index, nb::ndim<1>>(s.counts.data(), {std::size_t(StepTotals::kCounts)});
        },
        "ndarray of shape (7,), int64: steps, points at the front and at the back, violations, mergers, removals, mistakes\n"
        "of the average beyond those of the current machine");
    state.def_prop_ro(
        "sums",
        [](MergingState& s) {
            return nb::ndarray<nb::numpy, double, nb::ndim<1>>(s.sums.data(), {std::size_t(StepTotals::kSums)});
        },
        "ndarray of shape (7,), float64: intercept, its sum times the clock, clock, weight of the latest step, sum of\n"
        "weights, hinge losses, squared degradations");
    state.def_prop_ro(
        "shift",
        [as_size](MergingState& s) {
            return nb::ndarray<nb::numpy, float, nb::ndim<1>>(s.shift.data(), {as_size(s.n_features)});
        },
        "ndarray of shape (n_features,), float32: what all points and rows are stored less");
    state.def(
        "run",
        [](MergingState& s, const RowsArray<const float>& X, const Vector<const Index>& order,
           const Vector<const double>& signed_weights, const MergeTables& tables, std::string_view rule, double gamma,
           double inverse_lam, bool fit_intercept) {
            DenseRows rows{rows_matrix(X, "X"), s.shift.span()};
            check_rows(s, rows.X.rows, rows.X.columns, span(order), span(signed_weights));
            run_merging(s, rows, s.n_features, span(order), span(signed_weights), tables, rule, gamma,
                        {s.budget, inverse_lam, fit_intercept ? 1.0 : 0.0});
        },
        array("X"), array("order"), array("signed_weights"), "tables"_a, "rule"_a, "gamma"_a, "inverse_lam"_a,
        "fit_intercept"_a,
        "One step on each of the rows X[order], X (n, d) float32; signed_weights (n,): label times weight.");
    state.def(
        "run",
        [](MergingState& s, const CSRMatrix& X, const Vector<const Index>& order,
           const Vector<const double>& signed_weights, const MergeTables& tables, std::string_view rule, double gamma,
           double inverse_lam, bool fit_intercept) {
            check_rows(s, X.rows(), X.columns(), span(order), span(signed_weights));
            X.visit_as<float>("X", [&](const auto& view) {
                using I = std::remove_const_t<std::remove_pointer_t<decltype(view.indices.data)>>;
                Index longest = 0;
                for (const Index i : span(order)) longest = most(longest, view.row_end(i) - view.row_begin(i));
                bool is_shifted = false;
                for (const float shift : s.shift.span()) is_shifted |= shift != 0.0f;
                std::vector<float> dense(is_shifted ? s.n_features : 0);
                SparseRows<I> rows{view, s.shift.span(), {dense.data(), static_cast<Index>(dense.size())}};
                run_merging(s, rows, longest, span(order), span(signed_weights), tables, rule, gamma,
                            {s.budget, inverse_lam, fit_intercept ? 1.0 : 0.0});
            });
        },
        "X"_a, array("order"), array("signed_weights"), "tables"_a, "rule"_a, "gamma"_a, "inverse_lam"_a,
        "fit_intercept"_a, "The same on rows of a CSRMatrix of float32 values.");
}

// One merging problem a row: the candidate's coefficient, and those of its possible partners.
template <MergeRule rule>
void find_all(Span<const double> own, Matrix<const double> coef, Matrix<const float> log_kappa, Span<const Index> sizes,
              const MergeTables& tables, Span<Index> partners, Matrix<double> found) {
    const Index width = whole_groups(coef.columns);
    PartnerSearch<rule> search(tables, width);
    AlignedArray<double> a(width);
    AlignedArray<float> exponent(width), kappa(width);
    for (Index p = 0; p < own.size; ++p) {
        for (Index j = 0; j < sizes[p]; ++j) {
            a.data()[j] = coef[p].data[j];
            exponent.data()[j] = clip_nonpositive(log_kappa[p].data[j], -1e30f);
        }
        for (Index j = 0; j < width; ++j) kappa.data()[j] = exp_of_nonpositive(exponent.data()[j]);
        const Merger merger = search.find(own[p], a.span(), exponent.span(), kappa.span(), 0, sizes[p]);
        partners[p] = merger.partner;
        found[p][0] = merger.h;
        found[p][1] = merger.degradation;
    }
}

void bind_search(nb::module_& budget) {
    nb::class_<MergeTables>(budget, "MergeTables", "h and the root of wd on a grid, as look-ups read them.")
        .def(
            "__init__",
            [](MergeTables* made, const Array3<const float>& grids) {
                check_table(stack(grids));
                new (made) MergeTables(stack(grids));
            },
            array("grids"), "From grids (2, t, t), float32 in [0, 1]: h and the root of wd over m and kappa.");
    budget.def(
        "find_partners",
        [](const Vector<const double>& own, const Array<const double>& coef, const Array<const float>& log_kappa,
           const Vector<const Index>& sizes, const MergeTables& tables, std::string_view rule_name,
           const Vector<Index>& partners, const Array<double>& found) {
            const Index n = span(own).size;
            const Matrix<const double> a = matrix(coef);
            check_size("len(coef)", a.rows, n);
            check_size("len(log_kappa)", matrix(log_kappa).rows, n);
            check_size("log_kappa.shape[1]", matrix(log_kappa).columns, a.columns);
            check_size("len(sizes)", span(sizes).size, n);
            check_size("len(partners)", span(partners).size, n);
            check_size("len(found)", matrix(found).rows, n);
            check_size("found.shape[1]", matrix(found).columns, 2);
            check_indices("sizes", span(sizes), a.columns + 1);
            with_rule(rule_name, [&](auto rule) {
                nb::gil_scoped_release unlocked;
                find_all<rule()>(span(own), a, matrix(log_kappa), span(sizes), tables, span(partners), matrix(found));
            });
        },
        array("candidates"), array("coef"), array("log_kappa"), array("sizes"), "tables"_a, "rule"_a, array("partners"),
        array("found"),
        "Solve p merging problems: own (p,) is the candidate's coefficient; coef and log_kappa (p, n), float64 and\n"
        "float32, have in their first sizes[i] columns coefficients of its sign, none smaller, and ln k. Writes the best\n"
        "partner (p,), -1 without one, and (h, squared degradation) (p, 2).");
}

template <Maintenance maintenance>
void run_fixed(const Array<const float>& K, Index first, const Vector<const double>& diagonal,
               const Vector<const double>& signed_weights, const Array<double>& coef, const Array<double>& inverse,
               const Vector<Index>& counts, const Vector<double>& sums, Index budget, double inverse_lam,
               bool fit_intercept) {
    const Matrix<const float> kernel = matrix(K);
    const FixedPoints points{matrix(coef), span(diagonal), matrix(inverse)};
    const Index side = maintenance == Maintenance::projection ? kernel.columns : points.inverse.rows;
    check_size("len(coef)", points.coef.rows, 2);
    check_size("coef.shape[1]", points.coef.columns, kernel.columns);
    check_size("len(diagonal)", points.diagonal.size, kernel.columns);
    check_size("len(signed_weights)", span(signed_weights).size, kernel.rows);
    check_size("len(inverse)", points.inverse.rows, side);
    check_size("inverse.shape[1]", points.inverse.columns, side);
    check_size("len(counts)", span(counts).size, StepTotals::kCounts);
    check_size("len(sums)", span(sums).size, StepTotals::kSums);
    check_at_least("budget", budget, 1);
    check_at_least("first", first, 0);
    check_at_least("K.shape[1] - len(K)", kernel.columns - kernel.rows, first);
    StepTotals totals = read_totals(span(counts), span(sums), budget);
    nb::gil_scoped_release unlocked;
    const StepRule rule{budget, inverse_lam, fit_intercept ? 1.0 : 0.0};
    FixedSteps<maintenance>(points, rule, totals).run(kernel, first, span(signed_weights));
    totals.store(span(counts), span(sums));
}

template <Maintenance maintenance> void bind_fixed(nb::module_& budget, const char* name, const char* doc) {
    budget.def(name, &run_fixed<maintenance>, array("K"), "first"_a, array("diagonal"), array("signed_weights"),
               array("coef"), array("inverse"), array("counts"), array("sums"), "budget"_a, "inverse_lam"_a,
               "fit_intercept"_a, doc);
}

}  // namespace

void bind_budget(nb::module_& m) {
    nb::module_ budget = m.def_submodule("budget", "Steps of stochastic gradient descent on a budget of points.");
    bind_search(budget);
    bind_state(budget);
    bind_fixed<Maintenance::removal>(
        budget, "removal_steps",
        "One step on each row of a block of kernel values K (r, c) float32, of new rows that are columns first, first +\n"
        "1, ...; over the budget the lightest point is removed. diagonal (c,): k(x, x); signed_weights (r,); coef (2, c)\n"
        "and the totals counts (7,) and sums (7,) are updated; inverse is not read.");
    bind_fixed<Maintenance::projection>(
        budget, "projection_steps",
        "The same; over the budget a point is projected onto the others. inverse (c, c): of the points' kernel matrix,\n"
        "updated.");
}

}  // namespace wm
