// Views of arrays: pointers with sizes, which do not own the memory.
//
// Compiled with WM_CHECKED, every access through a view is checked, and one outside its size ends the process. Hot
// loops use the pointer `data`, with __restrict where arrays do not overlap.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

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

// Of functions that vectorised loops call, as a call that is not inlined prevents vectorisation; and of functions that
// only prefetch, whose calls GCC drops.
#define WM_INLINE [[gnu::always_inline]] inline

// WM_INDEPENDENT, before a loop: its iterations do not overlap in memory, which is not checked at run time.
// WM_UNROLL, before a loop over a few registers: it is unrolled completely.
#if defined(__clang__)
#define WM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define WM_UNROLL _Pragma("unroll")
#else
#define WM_INDEPENDENT _Pragma("GCC ivdep")
#define WM_UNROLL _Pragma("GCC unroll 16")
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

template <class T> Span<T> as_span(std::vector<T>& v) { return {v.data(), static_cast<Index>(v.size())}; }
template <class T> Span<const T> as_span(const std::vector<T>& v) { return {v.data(), static_cast<Index>(v.size())}; }

// A matrix by rows; row i starts at data + i * stride.
template <class T> struct Matrix {
    using Value = std::remove_const_t<T>;
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

// Minimum and maximum by value: vectorised in one instruction, unlike std::min and std::max, which take references.
template <class T> inline T minimum(T a, T b) { return b < a ? b : a; }
template <class T> inline T maximum(T a, T b) { return a < b ? b : a; }
template <class T> inline T clip(T x, T lo, T hi) { return minimum(maximum(x, lo), hi); }

// a b + c in one operation where there is one, and never reordered with other terms: so the last columns of a
// vectorised loop are rounded as the others.
template <class T> WM_INLINE T multiply_add(T a, T b, T c) {
#if defined(__FMA__) || defined(__aarch64__)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

// ceil(n / size)
inline Index count_blocks(Index n, Index size) { return (n + size - 1) / size; }

template <class To, class From> inline To bit_cast(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}

// The integer type of a floating-point number's bits. Non-negative numbers have the order of their bits, and maxima of
// integers are vectorised; those of floating-point numbers are not, as NaN makes the order of evaluation matter.
template <class T> using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

constexpr Index kCacheLine = 64;  // bytes

// Load the cache lines of [from, end) in advance.
template <class T> WM_INLINE void prefetch(const T* from, const T* end) {
    for (; from < end; from += kCacheLine / sizeof(T)) WM_PREFETCH(from);
}

}  // namespace wm
