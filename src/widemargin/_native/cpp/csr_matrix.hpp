// CSR arrays of Python: validated by the constructor, not again by the functions that read them.
#pragma once
#include <memory>
#include <tuple>
#include <variant>

#include "arrays.hpp"
#include "csr.hpp"
#include "scratch.hpp"

namespace wm {

using AnyCSR = std::variant<CSR<float>, CSR<double>>;

// Words of messages: a line of a CSR array is a row, its indices are columns; a line of a CSC array is a column.
struct FormatNames {
    std::string format = "CSR", line = "row", index = "column";
};

// Raise a ValueError that states the fault and its row.
inline void raise_if_any(const CSRFault& fault, Index columns, const FormatNames& names = {}) {
    const std::string line = names.line + " " + text(fault.row), array = "the " + names.format + " array";
    switch (fault.kind) {
        case CSRFault::none: return;
        case CSRFault::empty_indptr: raise_value_error(array, "'s indptr is empty");
        case CSRFault::pointer:
            raise_value_error(array, "'s indptr of ", line, " is ", fault.value, ", which its data and indices do not have");
        case CSRFault::decreasing: raise_value_error(array, "'s indptr decreases at ", line, ", to ", fault.value);
        case CSRFault::column:
            raise_value_error(line, " of ", array, " has the ", names.index, " index ", fault.value,
                              ", which must be in [0, ", columns, ")");
    }
}

// CSR arrays with the Python objects that own them, bound as CSRMatrix. It keeps the arrays alive; they must not be written
// to during its life.
class CSRMatrix {
  public:
    template <class T>
    CSRMatrix(const Vector<const T>& data, const Vector<const Column>& indices, const Vector<const Index>& indptr,
              Index columns)
        : arrays_(std::make_shared<std::tuple<Vector<const T>, Vector<const Column>, Vector<const Index>>>(data, indices, indptr)),
          view_(CSR<T>{span(data), span(indices), span(indptr), columns}), scratch_(std::make_shared<KeptScratch>()) {
        check_at_least("n_columns", columns, 0);
        auto& X = std::get<CSR<T>>(view_);
        CSRFault fault;
        {
            LockReleased unlocked;
            fault = find_fault(X);
            X.is_sorted = fault.kind == CSRFault::none && has_sorted_rows(X);
        }
        raise_if_any(fault, columns);
    }
    CSRMatrix(const CSRMatrix& whole, Index first, Index end)
        : arrays_(whole.arrays_), view_(whole.view_), scratch_(whole.scratch_) {
        if (first < 0 || first > end || end > rows())
            raise_index_error("rows ", first, " to ", end, " are not among the ", rows(), " rows there are");
        std::visit([&](auto& X) { X = X.slice(first, end); }, view_);
    }

    Index rows() const {
        return std::visit([](const auto& X) { return X.rows(); }, view_);
    }
    Index columns() const {
        return std::visit([](const auto& X) { return X.columns; }, view_);
    }
    Index nnz() const {
        return std::visit([](const auto& X) { return X.nnz(); }, view_);
    }
    KeptScratch& scratch() const { return *scratch_; }

    // Call f with the view, of either type of values.
    template <class F> decltype(auto) visit(F&& f) const { return std::visit(std::forward<F>(f), view_); }

    // Call f with the view, whose values must be of type T (TypeError otherwise).
    template <class T, class F> auto visit_as(const char* name, F&& f) const {
        return std::visit(
            [&](const auto& X) {
                using Value = typename std::decay_t<decltype(X)>::Value;
                if constexpr (std::is_same_v<Value, T>) return f(X);
                else {
                    throw nb::type_error((std::string(name) + " must have values of the other arrays' dtype").c_str());
                    return decltype(f(CSR<T>{}))();
                }
            },
            view_);
    }

  private:
    std::shared_ptr<const void> arrays_;  // data, indices, indptr
    AnyCSR view_;
    std::shared_ptr<KeptScratch> scratch_;  // one for all slices of a matrix
};

// Call f with a view of dense or sparse rows: of any type of values, or of type T (TypeError otherwise).
template <class T, class F> auto visit_rows(Matrix<const T> X, F&& f) { return f(X); }
template <class F> auto visit_rows(const CSRMatrix& X, F&& f) { return X.visit(f); }
template <class T, class F> auto visit_rows_as(const RowsArray<const T>& X, F&& f) { return f(rows_matrix(X, "X")); }
template <class T, class F> auto visit_rows_as(const CSRMatrix& X, F&& f) { return X.visit_as<T>("X", f); }

}  // namespace wm
