// The exponential: exp(x) and exp(x) - 1 of non-positive numbers, in loops that the compiler vectorises.
#pragma once
#include <cmath>
#include <initializer_list>

#include "span.hpp"

namespace wm {

// clip(x, lowest, 0) by comparisons of integers: one instruction each, where comparisons of floating-point numbers make
// GCC compile the following code twice, once for the constant. NaN becomes one of the bounds.
template <class T> WM_INLINE T clip_nonpositive(T x, T lowest) {
    using Unsigned = std::make_unsigned_t<Bits<T>>;
    const auto clipped = static_cast<Unsigned>(minimum(bit_cast<Bits<T>>(x), Bits<T>(0)));
    return bit_cast<T>(minimum(clipped, bit_cast<Unsigned>(lowest)));
}

// exp(x), reduced: x = k ln 2 + r, |r| <= ln 2 / 2.
struct ReducedExponential {
    float fraction_minus_one;  // exp(r) - 1
    std::int32_t exponent;     // k: exp(x) = 2^k exp(r)
};

// Given   x in [-87, 0]; smaller arguments are taken as -87, where exp(x) is about 1e-38, larger ones as 0
// Cost    12 operations; relative error of exp(x) below 2e-7, on processors without fused multiply-adds 2e-7 - 5e-8 x
// Source  argument reduction and minimax polynomial of expf in Cephes (Moshier)
WM_INLINE ReducedExponential reduce_exponential(float x) {
    x = clip_nonpositive(x, -87.0f);
    const float k = std::floor(x * 1.44269504f + 0.5f);
#if defined(__FMA__) || defined(__aarch64__)
    const float r = std::fma(k, 2.12194440e-4f, std::fma(k, -0.693359375f, x));  // k ln 2 in two parts, the first exact
#else
    const float r = x - k * 0.693147182f;  // the compiler may reorder sums: two parts would be added first
#endif
    float p = 1.9875691e-4f * r + 1.39819995e-3f;
    p = p * r + 8.33345191e-3f;
    p = p * r + 4.16657959e-2f;
    p = p * r + 1.66666655e-1f;
    p = p * r + 0.5f;
    return {p * r * r + r, static_cast<std::int32_t>(k)};
}

// exp(x), x <= 0; positive arguments are taken as 0, and from -87 on the value is 0: a row far from all others has
// decision value 0 then, as in float64
WM_INLINE float exp_of_nonpositive(float x) {
    const ReducedExponential e = reduce_exponential(x);
    const std::uint32_t value = bit_cast<std::uint32_t>(e.fraction_minus_one + 1.0f) +
                                (static_cast<std::uint32_t>(e.exponent) << 23);
    const bool is_zero = bit_cast<std::uint32_t>(clip_nonpositive(x, -87.0f)) == bit_cast<std::uint32_t>(-87.0f);
    return bit_cast<float>(is_zero ? 0u : value);
}

// f 2^k + (2^k - 1), from power = 2^k; not as (f + 1) 2^k - 1, which would lose a small f for k = 0.
template <class T> WM_INLINE T scale_minus_one(T f, T power) {
#if defined(__FMA__) || defined(__aarch64__)
    return std::fma(f, power, power - T(1));
#else
    return power == T(1) ? f : (f + T(1)) * power - T(1);
#endif
}

// exp(x) - 1, x <= 0, to the same relative error near 0 too
WM_INLINE float expm1_of_nonpositive(float x) {
    const ReducedExponential e = reduce_exponential(x);
    return scale_minus_one(e.fraction_minus_one, bit_cast<float>(static_cast<std::uint32_t>(e.exponent + 127) << 23));
}

// The same in float64: x in [-708, 0], smaller arguments are taken as -708, larger ones as 0
struct ReducedExponential64 {
    double fraction_minus_one;
    double power;  // 2^k
};

// Cost    20 operations; relative error of exp(x) below 4e-16, on processors without fused multiply-adds 4e-16 - 1e-16
//         x
WM_INLINE ReducedExponential64 reduce_exponential(double x) {
    x = clip_nonpositive(x, -708.0);
    const double k = std::floor(x * 1.4426950408889634 + 0.5);
#if defined(__FMA__) || defined(__aarch64__)
    const double r = std::fma(k, -1.42860682030941723e-6, std::fma(k, -6.93145751953125e-1, x));
#else
    const double r = x - k * 0.6931471805599453;
#endif
    double p = 1.0 / 6227020800.0;  // Taylor's series: r^14 / 14! is below the rounding
    for (const double c : {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
                           1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5})
        p = p * r + c;
    // the last bits of k + 1023 + 1.5 2^52 are those of the whole number k + 1023
    return {p * r * r + r, bit_cast<double>(bit_cast<std::uint64_t>(k + (1023.0 + 0x1.8p52)) << 52)};
}

// exp(x), x <= 0; positive arguments are taken as 0, and below -708 the value is 0
WM_INLINE double exp_of_nonpositive(double x) {
    const ReducedExponential64 e = reduce_exponential(x);
    return x < -708.0 ? 0.0 : (e.fraction_minus_one + 1.0) * e.power;
}

WM_INLINE double expm1_of_nonpositive(double x) {
    const ReducedExponential64 e = reduce_exponential(x);
    return scale_minus_one(e.fraction_minus_one, e.power);
}

}  // namespace wm
