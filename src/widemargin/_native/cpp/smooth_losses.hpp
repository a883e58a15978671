// Smooth losses sum_i s_i phi(f_i + b, y_i) of decision values f (n,), b the intercept: one block of rows.
//
// s (n,) are weights, y (n,) targets, or labels 1 and -1.
#pragma once
#include "exponential.hpp"
#include "hinge.hpp"
#include "logarithm.hpp"

namespace wm {

// phi at z, its derivative, and its second derivative: at a jump of the first one any value between both sides
struct Taylor {
    double value, slope, curvature;
};

// Each loss phi >= 0 has at(z, y), and the conjugate phi*(p) = max_z p z - phi(z) of slopes p between 0 and a derivative.

struct SquaredHinge {  // max(0, 1 - y z)^2
    Taylor at(double z, double y) const {
        const double slack = maximum(0.0, 1.0 - y * z);
        return {slack * slack, -2.0 * y * slack, slack > 0.0 ? 2.0 : 0.0};
    }
    double conjugate(double p, double y) const { return p * (y + 0.25 * p); }
    double clip_slope(double p, double y) const { return y * minimum(0.0, y * p); }
};

struct Logistic {  // log(1 + exp(-y z))
    Taylor at(double z, double y) const {
        const double margin = y * z, e = exp_of_nonpositive(-std::abs(margin)), inverse = 1.0 / (1.0 + e);
        const double other = (margin > 0.0 ? e : 1.0) * inverse;  // probability of the other class
        return {log1p_of_unit(e) - minimum(margin, 0.0), -y * other, e * inverse * inverse};
    }
    double conjugate(double p, double) const {
        const double other = minimum(std::abs(p), 1.0), rarer = minimum(other, 1.0 - other);
        return x_log_x_of_unit(rarer) - (1.0 - rarer) * log1p_of_unit(rarer / (1.0 - rarer));
    }
    double clip_slope(double p, double y) const { return -y * clip(-y * p, 0.0, 1.0); }
};

struct SquaredEpsilonInsensitive {  // max(0, |z - y| - epsilon)^2
    double epsilon;

    Taylor at(double z, double y) const {
        const double residual = z - y, distance = maximum(0.0, std::abs(residual) - epsilon);
        return {distance * distance, 2.0 * (residual > 0.0 ? distance : -distance), distance > 0.0 ? 2.0 : 0.0};
    }
    double conjugate(double p, double y) const { return p * y + std::abs(p) * (epsilon + 0.25 * std::abs(p)); }
    double clip_slope(double p, double) const { return p; }
};

// Derivatives in k of the risk along a segment, sum_i s_i phi(z_i(k), y_i).
//
// Given   segment, y, s (n,): one block
// Returns the first and the second derivative at k
// Cost    O(n), one vectorised pass
// Twin    tests/naive/losses.py::derivatives
template <class Phi>
Sums<2> line_derivatives(const Phi& phi, const Segment& segment, Span<const double> y, Span<const double> s, double k) {
    const double *f = segment.f.data, *f_end = segment.f_end.data, *target = y.data, *weight = s.data;
    double first = 0.0, second = 0.0;
    for (Index i = 0; i < y.size; ++i) {
        const double rate = f_end[i] - f[i] + segment.intercept_change;
        const Taylor at = phi.at(f[i] + segment.intercept + k * rate, target[i]);
        first += weight[i] * at.slope * rate;
        second += weight[i] * at.curvature * rate * rate;
    }
    return {first, second};
}

// Derivatives of the risk in the intercept b, at z = f + k (f_end - f) + b.
//
// Given   f, f_end, y, s (n,): one block
// Returns sum_i s_i max(0, phi'_i), sum_i s_i max(0, -phi'_i), and sum_i s_i phi''_i
// Cost    O(n), one vectorised pass
// Twin    tests/naive/losses.py::derivatives
template <class Phi>
Sums<3> slope_sums(const Phi& phi, Span<const double> f, Span<const double> f_end, double k, double b,
                   Span<const double> y, Span<const double> s) {
    const double *from = f.data, *to = f_end.data, *target = y.data, *weight = s.data;
    double positive = 0.0, negative = 0.0, curvature = 0.0;
    for (Index i = 0; i < y.size; ++i) {
        const Taylor at = phi.at(from[i] + k * (to[i] - from[i]) + b, target[i]);
        positive += weight[i] * maximum(0.0, at.slope);
        negative += weight[i] * maximum(0.0, -at.slope);
        curvature += weight[i] * at.curvature;
    }
    return {positive, negative, curvature};
}

// Factors in [0, 1] of positive and of negative slopes: a slope that is nearer to 0 gives a plane below the risk, too.
struct SlopeFactors {
    double positive, negative;
    double of(double slope) const { return slope > 0.0 ? positive : negative; }
};

// The risk at the minimiser of a line search, and the cutting plane there.
//
// Given   f, f_end, y, s (n,): one block. f is replaced by f + step (f_end - f); the intercept b; factors of the slopes;
//         coef, curvatures (n,), written: the plane's row weights s phi' times their factors; s phi''
// Returns the risk at f + b; the plane's offset, -sum_i s_i phi*(p_i) or less, as phi*(p) = p z - phi for the slope p
//         at z, and phi*(0) <= 0
// Cost    O(n), one vectorised pass after that of f
// Twin    tests/naive/losses.py::risk
template <class Phi>
Sums<2> advance_block(const Phi& phi, Span<double> f, Span<const double> f_end, double step, double b,
                      Span<const double> y, Span<const double> s, SlopeFactors factors, Span<double> coef,
                      Span<double> curvatures) {
    move_along(f, f_end, step);
    const double *decision = f.data, *target = y.data, *weight = s.data;
    double *__restrict plane = coef.data, *__restrict second = curvatures.data;
    double risk = 0.0, offset = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double z = decision[i] + b, factor = weight[i];
        const Taylor at = phi.at(z, target[i]);
        const double reduced = factor * factors.of(at.slope);
        risk += factor * at.value;
        offset += reduced * (at.value - at.slope * z);
        plane[i] = reduced * at.slope;
        second[i] = factor * at.curvature;
    }
    return {risk, offset};
}

// Slopes of the quadratic model of the risk at f, p_i = phi'_i + phi''_i (f_end - f + shift)_i: where f_end is the search
// point of a Newton step, that point is the dual point of these slopes.
//
// Given   f, f_end, coef, curvatures, y, s (n,): one block; coef = s phi', curvatures = s phi'' at f; out (n,), written: s p,
//         p clipped to the slopes that phi has
// Returns the sums of positive and of negative slopes, sum_i max(0, out_i) and sum_i max(0, -out_i)
// Cost    O(n), one vectorised pass
// Twin    tests/naive/losses.py::model_slopes
template <class Phi>
Sums<2> model_slopes(const Phi& phi, Span<const double> f, Span<const double> f_end, double shift, Span<const double> coef,
                     Span<const double> curvatures, Span<const double> y, Span<const double> s, Span<double> out) {
    const double *from = f.data, *to = f_end.data, *first = coef.data, *second = curvatures.data, *target = y.data,
                 *weight = s.data;
    double* __restrict slopes = out.data;
    double positive = 0.0, negative = 0.0;
    for (Index i = 0; i < f.size; ++i) {
        const double weighted = first[i] + second[i] * (to[i] - from[i] + shift);
        const double slope = weight[i] > 0.0 ? phi.clip_slope(weighted / weight[i], target[i]) : 0.0;
        slopes[i] = weight[i] * slope;
        positive += maximum(0.0, slopes[i]);
        negative += maximum(0.0, -slopes[i]);
    }
    return {positive, negative};
}

// The offset of the plane of given slopes, multiplied by factors before.
//
// Given   y, s (n,): one block; coef (n,) = s p, replaced by s p times a factor
// Returns -sum_i s_i phi*(p_i)
// Cost    O(n), one vectorised pass
// Twin    tests/naive/losses.py::conjugate
template <class Phi>
double plane_offset(const Phi& phi, Span<const double> y, Span<const double> s, SlopeFactors factors, Span<double> coef) {
    const double *target = y.data, *weight = s.data;
    double* __restrict slopes = coef.data;
    double offset = 0.0;
    for (Index i = 0; i < coef.size; ++i) {
        slopes[i] *= factors.of(slopes[i]);
        offset -= weight[i] > 0.0 ? weight[i] * phi.conjugate(slopes[i] / weight[i], target[i]) : 0.0;
    }
    return offset;
}

}  // namespace wm
