// Solvers of the kernel machine's dual on a kernel matrix in memory.
//
// Signed form, with no labels in the loops: beta = y alpha, targets t, bounds around zero,
//
//     min  1/2 beta'(K + D) beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]
//
// where the constraint on the sum is the dual of an intercept, and eps = 0 in classification. The diagonal D >= 0 is zero
// but for squared losses. The gradient is f - t + D beta + eps sign(beta), with the decision values f = K beta. At
// beta_i = 0 the objective has a kink: the derivative is f - t + eps upwards and f - t - eps downwards. In a working set the
// sign of each coordinate is fixed, so that the objective is quadratic. A tile is the (q, q) piece of K of a working set,
// gathered into contiguous memory; its variables are the changes since it was gathered, so that rounding errors of a float32
// tile do not add up over tiles.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "computed_entries.hpp"
#include "denormals.hpp"
#include "kernel_rows.hpp"
#include "team.hpp"
#include "tile_qp.hpp"
#include "violations.hpp"

namespace wm {

constexpr Index kGatherRows = 32;          // of a tile, in a block that one thread gathers
constexpr double kSumNoise = 1e-13;        // relative rounding error of a sum of 512 changes in double precision
constexpr Index kSharedEntries = 1 << 16;  // of K: a pass over fewer stays in the calling thread
constexpr Index kViolationRows = 1 << 13;  // coordinates of a block whose violations one thread computes
constexpr Index kLeastSets = 4;            // of disjoint working sets, for over-relaxation
constexpr double kRelaxation = 1.5;        // of steps that meet no bound; of 1.2 to 1.8 those from 1.4 to 1.6 were best

// A working set of at most `size` of m coordinates, kept from one to the next: its rows, and the coordinates that it
// changed; the other vectors are scratch.
struct WorkingSet {
    WorkingSet(Index size, Index m)
        : rows(size), changed(size), lo(size), hi(size), change(size), violation(m), bins(m),
          extremes(count_blocks(m, kViolationRows)), histograms(extremes.size()),
          is_visited(maximum(count_blocks(m, ComputedEntries<float>::kSumColumns),
                             count_blocks(size, minimum(kGatherRows, ComputedEntries<double>::kTileColumns)))) {}
    std::vector<Index> rows, changed;  // rows: the first n_used are those of the set, newest last
    std::vector<double> lo, hi;        // bounds of the rows, on one side of zero if epsilon > 0
    std::vector<double> change, violation;
    std::vector<std::int16_t> bins;          // of largest_violators
    std::vector<Extremes<double>> extremes;  // of blocks of coordinates, of shared_kkt_violation
    std::vector<Histogram> histograms;       // of blocks, of largest_violators
    std::vector<unsigned char> is_visited;   // of visit_all
    Index n_used = 0, n_kept = 0;           // n_kept: rows kept from the working set before, the first ones
};

// --- working sets --------------------------------------------------------------------------------------------------

template <class Entry> struct Problem {
    Matrix<const Entry> K;  // (m, >= m); empty: all entries are computed
    SeparableTerms terms;   // of (m,) vectors
    bool has_intercept;
    ComputedEntries<Entry>* computed = nullptr;  // of K, for tiles of type Entry; null: entries of tiles are read from K

    // An address that identifies the kernel matrix: K, or the rows that its entries are computed from.
    const void* source() const { return K.data ? static_cast<const void*>(K.data) : computed->source(); }
};

struct Point {
    Span<double> beta, f;  // (m,), f = K beta
};

// Call visit(block) for all blocks, even if the team is stopped in between: beta, f and the tile stay consistent.
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

// `kkt_violation` into work.violation, shared out over the threads.
inline Violation shared_kkt_violation(Team& team, const SeparableTerms& terms, Point point, bool has_intercept,
                                      WorkingSet& work) {
    const Index m = point.beta.size;
    const auto in_blocks = [&](const auto& visit) {
        visit_all(team, count_blocks(m, kViolationRows), true, work, [&](Index block) {
            const FlushDenormals flush;
            const Index first = block * kViolationRows, end = minimum(first + kViolationRows, m);
            visit(block, first, terms.slice(first, end), point.beta.slice(first, end), point.f.slice(first, end));
        });
    };
    in_blocks([&](Index block, Index, const SeparableTerms& own, Span<const double> beta, Span<const double> f) {
        work.extremes[block] = derivative_extremes(own, beta, f);
    });
    Extremes<double> extremes{kInfinity<double>, -kInfinity<double>};
    for (const Extremes<double>& one : work.extremes)
        extremes = {minimum(extremes.rise, one.rise), maximum(extremes.fall, one.fall)};
    const Violation found = intercept_and_violation(extremes, has_intercept);
    in_blocks([&](Index, Index first, const SeparableTerms& own, Span<const double> beta, Span<const double> f) {
        write_violations(own, beta, f, found.intercept, as_span(work.violation).slice(first, first + beta.size));
    });
    return found;
}

// Choose the next working set: the newer half of a full one, and the largest violators; with an intercept, half of them
// coordinates that should rise, half that should fall. Returns work.rows[:n_used], all m in their order.
inline Span<const Index> choose_rows(Team& team, WorkingSet& work, bool has_intercept) {
    const Span<double> violation = as_span(work.violation);
    const Span<Index> rows = as_span(work.rows);
    const Index limit = rows.size;
    Index n = work.n_used == limit && limit < violation.size ? limit / 2 : 0;
    for (Index t = 0; t < n; ++t) {
        rows[t] = rows[limit - n + t];
        violation[rows[t]] = 0.0;  // so that they are not chosen again
    }
    work.n_kept = n;
    const auto run = [&](Index n_blocks, const auto& visit) { visit_all(team, n_blocks, true, work, visit); };
    const auto add = [&](Side side, Index k) {
        n += largest_violators(violation, side, k, kViolationRows, as_span(work.bins), as_span(work.histograms),
                               rows.slice(n, limit), run);
    };
    if (has_intercept) add(Side::kRise, (limit - n + 1) / 2);
    add(has_intercept ? Side::kFall : Side::kBoth, limit - n);
    if (n == violation.size) std::iota(rows.begin(), rows.begin() + n, Index(0));  // `gather` reads runs fastest
    work.n_used = n;
    return rows.head(n);
}

// Write the gradient and bounds of a working set at a point into the tile, and the bounds of beta into work.lo and
// work.hi: with epsilon > 0 those of one side of zero, at beta = 0 the side where the objective is smaller.
template <class Entry, class T>
void set_up_tile(const Problem<Entry>& problem, Point point, Span<const Index> rows, double intercept, Tile<T>& tile,
                WorkingSet& work) {
    const SeparableTerms& terms = problem.terms;
    tile.extent = tile.round_up(rows.size);
    for (Index i = 0; i < tile.extent; ++i) {
        tile.step[i] = tile.grad[i] = tile.lo[i] = tile.hi[i] = T(0);
        if (i >= rows.size) continue;
        const Index w = rows[i];
        const double s = problem.has_intercept ? 1.0 : terms.scale[w], now = point.beta[w];
        double grad = point.f[w] - terms.target[w] + terms.curvature_of(w) * now + intercept;
        work.lo[i] = terms.lo[w];
        work.hi[i] = terms.hi[w];
        if (terms.epsilon > 0.0) {
            if (now > 0.0 || (now == 0.0 && grad < 0.0)) {
                work.lo[i] = maximum(terms.lo[w], 0.0);
                grad += terms.epsilon;
            } else {
                work.hi[i] = minimum(terms.hi[w], 0.0);
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

// Move the (n, n) entries of Q of the n kept rows, the last ones of the working set before, to the first rows and columns.
// Returns n, or 0 if Q was gathered from another matrix.
template <class T> Index keep_entries(const void* source, const WorkingSet& work, Tile<T>& tile) {
    const Index n = tile.source == source ? work.n_kept : 0, first = tile.size - n;
    tile.source = source;
    for (Index t = 0; t < n; ++t) {
        std::copy_n(tile.Q[first + t].data + first, n, tile.Q[t].data);
        std::fill(tile.Q[t].data + work.n_used, tile.Q[t].data + tile.extent, T(0));
    }
    return n;
}

// Q[first:end] = K[rows[first:end], rows], scaled by tile.scale on both sides; Q[:n_kept, first:end] is its transpose,
// as K is symmetric. Q[:n_kept, :n_kept] is there already. All m rows of K are in their order.
template <class Entry, class T>
void gather(Matrix<const Entry> K, Index m, Span<const Index> rows, Index first, Index end, Index n_kept, Tile<T>& tile) {
    const T* __restrict scale = tile.scale.data;
    const Index* __restrict column = rows.data;
    for (Index i = first; i < end; ++i) {
        const Entry *source = K[rows[i]].data, *next = K[rows[minimum(i + 1, rows.size - 1)]].data;
        T* __restrict into = tile.Q[i].data;
        const T s = scale[i];
        if (rows.size == m) {
            for (Index j = 0; j < m; ++j) into[j] = T(source[j]) * (s * scale[j]);
        } else {
            for (Index j = 0; j < rows.size; ++j) {
                WM_PREFETCH(next + column[j]);
                into[j] = T(source[column[j]]) * (s * scale[j]);
            }
        }
        for (Index j = rows.size; j < tile.extent; ++j) into[j] = T(0);
    }
    for (Index t = 0; t < n_kept; ++t) {
        T* __restrict into = tile.Q[t].data;
        for (Index i = first; i < end; ++i) into[i] = tile.Q[i].data[t];
    }
}

// Write the entries of K in a tile's rows from n_kept on, block by block: run(n, visit) calls visit(block) for n blocks.
template <class Entry, class T, class Run>
void fill_tile(const Problem<Entry>& problem, Span<const Index> rows, Index n_kept, Tile<T>& tile, const Run& run) {
    if (n_kept == rows.size) return;
    if constexpr (std::is_same_v<T, Entry>)
        if (ComputedEntries<T>* const computed = problem.computed) {
            computed->choose(rows);
            return run(computed->n_tile_blocks(), [&](Index block) { computed->fill_tile_block(block, n_kept, tile); });
        }
    run(count_blocks(rows.size - n_kept, kGatherRows), [&](Index block) {
        const Index first = n_kept + block * kGatherRows;
        gather(problem.K, problem.terms.target.size, rows, first, minimum(first + kGatherRows, rows.size), n_kept, tile);
    });
}

// What a coordinate's step can be multiplied by until it reaches a bound.
template <class T> double steps_to_bound(const Tile<T>& tile, Index i) {
    const double step = tile.step[i];
    return step == 0.0 ? kInfinity<double> : 1.0 + (step > 0.0 ? tile.hi[i] : tile.lo[i]) / step;
}

// What the steps of one of m coordinates' tiles are multiplied by: kRelaxation, or less where a step reaches a bound before;
// 1 where working sets are large parts of the coordinates. Successive over-relaxation: a working set is solved with the
// others fixed, which will follow it.
template <class T> double relaxation(const Tile<T>& tile, Index m) {
    double most = kLeastSets * tile.size <= m ? kRelaxation : 1.0;
    for (Index i = 0; i < tile.extent; ++i) most = minimum(most, steps_to_bound(tile, i));
    return most;
}

// beta += the tile's steps, exactly onto a bound where one was reached; list the rows that changed and their changes in
// work.changed and work.change. Returns their number.
template <class T> Index apply_steps(Span<double> beta, const Tile<T>& tile, WorkingSet& work) {
    const double factor = relaxation(tile, beta.size);
    Index n = 0;
    for (Index i = 0; i < work.n_used; ++i) {
        const Index w = work.rows[i];
        double now = beta[w] + factor * static_cast<double>(tile.step[i]) * tile.scale[i];
        if (steps_to_bound(tile, i) <= factor) now = tile.step[i] > T(0) ? work.hi[i] : work.lo[i];
        else if (tile.hi[i] == T(0)) now = work.hi[i];
        else if (tile.lo[i] == T(0)) now = work.lo[i];
        now = clip(now, work.lo[i], work.hi[i]);
        if (now == beta[w]) continue;
        work.changed[n] = w;
        work.change[n++] = now - beta[w];
        beta[w] = now;
    }
    return n;
}

// Move one coordinate of the working set by minus the sum of the changes of beta, which is zero but for rounding: the
// coordinate farthest inside its bounds (relative to its box), or, if no coordinate can take the whole sum and stay
// inside, the one with the most room in that direction. Returns the new number of changes.
inline Index restore_sum(Span<double> beta, WorkingSet& work, Index n_changed) {
    double error = 0.0, total = 0.0;
    for (Index k = 0; k < n_changed; ++k) {
        error += work.change[k];
        total += std::abs(work.change[k]);
    }
    if (std::abs(error) <= kSumNoise * total) return n_changed;  // a coordinate at its bound must stay exactly there
    Index chosen = -1;
    double best = 0.0;
    for (Index i = 0; i < work.n_used; ++i) {
        const double below = beta[work.rows[i]] - work.lo[i], above = work.hi[i] - beta[work.rows[i]];
        const double inside = minimum(below, above), room = error > 0.0 ? below : above, width = below + above;
        const double score = inside > std::abs(error) ? 1.0 + inside / width : room / width;  // NaN if the box is a point
        if (score > best) best = score, chosen = i;
    }
    if (chosen < 0) return n_changed;
    const Index row = work.rows[chosen];
    const double before = beta[row];
    beta[row] = clip(before - error, work.lo[chosen], work.hi[chosen]);
    Index k = 0;
    while (k < n_changed && work.changed[k] != row) ++k;
    if (k == n_changed) {
        work.changed[n_changed++] = row;
        work.change[k] = 0.0;
    }
    work.change[k] += beta[row] - before;
    return n_changed;
}

struct SetResult {
    Index n_changed = 0, steps = 0;
    Violation before;  // of the point before the working set
};

// One iteration of decomposition: choose a working set, gather its tile, solve it.
//
// Solve   the problem of the tile, by solve_box_tile or solve_equality_tile, to a tenth of the point's violation, at
//         least tol / 2; steps that meet no bound are then made longer (`relaxation`)
// Given   tile and work for q rows; a feasible point with f = K beta
// Returns the number of rows that changed, steps, and the violation before; beta, updated; work.changed and
//         work.change: these rows and their changes, with which f is yet to be updated
// Cost    reads or computes up to q^2 entries of K; O(q) a step
// Source  Joachims 1999; the newer half of a working set is kept as in ThunderSVM and oneDAL; over-relaxation: Mangasarian,
//         Musicant, Successive Overrelaxation for Support Vector Machines, IEEE Trans. Neural Networks 10, 1999
// Twin    tests/naive/dual.py::solve_box_qp, solve_equality_qp
template <class Entry, class T>
SetResult solve_working_set(Team& team, const Problem<Entry>& problem, Point point, Tile<T>& tile, WorkingSet& work,
                            double tol) {
    const FlushDenormals flush;
    const Violation before = shared_kkt_violation(team, problem.terms, point, problem.has_intercept, work);
    if (before.largest < tol) return {0, 0, before};
    const Span<const Index> rows = choose_rows(team, work, problem.has_intercept);
    set_up_tile(problem, point, rows, before.intercept, tile, work);
    const bool is_shared = rows.size * rows.size >= kSharedEntries;
    const Index n_kept = keep_entries(problem.source(), work, tile);
    fill_tile(problem, rows, n_kept, tile,
              [&](Index n_blocks, const auto& visit) { visit_all(team, n_blocks, is_shared, work, visit); });
    for (Index i = n_kept; i < rows.size; ++i)
        tile.Q[i][i] += T(problem.terms.curvature_of(rows[i])) * (tile.scale[i] * tile.scale[i]);
    const double goal = maximum(0.5 * tol, 0.1 * before.largest);
    T least_scale = kInfinity<T>;
    for (Index i = 0; i < rows.size; ++i) least_scale = minimum(least_scale, tile.scale[i]);
    const Index steps = problem.has_intercept ? solve_equality_tile(tile, goal) : solve_box_tile(tile, goal * least_scale);
    const Index n_changed = apply_steps(point.beta, tile, work);
    const bool is_rounded = problem.has_intercept && sizeof(T) < sizeof(double);
    return {is_rounded ? restore_sum(point.beta, work, n_changed) : n_changed, steps, before};
}

// f += change' K[changed] for the coordinates that a working set changed, on all threads where these are many.
template <class Entry>
void update_decision_values(Team& team, const Problem<Entry>& problem, Span<double> f, WorkingSet& work, Index n_changed) {
    const Span<const Index> changed = as_span(work.changed).head(n_changed);
    const Span<const double> change = as_span(work.change).head(n_changed);
    const bool is_shared = n_changed * f.size >= kSharedEntries;
    const auto run = [&](Index n_blocks, const auto& visit) { visit_all(team, n_blocks, is_shared, work, visit); };
    if (problem.K.data == nullptr) return problem.computed->add_rows(changed, change, f, run);
    run(count_blocks(f.size, kColumnBlock), [&](Index block) { add_rows(problem.K, changed, change, f, block); });
}

struct WorkingSetsResult {
    Index n_sets = 0, steps = 0;
    Violation violation;
    bool is_stuck = false;  // whether the last working set made no step although the violation is not below tol
};

// The dual by working sets, on a kernel matrix in memory or on one whose entries are computed.
//
// Solve   min_beta  1/2 beta'(K + D) beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi  [, sum(beta) = s]  (in place)
// Given   a feasible point; tile and work for q rows; go_on(): whether to solve another working set
// Returns the number of working sets, of steps in them, the intercept and violation at the end; beta and f, updated
// Cost    a working set needs q^2 entries of K for the tile and up to q m to update f, shared out over the threads
// Source  decomposition: Joachims 1999
// Twin    tests/naive/dual.py::solve_box_qp, solve_equality_qp
template <class Entry, class T, class GoOn>
WorkingSetsResult solve_working_sets(Team& team, const Problem<Entry>& problem, Point point, Tile<T>& tile,
                                     WorkingSet& work, double tol, Index max_sets, const GoOn& go_on) {
    WorkingSetsResult done;
    while (done.n_sets < max_sets && go_on()) {
        const SetResult set = solve_working_set(team, problem, point, tile, work, tol);
        done.steps += set.steps;
        done.violation = set.before;
        if (set.n_changed == 0) {
            done.is_stuck = !(set.before.largest < tol);
            return done;
        }
        update_decision_values(team, problem, point.f, work, set.n_changed);
        ++done.n_sets;
    }
    done.violation = kkt_violation(problem.terms, point.beta, point.f, problem.has_intercept, as_span(work.violation));
    return done;
}

}  // namespace wm
