#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "elementwise.hpp"
#include "kernel_rows.hpp"

namespace wm {
namespace {

template <class T> void bind_dtype(nb::module_& m) {
    m.def(
        "rbf_exponent",
        [](const Array<const double>& G, const Vector<const double>& squares, const Vector<const double>& other_squares,
           double gamma, const RowsArray<T>& out) {
            const Matrix<T> into = rows_matrix(out, "out");
            check_size("len(squares)", span(squares).size, matrix(G).rows);
            check_size("len(other_squares)", span(other_squares).size, matrix(G).columns);
            check_size("len(out)", into.rows, matrix(G).rows);
            check_size("out.shape[1]", into.columns, matrix(G).columns);
            nb::gil_scoped_release unlocked;
            rbf_exponent<T>(matrix(G), span(squares), span(other_squares), gamma, into);
        },
        array("G"), array("squares"), array("other_squares"), "gamma"_a, array("out"),
        "Write -gamma |x - z|^2 <= 0, from inner products G and gamma times squared norms.");
    m.def(
        "polynomial",
        [](const RowsArray<T>& G, double gamma, double coef0, Index degree) {
            const Matrix<T> values = rows_matrix(G, "G");
            check_at_least("degree", degree, 0);
            std::vector<T> scratch(values.columns);
            nb::gil_scoped_release unlocked;
            polynomial<T>(values, gamma, coef0, degree, {scratch.data(), values.columns});
        },
        array("G"), "gamma"_a, "coef0"_a, "degree"_a, "Replace inner products by (gamma <x, z> + coef0)^degree.");
    m.def(
        "l1_distances",
        [](const RowsArray<const T>& X, const RowsArray<const T>& Z, const RowsArray<T>& out) {
            const Matrix<const T> x = rows_matrix(X, "X"), z = rows_matrix(Z, "Z");
            const Matrix<T> into = rows_matrix(out, "out");
            check_size("Z.shape[1]", z.columns, x.columns);
            check_size("len(out)", into.rows, x.rows);
            check_size("out.shape[1]", into.columns, z.rows);
            nb::gil_scoped_release unlocked;
            l1_distances<T>(x, z, into);
        },
        array("X"), array("Z"), array("out"), "Write the L1 distances of all rows of X and Z.");
    m.def(
        "add_rows",
        [](Team& team, const RowsArray<const T>& K, const Vector<const Index>& rows, const Vector<const double>& coef,
           const Vector<double>& f) {
            const Matrix<const T> entries = rows_matrix(K, "K");
            const Span<double> sum = span(f);
            check_size("len(coef)", span(coef).size, span(rows).size);
            check_at_least("K.shape[1]", entries.columns, sum.size);
            check_indices("rows", span(rows), entries.rows);
            nb::gil_scoped_release unlocked;
            for_each_block(team, count_blocks(sum.size, kColumnBlock),
                           [&](Index block) { add_rows(entries, span(rows), span(coef), sum, block); });
        },
        "team"_a, array("K"), array("rows"), array("coef"), array("f"),
        "f += coef K[rows] for f of shape (m,) and K (r, >= m), in float64. Stopped leaves f half done.");
    m.def(
        "add_product",
        [](const RowsArray<const T>& K, const RowsArray<const double>& coef, const RowsArray<double>& out) {
            const Matrix<const T> entries = rows_matrix(K, "K");
            const Matrix<const double> weights = rows_matrix(coef, "coef");
            const Matrix<double> sums = rows_matrix(out, "out");
            check_size("coef.shape[1]", weights.columns, entries.rows);
            check_size("len(out)", sums.rows, weights.rows);
            check_size("out.shape[1]", sums.columns, entries.columns);
            nb::gil_scoped_release unlocked;
            for (Index block = 0; block < count_blocks(sums.columns, kColumnBlock); ++block)
                add_product(entries, weights, sums, block);
        },
        array("K"), array("coef"), array("out"),
        "out += coef K in float64; rows of K are skipped where their coefficient is zero.");
}

}  // namespace

void bind_kernels(nb::module_& m) {
    nb::module_ kernels = m.def_submodule("kernels", "Kernel functions of a tile, entry by entry.");
    kernels.def(
        "rbf",
        [](const RowsArray<float>& G, const Vector<const float>& squares, const Vector<const float>& other_squares,
           double gamma) {
            const Matrix<float> values = rows_matrix(G, "G");
            check_size("len(squares)", span(squares).size, values.rows);
            check_size("len(other_squares)", span(other_squares).size, values.columns);
            nb::gil_scoped_release unlocked;
            rbf(values, span(squares), span(other_squares), gamma);
        },
        array("G"), array("squares"), array("other_squares"), "gamma"_a,
        "Replace inner products by exp(-gamma |x - z|^2); squares are gamma |x|^2.");
    bind_dtype<float>(kernels);
    bind_dtype<double>(kernels);
}

}  // namespace wm
