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
            check_lengths(matrix(G).rows, {{"squares", span(squares).size}});
            check_lengths(matrix(G).columns, {{"other_squares", span(other_squares).size}});
            check_shape("out", into, matrix(G).rows, matrix(G).columns);
            nb::gil_scoped_release unlocked;
            rbf_exponent<T>(matrix(G), span(squares), span(other_squares), gamma, into);
        },
        array("G"), array("squares"), array("other_squares"), "gamma"_a, array("out"),
        "Write -gamma |x - z|^2 <= 0 from inner products G (r, c); squares (r,), other_squares (c,): gamma |x|^2, gamma |z|^2.");
    m.def(
        "polynomial",
        [](const RowsArray<T>& G, double gamma, double coef0, Index degree) {
            const Matrix<T> values = rows_matrix(G, "G");
            check_at_least("degree", degree, 0);
            std::vector<T> scratch(values.columns);
            nb::gil_scoped_release unlocked;
            polynomial<T>(values, gamma, coef0, degree, {scratch.data(), values.columns});
        },
        array("G"), "gamma"_a, "coef0"_a, "degree"_a, "Replace inner products G (r, c) by (gamma <x, z> + coef0)^degree, degree >= 0.");
    m.def(
        "l1_distances",
        [](const RowsArray<const T>& X, const RowsArray<const T>& Z, const RowsArray<T>& out) {
            const Matrix<const T> x = rows_matrix(X, "X"), z = rows_matrix(Z, "Z");
            const Matrix<T> into = rows_matrix(out, "out");
            check_size("Z.shape[1]", z.columns, x.columns);
            check_shape("out", into, x.rows, z.rows);
            nb::gil_scoped_release unlocked;
            l1_distances<T>(x, z, into);
        },
        array("X"), array("Z"), array("out"), "Write the L1 distances (r, c) of the rows of X (r, d) and Z (c, d).");
    m.def(
        "add_rows",
        [](Team& team, const RowsArray<const T>& K, const Vector<const Index>& rows, const Vector<const double>& coef,
           const Vector<double>& f) {
            const Matrix<const T> entries = rows_matrix(K, "K");
            const Span<double> sum = span(f);
            check_lengths(span(rows).size, {{"coef", span(coef).size}});
            check_at_least("K.shape[1]", entries.columns, sum.size);
            check_indices("rows", span(rows), entries.rows);
            nb::gil_scoped_release unlocked;
            for_each_block(team, count_blocks(sum.size, kColumnBlock),
                           [&](Index block) { add_rows(entries, span(rows), span(coef), sum, block); });
        },
        "team"_a, array("K"), array("rows"), array("coef"), array("f"),
        "f += coef K[rows] in float64, f (m,), K (r, >= m), rows and coef (k,). After Stopped f is partly updated.");
    m.def(
        "add_product",
        [](const RowsArray<const T>& K, const RowsArray<const double>& coef, const RowsArray<double>& out) {
            const Matrix<const T> entries = rows_matrix(K, "K");
            const Matrix<const double> weights = rows_matrix(coef, "coef");
            const Matrix<double> sums = rows_matrix(out, "out");
            check_size("coef.shape[1]", weights.columns, entries.rows);
            check_shape("out", sums, weights.rows, entries.columns);
            nb::gil_scoped_release unlocked;
            for (Index block = 0; block < count_blocks(sums.columns, kColumnBlock); ++block)
                add_product(entries, weights, sums, block);
        },
        array("K"), array("coef"), array("out"),
        "out += coef K in float64, K (r, c), coef (k, r), out (k, c). Rows of K with coefficient zero are not read.");
}

}  // namespace

void bind_kernels(nb::module_& m) {
    nb::module_ kernels = m.def_submodule("kernels", "Kernel functions of the entries of a tile; weighted sums of kernel rows.");
    kernels.def(
        "rbf",
        [](const RowsArray<float>& G, const Vector<const float>& squares, const Vector<const float>& other_squares,
           double gamma) {
            const Matrix<float> values = rows_matrix(G, "G");
            check_lengths(values.rows, {{"squares", span(squares).size}});
            check_lengths(values.columns, {{"other_squares", span(other_squares).size}});
            nb::gil_scoped_release unlocked;
            rbf(values, span(squares), span(other_squares), gamma);
        },
        array("G"), array("squares"), array("other_squares"), "gamma"_a,
        "Replace inner products G (r, c) by exp(-gamma |x - z|^2); squares (r,) and other_squares (c,): gamma |x|^2, gamma |z|^2.");
    bind_dtype<float>(kernels);
    bind_dtype<double>(kernels);
}

}  // namespace wm
