#include <nanobind/stl/optional.h>

#include <optional>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "boxes.hpp"
#include "csr_matrix.hpp"
#include "kernel_functions.hpp"
#include "kernel_rows.hpp"
#include "row_products.hpp"
#include "signals.hpp"
#include "transpose.hpp"

namespace wm {
namespace {

template <class T> void bind_dtype(nb::module_& m) {
    m.def(
        "copy_transposed",
        [](const RowsArray<const T>& A, const RowsArray<T>& out) {
            const Matrix<const T> from = rows_matrix(A, "A");
            const Matrix<T> into = rows_matrix(out, "out");
            check_shape("out", into, from.columns, from.rows);
            LockReleased unlocked;
            copy_transposed(from, into);
        },
        array("A"), array("out"), "Write A' (c, r), for A (r, c). They must not share memory.");
    m.def(
        "polynomial",
        [](const RowsArray<T>& G, double gamma, double coef0, Index degree) {
            const Matrix<T> values = rows_matrix(G, "G");
            check_at_least("degree", degree, 0);
            std::vector<T> scratch(values.columns);
            LockReleased unlocked;
            polynomial<T>(values, gamma, coef0, degree, {scratch.data(), values.columns});
        },
        array("G"),
        "gamma"_a, "coef0"_a, "degree"_a, "Replace inner products G (r, c) by (gamma <x, z> + coef0)^degree, degree >= 0.");
    m.def(
        "remove_rows",
        [](Team& team, const RowsArray<T>& K, Span<const Index> kept) {
            const Matrix<T> entries = rows_matrix(K, "K");
            check_at_least("K.shape[1]", entries.columns, entries.rows);
            const std::vector<Index> chosen = checked_copy("kept", kept, entries.rows);
            for (Index i = 1; i < kept.size; ++i)
                if (chosen[i] <= chosen[i - 1]) raise_value_error("kept must be ascending, but kept[", i, "] is ", chosen[i]);
            LockReleased unlocked;
            remove_rows(entries, as_span(chosen), run_in(team));
        },
        "team"_a, array("K"), array("kept"),
        "K[:m, :m] = K[kept][:, kept] in place, K (r, >= r), kept (m,) ascending. After Stopped K is partly changed.");
    m.def(
        "add_product",
        [](const RowsArray<const T>& K, const RowsArray<const double>& coef, const RowsArray<double>& out) {
            const Matrix<const T> entries = rows_matrix(K, "K");
            const Matrix<const double> weights = rows_matrix(coef, "coef");
            const Matrix<double> sums = rows_matrix(out, "out");
            check_size("coef.shape[1]", weights.columns, entries.rows);
            check_shape("out", sums, weights.rows, entries.columns);
            LockReleased unlocked;
            for (Index block = 0; block < count_blocks(sums.columns, kColumnBlock); ++block)
                add_product(entries, weights, sums, block);
        },
        array("K"), array("coef"), array("out"),
        "out += coef K in float64, K (r, c), coef (k, r), out (k, c). Rows of K with coefficient zero are not read.");
    m.def(
        "add_sparse_product",
        [](const RowsArray<const T>& K, Span<const Index> starts, Span<const Index> functions, Span<const double> coef,
           const RowsArray<double>& out) {
            const Matrix<const T> entries = rows_matrix(K, "K");
            const Matrix<double> sums = rows_matrix(out, "out");
            check_lengths(entries.rows + 1, {{"starts", starts}});
            check_lengths(coef.size, {{"functions", functions}});
            check_shape("out", sums, sums.rows, entries.columns);
            const std::vector<Index> own_starts(starts.begin(), starts.end());
            check_starts(as_span(own_starts), coef.size);
            const std::vector<Index> own_functions = checked_copy("functions", functions, sums.rows);
            LockReleased unlocked;
            add_sparse_product(entries, as_span(own_starts), as_span(own_functions), coef, sums);
        },
        array("K"), array("starts"), array("functions"), array("coef"), array("out"),
        "out += C K in float64, K (r, c), out (k, c), C (k, r) in CSC form: column i has coef[starts[i]:starts[i + 1]] in the\n"
        "rows functions[starts[i]:starts[i + 1]].");
}

// Call f with the rows of X and of Z: Matrix or CSR, of one type of values and as many columns.
template <class T, class F> void with_rows(const RowsArray<const T>& X, const RowsArray<const T>& Z, const F& f) {
    const Matrix<const T> x = rows_matrix(X, "X"), z = rows_matrix(Z, "Z");
    check_size("Z.shape[1]", z.columns, x.columns);
    f(x, z);
}
template <class F> void with_rows(const CSRMatrix& X, const CSRMatrix& Z, const F& f) {
    check_size("Z.shape[1]", Z.columns(), X.columns());
    X.visit([&](const auto& x) {
        Z.visit_as<typename std::decay_t<decltype(x)>::Value>("Z", [&](const auto& z) { f(x, z); });
    });
}

template <class T> std::vector<double> l1_norms(const Matrix<const T>&) { return {}; }  // dense rows need none

using Squares = std::optional<Vector<const double>>;  // |x|^2 of the rows of an RBF kernel; none of a Laplacian one

// Call f with the RBFRows of X and of Z or, without squares, with their LaplacianRows.
template <class Rows, class F>
void with_kernel_rows(const Rows& X, const Squares& squares, const Rows& Z, const Squares& other_squares, const F& f) {
    if (squares.has_value() != other_squares.has_value()) raise_value_error("squares must be of both sets of rows, or of none");
    with_rows(X, Z, [&](const auto& x, const auto& z) {
        using XRows = std::decay_t<decltype(x)>;
        using ZRows = std::decay_t<decltype(z)>;
        if (squares) {
            check_lengths(n_rows(x), {{"squares", span(*squares)}});
            check_lengths(n_rows(z), {{"other_squares", span(*other_squares)}});
            return f(RBFRows<XRows>{x, span(*squares)}, RBFRows<ZRows>{z, span(*other_squares)});
        }
        const std::vector<double> norms = l1_norms(x), other_norms = l1_norms(z);
        f(LaplacianRows<XRows>{x, as_span(norms)}, LaplacianRows<ZRows>{z, as_span(other_norms)});
    });
}

// out (r, c) = the kernel matrix; kernel values of type T, which may be shorter than the numbers of the rows.
template <class T, KernelArgument distance, class X, class Z>
void write_matrix(const KernelRows<distance, X>& x, const KernelRows<distance, Z>& z, double gamma, const RowsArray<T>& out) {
    const Matrix<T> into = rows_matrix(out, "out");
    check_shape("out", into, n_rows(x.rows), n_rows(z.rows));
    if constexpr (sizeof(T) <= sizeof(typename X::Value)) {
        auto scratch = product_scratch(x.rows, z.rows);
        LockReleased unlocked;
        kernel_matrix(x, z, gamma, scratch, into);
    } else {
        throw nb::type_error("out must not be longer numbers than X");
    }
}

template <KernelArgument distance, class X, class Z>
void add_product_of_rows(const KernelRows<distance, X>& x, const RowsArray<const double>& coef,
                         const KernelRows<distance, Z>& z, double gamma, const RowsArray<double>& out) {
    const Matrix<const double> weights = rows_matrix(coef, "coef");
    const Matrix<double> sums = rows_matrix(out, "out");
    check_size("coef.shape[1]", weights.columns, n_rows(x.rows));
    check_shape("out", sums, weights.rows, n_rows(z.rows));
    auto scratch = product_scratch(x.rows, z.rows);
    LockReleased unlocked;
    add_kernel_product(x, weights, z, gamma, scratch, sums);
}

// Rows in arrays of type Rows; kernel values of type T.
template <class T, class Rows> void bind_matrices(nb::module_& m) {
    m.def(
        "kernel_matrix",
        [](const Rows& X, const Squares& squares, const Rows& Z, const Squares& other_squares, double gamma,
           const RowsArray<T>& out) {
            with_kernel_rows(X, squares, Z, other_squares,
                             [&](const auto& x, const auto& z) { write_matrix(x, z, gamma, out); });
        },
        array("X"), array("squares").none(), array("Z"), array("other_squares").none(), "gamma"_a, array("out"),
        "Write exp(-gamma |x - z|^2) (r, c), for rows X (r, d), Z (c, d); squares (r,), other_squares (c,): |x|^2, |z|^2; or\n"
        "exp(-gamma |x - z|_1), with None for both, of CSR rows without repeated columns.");
}

template <class T, KernelArgument distance, class X, class Z>
void add_near_product_of_rows(const KernelRows<distance, X>& x, Span<const Index> starts, Matrix<const T> lows,
                              Matrix<const T> highs, double limit, Matrix<const double> coef,
                              const KernelRows<distance, Z>& z, double gamma, const RowsArray<double>& out) {
    const Matrix<double> sums = rows_matrix(out, "out");
    if constexpr (std::is_same_v<X, Z> && std::is_same_v<typename X::Value, T>) {
        check_size("coef.shape[1]", coef.columns, n_rows(x.rows));
        check_shape("out", sums, coef.rows, n_rows(z.rows));
        check_shape("highs", highs, lows.rows, lows.columns);
        check_size("lows.shape[0]", lows.rows, n_columns(x.rows));
        check_size("len(starts)", starts.size, lows.columns + 1);
        std::vector<Index> own(starts.begin(), starts.end());
        for (Index b = 0; b + 1 < starts.size; ++b)
            if (own[b] > own[b + 1]) raise_value_error("starts must be ascending, but starts[", b + 1, "] is ", own[b + 1]);
        if (own.front() < 0 || own.back() > n_rows(x.rows))
            raise_index_error("starts must be in [0, ", n_rows(x.rows), "], got ", own.front(), " ... ", own.back());
        LockReleased unlocked;
        add_near_product(x, as_span(std::as_const(own)), Boxes<T>{lows, highs}, limit, coef, z, gamma, sums);
    } else {
        throw nb::type_error("X, Z and the boxes must have the same types");
    }
}

template <class T, class Rows> void bind_near_products(nb::module_& m) {
    m.def(
        "add_near_product",
        [](const Rows& X, const Squares& squares, Span<const Index> starts, Matrix<const T> lows, Matrix<const T> highs,
           double limit, Matrix<const double> coef, const Rows& Z, const Squares& other_squares, double gamma,
           const RowsArray<double>& out) {
            with_kernel_rows(X, squares, Z, other_squares, [&](const auto& x, const auto& z) {
                add_near_product_of_rows(x, starts, lows, highs, limit, coef, z, gamma, out);
            });
        },
        array("X"), array("squares").none(), array("starts"), array("lows"), array("highs"), "limit"_a, array("coef"),
        array("Z"), array("other_squares").none(), "gamma"_a, array("out"),
        "add_kernel_product without the entries between a row z and the batches of rows starts[b] ... starts[b + 1] - 1 of X\n"
        "whose box has a (squared) distance above `limit`: all rows of batch b are in [lows[:, b], highs[:, b]], for lows and\n"
        "highs (d, B) and starts (B + 1,).");
}

template <class Rows> void bind_products(nb::module_& m) {
    m.def(
        "add_kernel_product",
        [](const Rows& X, const Squares& squares, const RowsArray<const double>& coef, const Rows& Z,
           const Squares& other_squares, double gamma, const RowsArray<double>& out) {
            with_kernel_rows(X, squares, Z, other_squares,
                             [&](const auto& x, const auto& z) { add_product_of_rows(x, coef, z, gamma, out); });
        },
        array("X"), array("squares").none(), array("coef"), array("Z"), array("other_squares").none(), "gamma"_a,
        array("out"), "out += coef K in float64, coef (k, r), out (k, c), with K (r, c) as kernel_matrix writes it, in X's dtype.");
}

}  // namespace

void bind_kernels(nb::module_& m) {
    nb::module_ kernels = m.def_submodule("kernels", "Kernel functions of the entries of a tile; weighted sums of kernel rows.");
    bind_dtype<float>(kernels);
    bind_dtype<double>(kernels);
    bind_matrices<float, RowsArray<const float>>(kernels);
    bind_matrices<float, RowsArray<const double>>(kernels);
    bind_matrices<double, RowsArray<const double>>(kernels);
    bind_matrices<float, CSRMatrix>(kernels);
    bind_matrices<double, CSRMatrix>(kernels);
    bind_products<RowsArray<const float>>(kernels);
    bind_products<RowsArray<const double>>(kernels);
    bind_products<CSRMatrix>(kernels);
    bind_near_products<float, RowsArray<const float>>(kernels);
    bind_near_products<double, RowsArray<const double>>(kernels);
    bind_near_products<float, CSRMatrix>(kernels);
    bind_near_products<double, CSRMatrix>(kernels);
}

}  // namespace wm
