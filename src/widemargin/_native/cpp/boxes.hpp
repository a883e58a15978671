// Boxes that hold batches of rows: lower bounds of the distances of a row to all rows of a batch, and sums of kernel rows
// that leave out batches far from a row.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "row_products.hpp"

namespace wm {

// B boxes {x : low_k <= x_k <= high_k}: lows, highs (d, B).
template <class T> struct Boxes {
    Matrix<const T> lows, highs;
    Index size() const { return lows.columns; }
};

// The distance of x to [low, high], squared for squared distances.
template <KernelArgument distance, class T> WM_INLINE T gap(T x, T low, T high) {
    const T below = low - x, above = x - high, outside = below > above ? below : above, size = outside > T(0) ? outside : T(0);
    return distance == KernelArgument::squared_distance ? size * size : size;
}

// gaps (d, B): the distance of a zero in column k to the side of box b, for CSR rows; none for dense ones.
template <KernelArgument distance, class T> std::vector<double> zero_gaps(const Matrix<const T>&, const Boxes<T>&) {
    return {};
}
template <KernelArgument distance, class T> std::vector<double> zero_gaps(const CSR<T>& Z, const Boxes<T>& boxes) {
    std::vector<double> gaps;
    for (Index k = 0; k < Z.columns; ++k)
        for (Index b = 0; b < boxes.size(); ++b) gaps.push_back(gap<distance>(T(0), boxes.lows[k][b], boxes.highs[k][b]));
    return gaps;
}

// Write the distances (B,) of row i of Z to the boxes; `of_zero` (B,) are those of a row of zeros, the sums of its gaps.
template <KernelArgument distance, class T>
void box_distances(const Matrix<const T>& Z, Index i, const Boxes<T>& boxes, Span<const double>, Span<const double>,
                   double* __restrict out) {
    std::fill_n(out, boxes.size(), 0.0);
    for (Index k = 0; k < Z.columns; ++k) {
        const T x = Z[i][k], *low = boxes.lows[k].data, *high = boxes.highs[k].data;
        for (Index b = 0; b < boxes.size(); ++b) out[b] += static_cast<double>(gap<distance>(x, low[b], high[b]));
    }
}
template <KernelArgument distance, class T>
void box_distances(const CSR<T>& Z, Index i, const Boxes<T>& boxes, Span<const double> gaps, Span<const double> of_zero,
                   double* __restrict out) {
    std::copy_n(of_zero.data, boxes.size(), out);
    for (Index t = Z.row_begin(i); t < Z.row_end(i); ++t) {
        const auto k = static_cast<Index>(Z.indices[t]);
        const T x = Z.data[t], *low = boxes.lows[k].data, *high = boxes.highs[k].data;
        const double* const zero = gaps.data + k * boxes.size();
        for (Index b = 0; b < boxes.size(); ++b)
            out[b] += static_cast<double>(gap<distance>(x, low[b], high[b])) - zero[b];
    }
}

// Write the distances (n,) of n points to one box; Xt (d, n): the points, feature by feature.
template <KernelArgument distance, class T>
void distances_to_box(Matrix<const T> Xt, Span<const T> low, Span<const T> high, T* __restrict out) {
    std::fill_n(out, Xt.columns, T(0));
    for (Index k = 0; k < Xt.rows; ++k) {
        const T *x = Xt[k].data, from = low[k], to = high[k];
        for (Index i = 0; i < Xt.columns; ++i) out[i] += gap<distance>(x[i], from, to);
    }
}

// near[b]: the rows of Z, in ascending order, whose distance to box b is at most `limit`
//
// Given   Z: rows, without repeated columns in CSR
// Cost    four operations for each of n B d differences, or of B nnz(Z)
// Exact   a row's distances do not depend on the other rows; in float64, of differences of type T
template <KernelArgument distance, class Rows, class T>
void find_near(const Rows& Z, const Boxes<T>& boxes, Span<const double> gaps, Span<const double> of_zero, double limit,
               std::vector<std::vector<Index>>& near) {
    std::vector<double> distances(boxes.size());
    for (std::vector<Index>& rows : near) rows.clear();
    for (Index i = 0; i < n_rows(Z); ++i) {
        box_distances<distance>(Z, i, boxes, gaps, of_zero, distances.data());
        for (Index b = 0; b < boxes.size(); ++b)
            if (distances[b] <= limit) near[b].push_back(i);
    }
}

// Copies of rows that are not contiguous, until the next call of `take`.
template <class Rows> class GatheredRows;
template <class T> class GatheredRows<Matrix<const T>> {
  public:
    Matrix<const T> take(const Matrix<const T>& Z, Span<const Index> rows) {
        values_.resize(rows.size * Z.columns);
        for (Index j = 0; j < rows.size; ++j) std::copy_n(Z[rows[j]].data, Z.columns, values_.data() + j * Z.columns);
        return {values_.data(), rows.size, Z.columns, Z.columns};
    }

  private:
    std::vector<T> values_;
};
template <class T> class GatheredRows<CSR<T>> {
  public:
    CSR<T> take(const CSR<T>& Z, Span<const Index> rows) {
        data_.clear(), indices_.clear(), indptr_.assign(1, 0);
        for (const Index i : rows) {
            const Span<const T> values = Z.values(i);
            const Span<const Column> columns = Z.columns_of(i);
            data_.insert(data_.end(), values.begin(), values.end());
            indices_.insert(indices_.end(), columns.begin(), columns.end());
            indptr_.push_back(static_cast<Index>(data_.size()));
        }
        return {as_span(data_), as_span(indices_), as_span(indptr_), Z.columns, Z.is_sorted};
    }

  private:
    std::vector<T> data_;
    std::vector<Column> indices_;
    std::vector<Index> indptr_;
};

constexpr Index kNearRows = 1024;  // rows z that are compared with the boxes at a time

// out (k, c) += coef K(x, z) without the entries between a row z and the batches whose boxes are farther than `limit`
//
// Given   x: r rows in B batches, of which b has the rows starts[b] ... starts[b + 1] - 1, within box b; coef (k, r); z: c rows
// Cost    as find_near, and as add_kernel_product for the entries that are not left out
// Exact   the terms of a batch are added in the order of its rows, and the batches in theirs: a sum does not depend on the
//         other rows z
// Twin    tests/naive/kernels.py::near_product
template <KernelArgument distance, class Rows, class T>
void add_near_product(const KernelRows<distance, Rows>& x, Span<const Index> starts, const Boxes<T>& boxes, double limit,
                      Matrix<const double> coef, const KernelRows<distance, Rows>& z, double gamma, Matrix<double> out) {
    const std::vector<double> gaps = zero_gaps<distance>(z.rows, boxes);
    std::vector<double> of_zero(boxes.size()), norms, sums(out.rows * kNearRows);
    for (std::size_t t = 0; t < gaps.size(); ++t) of_zero[t % of_zero.size()] += gaps[t];
    std::vector<std::vector<Index>> near(boxes.size());
    GatheredRows<Rows> gathered;
    auto scratch = product_scratch(x.rows, z.rows.slice(0, minimum(kNearRows, n_rows(z.rows))));
    for (Index first = 0; first < n_rows(z.rows); first += kNearRows) {
        const Rows block = z.rows.slice(first, minimum(first + kNearRows, n_rows(z.rows)));
        find_near<distance>(block, boxes, as_span(gaps), as_span(of_zero), limit, near);
        for (Index b = 0; b < boxes.size(); ++b) {
            const Span<const Index> rows = as_span(std::as_const(near[b]));
            if (rows.size == 0) continue;
            norms.clear();
            if (z.norms.size > 0)
                for (const Index j : rows) norms.push_back(z.norms[first + j]);
            const KernelRows<distance, Rows> points{gathered.take(block, rows), as_span(norms)};
            const Matrix<double> into{sums.data(), out.rows, rows.size, rows.size};
            std::fill_n(sums.data(), out.rows * rows.size, 0.0);
            const Index size = starts[b + 1] - starts[b];
            const Matrix<const double> weights{coef.data + starts[b], coef.rows, size, coef.stride};
            add_kernel_product(x.slice(starts[b], starts[b + 1]), weights, points, gamma, scratch, into);
            for (Index a = 0; a < out.rows; ++a)
                for (Index j = 0; j < rows.size; ++j) out[a][first + rows[j]] += into[a][j];
        }
    }
}

}  // namespace wm
