// Logarithms of numbers in [0, 1], in loops that the compiler vectorises.
#pragma once
#include "span.hpp"

namespace wm {

// 2 artanh(s), 0 <= s <= 1 / 3, by its Taylor series; relative error below 4e-16
WM_INLINE double twice_artanh(double s) {
    const double square = s * s;
    double sum = 1.0 / 33.0;
    for (int k = 31; k > 0; k -= 2) sum = sum * square + 1.0 / k;
    return 2.0 * s * sum;
}

// log(1 + x), 0 <= x <= 1
WM_INLINE double log1p_of_unit(double x) { return twice_artanh(x / (2.0 + x)); }

// x log(x), 0 <= x <= 1; below 1e-307 it is 0
WM_INLINE double x_log_x_of_unit(double x) {
    constexpr std::uint64_t kFraction = (std::uint64_t(1) << 52) - 1;
    const auto bits = bit_cast<std::uint64_t>(maximum(x, 1e-307));
    // x = 2^k m, 1 <= m < 2; the exponent's bits are k + 1023. An integer of 32 bits: its conversion vectorises, and no
    // compiler that reorders sums multiplies large parts of k on their own
    const double m = bit_cast<double>((bits & kFraction) | bit_cast<std::uint64_t>(1.0));
    const double k = static_cast<std::int32_t>(bits >> 52) - 1023;
    return x < 1e-307 ? 0.0 : x * (k * 0.6931471805599453 + twice_artanh((m - 1.0) / (m + 1.0)));
}

}  // namespace wm
