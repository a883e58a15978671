// Solvers of the kernel machine's dual on a kernel matrix in memory.
//
// Signed form, with no labels in the loops: beta = y alpha, targets t, bounds around zero,
//
//     min  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]
//
// where the constraint on the sum is the dual of an intercept, and eps = 0 in classification. The gradient is
// f - t + eps sign(beta), with the decision values f = K beta. At beta_i = 0 the objective has a kink: the derivative is
// f - t + eps upwards and f - t - eps downwards. In a working set the sign of each coordinate is fixed, so that the
// objective is quadratic. A tile is the (q, q) piece of K of a working set, gathered into contiguous memory; its
// variables are the changes since it was gathered, so that rounding errors of a float32 tile do not add up over tiles.
//
// The cost of a step is two passes over vectors of length q: one chooses the partner of the first coordinate, the other
// updates the gradient and chooses the next first coordinate. With NaN in the data results are meaningless, but every
// loop ends and no index leaves its array.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "aligned.hpp"
#include "kernel_rows.hpp"
#include "team.hpp"

namespace wm {

constexpr int kCheckEvery = 16;                  // steps between two evaluations of the violation of a tile
constexpr double kMinCurvature = 1e-6;           // lower bound of 1 - k(x, z)^2, for nearly equal points
constexpr double kMinTransferCurvature = 1e-12;  // lower bound of K_ii + K_jj - 2 K_ij: LIBSVM's tau
constexpr Index kStepsPerRow = 20;               // at most, times the size of a tile
constexpr int kBins = 256;              // of the histogram of violations
constexpr Index kMostRows = 8192;       // of a tile: 13 bits of a float32 hold their indices (Largest)
constexpr Index kGatherRows = 32;       // of a tile: a block of gathering
constexpr Index kSharedEntries = 1 << 16;  // of K: passes over fewer are not shared out to other threads

template <class T> constexpr T kInfinity = std::numeric_limits<T>::infinity();

// The dual's terms of single coordinates, sum_i eps |beta_i| - t_i beta_i on lo_i <= beta_i <= hi_i, and its scaling
// 1 / sqrt(K_ii): four vectors of m.
struct SeparableTerms {
    Span<const double> target, lo, hi, scale;
    double epsilon = 0.0;  // >= 0
};

// Of a feasible point: the optimal intercept (0 in a problem without one), and the KKT violation.
struct Violation {
    double intercept = 0.0, largest = 0.0;
};

// The problem of a working set of at most `size` rows. Vectors and rows of Q are padded to whole registers by
// coordinates with lo = hi = 0, which cannot move.
template <class T> struct Tile {
    explicit Tile(Index q) : size(q), extent(round_up(q)), numbers(extent * (extent + 6)),
                             Q{numbers.data(), extent, extent, extent} {}

    const Index size;
    Index extent;                  // of the loops: the size of the current working set, padded
    const void* source = nullptr;  // the matrix K that Q was gathered from
    AlignedArray<T> numbers;
    const Matrix<T> Q;
    const Span<T> diagonal = part(0), grad = part(1), lo = part(2), hi = part(3), step = part(4), scale = part(5);

    static Index round_up(Index n) { return most<Index>(count_blocks(n, kWidth), 1) * kWidth; }
    void move(Index i, T d) const {
        lo[i] -= d;
        hi[i] -= d;
        step[i] += d;
    }

  private:
    static constexpr Index kWidth = 16;
    Span<T> part(Index k) const { return {Q.data + (Q.rows + k) * Q.rows, Q.rows}; }
};

// State between working sets: the rows of the last one, and the coordinates that it changed; the other vectors are
// scratch.
struct WorkingSet {
    WorkingSet(Index size, Index n_rows)
        : rows(size), changed(size), lo(size), hi(size), change(size), violation(n_rows), bins(n_rows),
          is_visited(most(count_blocks(n_rows, kColumnBlock), count_blocks(size, kGatherRows))) {}
    std::vector<Index> rows, changed;  // rows: newest last
    std::vector<double> lo, hi;        // bounds of the rows, on one side of zero if epsilon > 0
    std::vector<double> change, violation;
    std::vector<std::int16_t> bins;
    std::vector<unsigned char> is_visited;
    Index filled = 0, n_kept = 0;  // numbers of rows, and of those kept from the working set before
};

// --- largest and smallest ------------------------------------------------------------------------------------------

// Argmax in one vectorised pass: values >= 0 are compared by their bits as integers, whose last bits are replaced by
// the index t. So values count as equal within a relative 2^-10 in float32 and 2^-39 in float64, at most (8,192 rows).
template <class T> struct Largest {
    using Code = Bits<T>;
    Code index_bits;

    explicit Largest(Index size) : index_bits(1) {
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

// Given   for t in [0, n) the derivatives rising(t) upwards and falling(t) downwards, may_rise(t), may_fall(t)
template <class T, class Rising, class Falling, class MayRise, class MayFall>
inline Extremes<T> extremes(Index n, const Rising& rising, const Falling& falling, const MayRise& may_rise,
                            const MayFall& may_fall) {
    using Code = Bits<T>;
    const Code none_rises = bit_cast<Code>(kInfinity<T>), none_falls = in_order(bit_cast<Code>(-kInfinity<T>));
    Code rise = none_rises, fall = none_falls;
    for (Index t = 0; t < n; ++t) {
        rise = least(rise, may_rise(t) ? in_order(bit_cast<Code>(rising(t))) : none_rises);
        fall = most(fall, may_fall(t) ? in_order(bit_cast<Code>(falling(t))) : none_falls);
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

// --- violation and choice of rows ----------------------------------------------------------------------------------

// With an intercept: the one midway between both extremes, and LIBSVM's m - M. Without: the largest projected gradient.
inline Violation intercept_and_violation(Extremes<double> e, bool has_intercept) {
    if (!has_intercept) return {0.0, most(most(-e.rise, e.fall), 0.0)};
    if (e.rise == kInfinity<double>) return {e.fall == -kInfinity<double> ? 0.0 : -e.fall, 0.0};
    if (e.fall == -kInfinity<double>) return {-e.rise, 0.0};
    return {-0.5 * (e.rise + e.fall), most(e.fall - e.rise, 0.0)};
}

// KKT violation of each coordinate: positive where beta should rise, negative where it should fall.
//
// Given   terms of (m,) vectors; beta, f (m,): a feasible point and its decision values K beta; out (m,), written
// Returns the intercept, and the violation that is compared with the tolerance
// Cost    O(m), no allocation
// Source  Fan, Chen, Lin 2005, JMLR 6, section 2; without intercept: largest projected gradient
// Twin    tests/naive/dual.py::violation, equality_violation
inline Violation kkt_violation(const SeparableTerms& terms, Span<const double> beta, Span<const double> f,
                               bool has_intercept, Span<double> out) {
    const double *__restrict coef = beta.data, *__restrict values = f.data, *__restrict target = terms.target.data;
    const double *__restrict lo = terms.lo.data, *__restrict hi = terms.hi.data;
    double* __restrict violation = out.data;
    const double epsilon = terms.epsilon;
    const auto rising = [=](Index t) { return values[t] - target[t] + (coef[t] >= 0.0 ? epsilon : -epsilon); };
    const auto falling = [=](Index t) { return values[t] - target[t] + (coef[t] > 0.0 ? epsilon : -epsilon); };
    const Violation found = intercept_and_violation(
        extremes<double>(
            beta.size, rising, falling, [=](Index t) { return coef[t] < hi[t]; },
            [=](Index t) { return coef[t] > lo[t]; }),
        has_intercept);
    for (Index t = 0; t < beta.size; ++t) {
        const double rise = coef[t] < hi[t] ? most(-(rising(t) + found.intercept), 0.0) : 0.0;
        const double fall = coef[t] > lo[t] ? most(falling(t) + found.intercept, 0.0) : 0.0;
        violation[t] = rise - fall;
    }
    return found;
}

// Which violations count: of coordinates that should fall, rise, or both.
enum class Side { kFall = -1, kBoth = 0, kRise = 1 };

// Indices of the k largest violations, exact but for the order within a bin of the histogram.
//
// Given   violation (m,) as kkt_violation writes it; bins (m,), scratch; out (>= min(k, m),), written
// Returns how many were written: at most k, in no order but that the top bins come first
// Cost    O(m), no sort
// Twin    tests/naive/dual.py::largest_rows
inline Index largest_violators(Span<const double> violation, Side side, Index k, Span<std::int16_t> bins, Span<Index> out) {
    const double sign = static_cast<double>(side);
    const auto size_of = [&](double v) { return side == Side::kBoth ? std::abs(v) : sign * v; };
    Bits<double> largest = 0;
    for (Index i = 0; i < violation.size; ++i) largest = most(largest, bit_cast<Bits<double>>(size_of(violation[i])));
    const double top = bit_cast<double>(largest);
    if (!(top > 0.0) || k <= 0) return 0;
    Index count[kBins + 2] = {};  // bin 0: no violation on this side
    for (Index i = 0; i < violation.size; ++i) {
        const double v = size_of(violation[i]), share = v / top * kBins;
        const int bin = share < kBins ? static_cast<int>(share) : kBins;  // infinity / infinity: the top bin
        bins[i] = static_cast<std::int16_t>(v > 0.0 ? bin + 1 : 0);
        count[bins[i]] += v > 0.0;
    }
    Index total = 0;
    int edge = kBins + 1;
    while (edge > 0 && total + count[edge] <= k) total += count[edge--];
    Index n = 0;
    for (const bool is_in_edge : {false, true})
        for (Index i = 0; i < violation.size && n < k; ++i)
            if (bins[i] > 0 && (is_in_edge ? bins[i] == edge : bins[i] > edge)) out[n++] = i;
    return n;
}

// --- a tile without an intercept -----------------------------------------------------------------------------------

// Decrease of the objective by a step s of one coordinate with gradient g and unit diagonal
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

// Steps s of coordinate i (gradient gi, bounds li and ui) and u of t: the best u for a guess of s, then the best s.
template <class T> struct PairStep {
    T s, u, gain;
};

template <class T> inline PairStep<T> pair_step(T guess, T r, T gi, T li, T ui, T gt, T lt, T ut) {
    const T u = clip(-gt - r * clip(guess, li, ui), lt, ut);
    const T s = clip(-gi - r * u, li, ui);
    return {s, u, -(s * (gi + T(0.5) * s + r * u) + u * (gt + T(0.5) * u))};
}

// The coordinate t != i whose joint step with i decreases the objective most
template <class T> Index choose_partner(const Tile<T>& tile, Index i, const Largest<T>& largest) {
    const T *__restrict grad = tile.grad.data, *__restrict lo = tile.lo.data, *__restrict hi = tile.hi.data;
    const T* __restrict row = tile.Q[i].data;
    const T gi = grad[i], li = lo[i], ui = hi[i];
    const auto n = static_cast<Bits<T>>(tile.extent), excluded = static_cast<Bits<T>>(i);
    Bits<T> best = 0;
    for (Bits<T> t = 0; t < n; ++t) {
        const T r = row[t];
        const T guess = (r * grad[t] - gi) * rough_inverse(most(T(1) - r * r, T(kMinCurvature)));
        const T gain = pair_step(guess, r, gi, li, ui, grad[t], lo[t], hi[t]).gain;
        best = most(best, t == excluded ? Bits<T>(0) : largest.code(gain, t));
    }
    return largest.index(best);
}

template <class T> PairStep<T> best_step(const Tile<T>& tile, Index i, Index j) {
    const T r = tile.Q[i][j], gi = tile.grad[i], gj = tile.grad[j];
    const T guess = (r * gj - gi) / most(T(1) - r * r, T(kMinCurvature));
    return pair_step(guess, r, gi, tile.lo[i], tile.hi[i], gj, tile.lo[j], tile.hi[j]);
}

// The coordinate of the largest score(grad, lo, hi)
template <class T, class Score> Index choose(const Tile<T>& tile, const Largest<T>& largest, const Score& score) {
    const T *__restrict grad = tile.grad.data, *__restrict lo = tile.lo.data, *__restrict hi = tile.hi.data;
    const auto n = static_cast<Bits<T>>(tile.extent);
    Bits<T> best = 0;
    for (Bits<T> t = 0; t < n; ++t) best = most(best, largest.code(score(grad[t], lo[t], hi[t]), t));
    return largest.index(best);
}

// Step coordinates i and j by s and u, and return the coordinate of the largest score(grad, lo, hi) there
template <class T, class Score>
Index move_and_choose(Tile<T>& tile, Index i, Index j, T s, T u, const Largest<T>& largest, const Score& score) {
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
        best = most(best, largest.code(score(g, lo[t], hi[t]), t));
    }
    return largest.index(best);
}

// KKT violation of a coordinate with gradient g
template <class T> inline T violation_of(T g, T lo, T hi) {
    return most(most(hi > T(0) ? -g : T(0), lo < T(0) ? g : T(0)), T(0));
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
    const Largest<T> largest(tile.extent);
    const auto gain = [](T g, T lo, T hi) { return gain_alone(g, clip(-g, lo, hi)); };
    const Index most_steps = kStepsPerRow * tile.size;
    Index i = choose(tile, largest, gain);
    for (Index step = 0; step < most_steps; ++step) {
        if (step % kCheckEvery == 0) {
            const Extremes<T> e = extremes(tile);
            if (most(-e.rise, e.fall) < tol) return step;
        }
        const T alone = clip(-tile.grad[i], tile.lo[i], tile.hi[i]), least_gain = gain_alone(tile.grad[i], alone);
        if (!(least_gain > T(0))) return step;
        const Index j = choose_partner(tile, i, largest);
        const PairStep<T> both = best_step(tile, i, j);
        if (j != i && both.gain > least_gain) i = move_and_choose(tile, i, j, both.s, both.u, largest, gain);
        else i = move_and_choose(tile, i, i, alone, T(0), largest, gain);
    }
    return most_steps;
}

// --- a tile with an intercept --------------------------------------------------------------------------------------

// A transfer d > 0 from a partner t to coordinate i: beta_i += up d, beta_t -= up d, with up = 1 or -1. room: the
// largest d within i's bounds; limit: the bounds that t approaches
template <class T> struct Transfer {
    Index i;
    T up, room;
    const T* limit;
};

template <class T> Transfer<T> transfer_from(const Tile<T>& tile, Index i, T intercept) {
    if (tile.grad[i] + intercept < T(0)) return {i, T(1), tile.hi[i], tile.lo.data};
    return {i, T(-1), -tile.lo[i], tile.hi.data};
}

template <class T> Index choose_partner(const Tile<T>& tile, const Transfer<T>& from, const Largest<T>& largest) {
    const T *__restrict grad = tile.grad.data, *__restrict diagonal = tile.diagonal.data;
    const T *__restrict row = tile.Q[from.i].data, *__restrict limit = from.limit;
    const T gi = grad[from.i], di = diagonal[from.i], up = from.up, room_i = from.room;
    const auto n = static_cast<Bits<T>>(tile.extent);
    Bits<T> best = 0;
    for (Bits<T> t = 0; t < n; ++t) {
        const T slope = up * (grad[t] - gi);
        const T curve = most(di + diagonal[t] - T(2) * row[t], T(kMinTransferCurvature));
        const T d = least(most(slope * rough_inverse(curve), T(0)), least(-up * limit[t], room_i));
        best = most(best, largest.code(d * (slope - T(0.5) * curve * d), t));
    }
    return largest.index(best);
}

// The best transfer between i and j; <= 0 where no transfer decreases the objective
template <class T> double best_transfer(const Tile<T>& tile, const Transfer<T>& from, Index j) {
    const double curve = tile.diagonal[from.i] + tile.diagonal[j] - T(2) * tile.Q[from.i][j];
    const double slope = from.up * (tile.grad[j] - tile.grad[from.i]);
    return least(slope / most(curve, kMinTransferCurvature), least<double>(from.room, -from.up * from.limit[j]));
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
    const Largest<T> largest(tile.extent);
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
            i = choose(tile, largest, violation);
        }
        const Transfer<T> from = transfer_from(tile, i, intercept);
        const Index j = choose_partner(tile, from, largest);
        const double d = best_transfer(tile, from, j);
        if (!(d > 0.0)) {
            if (is_fresh) return step;
            until_check = 1;
            --step;
            continue;
        }
        i = move_and_choose(tile, i, j, T(from.up * d), T(-from.up * d), largest, violation);
    }
    return most_steps;
}

// --- working sets --------------------------------------------------------------------------------------------------

template <class Entry> struct Problem {
    Matrix<const Entry> K;  // (m, >= m)
    SeparableTerms terms;   // of (m,) vectors
    bool has_intercept;
};

struct Point {
    Span<double> beta, f;  // (m,), f = K beta
};

// Call visit(block) for all blocks, also if the team is stopped in between: the state must stay consistent.
template <class Visit> void visit_all(Team& team, Index n_blocks, bool is_shared, WorkingSet& work, const Visit& visit) {
    if (!is_shared || n_blocks == 1) {
        for (Index block = 0; block < n_blocks; ++block) visit(block);
        return;
    }
    const Span<unsigned char> is_visited = as_span(work.is_visited).head(n_blocks);
    for (unsigned char& one : is_visited) one = 0;
    try {
        team.for_each_block(n_blocks, [&](Index block) {
            visit(block);
            is_visited[block] = 1;
        });
    } catch (const Stopped&) {
        for (Index block = 0; block < n_blocks; ++block)
            if (!is_visited[block]) visit(block);
    }
}

// Choose the next working set: the newer half of a full one, and the largest violators; with an intercept, from both
// sides.
inline Span<const Index> renew(WorkingSet& work, bool has_intercept) {
    const Span<double> violation = as_span(work.violation);
    const Span<Index> rows = as_span(work.rows);
    const Index limit = rows.size;
    Index n = work.filled == limit && limit < violation.size ? limit / 2 : 0;
    for (Index t = 0; t < n; ++t) {
        rows[t] = rows[limit - n + t];
        violation[rows[t]] = 0.0;
    }
    work.n_kept = n;
    const auto add = [&](Side side, Index k) {
        n += largest_violators(violation, side, k, as_span(work.bins), rows.slice(n, limit));
    };
    if (has_intercept) add(Side::kRise, (limit - n + 1) / 2);
    add(has_intercept ? Side::kFall : Side::kBoth, limit - n);
    work.filled = n;
    return rows.head(n);
}

// Write the gradient and bounds of a working set at a point into the tile, and the bounds of beta into work.lo and
// work.hi: with epsilon > 0 those of one side of zero, at beta = 0 the side where the objective is smaller.
template <class Entry, class T>
void begin_tile(const Problem<Entry>& problem, Point point, Span<const Index> rows, double intercept, Tile<T>& tile,
                WorkingSet& work) {
    const SeparableTerms& terms = problem.terms;
    tile.extent = tile.round_up(rows.size);
    for (Index i = 0; i < tile.extent; ++i) {
        tile.step[i] = tile.grad[i] = tile.lo[i] = tile.hi[i] = T(0);
        if (i >= rows.size) continue;
        const Index w = rows[i];
        const double s = problem.has_intercept ? 1.0 : terms.scale[w], now = point.beta[w];
        double grad = point.f[w] - terms.target[w] + intercept;
        work.lo[i] = terms.lo[w];
        work.hi[i] = terms.hi[w];
        if (terms.epsilon > 0.0) {
            if (now > 0.0 || (now == 0.0 && grad < 0.0)) {
                work.lo[i] = most(terms.lo[w], 0.0);
                grad += terms.epsilon;
            } else {
                work.hi[i] = least(terms.hi[w], 0.0);
                grad -= terms.epsilon;
            }
        }
        tile.scale[i] = T(s);
        tile.diagonal[i] = T(1.0 / (terms.scale[w] * terms.scale[w]));
        tile.grad[i] = T(grad * s);
        tile.lo[i] = T((work.lo[i] - now) / s);
        tile.hi[i] = T((work.hi[i] - now) / s);
    }
}

// Move the entries of Q among the n rows that the working set before had last and this one has first. Returns n, or 0
// if Q was gathered from another matrix.
template <class Entry, class T> Index keep_entries(Matrix<const Entry> K, const WorkingSet& work, Tile<T>& tile) {
    const Index n = tile.source == K.data ? work.n_kept : 0, first = tile.size - n;
    tile.source = K.data;
    for (Index t = 0; t < n; ++t) {
        std::copy_n(tile.Q[first + t].data + first, n, tile.Q[t].data);
        std::fill(tile.Q[t].data + work.filled, tile.Q[t].data + tile.extent, T(0));
    }
    return n;
}

// Gather rows [first, end) of the working set's piece of K; without an intercept, scaled to a unit diagonal. The
// entries among the first n_kept rows are there already; those between them and the new rows are mirrored, as K is
// symmetric.
template <class Entry, class T>
void gather(Matrix<const Entry> K, Span<const Index> rows, Index first, Index end, Index n_kept, Tile<T>& tile) {
    const T* __restrict scale = tile.scale.data;
    const Index* __restrict column = rows.data;
    for (Index i = first; i < end; ++i) {
        const Entry *source = K[rows[i]].data, *next = K[rows[least(i + 1, rows.size - 1)]].data;
        T* __restrict into = tile.Q[i].data;
        const T s = scale[i];
        for (Index j = 0; j < rows.size; ++j) {
            WM_PREFETCH(next + column[j]);
            into[j] = T(source[column[j]]) * (s * scale[j]);
        }
        for (Index j = rows.size; j < tile.extent; ++j) into[j] = T(0);
    }
    for (Index t = 0; t < n_kept; ++t) {
        T* __restrict into = tile.Q[t].data;
        for (Index i = first; i < end; ++i) into[i] = tile.Q[i].data[t];
    }
}

// beta += the tile's steps, exactly onto a bound where one was reached; list the rows that changed. Returns their
// number.
template <class T> Index scatter(Span<double> beta, const Tile<T>& tile, WorkingSet& work) {
    Index n = 0;
    for (Index i = 0; i < work.filled; ++i) {
        const Index w = work.rows[i];
        double now = beta[w] + static_cast<double>(tile.step[i]) * tile.scale[i];
        if (tile.hi[i] == T(0)) now = work.hi[i];
        else if (tile.lo[i] == T(0)) now = work.lo[i];
        now = clip(now, work.lo[i], work.hi[i]);
        if (now == beta[w]) continue;
        work.changed[n] = w;
        work.change[n++] = now - beta[w];
        beta[w] = now;
    }
    return n;
}

struct SetResult {
    Index n_changed = 0, steps = 0;
    Violation before;
};

// One iteration of decomposition: choose a working set, gather its tile, solve it.
//
// Solve   the problem of the tile, by solve_box_tile or solve_equality_tile, to a tenth of the point's violation, at
//         least tol / 2
// Given   tile and work for q rows; a feasible point with f = K beta
// Returns the number of rows that changed, steps, and the violation before; beta, updated; work.changed and
//         work.change: these rows and their changes, with which f is yet to be updated
// Cost    reads q^2 entries of K; O(q) a step
// Source  Joachims 1999; the newer half of a working set is kept as in ThunderSVM and oneDAL
// Twin    tests/naive/dual.py::solve_box_qp, solve_equality_qp
template <class Entry, class T>
SetResult solve_set(Team& team, const Problem<Entry>& problem, Point point, Tile<T>& tile, WorkingSet& work, double tol) {
    const Violation before = kkt_violation(problem.terms, point.beta, point.f, problem.has_intercept, as_span(work.violation));
    if (before.largest < tol) return {0, 0, before};
    const Span<const Index> rows = renew(work, problem.has_intercept);
    begin_tile(problem, point, rows, before.intercept, tile, work);
    const bool is_shared = rows.size * rows.size >= kSharedEntries;
    const Index kept = keep_entries(problem.K, work, tile), n_new = rows.size - kept;
    visit_all(team, count_blocks(n_new, kGatherRows), is_shared, work, [&](Index block) {
        const Index first = kept + block * kGatherRows;
        gather(problem.K, rows, first, least(first + kGatherRows, rows.size), kept, tile);
    });
    const double goal = most(0.5 * tol, 0.1 * before.largest);
    T least_scale = kInfinity<T>;
    for (Index i = 0; i < rows.size; ++i) least_scale = least(least_scale, tile.scale[i]);
    const Index steps = problem.has_intercept ? solve_equality_tile(tile, goal) : solve_box_tile(tile, goal * least_scale);
    return {scatter(point.beta, tile, work), steps, before};
}

struct ActiveResult {
    Index n_sets = 0, steps = 0;
    Violation left;
    bool is_stuck = false;  // whether the last working set made no step although the violation is not below tol
};

// Working sets on a kernel matrix in memory.
//
// Solve   min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi  [, sum(beta) = s]      (in place)
// Given   a feasible point; tile and work for q rows; go_on(): whether to solve another working set
// Returns the number of working sets, of steps in them, the intercept and violation at the end; beta and f, updated
// Cost    a working set reads q^2 entries of K for the tile and up to q m to update f, shared out over the threads
// Source  decomposition: Joachims 1999
// Twin    tests/naive/dual.py::solve_box_qp, solve_equality_qp
template <class Entry, class T, class GoOn>
ActiveResult solve_active(Team& team, const Problem<Entry>& problem, Point point, Tile<T>& tile, WorkingSet& work,
                          double tol, Index max_sets, const GoOn& go_on) {
    ActiveResult done;
    while (done.n_sets < max_sets && go_on()) {
        const SetResult set = solve_set(team, problem, point, tile, work, tol);
        done.steps += set.steps;
        done.left = set.before;
        if (set.n_changed == 0) {
            done.is_stuck = !(set.before.largest < tol);
            return done;
        }
        const Span<const Index> changed = as_span(work.changed).head(set.n_changed);
        const Span<const double> change = as_span(work.change).head(set.n_changed);
        const bool is_shared = set.n_changed * point.f.size >= kSharedEntries;
        visit_all(team, count_blocks(point.f.size, kColumnBlock), is_shared, work,
                  [&](Index block) { add_rows(problem.K, changed, change, point.f, block); });
        ++done.n_sets;
    }
    done.left = kkt_violation(problem.terms, point.beta, point.f, problem.has_intercept, as_span(work.violation));
    return done;
}

}  // namespace wm
