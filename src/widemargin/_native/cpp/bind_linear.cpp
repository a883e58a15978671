#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "coordinate_ascent.hpp"
#include "crammer_singer.hpp"
#include "csr_matrix.hpp"
#include "multiclass_ascent.hpp"
#include "signals.hpp"
#include "simplex_qp.hpp"

namespace wm {
namespace {

std::pair<Index, double> solve_simplex_qp(const RowsArray<const double>& H, Span<const double> b, Span<double> beta,
                                          double tol, Index max_rounds) {
    const Matrix<const double> gram = rows_matrix(H, "H");
    check_at_least("len(H)", gram.rows, beta.size);
    check_at_least("H.shape[1]", gram.columns, beta.size);
    check_lengths(beta.size, {{"b", b}});
    LockReleased unlocked;
    const SimplexResult result = SimplexQP(gram, b, beta).solve(tol, max_rounds);
    return {result.n_rounds, result.gap};
}

// The classes of the rows, checked and copied by the constructor, and their weights.
class MulticlassHinge {
  public:
    MulticlassHinge(Span<const std::int64_t> y, const Vector<const double>& s, Index n_classes)
        : n_classes_(n_classes), s_(s) {
        check_at_least("n_classes", n_classes, 0);
        check_lengths(y.size, {{"s", span(s)}});
        check_at_most("n_classes", n_classes, std::numeric_limits<std::int32_t>::max());
        check_indices("y", y, n_classes);
        y_.assign(y.begin(), y.end());
    }

    auto advance(Team& team, Matrix<double> f, Matrix<const double> f_end, double step, double mu,
                 Matrix<double> coef) const {
        check_shape("f", f, n_classes_, n_rows());
        check_shape("f_end", f_end, n_classes_, n_rows());
        check_shape("coef", coef, n_classes_, n_rows());
        LockReleased unlocked;
        return std::tuple_cat(advance_multiclass(segment(f, f_end), f, step, mu, coef, run_in(team)));
    }
    double slope(Team& team, Matrix<const double> f, Matrix<const double> f_end, Span<const Index> rows, double k) const {
        check_segment(f, f_end, rows);
        LockReleased unlocked;
        return multiclass_slope(segment(f, f_end), rows, k, run_in(team));
    }
    std::pair<Index, double> drop_linear_rows(Team& team, Matrix<const double> f, Matrix<const double> f_end,
                                              Span<Index> rows, double lo, double hi) const {
        check_segment(f, f_end, rows);
        LockReleased unlocked;
        const KeptRows kept = wm::drop_linear_rows(segment(f, f_end), rows, lo, hi, run_in(team));
        return {kept.n_kept, kept.dropped_slope};
    }

  private:
    Index n_classes_;
    std::vector<std::int32_t> y_;
    Vector<const double> s_;

    MulticlassSegment segment(Matrix<const double> f, Matrix<const double> f_end) const {
        return {f, f_end, as_span(y_), span(s_)};
    }
    Index n_rows() const { return as_span(y_).size; }
    void check_segment(Matrix<const double> f, Matrix<const double> f_end, Span<const Index> rows) const {
        check_shape("f", f, n_classes_, n_rows());
        check_shape("f_end", f_end, n_classes_, n_rows());
        check_indices("rows", rows, n_rows());
    }
};

void bind_multiclass_hinge(nb::module_& m) {
    nb::class_<MulticlassHinge>(m, "MulticlassHinge",
                                "Crammer and Singer's risk sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i) of decision\n"
                                "values f (q, n), for classes y (n,) in [0, q) and sample weights s (n,).")
        .def(nb::init<Span<const std::int64_t>, const Vector<const double>&, Index>(), array("y"), array("s"),
             "n_classes"_a)
        .def("advance", &MulticlassHinge::advance, "team"_a, array("f"), array("f_end"), "step"_a, "mu"_a,
             array("coef"),
             "Replace f by f + step (f_end - f), write the row weights coef (q, n) of the cutting plane at f + mu\n"
             "(f_end - f), and return the risk at the new f and the plane's offset.")
        .def("slope", &MulticlassHinge::slope, "team"_a, array("f"), array("f_end"), array("rows"), "k"_a,
             "The right derivative, in k, of the risk of some rows at f + k (f_end - f).")
        .def("drop_linear_rows", &MulticlassHinge::drop_linear_rows, "team"_a, array("f"), array("f_end"), array("rows"), "lo"_a, "hi"_a,
             "Move the rows whose loss at f + k (f_end - f) is not linear in k over [lo, hi] to the front of `rows`;\n"
             "return their number, and the sum of the dropped rows' derivatives.");
}

template <class RowArrays> void bind_ascent(nb::module_& m) {
    m.def(
        "ascent_epoch",
        [](const Team& team, const RowArrays& X, Span<const double> signed_weights, Span<const double> squared_norms,
           double C, double sigma, Span<double> alpha, Span<double> w, Span<Index> order, double shrink_above,
           double shrink_below, bool is_squared) {
            return visit_rows(X, [&](const auto& rows) {
                check_lengths(n_rows(rows),
                              {{"signed_weights", signed_weights}, {"squared_norms", squared_norms}, {"alpha", alpha}});
                check_lengths(rows.columns + 1, {{"w", w}});
                check_indices<Index>("order", order, n_rows(rows));
                check_apart("order", order, "alpha", alpha);
                check_apart("order", order, "w", w);
                LockReleased unlocked;
                const DualPoint point{signed_weights, squared_norms, C, sigma, alpha, w};
                const Epoch epoch = run_until_stopped(team, [&](const auto& go_on) {
                    return is_squared ? ascent_epoch<true>(rows, point, order, shrink_above, shrink_below, go_on)
                                      : ascent_epoch<false>(rows, point, order, shrink_above, shrink_below, go_on);
                });
                return std::make_tuple(epoch.n_unshrunk, epoch.shrink_above, epoch.shrink_below, epoch.gap);
            });
        },
        "team"_a, array("X"), array("signed_weights"), array("squared_norms"),
        "C"_a, "sigma"_a, array("alpha"), array("w"), array("order"), "shrink_above"_a,
        "shrink_below"_a, "is_squared"_a = false,
        "One epoch of dual coordinate ascent over the rows in `order`, with shrinking: the rows that are not shrunk\n"
        "become the first entries of `order`. is_squared: of squared hinges. squared_norms (n,): |x_i|^2. Returns the number of rows not shrunk, the\n"
        "projected gradients beyond which the next epoch shrinks variables at a bound, and the duality gap: a sum of terms\n"
        "as they were when their rows were visited. Runs in the calling thread; if the team is stopped, Stopped is raised\n"
        "within 1,024 rows, with w that belongs to alpha.");
    m.def(
        "multiclass_epoch",
        [](const Team& team, const RowArrays& X, Span<const Index> y, Span<const double> s,
           Span<const double> squared_norms, double C, double constant, Matrix<double> beta, Matrix<double> W,
           Span<const Index> order) {
            return visit_rows(X, [&](const auto& rows) {
                check_lengths(n_rows(rows), {{"s", s}, {"squared_norms", squared_norms}});
                check_at_least("W.shape[1]", W.columns, 1);
                check_shape("beta", beta, n_rows(rows), W.columns);
                check_shape("W", W, rows.columns + 1, W.columns);
                check_at_least("len(y)", y.size, n_rows(rows));
                const std::vector<Index> classes = checked_copy("y", y, W.columns);
                const std::vector<Index> visited = checked_copy("order", order, n_rows(rows));
                LockReleased unlocked;
                const MulticlassPoint point{as_span(classes), s, squared_norms, C, constant, beta, W};
                return run_until_stopped(
                    team, [&](const auto& go_on) { return multiclass_epoch(rows, point, as_span(visited), go_on); });
            });
        },
        "team"_a, array("X"), array("y"), array("s"), array("squared_norms"), "C"_a, "constant"_a, array("beta"),
        array("W"), array("order"),
        "One epoch of dual coordinate ascent for Crammer and Singer's hinge over the rows in `order`. beta (n, k) and\n"
        "W (d + 1, k) = [X, constant]' beta are updated; y (n,) classes in [0, k); s (n,) weights; squared_norms (n,):\n"
        "|x_i|^2. Returns the duality gap: a sum of terms as they were when their rows were visited. Runs in the calling\n"
        "thread; if the team is stopped, Stopped is raised within 256 rows, with W that belongs to beta.");
    m.def(
        "squared_norms",
        [](const RowArrays& X, Span<double> out) {
            visit_rows(X, [&](const auto& rows) {
                check_lengths(n_rows(rows), {{"out", out}});
                LockReleased unlocked;
                squared_norms(rows, out);
            });
        },
        array("X"), array("out"), "Write out (n,), |x_i|^2 of the rows.");
    m.def(
        "count_values", [](const RowArrays& X) { return visit_rows(X, [](const auto& x) { return count_values(x); }); },
        array("X"), "The number of values stored: n d, or the non-zeros.");
}

}  // namespace

void bind_linear(nb::module_& m) {
    nb::module_ linear = m.def_submodule("linear", "Linear machines: the master problem, Crammer and Singer's risk, dual coordinate ascent.");
    linear.def("solve_simplex_qp", &solve_simplex_qp, array("H"), array("b"), array("beta"), "tol"_a, "max_rounds"_a,
               "Minimise 1/2 beta' H beta - b' beta in place, over beta >= 0 with sum(beta) unchanged, to a duality gap of tol.\n"
               "b and beta (t,); of H (>= t, >= t) the first t rows and columns are read. Returns the number of rounds and\n"
               "the gap that is left.");
    bind_multiclass_hinge(linear);
    bind_ascent<Matrix<const float>>(linear);
    bind_ascent<Matrix<const double>>(linear);
    bind_ascent<CSRMatrix>(linear);
}

}  // namespace wm
