// Conversion of dense rows to CSR arrays.
#pragma once
#include "csr.hpp"

namespace wm {

// indptr (n + 1,), written: the row pointers of X (n, d) as a CSR array.
//
// Cost    O(n d), one pass
// Twin    scipy.sparse.csr_array(X).indptr
template <class T> void count_nonzeros(Matrix<const T> X, Span<Index> indptr) {
    indptr[0] = 0;
    for (Index i = 0; i < X.rows; ++i) {
        const T* const row = X[i].data;
        Index count = 0;
        for (Index j = 0; j < X.columns; ++j) count += row[j] != 0;
        indptr[i + 1] = indptr[i] + count;
    }
}

// data, indices: the values and columns of the non-zeros of X, row by row.
//
// Given   X (n, d); data and indices of one size
// Returns the number of non-zeros, or -1 if there are more than data has entries
// Cost    O(n d), one pass; without branches but in the last rows
// Twin    scipy.sparse.csr_array(X)
template <class T> Index copy_nonzeros(Matrix<const T> X, Span<T> data, Span<Column> indices) {
    Index t = 0;
    for (Index i = 0; i < X.rows; ++i) {
        const T* const row = X[i].data;
        const bool has_room = data.size - t > X.columns;
        for (Index j = 0; j < X.columns; ++j) {
            if (!has_room && row[j] == 0) continue;
            if (!has_room && t == data.size) return -1;
            data.data[t] = row[j];
            indices.data[t] = static_cast<Column>(j);
            t += row[j] != 0;
        }
    }
    return t;
}

}  // namespace wm
