#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dense.hpp"
#include "moments.hpp"
#include "row_products.hpp"
#include "signals.hpp"

namespace wm {
namespace {

RowWeights row_weights(const RowsArray<const double>& coef, const std::optional<RowsArray<const double>>& base,
                       Index n) {
    const RowWeights weights{rows_matrix(coef, "coef"),
                             base ? rows_matrix(*base, "base") : Matrix<const double>()};
    check_size("coef.shape[1]", weights.coef.columns, n);
    if (base) check_shape("base", weights.base, weights.coef.rows, n);
    return weights;
}

// Passes over the rows of X (n, d), given as X or as its transpose Xt (d, n): `either` chooses the name and docstring.
template <class T, bool is_transposed> void bind_passes(nb::module_& m) {
    const auto either = [](const char* plain, const char* transposed) { return is_transposed ? transposed : plain; };
    constexpr const char* rows_name = is_transposed ? "Xt" : "X";
    const auto n_rows = [](const Matrix<const T>& X) { return is_transposed ? X.columns : X.rows; };
    const auto n_columns = [](const Matrix<const T>& X) { return is_transposed ? X.rows : X.columns; };
    m.def(
        either("matvec", "matvec_transposed"),
        [=](Team& team, const RowsArray<const T>& X_, const RowsArray<const double>& W_, Matrix<double> out) {
            const Matrix<const T> X = rows_matrix(X_, rows_name);
            const Matrix<const double> W = rows_matrix(W_, "W");
            check_size("W.shape[1]", W.columns, n_columns(X));
            check_shape("out", out, W.rows, n_rows(X));
            LockReleased unlocked;
            if constexpr (is_transposed) matvec_transposed<T>(X, W, out, run_in(team));
            else matvec<T>(X, W, out, run_in(team));
        },
        "team"_a, array(rows_name), array("W"), array("out"),
        either("Write W X' (k, n), for X (n, d) with contiguous rows.", "As `matvec`, for X in Fortran order: Xt (d, n)."));
    m.def(
        either("rmatvec", "rmatvec_transposed"),
        [=](Team& team, const RowsArray<const T>& X_, const RowsArray<const double>& coef,
            const std::optional<RowsArray<const double>>& base, Matrix<double> out) {
            const Matrix<const T> X = rows_matrix(X_, rows_name);
            const RowWeights weights = row_weights(coef, base, n_rows(X));
            check_shape("out", out, weights.coef.rows, n_columns(X));
            LockReleased unlocked;
            if constexpr (is_transposed) rmatvec_transposed<T>(X, weights, out, run_in(team));
            else rmatvec<T>(X, weights, out, run_in(team));
        },
        "team"_a, array(rows_name), array("coef"), array("base").none(), array("out"),
        either("Write (coef - base) X (k, d), for X (n, d) with contiguous rows, coef (k, n), and base (k, n) or\n"
               "None. Most rows of weight 0 are not read.",
               "As `rmatvec`, for X in Fortran order: Xt (d, n)."));
    m.def(
        either("take_rows", "take_columns"),
        [=](Team& team, const RowsArray<const T>& X_, Span<const Index> chosen, Matrix<T> out) {
            const Matrix<const T> X = rows_matrix(X_, rows_name);
            check_indices("chosen", chosen, n_rows(X));
            check_apart("chosen", chosen, "out", flat(out));
            check_shape("out", out, chosen.size, n_columns(X));
            LockReleased unlocked;
            if constexpr (is_transposed) take_columns<T>(X, chosen, out, run_in(team));
            else take_rows<T>(X, chosen, out, run_in(team));
        },
        "team"_a, array(rows_name), array("chosen"), array("out"),
        either("Write X[chosen] (m, d), for X (n, d) with contiguous rows.", "Write Xt.T[chosen] (m, d), in C order."));
}

template <class T> void bind_others(nb::module_& m) {
    m.def(
        "are_finite",
        [](Team& team, Span<const T> numbers) {
            LockReleased unlocked;
            return are_finite<T>(numbers, run_in(team));
        },
        "team"_a, array("numbers"), "Whether none of the numbers (n,) is NaN or infinite.");
    m.def(
        "inner_products",
        [](const RowsArray<const T>& X_, const RowsArray<const T>& Z_, const RowsArray<T>& out) {
            const Matrix<const T> X = rows_matrix(X_, "X"), Z = rows_matrix(Z_, "Z");
            const Matrix<T> into = rows_matrix(out, "out");
            check_size("Z.shape[1]", Z.columns, X.columns);
            check_shape("out", into, X.rows, Z.rows);
            auto scratch = product_scratch<T>(X, Z);
            LockReleased unlocked;
            inner_products(X, Z, scratch, into);
        },
        array("X"), array("Z"), array("out"), "Write X Z' (r, c), for X (r, d) and Z (c, d) with contiguous rows.");
    m.def(
        "second_moments",
        [](Team& team, const RowsArray<const T>& X_, Span<const Index> chosen, Span<const double> centre,
           Span<const double> factors, Matrix<double> out) {
            const Matrix<const T> X = rows_matrix(X_, "X");
            check_indices("chosen", chosen, X.rows);
            check_apart("chosen", chosen, "out", flat(out));
            check_lengths(X.columns, {{"centre", centre}});
            check_lengths(chosen.size, {{"factors", factors}});
            check_shape("out", out, X.columns, X.columns);
            LockReleased unlocked;
            second_moments<T>(X, chosen, centre, factors, out, run_in(team));
        },
        "team"_a, array("X"), array("chosen"), array("centre"), array("factors"), array("out"),
        "Write A' A (d, d), with A = (X[chosen] - centre) * factors[:, None].");
}

template <class T> void bind_dtype(nb::module_& m) {
    bind_passes<T, false>(m);
    bind_passes<T, true>(m);
    bind_others<T>(m);
}

}  // namespace

void bind_dense(nb::module_& m) {
    nb::module_ dense = m.def_submodule("dense", "Passes over dense rows: products, copies, second moments.");
    bind_dtype<float>(dense);
    bind_dtype<double>(dense);
}

}  // namespace wm
