// Crammer and Singer's multiclass hinge, sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i), along lines of outputs.
#pragma once
#include <vector>

#include "row_blocks.hpp"

namespace wm {

// Outputs at both ends of a line, (K, n) each, and the rows' classes y (n,) in [0, K) and weights s (n,).
struct MarginLine {
    Matrix<const double> f, target;
    Span<const std::int32_t> y;
    Span<const double> s;
};

// The class that costs each of some rows most at f + k (target - f): of equal ones the steepest, its own if none costs
// anything.
class WorstClasses {
  public:
    static constexpr Index kMost = 128;  // rows: their numbers fit a first-level cache

    double cost[kMost], rate[kMost], own_rate[kMost];  // its cost, and how fast its output and the own class's change
    Index worst[kMost], own[kMost];

    // row(i): the i-th of n <= kMost rows
    template <class RowOf> void find(const MarginLine& line, Index n, const RowOf& row, double k) {
        for (Index i = 0; i < n; ++i) {
            own[i] = line.y.data[row(i)];
            const Index place = own[i] * line.f.stride + row(i);
            const double f = line.f.data[place];
            own_rate[i] = line.target.data[place] - f;
            base_[i] = f + k * own_rate[i];
            cost[i] = 0.0;
            rate[i] = own_rate[i];
            worst[i] = own[i];
        }
        for (Index c = 0; c < line.f.rows; ++c) {
            const double *f = line.f[c].data, *target = line.target[c].data;
            for (Index i = 0; i < n; ++i) {
                const double c_rate = target[row(i)] - f[row(i)];
                const double margin = 1.0 + f[row(i)] + k * c_rate - base_[i];
                const bool is_worse = (margin > cost[i]) | ((margin == cost[i]) & (c_rate > rate[i]));
                const bool is_taken = is_worse & (c != own[i]);
                cost[i] = is_taken ? margin : cost[i];
                rate[i] = is_taken ? c_rate : rate[i];
                worst[i] = is_taken ? c : worst[i];
            }
        }
    }

  private:
    double base_[kMost];
};

constexpr Index kMarginBlock = 4096;  // rows that a thread takes at a time

// visit(first, n) for at most WorstClasses::kMost of the rows of a block at a time.
template <class Visit> void for_each_chunk(Index block, Index n_rows, const Visit& visit) {
    const Index end = least((block + 1) * kMarginBlock, n_rows);
    for (Index first = block * kMarginBlock; first < end; first += WorstClasses::kMost)
        visit(first, least(WorstClasses::kMost, end - first));
}

// Move to the best point of the line, and read off the plane near it.
//
// Given   line; f (K, n), the outputs of its start, replaced by those of the new best point, f + step (target - f);
//         coef (K, n), written: the plane's weights of each row
// Returns the risk at the new best point; the plane's offset
// Cost    O(n K)
// Source  Crammer and Singer 2001, JMLR 2; the subgradient as in Franc and Sonnenburg 2008
// Twin    tests/naive/cutting_plane.py::margin_risk
template <class Run>
Sums<2> advance_margins(const MarginLine& line, Matrix<double> f, double step, double mu,
                                      Matrix<double> coef, const Run& run) {
    const Index n = line.y.size;
    return sum_blocks<2>(count_blocks(n, kMarginBlock), run, [&](Index block) {
        Sums<2> sums{};
        WorstClasses at;
        for_each_chunk(block, n, [&](Index first, Index m) {
            for (Index c = 0; c < f.rows; ++c) {
                double* __restrict from = f[c].data + first;
                const double* __restrict to = line.target[c].data + first;
                for (Index i = 0; i < m; ++i) from[i] += step * (to[i] - from[i]);
            }
            const double* s = line.s.data + first;
            at.find(line, m, [first](Index i) { return first + i; }, 0.0);
            for (Index i = 0; i < m; ++i) sums[0] += s[i] * at.cost[i];
            at.find(line, m, [first](Index i) { return first + i; }, mu);
            for (Index i = 0; i < m; ++i) sums[1] += at.worst[i] != at.own[i] ? s[i] : 0.0;
            for (Index c = 0; c < f.rows; ++c) {
                double* __restrict into = coef[c].data + first;
                for (Index i = 0; i < m; ++i)
                    into[i] = (at.worst[i] == c ? s[i] : 0.0) - (at.own[i] == c ? s[i] : 0.0);
            }
        });
        return sums;
    });
}

// Derivative just after k of the risk of some rows along the line. O(len(rows) K).
template <class Run> double margin_slope(const MarginLine& line, Span<const Index> rows, double k, const Run& run) {
    const auto [slope] = sum_blocks<1>(count_blocks(rows.size, kMarginBlock), run, [&](Index block) {
        double slope = 0.0;
        WorstClasses at;
        for_each_chunk(block, rows.size, [&](Index first, Index m) {
            const Index* chunk = rows.data + first;
            at.find(line, m, [chunk](Index i) { return chunk[i]; }, k);
            for (Index i = 0; i < m; ++i) slope += line.s.data[chunk[i]] * (at.rate[i] - at.own_rate[i]);
        });
        return Sums<1>{slope};
    });
    return slope;
}

struct KeptRows {
    Index n_kept;
    double slope;
};

// Keep at the front the rows whose worst class may change for lo <= k <= hi: a maximum of lines that the same line
// attains at both ends is that line in between.
//
// Returns how many are kept; what the others add to the derivative
template <class Run>
KeptRows drop_linear_margins(const MarginLine& line, Span<Index> rows, double lo, double hi, const Run& run) {
    std::vector<Index> kept(count_blocks(rows.size, kMarginBlock));
    const auto [slope] = sum_blocks<1>(count_blocks(rows.size, kMarginBlock), run, [&](Index block) {
        double slope = 0.0;
        Index* front = rows.data + block * kMarginBlock;
        WorstClasses at_lo, at_hi;
        for_each_chunk(block, rows.size, [&](Index first, Index m) {
            const Index* chunk = rows.data + first;
            at_lo.find(line, m, [chunk](Index i) { return chunk[i]; }, lo);
            at_hi.find(line, m, [chunk](Index i) { return chunk[i]; }, hi);
            for (Index i = 0; i < m; ++i) {
                const Index row = chunk[i];
                const bool is_settled = at_lo.worst[i] == at_hi.worst[i];
                slope += is_settled ? line.s.data[row] * (at_lo.rate[i] - at_lo.own_rate[i]) : 0.0;
                *front = row;
                front += !is_settled;
            }
        });
        kept[block] = front - (rows.data + block * kMarginBlock);
        return Sums<1>{slope};
    });
    Index n_kept = 0;
    for (Index block = 0; block < static_cast<Index>(kept.size()); ++block) {
        std::memmove(rows.data + n_kept, rows.data + block * kMarginBlock, kept[block] * sizeof(Index));
        n_kept += kept[block];
    }
    return {n_kept, slope};
}

}  // namespace wm
