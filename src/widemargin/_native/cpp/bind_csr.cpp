#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "csr_matrix.hpp"
#include "csr_passes.hpp"
#include "nonzeros.hpp"
#include "row_products.hpp"
#include "signals.hpp"

namespace wm {
namespace {

template <class T> void bind_constructor(nb::class_<CSRMatrix>& csr) {
    csr.def(
        "__init__",
        [](CSRMatrix* made, const Vector<const T>& data, const Vector<const Column>& indices,
           const Vector<const Index>& indptr, Index n_columns) { new (made) CSRMatrix(data, indices, indptr, n_columns); },
        array("data"), array("indices"), array("indptr"), "n_columns"_a,
        "The arrays of a SciPy CSR array, checked once: O(n + nnz). They must not be changed afterwards.");
}

void bind_check(nb::module_& m) {
    m.def(
        "check_arrays",
        [](Span<const Column> indices, Span<const Index> indptr, Index n_values, Index n_rows, Index n_columns,
           const std::string& format, const std::string& line, const std::string& index) {
            const FormatNames names{format, line, index};
            check_at_least("n_values", n_values, 0);
            check_at_least("n_columns", n_columns, 0);
            check_size(("len(indptr) of the " + format + " array").c_str(), indptr.size, n_rows + 1);
            if (indptr.size > 0 && indptr[0] != 0)
                raise_if_any({CSRFault::pointer, 0, indptr[0]}, n_columns, names);
            CSRFault fault;
            {
                LockReleased unlocked;
                fault = find_fault(CSR<float>{{nullptr, n_values}, indices, indptr, n_columns});
            }
            raise_if_any(fault, n_columns, names);
        },
        array("indices"), array("indptr"), "n_values"_a, "n_rows"_a, "n_columns"_a, "format"_a = "CSR",
        "line"_a = "row", "index"_a = "column",
        "Raise a ValueError that names the first row whose indices or row pointers are wrong. format, line and index: what the\n"
        "message calls the array, its rows, and their indices; for CSC \"CSC\", \"column\" and \"row\".");
}

template <class T> void bind_products(nb::module_& m) {
    m.def(
        "inner_products",
        [](const CSRMatrix& X, const CSRMatrix& Z, const RowsArray<T>& out) {
            const Matrix<T> into = rows_matrix(out, "out");
            check_shape("out", into, X.rows(), Z.rows());
            check_size("Z.shape[1]", Z.columns(), X.columns());
            X.visit_as<T>("X", [&](const auto& x) {
                Z.visit_as<T>("Z", [&](const auto& z) {
                    auto scratch = product_scratch(x, z);
                    LockReleased unlocked;
                    inner_products(x, z, scratch, into);
                });
            });
        },
        "X"_a, "Z"_a, array("out"), "Write X Z' (r, c), for X (r, d) and Z (c, d).");
}

template <class T> void bind_nonzeros(nb::module_& m) {
    m.def(
        "count_nonzeros",
        [](const RowsArray<const T>& X, Span<std::int64_t> indptr) {
            const Matrix<const T> values = rows_matrix(X, "X");
            check_size("len(indptr)", indptr.size, values.rows + 1);
            LockReleased unlocked;
            count_nonzeros(values, indptr);
        },
        array("X"), array("indptr"), "Write indptr (n + 1,), the row pointers of X (n, d) as a CSR array.");
    m.def(
        "copy_nonzeros",
        [](const RowsArray<const T>& X, Span<T> data, Span<Column> indices) {
            const Matrix<const T> values = rows_matrix(X, "X");
            check_size("len(indices)", indices.size, data.size);
            if (values.columns > std::numeric_limits<Column>::max()) raise_value_error("X must have less than 2**31 columns");
            Index n;
            {
                LockReleased unlocked;
                n = copy_nonzeros(values, data, indices);
            }
            if (n != data.size) raise_value_error("data and indices must have as many entries as X has non-zeros");
        },
        array("X"), array("data"), array("indices"), "Write the values and columns (nnz,) of the non-zeros of X (n, d), row by row.");
}

// out (k, n) = W X', the blocks of rows shared out to a team.
template <int G, class T>
void compute_matvec(Team& team, const CSR<T>& X, Matrix<const double> W, KeptScratch& kept, Matrix<double> out) {
    Borrowed interleaved(kept, G > 1 ? count_blocks(W.rows, G) * G * W.columns : 0);
    const double* const vectors = G > 1 ? interleaved.numbers() : W.data;
    if (G > 1)
        for_each_block(team, count_blocks(W.columns, kColumnsTogether), [&](Index block) {
            const Index first = block * kColumnsTogether;
            interleave<G>(W, first, minimum(first + kColumnsTogether, W.columns), interleaved.numbers());
        });
    const Index size = product_block_rows(X);
    for_each_block(team, count_blocks(X.rows(), size), [&](Index block) {
        csr_matvec<G>(X, vectors, block * size, minimum((block + 1) * size, X.rows()), out);
    });
}

void matvec(Team& team, const CSRMatrix& rows, Matrix<const double> W, Matrix<double> out) {
    check_size("W.shape[1]", W.columns, rows.columns());
    check_shape("out", out, W.rows, rows.rows());
    LockReleased unlocked;
    rows.visit([&](const auto& X) {
        with_group_size(group_size(W.rows, X.nnz(), X.columns, W.rows * X.columns), [&](auto size) {
            compute_matvec<decltype(size)::value>(team, X, W, rows.scratch(), out);
        });
    });
}

// out (k, d) = (coef - base) X, the blocks of rows and groups of sums shared out to a team.
template <int G, class T>
void compute_rmatvec(Team& team, const CSR<T>& X, Matrix<const double> coef, Matrix<const double> base,
                  KeptScratch& kept, Matrix<double> out) {
    const Index groups = count_blocks(coef.rows, G), blocks = count_sum_blocks(X, coef.rows, G);
    const Index rows = count_blocks(X.rows(), blocks), size = G * X.columns;
    const bool is_direct = G == 1 && blocks == 1;  // sums are written to `out`
    Borrowed sums(kept, is_direct ? 0 : blocks * groups * size);
    for_each_block(team, blocks * groups, [&](Index task) {
        const Index first = minimum(task / groups * rows, X.rows()), group = task % groups;
        csr_rmatvec<G>(X, coef, base, group * G, first, minimum(first + rows, X.rows()),
                   is_direct ? out[group].data : sums.numbers() + task * size);
    });
    if (is_direct) return;
    for_each_block(team, count_blocks(X.columns, kColumnsTogether), [&](Index block) {
        const Index first = block * kColumnsTogether;
        add_blocks<G>(sums.numbers(), blocks, first, minimum(first + kColumnsTogether, X.columns), out);
    });
}

void rmatvec(Team& team, const CSRMatrix& rows, const RowsArray<const double>& coef,
              const std::optional<RowsArray<const double>>& base, Matrix<double> out) {
    const Matrix<const double> weights = rows_matrix(coef, "coef");
    const Matrix<const double> base_weights = base ? rows_matrix(*base, "base") : Matrix<const double>{};
    check_size("coef.shape[1]", weights.columns, rows.rows());
    if (base) check_shape("base", base_weights, weights.rows, weights.columns);
    check_shape("out", out, weights.rows, rows.columns());
    LockReleased unlocked;
    rows.visit([&](const auto& X) {
        with_group_size(group_size(weights.rows, X.nnz(), X.columns, kCachedEntries), [&](auto size) {
            compute_rmatvec<decltype(size)::value>(team, X, weights, base_weights, rows.scratch(), out);
        });
    });
}

}  // namespace

void bind_csr(nb::module_& m) {
    nb::module_ csr = m.def_submodule("csr", "Sparse rows: a validated view of CSR arrays, and products with it.");
    nb::class_<CSRMatrix> matrix(csr, "CSRMatrix", "A validated view of CSR arrays.");
    bind_constructor<float>(matrix);
    bind_constructor<double>(matrix);
    matrix
        .def(
            "rows", [](const CSRMatrix& X, Index first, Index end) { return CSRMatrix(X, first, end); }, "first"_a,
            "end"_a, "The rows from `first` to `end`, without a copy.")
        .def_prop_ro(
            "shape", [](const CSRMatrix& X) { return nb::make_tuple(X.rows(), X.columns()); },
            "Numbers of rows and columns.")
        .def_prop_ro("nnz", &CSRMatrix::nnz, "The number of values stored.")
        .def("__len__", &CSRMatrix::rows);
    bind_check(csr);
    bind_products<float>(csr);
    bind_products<double>(csr);
    bind_nonzeros<float>(csr);
    bind_nonzeros<double>(csr);
    csr.def("matvec", &matvec, "team"_a, "X"_a, array("W"), array("out"),
            "Write W X' (k, n) in float64, for X (n, d), W (k, d).");
    csr.def("rmatvec", &rmatvec, "team"_a, "X"_a, array("coef"), array("base").none(), array("out"),
            "Write (coef - base) X (k, d) in float64, for X (n, d), coef (k, n), and base (k, n) or None for zeros.");
}

}  // namespace wm
