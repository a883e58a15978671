// Several duals on principal submatrices of one kernel matrix: one-vs-one, each on the rows of a pair of classes.
#pragma once
#include <algorithm>
#include <vector>

#include "dual.hpp"
#include "scratch.hpp"

namespace wm {

// P problems of m_1, ..., m_P rows, N in total: each has a slice of the (N,) vectors.
struct Subproblems {
    Span<const Index> rows;    // (N,): rows of K
    Span<const Index> starts;  // (P + 1,): problem p has the entries [starts[p], starts[p + 1]) of the (N,) vectors
    SeparableTerms terms;      // of (N,) vectors
    Span<double> beta, f;      // (N,): feasible points, and their decision values
    Span<const double> tol;    // (P,)
    Span<const Index> max_sets;  // (P,)
    bool has_intercept;

    Index count() const { return starts.size - 1; }
};

// A thread's memory for one problem of at most `size` rows: its kernel matrix and a tile.
template <class Entry, class T> struct SubproblemScratch {
    explicit SubproblemScratch(Index size, Index tile_size) : K(size * size), tile(tile_size) {}
    AlignedArray<Entry> K;
    Tile<T> tile;
};

// into (m, m) = K[rows, rows], exactly symmetric: the lower triangle, mirrored. (Entries of K that are computed in
// different tiles may differ in the last digit.)
template <class Entry> Matrix<const Entry> gather_square(Matrix<const Entry> K, Span<const Index> rows, Entry* into) {
    constexpr Index kBlock = 32;  // rows mirrored together, so that a cache line of the upper triangle is written once
    const Index m = rows.size;
    const Index* __restrict column = rows.data;
    bool is_run = true;  // of consecutive rows, which are read fastest
    for (Index i = 1; i < m; ++i) is_run = is_run && rows[i] == rows[0] + i;
    for (Index first = 0; first < m; first += kBlock) {
        const Index end = minimum(first + kBlock, m);
        for (Index i = first; i < end; ++i) {
            const Entry* source = K[rows[i]].data;
            if (is_run) std::copy_n(source + rows[0], i + 1, into + i * m);
            else
                for (Index j = 0; j <= i; ++j) into[i * m + j] = source[column[j]];
        }
        for (Index j = 0; j < end; ++j)
            for (Index i = maximum(first, j + 1); i < end; ++i) into[j * m + i] = into[i * m + j];
    }
    return {into, m, m, m};
}

// f = K[rows, rows] beta of each problem; columns of coordinates that are zero are not read
template <class Entry> void compute_decision_values(Matrix<const Entry> K, const Subproblems& problems) {
    for (Index p = 0; p < problems.count(); ++p) {
        const Index first = problems.starts[p], end = problems.starts[p + 1];
        for (Index i = first; i < end; ++i) problems.f.data[i] = 0.0;
        for (Index j = first; j < end; ++j) {
            const double beta = problems.beta.data[j];
            if (beta == 0.0) continue;
            const Entry* column = K[problems.rows[j]].data;  // K is symmetric
            for (Index i = first; i < end; ++i) problems.f.data[i] += beta * column[problems.rows[i]];
        }
    }
}

// The duals of P problems, each by working sets on its own copy of its kernel matrix.
//
// Solve   for each problem   min_beta  1/2 beta'K_p beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi
//         [, sum(beta) = s],   K_p = K[rows, rows]
// Given   K (n, n); working_sets (P,): the state of each problem; results (P,), written: those of solve_working_sets
// Returns beta and f, updated; a problem that go_on stops keeps its latest point
// Cost    copies m_p^2 entries of each problem, and its steps; each problem is solved by one thread
// Twin    tests/naive/dual.py::solve_box_qp, solve_equality_qp
template <class Entry, class T, class GoOn>
void solve_subproblems(Team& team, Matrix<const Entry> K, const Subproblems& problems, std::vector<WorkingSet>& working_sets,
                       ScratchPool<SubproblemScratch<Entry, T>>& scratches, Span<WorkingSetsResult> results,
                       const GoOn& go_on) {
    const auto solve_one = [&](Index p) {
        const Index first = problems.starts[p], end = problems.starts[p + 1];
        const SeparableTerms own = problems.terms.slice(first, end);
        const Point point{problems.beta.slice(first, end), problems.f.slice(first, end)};
        WorkingSetsResult& result = results[p];
        result.violation = kkt_violation(own, point.beta, point.f, problems.has_intercept, as_span(working_sets[p].violation));
        if (first == end || result.violation.largest < problems.tol[p]) return;
        scratches.with_one([&](SubproblemScratch<Entry, T>& scratch) {
            scratch.tile.source = nullptr;  // its entries are those of another problem
            const Problem<Entry> problem{gather_square(K, problems.rows.slice(first, end), scratch.K.data()), own,
                                         problems.has_intercept};
            Team alone(1);
            result = solve_working_sets(alone, problem, point, scratch.tile, working_sets[p], problems.tol[p],
                                        problems.max_sets[p], go_on);
        });
    };
    Index n_entries = 0;
    for (Index p = 0; p < problems.count(); ++p) {
        const Index m = problems.starts[p + 1] - problems.starts[p];
        n_entries += m * m;
    }
    if (n_entries >= 4 * kSharedEntries) return team.for_each_block(problems.count(), solve_one);
    for (Index p = 0; p < problems.count(); ++p) solve_one(p);
}

}  // namespace wm
