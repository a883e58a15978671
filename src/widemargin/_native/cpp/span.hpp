// Views of arrays that others own: pointers with sizes.
//
// Compiled with WM_CHECKED, every access through a view is checked against its size and a violation ends the process.
// Hot loops take a row's pointer once (`data`), with __restrict where arrays are known not to overlap.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#ifdef WM_CHECKED
#define WM_CHECK(condition)                                                                     \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            std::fprintf(stderr, "%s:%d: out of bounds: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                       \
        }                                                                                       \
    } while (0)
#else
#define WM_CHECK(condition) static_cast<void>(0)
#endif

#if defined(__GNUC__) || defined(__clang__)
#define WM_PREFETCH(address) __builtin_prefetch(address)
#else
#error "a compiler with GCC's extensions is needed: GCC, Clang or clang-cl"
#endif

namespace wm {

using Index = std::int64_t;

// A vector of `size` numbers, contiguous in memory.
template <class T> struct Span {
    T* data = nullptr;
    Index size = 0;

    T& operator[](Index i) const {
        WM_CHECK(0 <= i && i < size);
        return data[i];
    }
    Span slice(Index first, Index end) const {
        WM_CHECK(0 <= first && first <= end && end <= size);
        return {data + first, end - first};
    }
    Span head(Index n) const { return slice(0, n); }
    T* begin() const { return data; }
    T* end() const { return data + size; }
    operator Span<const T>() const { return {data, size}; }
};

// A matrix by rows; row i starts at data + i * stride.
template <class T> struct Matrix {
    T* data = nullptr;
    Index rows = 0, columns = 0, stride = 0;

    Span<T> operator[](Index i) const {
        WM_CHECK(0 <= i && i < rows);
        return {data + i * stride, columns};
    }
    Matrix slice(Index first, Index end) const {
        WM_CHECK(0 <= first && first <= end && end <= rows);
        return {data + first * stride, end - first, columns, stride};
    }
    operator Matrix<const T>() const { return {data, rows, columns, stride}; }
};

// A stack of `size` matrices of one shape, contiguous in memory.
template <class T> struct Stack {
    T* data = nullptr;
    Index size = 0, rows = 0, columns = 0;

    Matrix<T> operator[](Index k) const {
        WM_CHECK(0 <= k && k < size);
        return {data + k * rows * columns, rows, columns, columns};
    }
    operator Stack<const T>() const { return {data, size, rows, columns}; }
};

// With a and b by value these become one vector instruction, which std::min and std::max (of references) do not always.
template <class T> inline T least(T a, T b) { return b < a ? b : a; }
template <class T> inline T most(T a, T b) { return a < b ? b : a; }
template <class T> inline T clip(T x, T lo, T hi) { return least(most(x, lo), hi); }

// ceil(n / size)
inline Index count_blocks(Index n, Index size) { return (n + size - 1) / size; }

template <class To, class From> inline To bit_cast(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}

// The integers whose order is that of non-negative floating-point numbers of the same bits.
// A maximum over them is vectorised, one over floats (whose order of evaluation matters for NaN) is not.
template <class T> using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

constexpr Index kCacheLine = 64;  // bytes

}  // namespace wm
