// Sums of a kernel matrix's rows, in float64 whatever the entries are.
#pragma once
#include "span.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace wm {

// Columns that are summed at one time: their sums stay in the first-level cache while rows pass by. Threads share out
// blocks of so many, and whoever sums alone takes the same ones: a sum's digits depend on where its block begins.
constexpr Index kColumnBlock = 1024;

// A register of float64 numbers, read from entries of a row. (GCC 12 makes five instructions of its own conversion.)
#if defined(__AVX512F__)
constexpr Index kLanes = 8;
#elif defined(__AVX2__)
constexpr Index kLanes = 4;
#else
constexpr Index kLanes = 2;
#endif
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double)), aligned(alignof(double)), may_alias));

inline Lanes load(const double* p) { return *reinterpret_cast<const Lanes*>(p); }
inline Lanes load(const float* p) {
#if defined(__AVX512F__)
    return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p));  // of all lanes: without the mask GCC 12 warns
#elif defined(__AVX2__)
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    return Lanes{p[0], p[1]};
#endif
}

// Sums stay in the order that is written: as one chain of multiply-adds, they take a third fewer instructions.
#if defined(__has_builtin) && __has_builtin(__builtin_assoc_barrier)
#define WM_IN_ORDER(x) __builtin_assoc_barrier(x)
#else
#define WM_IN_ORDER(x) (x)
#endif

// Rows to be added to one sum, eight a pass: that reads and writes the sum an eighth as often.
template <class Entry> class RowSum {
  public:
    explicit RowSum(Span<double> sum) : sum_(sum) {}
    void add(double coef, const Entry* row) {
        coef_[n_] = coef;
        rows_[n_] = row;
        if (++n_ == kRows) add_together<kRows>(rows_, coef_), n_ = 0;
    }
    // Call it once, after the last row.
    void finish() {
        int k = 0;
        for (; k + 4 <= n_; k += 4) add_together<4>(rows_ + k, coef_ + k);
        for (; k < n_; ++k) add_together<1>(rows_ + k, coef_ + k);
    }

  private:
    static constexpr int kRows = 8;
    Span<double> sum_;
    double coef_[kRows];
    const Entry* rows_[kRows];
    int n_ = 0;

    template <int n> void add_together(const Entry* const* rows, const double* coef) {
        const Entry* row[n];
        double c[n];
        for (int k = 0; k < n; ++k) row[k] = rows[k], c[k] = coef[k];
        double* sum = sum_.data;
        const Index size = sum_.size;
        Index j = 0;
        for (; j + kLanes <= size; j += kLanes) {
            Lanes total = load(sum + j);
#pragma GCC unroll 8
            for (int k = 0; k < n; ++k) total = WM_IN_ORDER(total + c[k] * load(row[k] + j));
            *reinterpret_cast<Lanes*>(sum + j) = total;
        }
        for (; j < size; ++j)
            for (int k = 0; k < n; ++k) sum[j] = WM_IN_ORDER(sum[j] + c[k] * row[k][j]);
    }
};

// The columns of block `block` in a sum of m.
inline Span<double> column_block(Span<double> sum, Index block) {
    return sum.slice(block * kColumnBlock, least((block + 1) * kColumnBlock, sum.size));
}

// f += coef' K[rows], in one block of columns
//
// Given   K (r, >= m); rows (k,), coef (k,); f (m,), changed in place
// Cost    k multiply-adds a column; K[rows] is read once
// Twin    tests/naive/dual.py::add_rows
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

}  // namespace wm
