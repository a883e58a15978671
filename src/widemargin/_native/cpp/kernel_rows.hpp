// Rows of a kernel matrix in memory: their weighted sums sum_k coef_k K[k, :], in float64 whatever the entries are, and
// the removal of rows and columns.
#pragma once
#include <algorithm>
#include <cstring>

#include "registers.hpp"

namespace wm {

// Columns of a block: their sums stay in the first-level cache. The unit of work that threads share out.
constexpr Index kColumnBlock = 1024;
constexpr Index kLineBytes = 64;  // of a line of the caches

// A sum that is not reordered: one chain of multiply-adds takes a third fewer instructions than a tree of sums.
#if defined(__has_builtin) && __has_builtin(__builtin_assoc_barrier)
#define WM_IN_ORDER(x) __builtin_assoc_barrier(x)
#else
#define WM_IN_ORDER(x) (x)
#endif

// sum += sum_k coef_k row_k, eight rows a pass, so that the sum is read and written an eighth as often. A pass prefetches the
// next one's rows: they lie anywhere, and wait for memory.
template <class Entry> class RowSum {
  public:
    explicit RowSum(Span<double> sum) : sum_(sum) {}
    void add(double coef, const Entry* row) {
        coef_[n_] = coef;
        rows_[n_] = row;
        if (++n_ < 2 * kRows) return;
        add_together<kRows>(0, rows_ + kRows);
        std::copy_n(rows_ + kRows, kRows, rows_);
        std::copy_n(coef_ + kRows, kRows, coef_);
        n_ = kRows;
    }
    // Add the rows that are left over. To be called once, after the last row.
    void finish() {
        int k = 0;
        if (n_ >= kRows) add_together<kRows>(k), k += kRows;
        for (; k + 4 <= n_; k += 4) add_together<4>(k);
        for (; k < n_; ++k) add_together<1>(k);
    }

  private:
    static constexpr int kRows = 8;
    Span<double> sum_;
    double coef_[2 * kRows];
    const Entry* rows_[2 * kRows];
    int n_ = 0;

    template <int n> void add_together(int first, const Entry* const* next = nullptr) {
        const Entry* row[n];
        double c[n];
        for (int k = 0; k < n; ++k) row[k] = rows_[first + k], c[k] = coef_[first + k];
        double* sum = sum_.data;
        const Index size = sum_.size;
        for (Index j = 0; j + kLanes <= size; j += kLanes) {
            if (next != nullptr && j * sizeof(Entry) % kLineBytes == 0)
                for (int k = 0; k < n; ++k) WM_PREFETCH(next[k] + j);
            Lanes total = load_lanes(sum + j);
            WM_UNROLL
            for (int k = 0; k < n; ++k) total = WM_IN_ORDER(total + c[k] * load_lanes(row[k] + j));
            store_lanes(sum + j, total);
        }
        for (Index j = size - size % kLanes; j < size; ++j)
            for (int k = 0; k < n; ++k) sum[j] = multiply_add(c[k], static_cast<double>(row[k][j]), sum[j]);
    }
};

// Entries of a vector (m,) in the columns of a block.
inline Span<double> column_block(Span<double> sum, Index block) {
    return sum.slice(block * kColumnBlock, minimum((block + 1) * kColumnBlock, sum.size));
}

// f += coef' K[rows], in one block of columns
//
// Given   K (r, >= m); rows (k,), coef (k,); f (m,), changed in place
// Cost    k multiply-adds a column; K[rows] is read once
// Twin    f + coef @ K[rows]
template <class Entry>
void add_rows(Matrix<const Entry> K, Span<const Index> rows, Span<const double> coef, Span<double> f, Index block) {
    const Index first = block * kColumnBlock;
    RowSum<Entry> sum(column_block(f, block));
    for (Index k = 0; k < rows.size; ++k) sum.add(coef[k], K[rows[k]].data + first);
    sum.finish();
}

// out += coef K, in one block of columns; rows of K whose coefficient is zero are not read
//
// Given   K (r, c); coef (k, r); out (k, c), changed in place
// Cost    a multiply-add a column for each coefficient that is not zero
// Twin    out + coef @ K.astype(float64)
template <class Entry>
void add_product(Matrix<const Entry> K, Matrix<const double> coef, Matrix<double> out, Index block) {
    const Index first = block * kColumnBlock;
    for (Index i = 0; i < out.rows; ++i) {
        RowSum<Entry> sum(column_block(out[i], block));
        for (Index k = 0; k < K.rows; ++k)
            if (coef[i][k] != 0.0) sum.add(coef[i][k], K[k].data + first);
        sum.finish();
    }
}

// out += coef K with a CSC matrix of coefficients
//
// Given   K (r, c); column i of coef (k, r): coef[starts[i]:starts[i + 1]], in the rows functions[...]; out (k, c),
//         changed in place
// Cost    a multiply-add a column of K for each coefficient
// Twin    out + coef @ K.astype(float64)
template <class Entry>
void add_sparse_product(Matrix<const Entry> K, Span<const Index> starts, Span<const Index> functions,
                        Span<const double> coef, Matrix<double> out) {
    for (Index i = 0; i < K.rows; ++i) {
        const Entry* __restrict row = K[i].data;
        for (Index k = starts[i]; k < starts[i + 1]; ++k) {
            double* __restrict sum = out[functions[k]].data;
            const double c = coef[k];
            for (Index j = 0; j < K.columns; ++j) sum[j] += c * row[j];
        }
    }
}

// K[:m, :m] = K[kept][:, kept], in place. run(n, visit) calls visit(block) for each of n blocks, in any order
//
// Given   K (r, >= r); kept (m,): ascending rows
// Cost    m^2 entries are read and written; no allocation. Rows that are written together, [a, b) with b <= kept[a], are
//         not read any more
// Twin    K[np.ix_(kept, kept)]
template <class Entry, class Run> void remove_rows(Matrix<Entry> K, Span<const Index> kept, const Run& run) {
    constexpr Index kBlock = 16;  // rows
    const Index m = kept.size;
    Index first = 0;  // rows and columns before it stay in their places
    while (first < m && kept[first] == first) ++first;
    const auto move = [&](Index begin, Index end) {
        run(count_blocks(end - begin, kBlock), [&](Index block) {
            const Index last = minimum(begin + (block + 1) * kBlock, end);
            for (Index i = begin + block * kBlock; i < last; ++i) {
                const Entry* from = K[kept[i]].data;
                Entry* into = K[i].data;
                if (from != into) std::memcpy(into, from, first * sizeof(Entry));
                for (Index j = first; j < m; ++j) into[j] = from[kept[j]];
            }
        });
    };
    if (first < m) move(0, first);
    for (Index begin = first, end; begin < m; begin = end) {
        end = minimum(kept[begin], m);
        move(begin, end);
    }
}

}  // namespace wm
