// Sums of a kernel matrix's rows, in float64 whatever the entries are.
#pragma once
#include "span.hpp"

namespace wm {

// Columns that are summed at one time: their sums stay in the first-level cache while rows pass by. Threads share out
// blocks of so many, and whoever sums alone takes the same ones: a sum's digits depend on where its block begins.
constexpr Index kColumnBlock = 2048;

// Rows to be added to one sum, eight a pass: that reads and writes the sum an eighth as often.
template <class Entry> class RowSum {
  public:
    explicit RowSum(Span<double> sum) : sum_(sum) {}
    void add(double coef, const Entry* row) {
        coef_[n_] = coef;
        rows_[n_] = row;
        if (++n_ == kRows) add_eight();
    }
    // Call it once, after the last row.
    void finish() {
        double* __restrict sum = sum_.data;
        for (int k = 0; k < n_; ++k) {
            const Entry* row = rows_[k];
            const double c = coef_[k];
            for (Index j = 0; j < sum_.size; ++j) sum[j] += c * row[j];
        }
    }

  private:
    static constexpr int kRows = 8;
    Span<double> sum_;
    double coef_[kRows];
    const Entry* rows_[kRows];
    int n_ = 0;

    void add_eight() {
        double* __restrict sum = sum_.data;
        const Entry *r0 = rows_[0], *r1 = rows_[1], *r2 = rows_[2], *r3 = rows_[3];
        const Entry *r4 = rows_[4], *r5 = rows_[5], *r6 = rows_[6], *r7 = rows_[7];
        const double c0 = coef_[0], c1 = coef_[1], c2 = coef_[2], c3 = coef_[3];
        const double c4 = coef_[4], c5 = coef_[5], c6 = coef_[6], c7 = coef_[7];
        for (Index j = 0; j < sum_.size; ++j) {
            const double four = c0 * r0[j] + c1 * r1[j] + c2 * r2[j] + c3 * r3[j];
            sum[j] += four + (c4 * r4[j] + c5 * r5[j] + c6 * r6[j] + c7 * r7[j]);
        }
        n_ = 0;
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
