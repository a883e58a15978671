// Crammer and Singer's multiclass hinge, sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i), on a segment of decision
// values.
#pragma once
#include <vector>

#include "row_blocks.hpp"

namespace wm {

// A segment of decision values f + k (f_end - f), both (q, n); classes y (n,) in [0, q) and sample weights s (n,).
struct MulticlassSegment {
    Matrix<const double> f, f_end;
    Span<const std::int32_t> y;
    Span<const double> s;
};

// For some rows, the class that attains the maximum at f + k (f_end - f), the own class where no other violates the
// margin; of classes that attain it together, the one of largest derivative in k.
class WorstClasses {
  public:
    static constexpr Index kMost = 128;  // rows, for a first-level cache

    double loss[kMost], rate[kMost], own_rate[kMost];  // unweighted; derivatives in k of both classes' decision values
    Index worst[kMost], own[kMost];                    // the class that attains the maximum; the row's own

    // row(i): number of the i-th of n <= kMost rows
    template <class RowOf> void find(const MulticlassSegment& segment, Index n, const RowOf& row, double k) {
        for (Index i = 0; i < n; ++i) {
            own[i] = segment.y.data[row(i)];
            const Index place = own[i] * segment.f.stride + row(i);
            const double f = segment.f.data[place];
            own_rate[i] = segment.f_end.data[place] - f;
            own_value_[i] = f + k * own_rate[i];
            loss[i] = 0.0;
            rate[i] = own_rate[i];
            worst[i] = own[i];
        }
        for (Index c = 0; c < segment.f.rows; ++c) {
            const double *f = segment.f[c].data, *f_end = segment.f_end[c].data;
            for (Index i = 0; i < n; ++i) {
                const double c_rate = f_end[row(i)] - f[row(i)];
                const double slack = 1.0 + f[row(i)] + k * c_rate - own_value_[i];
                const bool is_worse = (slack > loss[i]) | ((slack == loss[i]) & (c_rate > rate[i]));
                const bool is_taken = is_worse & (c != own[i]);
                loss[i] = is_taken ? slack : loss[i];
                rate[i] = is_taken ? c_rate : rate[i];
                worst[i] = is_taken ? c : worst[i];
            }
        }
    }

  private:
    double own_value_[kMost];
};

constexpr Index kMulticlassBlock = 4096;  // rows of a block

// Call visit(first, n) for the chunks of at most WorstClasses::kMost rows of a block.
template <class Visit> void for_each_chunk(Index block, Index n_rows, const Visit& visit) {
    const Index end = minimum((block + 1) * kMulticlassBlock, n_rows);
    for (Index first = block * kMulticlassBlock; first < end; first += WorstClasses::kMost)
        visit(first, minimum(WorstClasses::kMost, end - first));
}

// The risk at the minimiser of a line search, and the cutting plane at a point between it and the segment's end.
//
// Given   segment; f (q, n), a writable view of its start: replaced by f + step (f_end - f); coef (q, n), written: the
//         row weights of the plane at f + mu (f_end - f), f the new one
// Returns the risk at the new f; the plane's offset
// Cost    O(n q)
// Source  Crammer and Singer 2001, JMLR 2; the subgradient as in Franc and Sonnenburg 2008
// Twin    tests/naive/cutting_plane.py::multiclass_risk
template <class Run>
Sums<2> advance_multiclass(const MulticlassSegment& segment, Matrix<double> f, double step, double mu,
                           Matrix<double> coef, const Run& run) {
    const Index n = segment.y.size;
    return sum_blocks<2>(count_blocks(n, kMulticlassBlock), run, [&](Index block) {
        Sums<2> sums{};
        WorstClasses at;
        for_each_chunk(block, n, [&](Index first, Index m) {
            for (Index c = 0; c < f.rows; ++c) {
                double* __restrict from = f[c].data + first;
                const double* __restrict to = segment.f_end[c].data + first;
                for (Index i = 0; i < m; ++i) from[i] += step * (to[i] - from[i]);
            }
            const double* s = segment.s.data + first;
            at.find(segment, m, [first](Index i) { return first + i; }, 0.0);
            for (Index i = 0; i < m; ++i) sums[0] += s[i] * at.loss[i];
            at.find(segment, m, [first](Index i) { return first + i; }, mu);
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

// The right derivative in k of the risk of m rows at f + k (f_end - f).
//
// Cost    O(m q)
// Twin    differences of tests/naive/cutting_plane.py::multiclass_risk
template <class Run>
double multiclass_slope(const MulticlassSegment& segment, Span<const Index> rows, double k, const Run& run) {
    const auto [slope] = sum_blocks<1>(count_blocks(rows.size, kMulticlassBlock), run, [&](Index block) {
        double slope = 0.0;
        WorstClasses at;
        for_each_chunk(block, rows.size, [&](Index first, Index m) {
            const Index* chunk = rows.data + first;
            at.find(segment, m, [chunk](Index i) { return chunk[i]; }, k);
            for (Index i = 0; i < m; ++i) slope += segment.s.data[chunk[i]] * (at.rate[i] - at.own_rate[i]);
        });
        return Sums<1>{slope};
    });
    return slope;
}

// The number of rows kept, and the sum of the dropped rows' derivatives in k.
struct KeptRows {
    Index n_kept;
    double dropped_slope;
};

// Move the rows whose loss is not linear in k over [lo, hi] to the front of `rows`. If one of several linear functions
// attains their maximum at both ends of an interval, it does in between.
//
// Cost    O(m q) for m rows
// Twin    multiclass_slope at lo and at hi: the rows dropped have one derivative
template <class Run>
KeptRows drop_linear_rows(const MulticlassSegment& segment, Span<Index> rows, double lo, double hi, const Run& run) {
    std::vector<Index> kept(count_blocks(rows.size, kMulticlassBlock));
    const auto [slope] = sum_blocks<1>(count_blocks(rows.size, kMulticlassBlock), run, [&](Index block) {
        double slope = 0.0;
        Index* front = rows.data + block * kMulticlassBlock;
        WorstClasses at_lo, at_hi;
        for_each_chunk(block, rows.size, [&](Index first, Index m) {
            const Index* chunk = rows.data + first;
            at_lo.find(segment, m, [chunk](Index i) { return chunk[i]; }, lo);
            at_hi.find(segment, m, [chunk](Index i) { return chunk[i]; }, hi);
            for (Index i = 0; i < m; ++i) {
                const Index row = chunk[i];
                const bool is_linear = at_lo.worst[i] == at_hi.worst[i];
                slope += is_linear ? segment.s.data[row] * (at_lo.rate[i] - at_lo.own_rate[i]) : 0.0;
                *front = row;
                front += !is_linear;
            }
        });
        kept[block] = front - (rows.data + block * kMulticlassBlock);
        return Sums<1>{slope};
    });
    Index n_kept = 0;
    for (Index block = 0; block < static_cast<Index>(kept.size()); ++block) {
        std::memmove(rows.data + n_kept, rows.data + block * kMulticlassBlock, kept[block] * sizeof(Index));
        n_kept += kept[block];
    }
    return {n_kept, slope};
}

}  // namespace wm
