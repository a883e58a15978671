// CSR arrays: the view of sparse rows that all functions take, and its validation.
#pragma once
#include <cstdint>

#include "span.hpp"

namespace wm {

using Column = std::int32_t;  // a column's number: half the memory traffic of an Index

// n sparse rows: row i has the values data[indptr[i] : indptr[i + 1]] in the columns indices[indptr[i] : indptr[i + 1]]. A
// slice of rows shares data and indices: indptr[0] need not be 0.
template <class T> struct CSR {
    using Value = T;
    Span<const T> data;
    Span<const Column> indices;
    Span<const Index> indptr;  // (n + 1,)
    Index columns = 0;
    bool is_sorted = false;  // the columns of each row are in ascending order, perhaps repeated

    Index rows() const { return indptr.size - 1; }
    Index row_begin(Index i) const { return indptr[i]; }
    Index row_end(Index i) const { return indptr[i + 1]; }
    Index nnz() const { return row_end(rows() - 1) - row_begin(0); }
    Span<const T> values(Index i) const { return data.slice(row_begin(i), row_end(i)); }
    Span<const Column> columns_of(Index i) const { return indices.slice(row_begin(i), row_end(i)); }
    CSR slice(Index first, Index end) const { return {data, indices, indptr.slice(first, end + 1), columns, is_sorted}; }
};

// The number of dense or sparse rows.
template <class T> Index n_rows(const Matrix<const T>& X) { return X.rows; }
template <class T> Index n_rows(const CSR<T>& X) { return X.rows(); }
template <class T> Index n_columns(const Matrix<const T>& X) { return X.columns; }
template <class T> Index n_columns(const CSR<T>& X) { return X.columns; }

// A fault of CSR arrays: its kind, row, and the wrong value.
struct CSRFault {
    enum Kind { none, empty_indptr, pointer, decreasing, column } kind = none;
    Index row = 0, value = 0;
};

// The first fault of a CSR array. O(n + nnz), one pass; both loops are vectorised.
template <class T> CSRFault find_fault(const CSR<T>& X) {
    if (X.indptr.size < 1) return {CSRFault::empty_indptr};
    const auto n_stored = minimum(X.data.size, X.indices.size);
    const Index* p = X.indptr.data;
    if (p[0] < 0 || p[0] > n_stored) return {CSRFault::pointer, 0, p[0]};
    for (Index i = 0; i < X.rows(); ++i) {
        if (p[i + 1] < p[i]) return {CSRFault::decreasing, i, p[i + 1]};
        if (p[i + 1] > n_stored) return {CSRFault::pointer, i, p[i + 1]};
    }
    std::uint32_t largest = 0;  // as an unsigned number a negative index is larger than any column
    const Column* c = X.indices.data;
    const Index first = p[0], end = p[X.rows()];
    for (Index t = first; t < end; ++t) largest = maximum(largest, static_cast<std::uint32_t>(c[t]));
    if (first == end || static_cast<std::uint64_t>(largest) < static_cast<std::uint64_t>(X.columns)) return {};
    for (Index i = 0; i < X.rows(); ++i)
        for (Index t = p[i]; t < p[i + 1]; ++t)
            if (c[t] < 0 || c[t] >= X.columns) return {CSRFault::column, i, c[t]};
    return {};
}

// Whether the columns of each row are in ascending order, perhaps repeated. O(n + nnz), one pass: the number of
// descents from a non-zero to the next must be that of descents between rows.
template <class T> bool has_sorted_rows(const CSR<T>& X) {
    const Index* p = X.indptr.data;
    const Column* c = X.indices.data;
    const Index first = p[0], end = p[X.rows()];
    Index descents = 0;
    for (Index t = first + 1; t < end; ++t) descents += c[t] < c[t - 1];
    for (Index i = 1; i < X.rows(); ++i)
        descents -= p[i] > p[i - 1] && first < p[i] && p[i] < end && c[p[i]] < c[p[i] - 1];
    return descents == 0;
}

}  // namespace wm
