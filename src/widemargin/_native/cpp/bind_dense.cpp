#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dense.hpp"
#include "moments.hpp"

namespace wm {
namespace {

auto run_in(Team& team) {
    return [&team](Index n_blocks, const auto& visit) { for_each_block(team, n_blocks, visit); };
}

// An array in C order as one vector.
template <class T> Span<T> flat(const Array<T>& a) { return {a.data(), static_cast<Index>(a.size())}; }

RowWeights row_weights(const RowsArray<const double>& coef, const std::optional<RowsArray<const double>>& previous, Index n,
                       Matrix<double> out) {
    const RowWeights weights{rows_matrix(coef, "coef"), previous ? rows_matrix(*previous, "previous") : Matrix<const double>()};
    check_size("coef.shape[1]", weights.coef.columns, n);
    check_size("len(out)", out.rows, weights.coef.rows);
    if (previous) {
        check_size("previous.shape[1]", weights.previous.columns, n);
        check_size("len(previous)", weights.previous.rows, weights.coef.rows);
    }
    return weights;
}

template <class T> void bind_outputs(nb::module_& m) {
    m.def(
        "matvec",
        [](Team& team, const RowsArray<const T>& X, const Vector<const double>& w, const Vector<double>& out) {
            const Matrix<const T> rows = rows_matrix(X, "X");
            check_size("len(w)", span(w).size, rows.columns);
            check_size("len(out)", span(out).size, rows.rows);
            nb::gil_scoped_release unlocked;
            matvec<T>(rows, span(w), span(out), run_in(team));
        },
        "team"_a, array("X"), array("w"), array("out"), "Write X w (n,), for X (n, d) with contiguous rows.");
    m.def(
        "matvec_transposed",
        [](Team& team, const RowsArray<const T>& Xt, const Vector<const double>& w, const Vector<double>& out) {
            const Matrix<const T> columns = rows_matrix(Xt, "Xt");
            check_size("len(w)", span(w).size, columns.rows);
            check_size("len(out)", span(out).size, columns.columns);
            nb::gil_scoped_release unlocked;
            matvec_transposed<T>(columns, span(w), span(out), run_in(team));
        },
        "team"_a, array("Xt"), array("w"), array("out"), "As `matvec`, from the transpose (d, n).");
}

template <class T> void bind_sums(nb::module_& m) {
    m.def(
        "rmatvec",
        [](Team& team, const RowsArray<const T>& X, const RowsArray<const double>& coef,
           const std::optional<RowsArray<const double>>& previous, const Array<double>& out) {
            const Matrix<const T> rows = rows_matrix(X, "X");
            const RowWeights weights = row_weights(coef, previous, rows.rows, matrix(out));
            check_size("out.shape[1]", matrix(out).columns, rows.columns);
            nb::gil_scoped_release unlocked;
            rmatvec<T>(rows, weights, matrix(out), run_in(team));
        },
        "team"_a, array("X"), array("coef"), array("previous").none(), array("out"),
        "Write (coef - previous) X (k, d), for X (n, d) with contiguous rows. previous (k, n) or None. Most rows of weight 0\n"
        "are not read.");
    m.def(
        "rmatvec_transposed",
        [](Team& team, const RowsArray<const T>& Xt, const RowsArray<const double>& coef,
           const std::optional<RowsArray<const double>>& previous, const Array<double>& out) {
            const Matrix<const T> columns = rows_matrix(Xt, "Xt");
            const RowWeights weights = row_weights(coef, previous, columns.columns, matrix(out));
            check_size("out.shape[1]", matrix(out).columns, columns.rows);
            nb::gil_scoped_release unlocked;
            rmatvec_transposed<T>(columns, weights, matrix(out), run_in(team));
        },
        "team"_a, array("Xt"), array("coef"), array("previous").none(), array("out"),
        "As `rmatvec`, from the transpose (d, n).");
}

template <class T> void bind_copies(nb::module_& m) {
    m.def(
        "take_rows",
        [](Team& team, const RowsArray<const T>& X, const Vector<const Index>& chosen, const Array<T>& out) {
            const Matrix<const T> rows = rows_matrix(X, "X");
            check_indices("chosen", span(chosen), rows.rows);
            check_apart("chosen", span(chosen), "out", flat(out));
            check_size("len(out)", matrix(out).rows, span(chosen).size);
            check_size("out.shape[1]", matrix(out).columns, rows.columns);
            nb::gil_scoped_release unlocked;
            take_rows<T>(rows, span(chosen), matrix(out), run_in(team));
        },
        "team"_a, array("X"), array("chosen"), array("out"), "Write X[chosen], for X (n, d) with contiguous rows.");
    m.def(
        "take_columns",
        [](Team& team, const RowsArray<const T>& Xt, const Vector<const Index>& chosen, const Array<T>& out) {
            const Matrix<const T> columns = rows_matrix(Xt, "Xt");
            check_indices("chosen", span(chosen), columns.columns);
            check_apart("chosen", span(chosen), "out", flat(out));
            check_size("len(out)", matrix(out).rows, span(chosen).size);
            check_size("out.shape[1]", matrix(out).columns, columns.rows);
            nb::gil_scoped_release unlocked;
            take_columns<T>(columns, span(chosen), matrix(out), run_in(team));
        },
        "team"_a, array("Xt"), array("chosen"), array("out"), "Write Xt.T[chosen], in C order.");
    m.def(
        "are_finite",
        [](Team& team, const Vector<const T>& numbers) {
            nb::gil_scoped_release unlocked;
            return are_finite<T>(span(numbers), run_in(team));
        },
        "team"_a, array("numbers"), "Whether there is neither NaN nor infinity.");
}

template <class T> void bind_moments(nb::module_& m) {
    m.def(
        "second_moments",
        [](Team& team, const RowsArray<const T>& X, const Vector<const Index>& chosen, const Vector<const double>& centre,
           const Vector<const double>& factors, const Array<double>& out) {
            const Matrix<const T> rows = rows_matrix(X, "X");
            check_indices("chosen", span(chosen), rows.rows);
            check_apart("chosen", span(chosen), "out", flat(out));
            check_size("len(centre)", span(centre).size, rows.columns);
            check_size("len(factors)", span(factors).size, span(chosen).size);
            check_size("len(out)", matrix(out).rows, rows.columns);
            check_size("out.shape[1]", matrix(out).columns, rows.columns);
            nb::gil_scoped_release unlocked;
            second_moments<T>(rows, span(chosen), span(centre), span(factors), matrix(out), run_in(team));
        },
        "team"_a, array("X"), array("chosen"), array("centre"), array("factors"), array("out"),
        "Write A' A (d, d), with A = (X[chosen] - centre) * factors[:, None].");
}

template <class T> void bind_dtype(nb::module_& m) {
    bind_outputs<T>(m);
    bind_sums<T>(m);
    bind_copies<T>(m);
    bind_moments<T>(m);
}

}  // namespace

void bind_dense(nb::module_& m) {
    nb::module_ dense = m.def_submodule("dense", "Passes over dense rows: products, sums, copies, moments.");
    bind_dtype<float>(dense);
    bind_dtype<double>(dense);
}

}  // namespace wm
