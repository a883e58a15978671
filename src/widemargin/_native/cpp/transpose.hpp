// Transposes of dense matrices, by blocks in registers.
#pragma once
#include "registers.hpp"

namespace wm {

template <class T> constexpr Index kBlockSize = 16 / sizeof(T);  // rows and columns of a block in registers

// The transpose of the columns `first` ... of a block of rows, as rows of `into`, which are `stride` numbers apart.
template <class T> WM_INLINE void transpose_block(const T* const (&rows)[kBlockSize<T>], Index first, T* into, Index stride) {
    using V = Pack<T, kBlockSize<T>>;
    const auto load = [&](int k) { return *reinterpret_cast<const V*>(rows[k] + first); };
    const auto store = [&](int k, V v) { *reinterpret_cast<V*>(into + k * stride) = v; };
    if constexpr (sizeof(T) == 4) {
        const V a = load(0), b = load(1), c = load(2), d = load(3);
        const V ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const V ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        store(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
        store(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
        store(2, __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5));
        store(3, __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7));
    } else {
        const V a = load(0), b = load(1);
        store(0, __builtin_shufflevector(a, b, 0, 2));
        store(1, __builtin_shufflevector(a, b, 1, 3));
    }
}

// out (c, r) = A' for A (r, c)
//
// Cost    r c numbers are read and written, 256 rows of A at a time: their lines stay in the first-level cache
// Twin    A.T
template <class T> void copy_transposed(Matrix<const T> A, Matrix<T> out) {
    constexpr Index size = kBlockSize<T>, together = 256;
    for (Index i = 0; i < A.rows; i += together) {
        const Index end = minimum(i + together, A.rows);
        Index j = 0;
        for (; j + size <= A.columns; j += size) {
            Index k = i;
            for (; k + size <= end; k += size) {
                const T* rows[size];
                for (Index l = 0; l < size; ++l) rows[l] = A[k + l].data;
                transpose_block<T>(rows, j, out[j].data + k, out.stride);
            }
            for (; k < end; ++k)
                for (Index l = 0; l < size; ++l) out[j + l][k] = A[k][j + l];
        }
        for (; j < A.columns; ++j)
            for (Index k = i; k < end; ++k) out[j][k] = A[k][j];
    }
}

}  // namespace wm
