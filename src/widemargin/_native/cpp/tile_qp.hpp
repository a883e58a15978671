// Quadratic programs of a tile, the (q, q) submatrix of a kernel matrix of one working set: over a box, and over a box
// at a fixed sum.
//
// The cost of a step is two passes over vectors of length q: one chooses the partner of the first coordinate, the other
// updates the gradient and chooses the next first coordinate. With NaN in the data results are meaningless, but every
// loop ends and no index leaves its array.
#pragma once
#include <cmath>
#include <limits>

#include "aligned.hpp"

namespace wm {

constexpr int kCheckEvery = 16;                  // steps between two evaluations of the violation of a tile
constexpr double kMinCurvature = 1e-6;           // lower bound of 1 - k(x, z)^2, for nearly equal points
constexpr double kMinTransferCurvature = 1e-12;  // lower bound of K_ii + K_jj - 2 K_ij: LIBSVM's tau
constexpr Index kStepsPerRow = 20;               // steps / rows of a tile, at most
constexpr Index kMostRows = 8192;                // of a tile, at most: 13 bits of a float32 hold their indices (Argmax)

template <class T> constexpr T kInfinity = std::numeric_limits<T>::infinity();

// The problem of a working set of at most `size` rows. Vectors and rows of Q are padded to whole registers by
// coordinates with lo = hi = 0, which cannot move.
template <class T> struct Tile {
    explicit Tile(Index q) : size(q), extent(round_up(q)), numbers(extent * (extent + 6)),
                             Q{numbers.data(), extent, extent, extent} {}

    const Index size;
    Index extent;                  // of the loops: the current working set's rows, padded
    const void* source = nullptr;  // the matrix K, or its rows, that Q was taken from
    AlignedArray<T> numbers;
    const Matrix<T> Q;
    const Span<T> diagonal = part(0), grad = part(1), lo = part(2), hi = part(3), step = part(4), scale = part(5);

    static Index round_up(Index n) { return maximum<Index>(count_blocks(n, kWidth), 1) * kWidth; }
    // Change variable i by d; lo and hi bound its further changes.
    void move(Index i, T d) const {
        lo[i] -= d;
        hi[i] -= d;
        step[i] += d;
    }

  private:
    static constexpr Index kWidth = 16;
    Span<T> part(Index k) const { return {Q.data + (Q.rows + k) * Q.rows, Q.rows}; }
};

// --- largest and smallest ------------------------------------------------------------------------------------------

// Argmax of values >= 0 in one vectorised pass: the maximum of their bits as integers, whose last bits are replaced by
// the index t. With 8,192 rows, values within a relative 2^-10 in float32 and 2^-39 in float64 count as equal.
template <class T> struct Argmax {
    using Code = Bits<T>;
    Code index_bits;

    explicit Argmax(Index size) : index_bits(1) {
        while (index_bits < size) index_bits *= 2;
        index_bits -= 1;
    }
    Code code(T value, Code t) const { return (bit_cast<Code>(value) & ~index_bits) | t; }
    Index index(Code best) const { return static_cast<Index>(best & index_bits); }
};

// Map the bits of a floating-point number, of any sign, to an integer of the same order; an involution.
template <class I> inline I in_order(I bits) {
    return bits ^ ((bits >> (8 * sizeof(I) - 1)) & std::numeric_limits<I>::max());
}

// The least gradient over coordinates below their upper bound, and the largest over those above their lower bound;
// infinite where there are none.
template <class T> struct Extremes {
    T rise, fall;
};

// Given   for t in [0, n) the derivatives rising(t) upwards and falling(t) downwards; may_rise(t), may_fall(t): whether
//         the coordinate is below its upper bound, above its lower bound
template <class T, class Rising, class Falling, class MayRise, class MayFall>
inline Extremes<T> extremes(Index n, const Rising& rising, const Falling& falling, const MayRise& may_rise,
                            const MayFall& may_fall) {
    using Code = Bits<T>;
    const Code none_rises = bit_cast<Code>(kInfinity<T>), none_falls = in_order(bit_cast<Code>(-kInfinity<T>));
    Code rise = none_rises, fall = none_falls;
    for (Index t = 0; t < n; ++t) {
        rise = minimum(rise, may_rise(t) ? in_order(bit_cast<Code>(rising(t))) : none_rises);
        fall = maximum(fall, may_fall(t) ? in_order(bit_cast<Code>(falling(t))) : none_falls);
    }
    return {bit_cast<T>(in_order(rise)), bit_cast<T>(in_order(fall))};
}

template <class T> Extremes<T> extremes(const Tile<T>& tile) {
    const T *__restrict grad = tile.grad.data, *__restrict lo = tile.lo.data, *__restrict hi = tile.hi.data;
    const auto gradient = [=](Index t) { return grad[t]; };
    return extremes<T>(
        tile.extent, gradient, gradient, [=](Index t) { return hi[t] > T(0); },
        [=](Index t) { return lo[t] < T(0); });
}

// --- a tile without an intercept -----------------------------------------------------------------------------------

// Decrease of the objective by a step s of one coordinate with gradient g and diagonal entry 1
template <class T> inline T gain_alone(T g, T s) { return -s * (g + T(0.5) * s); }

// 1 / x to a relative 2e-4, x > 0 and normal: two Newton steps from a guess by the exponent. Used to choose
// coordinates, not for steps.
inline float rough_inverse(float x) {
    float y = bit_cast<float>(0x7ef311c7u - bit_cast<std::uint32_t>(x));
    y *= 2.0f - x * y;
    return y * (2.0f - x * y);
}
inline double rough_inverse(double x) {
    double y = bit_cast<double>(0x7fde623822fc16e6u - bit_cast<std::uint64_t>(x));
    y *= 2.0 - x * y;
    return y * (2.0 - x * y);
}

// Steps s of coordinate i and u of coordinate t, and the decrease of the objective.
template <class T> struct PairStep {
    T s, u, gain;
};

// The best u for a guess of s, then the best s. r = Q_it; gi, li, ui: gradient and bounds of i; gt, lt, ut: those of t
template <class T> inline PairStep<T> pair_step(T guess, T r, T gi, T li, T ui, T gt, T lt, T ut) {
    const T u = clip(-gt - r * clip(guess, li, ui), lt, ut);
    const T s = clip(-gi - r * u, li, ui);
    return {s, u, -(s * (gi + T(0.5) * s + r * u) + u * (gt + T(0.5) * u))};
}

// The coordinate t != i whose joint step with i decreases the objective most
template <class T> Index choose_partner(const Tile<T>& tile, Index i, const Argmax<T>& argmax) {
    const T *__restrict grad = tile.grad.data, *__restrict lo = tile.lo.data, *__restrict hi = tile.hi.data;
    const T* __restrict row = tile.Q[i].data;
    const T gi = grad[i], li = lo[i], ui = hi[i];
    const auto n = static_cast<Bits<T>>(tile.extent), excluded = static_cast<Bits<T>>(i);
    Bits<T> best = 0;
    for (Bits<T> t = 0; t < n; ++t) {
        const T r = row[t];
        const T guess = (r * grad[t] - gi) * rough_inverse(maximum(T(1) - r * r, T(kMinCurvature)));
        const T gain = pair_step(guess, r, gi, li, ui, grad[t], lo[t], hi[t]).gain;
        best = maximum(best, t == excluded ? Bits<T>(0) : argmax.code(gain, t));
    }
    return argmax.index(best);
}

// The joint step of coordinates i and j
template <class T> PairStep<T> best_step(const Tile<T>& tile, Index i, Index j) {
    const T r = tile.Q[i][j], gi = tile.grad[i], gj = tile.grad[j];
    const T guess = (r * gj - gi) / maximum(T(1) - r * r, T(kMinCurvature));
    return pair_step(guess, r, gi, tile.lo[i], tile.hi[i], gj, tile.lo[j], tile.hi[j]);
}

// The coordinate of the largest score(grad, lo, hi)
template <class T, class Score> Index choose(const Tile<T>& tile, const Argmax<T>& argmax, const Score& score) {
    const T *__restrict grad = tile.grad.data, *__restrict lo = tile.lo.data, *__restrict hi = tile.hi.data;
    const auto n = static_cast<Bits<T>>(tile.extent);
    Bits<T> best = 0;
    for (Bits<T> t = 0; t < n; ++t) best = maximum(best, argmax.code(score(grad[t], lo[t], hi[t]), t));
    return argmax.index(best);
}

// Step coordinates i and j by s and u, and return the coordinate of the largest score(grad, lo, hi) there
template <class T, class Score>
Index move_and_choose(Tile<T>& tile, Index i, Index j, T s, T u, const Argmax<T>& argmax, const Score& score) {
    tile.move(i, s);
    tile.move(j, u);
    const T *qi = tile.Q[i].data, *qj = tile.Q[j].data;
    const T *__restrict lo = tile.lo.data, *__restrict hi = tile.hi.data;
    T* __restrict grad = tile.grad.data;
    const auto n = static_cast<Bits<T>>(tile.extent);
    Bits<T> best = 0;
    for (Bits<T> t = 0; t < n; ++t) {
        const T g = grad[t] + s * qi[t] + u * qj[t];
        grad[t] = g;
        best = maximum(best, argmax.code(score(g, lo[t], hi[t]), t));
    }
    return argmax.index(best);
}

// KKT violation of a coordinate with gradient g
template <class T> inline T violation_of(T g, T lo, T hi) {
    return maximum(maximum(hi > T(0) ? -g : T(0), lo < T(0) ? g : T(0)), T(0));
}

// Coordinate pairs, each solved in its box.
//
// Solve   min_d  1/2 d'Qd + grad'd   s.t.  lo <= d <= hi      (in place, from d = 0)
// Given   tile.Q (q, q) of unit diagonal; grad, lo <= 0 <= hi (q,)
// Returns number of steps; tile.step = d, grad = Qd + grad, lo and hi shifted by -d
// Cost    O(q) a step, two passes; no allocation
// Source  first coordinate: largest decrease by itself; second: largest decrease of the pair. The box case of
//         second-order working sets, Fan, Chen, Lin 2005; coordinate choice as in Hsieh et al. 2014, section 3
// Twin    tests/naive/dual.py::solve_box_qp
template <class T> Index solve_box_tile(Tile<T>& tile, double tol) {
    const Argmax<T> argmax(tile.extent);
    const auto gain = [](T g, T lo, T hi) { return gain_alone(g, clip(-g, lo, hi)); };
    const Index most_steps = kStepsPerRow * tile.size;
    Index i = choose(tile, argmax, gain);
    for (Index step = 0; step < most_steps; ++step) {
        if (step % kCheckEvery == 0) {
            const Extremes<T> e = extremes(tile);
            if (maximum(-e.rise, e.fall) < tol) return step;
        }
        const T alone = clip(-tile.grad[i], tile.lo[i], tile.hi[i]), gain_of_one = gain_alone(tile.grad[i], alone);
        if (!(gain_of_one > T(0))) return step;
        const Index j = choose_partner(tile, i, argmax);
        const PairStep<T> both = best_step(tile, i, j);
        if (j != i && both.gain > gain_of_one) i = move_and_choose(tile, i, j, both.s, both.u, argmax, gain);
        else i = move_and_choose(tile, i, i, alone, T(0), argmax, gain);
    }
    return most_steps;
}

// --- a tile with an intercept --------------------------------------------------------------------------------------

// A transfer d > 0 between coordinate i and a partner t: i changes by up d, t by -up d, with up = 1 or -1. room: the
// largest d within i's bounds; limit: the lower bounds (up = 1) or the upper ones, which limit d for each t
template <class T> struct Transfer {
    Index i;
    T up, room;
    const T* limit;
};

// The transfers of coordinate i, in the direction in which its Lagrangian, with this intercept, decreases
template <class T> Transfer<T> transfer_of(const Tile<T>& tile, Index i, T intercept) {
    if (tile.grad[i] + intercept < T(0)) return {i, T(1), tile.hi[i], tile.lo.data};
    return {i, T(-1), -tile.lo[i], tile.hi.data};
}

// The partner t whose transfer with i decreases the objective most
template <class T> Index choose_partner(const Tile<T>& tile, const Transfer<T>& transfer, const Argmax<T>& argmax) {
    const T *__restrict grad = tile.grad.data, *__restrict diagonal = tile.diagonal.data;
    const T *__restrict row = tile.Q[transfer.i].data, *__restrict limit = transfer.limit;
    const T gi = grad[transfer.i], di = diagonal[transfer.i], up = transfer.up, room_i = transfer.room;
    const auto n = static_cast<Bits<T>>(tile.extent);
    Bits<T> best = 0;
    for (Bits<T> t = 0; t < n; ++t) {
        const T slope = up * (grad[t] - gi);
        const T curve = maximum(di + diagonal[t] - T(2) * row[t], T(kMinTransferCurvature));
        const T d = minimum(maximum(slope * rough_inverse(curve), T(0)), minimum(-up * limit[t], room_i));
        best = maximum(best, argmax.code(d * (slope - T(0.5) * curve * d), t));
    }
    return argmax.index(best);
}

// The best d of a transfer between i and j; <= 0 where no transfer decreases the objective
template <class T> double best_transfer(const Tile<T>& tile, const Transfer<T>& transfer, Index j) {
    const double curve = tile.diagonal[transfer.i] + tile.diagonal[j] - T(2) * tile.Q[transfer.i][j];
    const double slope = transfer.up * (tile.grad[j] - tile.grad[transfer.i]);
    const double room = minimum<double>(transfer.room, -transfer.up * transfer.limit[j]);
    return minimum(slope / maximum(curve, kMinTransferCurvature), room);
}

// SMO: pairs of coordinates that move by opposite steps, the partner chosen by its exact clipped gain.
//
// Solve   min_d  1/2 d'Qd + grad'd   s.t.  lo <= d <= hi, sum(d) = 0      (in place, from d = 0)
// Given   tile.Q (q, q) and its diagonal; grad, lo <= 0 <= hi (q,)
// Returns number of steps; tile.step = d, grad = Qd + grad, lo and hi shifted by -d
// Cost    O(q) a step, two passes; no allocation
// Source  Fan, Chen, Lin 2005, JMLR 6, algorithm 2 (WSS 2), with the clipped instead of the free gain
// Twin    tests/naive/dual.py::solve_equality_qp
template <class T> Index solve_equality_tile(Tile<T>& tile, double tol) {
    const Argmax<T> argmax(tile.extent);
    T intercept = 0;
    const auto violation = [&intercept](T g, T lo, T hi) { return violation_of(g + intercept, lo, hi); };
    const Index most_steps = kStepsPerRow * tile.size;
    Index i = 0;
    for (Index step = 0, until_check = 0; step < most_steps; ++step, --until_check) {
        const bool is_fresh = until_check == 0;
        if (is_fresh) {
            const Extremes<T> e = extremes(tile);
            if (e.fall - e.rise < tol) return step;
            intercept = T(-0.5) * (e.rise + e.fall);
            until_check = kCheckEvery;
            i = choose(tile, argmax, violation);
        }
        const Transfer<T> transfer = transfer_of(tile, i, intercept);
        const Index j = choose_partner(tile, transfer, argmax);
        const double d = best_transfer(tile, transfer, j);
        if (!(d > 0.0)) {
            if (is_fresh) return step;
            until_check = 1;  // 0 in the next pass, which is no step: the intercept is found anew
            --step;
            continue;
        }
        i = move_and_choose(tile, i, j, T(transfer.up * d), T(-transfer.up * d), argmax, violation);
    }
    return most_steps;
}

}  // namespace wm
