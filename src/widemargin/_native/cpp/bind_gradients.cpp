#include "arrays.hpp"
#include "bindings.hpp"
#include "gradients.hpp"

namespace wm {
namespace {

template <class T> void bind_signed_sums(nb::module_& m) {
    m.def(
        "add_signed_sums",
        [](const RowsArray<const T>& X, const RowsArray<const T>& Zt, const RowsArray<const T>& weights,
           const RowsArray<double>& out) {
            const Matrix<const T> x = rows_matrix(X, "X"), zt = rows_matrix(Zt, "Zt"), w = rows_matrix(weights, "weights");
            const Matrix<double> sums = rows_matrix(out, "out");
            check_size("Zt.shape[0]", zt.rows, x.columns);
            check_shape("weights", w, x.rows, zt.columns);
            check_shape("out", sums, x.rows, x.columns);
            LockReleased unlocked;
            add_signed_sums<T>(x, zt, w, sums);
        },
        array("X"), array("Zt"), array("weights"), array("out"),
        "out_ik += sum_j weights_ij sign(X_ik - Z_jk) in float64, X (c, d), Zt (d, r) = Z', weights (c, r), out (c, d).");
}

}  // namespace

void bind_gradients(nb::module_& m) {
    nb::module_ gradients = m.def_submodule("gradients", "Weighted sums of the gradients of distances.");
    bind_signed_sums<float>(gradients);
    bind_signed_sums<double>(gradients);
}

}  // namespace wm
