// Vector registers of this processor level, and loops over dense vectors that are written with them.
#pragma once
#include <limits>

#include "span.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace wm {

#if defined(__AVX512F__)
constexpr Index kRegisterBytes = 64;
#elif defined(__AVX__)
constexpr Index kRegisterBytes = 32;
#else
constexpr Index kRegisterBytes = 16;
#endif

// A register of `bytes` bytes of numbers of type T; in memory it begins at a multiple of its size.
template <class T, Index bytes> struct RegisterOf {
    typedef T Type __attribute__((vector_size(bytes), may_alias));
};
template <class T, Index bytes = kRegisterBytes> using Register = typename RegisterOf<T, bytes>::Type;

// n numbers of type T in registers; in memory they may begin anywhere.
template <class T, Index n> struct PackOf {
    typedef T Type __attribute__((vector_size(n * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <class T> struct PackOf<T, 1> {
    using Type = T;
};
template <class T, Index n> using Pack = typename PackOf<T, n>::Type;

// |v| of a register of numbers of type T: the bits but for the signs, one instruction. GCC compiles a choice to three.
template <class T, class V> WM_INLINE V absolute(V v) {
    using BitsV = typename RegisterOf<Bits<T>, sizeof(V)>::Type;
    return reinterpret_cast<V>(reinterpret_cast<BitsV>(v) & std::numeric_limits<Bits<T>>::max());
}

constexpr Index kProductRows = 48;  // of a block of inner products, at most: it stays in the first-level cache

// Call f(number), a compile-time constant: the least of 1, 2, 4, ..., `most` that is at least n, or `most`.
template <int most, class F> void with_registers(Index n, const F& f) {
    if constexpr (most > 1)
        if (n <= most / 2) return with_registers<most / 2>(n, f);
    f(std::integral_constant<int, most>());
}

// A register of float64 numbers.
constexpr Index kLanes = kRegisterBytes / sizeof(double);
using Lanes = Register<double>;

inline Lanes load_lanes(const double* x) {
    Lanes v;
    std::memcpy(&v, x, sizeof v);
    return v;
}
// One instruction; GCC 12 vectorises the conversion of a loop in four.
inline Lanes load_lanes(const float* x) {
#if defined(__AVX512F__)
    return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(x));  // GCC 12 warns of the one without a mask
#elif defined(__AVX__)
    return _mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    return Lanes{x[0], x[1]};
#endif
}
inline void store_lanes(double* x, Lanes v) { std::memcpy(x, &v, sizeof v); }

// The first n < kLanes numbers; the others are zero, and are not read.
template <class T> WM_INLINE Lanes load_part(const T* x, Index n) {
#if defined(__AVX512F__)
    const auto mask = static_cast<__mmask8>((1 << n) - 1);
    if constexpr (sizeof(T) == 8) return _mm512_maskz_loadu_pd(mask, x);
    else return _mm512_maskz_cvtps_pd(mask, _mm256_maskz_loadu_ps(mask, x));
#elif defined(__AVX__)
    const auto at = [&](Index k) { return k < n ? static_cast<double>(x[k]) : 0.0; };
    return Lanes{at(0), at(1), at(2), 0.0};
#else
    return Lanes{n > 0 ? static_cast<double>(x[0]) : 0.0, 0.0};
#endif
}

inline double sum_lanes(Lanes v) {
#if defined(__AVX512F__)
    const auto half = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    const auto pair = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
#elif defined(__AVX__)
    const auto pair = __builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 2, 3);
#else
    const auto pair = v;
#endif
    return pair[0] + pair[1];
}

// <x, w>, x and w (n,). Four partial sums: additions to a single one would wait for each other.
template <class T> double inner_product(const T* x, const double* w, Index n) {
    Lanes s0{}, s1{}, s2{}, s3{};
    Index j = 0;
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
        s0 += load_lanes(x + j) * load_lanes(w + j);
        s1 += load_lanes(x + j + kLanes) * load_lanes(w + j + kLanes);
        s2 += load_lanes(x + j + 2 * kLanes) * load_lanes(w + j + 2 * kLanes);
        s3 += load_lanes(x + j + 3 * kLanes) * load_lanes(w + j + 3 * kLanes);
    }
    for (; j + kLanes <= n; j += kLanes) s0 += load_lanes(x + j) * load_lanes(w + j);
    double rest = 0.0;
    for (; j < n; ++j) rest += x[j] * w[j];
    return sum_lanes((s0 + s1) + (s2 + s3)) + rest;
}

// |x|^2, x (n,)
template <class T> double squared_norm(const T* x, Index n) {
    Lanes s{};
    Index j = 0;
    for (; j + kLanes <= n; j += kLanes) s += load_lanes(x + j) * load_lanes(x + j);
    double total = sum_lanes(s);
    for (; j < n; ++j) total += static_cast<double>(x[j]) * x[j];
    return total;
}

// y += scale x, x and y (n,). In lanes as `inner_product`, so that a load of what was just stored need not wait for the
// cache.
template <class T> void add_scaled(const T* __restrict x, double scale, double* __restrict y, Index n) {
    Index j = 0;
    for (; j + kLanes <= n; j += kLanes) store_lanes(y + j, load_lanes(y + j) + scale * load_lanes(x + j));
    for (; j < n; ++j) y[j] += scale * x[j];
}

// y += sum_k weights_k x_k for four vectors x_k (n,): y is read and written once instead of four times.
template <class T>
void add_four(const T* const (&x)[4], const double (&weights)[4], double* __restrict y, Index n) {
    const T *__restrict x0 = x[0], *__restrict x1 = x[1], *__restrict x2 = x[2], *__restrict x3 = x[3];
    const double s0 = weights[0], s1 = weights[1], s2 = weights[2], s3 = weights[3];
    Index j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        const Lanes first = load_lanes(y + j) + s0 * load_lanes(x0 + j) + s1 * load_lanes(x1 + j);
        store_lanes(y + j, first + (s2 * load_lanes(x2 + j) + s3 * load_lanes(x3 + j)));
    }
    for (; j < n; ++j) y[j] += (s0 * x0[j] + s1 * x1[j]) + (s2 * x2[j] + s3 * x3[j]);
}

}  // namespace wm
