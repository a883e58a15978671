#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "elementwise.hpp"

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
