#include <nanobind/stl/string_view.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "scratch.hpp"
#include "shapley.hpp"
#include "signals.hpp"

namespace wm {
namespace {

template <class Term>
void add_in_blocks(Team& team, const ProductExpansion& f, Matrix<const double> X, Stack<double> out) {
    const Index n_blocks = count_blocks(X.rows, kExplainedRows), r = f.points.rows;
    ScratchPool<ShapleyScratch> pool(team.n_threads(), [&] { return ShapleyScratch(f); });
    LockReleased unlocked;
    for_each_block(team, n_blocks * out.size, [&](Index block) {
        const Index first = block % n_blocks * kExplainedRows, end = minimum(X.rows, first + kExplainedRows);
        const Index part = block / n_blocks;
        pool.with_one([&](ShapleyScratch& scratch) {
            add_shapley_values<Term>(f, X.slice(first, end), part * r / out.size, (part + 1) * r / out.size, scratch,
                                     out[part].slice(first, end));
        });
    });
}

}  // namespace

void bind_shapley(nb::module_& m) {
    nb::module_ shapley = m.def_submodule("shapley", "Shapley values of kernels that are products over the columns.");
    shapley.attr("NODES") = kNodes;
    shapley.def(
        "add_shapley_values",
        [](Team& team, std::string_view kernel, double gamma, Matrix<const double> X, Matrix<const double> points,
           Matrix<const double> coef, Span<const Index> players, Index n_players, Matrix<const double> background,
           Span<const double> nodes, Span<const double> weights, Span<const double> limits, Stack<double> out) {
            const Index d = X.columns, m = limits.size;
            check_at_least("len(limits)", m, 1);
            check_at_most("len(limits)", m, 1 << 16);
            check_lengths(kNodes * m * (m + 1) / 2, {{"nodes", nodes}, {"weights", weights}});
            check_size("points.shape[1]", points.columns, d);
            check_size("background.shape[1]", background.columns, d);
            check_lengths(points.rows, {{"coef", coef.rows}});
            check_at_least("n_players", n_players, 1);
            check_at_most("n_players", n_players, d);
            check_lengths(d, {{"players", players}});
            const std::vector<Index> own = checked_copy("players", players, n_players);
            check_at_least("len(out)", out.size, 1);
            check_size("out.shape[1]", out.rows, X.rows);
            check_size("out.shape[2]", out.columns, coef.columns * (n_players + 1));
            bool is_grouped = n_players < d;
            for (Index k = 0; k < d; ++k) is_grouped |= own[k] != k;
            const ProductExpansion f{points, coef,       as_span(own),            n_players, is_grouped,
                                     gamma,  background, {nodes, weights, limits}};
            const auto add = [&](auto term) { add_in_blocks<decltype(term)>(team, f, X, out); };
            if (kernel == SquaredDifference::name) return add(SquaredDifference());
            if (kernel == AbsoluteDifference::name) return add(AbsoluteDifference());
            if (kernel == RelativeSquare::name) return add(RelativeSquare());
            raise_value_error("kernel must be rbf, laplacian or chi2, got ", kernel);
        },
        "team"_a, "kernel"_a, "gamma"_a, array("X"), array("points"), array("coef"), array("players"), "n_players"_a,
        array("background"), array("nodes"), array("weights"), array("limits"), array("out"),
        "out[j] (c, q (p + 1)) += the Shapley values of p players, and the value without any, of the j-th part of the r points\n"
        "in q functions at the rows of X (c, d): points (r, d), coef (r, q), divided by the number of rows of the background\n"
        "(b, d), which may be 0; players (d,), the player of each column; limits (m,) of rules of 8, 16, ..., 8 m nodes.");
}

}  // namespace wm
