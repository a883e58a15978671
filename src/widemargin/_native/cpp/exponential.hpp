// The one exponential: exp(x) - 1 and exp(x) of non-positive float32, in loops that the compiler vectorises.
#pragma once
#include <cmath>

#include "span.hpp"

namespace wm {

struct ReducedExponential {
    float fraction_minus_one;  // exp(r) - 1, r in [-ln 2 / 2, ln 2 / 2]
    std::int32_t exponent;     // exp(x) = 2^exponent exp(r)
};

// Given   x in [-87, 0]; smaller arguments are taken as -87, where exp(x) is about 1e-38
// Cost    12 operations; relative error of exp(x) below 2e-7, on processors without fused multiply-adds 2e-7 - 5e-8 x
// Source  argument reduction and minimax polynomial of expf in Cephes (Moshier)
inline ReducedExponential reduce_exponential(float x) {
    x = most(x, -87.0f);
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

// exp(x), x <= 0; positive arguments are taken as 0
inline float exp_of_nonpositive(float x) {
    const ReducedExponential e = reduce_exponential(least(x, 0.0f));
    return bit_cast<float>(bit_cast<std::int32_t>(e.fraction_minus_one + 1.0f) + e.exponent * (1 << 23));
}

// exp(x) - 1, x <= 0, to the same relative error near 0 too. (A sum of exp(r) - 1 times 2^k and 2^k - 1 the compiler may
// reorder: for k = 0 nothing would be left of a small x.)
inline float expm1_of_nonpositive(float x) {
    const ReducedExponential e = reduce_exponential(x);
    const float power = bit_cast<float>((e.exponent + 127) * (1 << 23));
    return e.exponent == 0 ? e.fraction_minus_one : (e.fraction_minus_one + 1.0f) * power - 1.0f;
}

// The same in float64; relative error below 1e-15
inline double expm1_of_nonpositive(double x) {
    x = most(x, -708.0);
    const double k = std::floor(x * 1.4426950408889634 + 0.5);
    const double r = x - k * 0.6931471805599453;
    double p = 1.0 / 6227020800.0;  // Taylor's series: r^14 / 14! is below the rounding
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    const double fraction_minus_one = p * r * r + r;
    // 2^k: the last bits of k + 1023 + 1.5 2^52 are those of the whole number k + 1023
    const double power = bit_cast<double>(bit_cast<std::uint64_t>(k + (1023.0 + 0x1.8p52)) << 52);
    return k == 0.0 ? fraction_minus_one : (fraction_minus_one + 1.0) * power - 1.0;
}

}  // namespace wm
