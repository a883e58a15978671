#include "arrays.hpp"
#include "bindings.hpp"
#include "csr_matrix.hpp"

namespace wm {
namespace {

template <class T, class I> void bind_constructor(nb::class_<CSRMatrix>& csr) {
    csr.def(
        "__init__",
        [](CSRMatrix* made, const Vector<const T>& data, const Vector<const I>& indices, const Vector<const I>& indptr,
           Index n_columns) { new (made) CSRMatrix(data, indices, indptr, n_columns); },
        array("data"), array("indices"), array("indptr"), "n_columns"_a,
        "The arrays of a SciPy CSR array, checked once: O(n + nnz). They must not be changed afterwards.");
}

}  // namespace

void bind_csr(nb::module_& m) {
    nb::module_ csr = m.def_submodule("csr", "Sparse rows: one validated view, its products and sums.");
    nb::class_<CSRMatrix> matrix(csr, "CSRMatrix", "A validated view of CSR arrays.");
    bind_constructor<float, std::int32_t>(matrix);
    bind_constructor<float, std::int64_t>(matrix);
    bind_constructor<double, std::int32_t>(matrix);
    bind_constructor<double, std::int64_t>(matrix);
    matrix
        .def(
            "rows", [](const CSRMatrix& X, Index first, Index end) { return CSRMatrix(X, first, end); }, "first"_a,
            "end"_a, "The rows from `first` to `end`, without a copy.")
        .def_prop_ro(
            "shape", [](const CSRMatrix& X) { return nb::make_tuple(X.rows(), X.columns()); },
            "Numbers of rows and columns.")
        .def("__len__", &CSRMatrix::rows);
}

}  // namespace wm
