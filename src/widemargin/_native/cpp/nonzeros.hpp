// CSR arrays of a dense array.
#pragma once
#include "csr.hpp"

namespace wm {

// indptr (n + 1,): where the non-zeros of each row of X (n, d) would start.
//
// Cost    one pass
// Twin    scipy.sparse.csr_array(X).indptr
template <class T> void count_nonzeros(Matrix<const T> X, Span<std::int64_t> indptr) {
    indptr[0] = 0;
    for (Index i = 0; i < X.rows; ++i) {
        const T* const row = X[i].data;
        Index count = 0;
        for (Index j = 0; j < X.columns; ++j) count += row[j] != 0;
        indptr[i + 1] = indptr[i] + count;
    }
}

// Values and columns of the non-zeros of X, by rows; returns how many there are, or -1 if there is no room for all of them.
//
// Given   data and indices, of one size; as many numbers as there are non-zeros are overwritten, and perhaps one more
// Cost    one pass; no branch waits for a comparison, but in the last rows
// Twin    scipy.sparse.csr_array(X)
template <class T, class I> Index copy_nonzeros(Matrix<const T> X, Span<T> data, Span<I> indices) {
    Index t = 0;
    for (Index i = 0; i < X.rows; ++i) {
        const T* const row = X[i].data;
        const bool has_room = data.size - t > X.columns;
        for (Index j = 0; j < X.columns; ++j) {
            if (!has_room && row[j] == 0) continue;
            if (!has_room && t == data.size) return -1;
            data.data[t] = row[j];
            indices.data[t] = static_cast<I>(j);
            t += row[j] != 0;
        }
    }
    return t;
}

}  // namespace wm
