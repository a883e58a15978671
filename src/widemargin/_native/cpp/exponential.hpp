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
// Cost    12 operations; relative error of exp(x) below 2e-7
// Source  argument reduction and minimax polynomial of expf in Cephes (Moshier)
inline ReducedExponential reduce_exponential(float x) {
    x = most(x, -87.0f);
    const float k = std::floor(x * 1.44269504f + 0.5f);
    const float r = x - k * 0.693359375f + k * 2.12194440e-4f;
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
    // unsigned: of NaN, whose exponent is any integer, this makes NaN again
    return bit_cast<float>(bit_cast<std::uint32_t>(e.fraction_minus_one + 1.0f) + (static_cast<std::uint32_t>(e.exponent) << 23));
}

// exp(x) - 1, x <= 0, exact near 0 too
inline float expm1_of_nonpositive(float x) {
    const ReducedExponential e = reduce_exponential(x);
    const float power = bit_cast<float>((static_cast<std::uint32_t>(e.exponent) + 127) << 23);
    return e.fraction_minus_one * power + (power - 1.0f);
}

// a b + c, rounded once where the processor can; unlike an expression, it is not rearranged
inline double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

// exp(x) of float64, x <= 0; positive arguments are taken as 0, and below -708 the value is 0
// Cost    20 operations; relative error below 4e-16, or |x| 1e-16 without fused multiply-adds
inline double exp_of_nonpositive(double x) {
    const double bounded = clip(x, -708.0, 0.0);
    const double k = std::floor(bounded * 1.4426950408889634 + 0.5);
    const double r = multiply_add(k, -1.42860682030941723e-6, multiply_add(k, -6.93145751953125e-1, bounded));
    double p = 1.0 / 6227020800.0;  // Taylor's series to the 13th power, |r| <= ln 2 / 2
    for (const double c : {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
                           1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0})
        p = p * r + c;
    const auto exponent = static_cast<std::uint64_t>(static_cast<std::int32_t>(k));
    return x < -708.0 ? 0.0 : bit_cast<double>(bit_cast<std::uint64_t>(p) + (exponent << 52));
}

}  // namespace wm
