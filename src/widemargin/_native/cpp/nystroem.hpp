// Local Nystroem machines in the leaves of a tree: kernel values of rows with landmarks, and decision values.
#pragma once
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "denormals.hpp"
#include "kernel_functions.hpp"
#include "tree.hpp"

namespace wm {

// Estimate the distances |x - v| of a row x to p pseudo-landmarks v by the triangle inequality, from those to the m
// landmarks u: max_u | |x - u| - |v - u| | <= |x - v| <= min_u |x - u| + |v - u|.
//
// Given   distances (m,): |x - u|, or its square; pseudo_distances (m, p): |v - u|; is_lower: which bound is the
//         estimate; estimates (p,), written: of |x - v|, or of its square
// Cost    m p times two or three operations
// Source  Hsieh, Si, Dhillon 2014 (DC-Pred++), equation 6
// Twin    tests/naive/nystroem.py::bound_distances
template <class T>
void bound_distances(Span<const T> distances, Matrix<const T> pseudo_distances, bool is_lower, bool are_squares,
                     T* __restrict estimates) {
    const Index p = pseudo_distances.columns;
    for (Index t = 0; t < p; ++t) estimates[t] = is_lower ? T(0) : std::numeric_limits<T>::infinity();
    for (Index j = 0; j < distances.size; ++j) {
        const T distance = are_squares ? std::sqrt(distances[j]) : distances[j];
        const T* __restrict pseudo = pseudo_distances[j].data;
        if (is_lower)
            for (Index t = 0; t < p; ++t) estimates[t] = maximum(estimates[t], std::abs(distance - pseudo[t]));
        else
            for (Index t = 0; t < p; ++t) estimates[t] = minimum(estimates[t], distance + pseudo[t]);
    }
    if (are_squares)
        for (Index t = 0; t < p; ++t) estimates[t] *= estimates[t];
}

constexpr std::int64_t kLowerBound = 0, kUpperBound = 1;  // which one estimates the distance to a pseudo-landmark

// k leaves, each with m landmarks and p pseudo-landmarks by the triangle inequality: m + p kernel values of a row.
template <class T> class Landmarks {
  public:
    using Value = T;
    // landmarks (k, m, d); pseudo_distances (k, m, p): of pseudo-landmarks from landmarks; bounds (k,): kLowerBound or
    // kUpperBound
    Landmarks(const KernelFunction& kernel, Stack<const T> landmarks, Stack<const T> pseudo_distances,
              Span<const std::int64_t> bounds)
        : kernel(kernel), n_pseudo(pseudo_distances.columns), points_(landmarks, kernel.argument()),
          pseudo_distances_(pseudo_distances.data, pseudo_distances.data + pseudo_distances.size * pseudo_distances.rows *
                                                                               pseudo_distances.columns),
          bounds_(bounds.begin(), bounds.end()) {}

    const KernelFunction kernel;
    const Index n_pseudo;

    Index n_leaves() const { return points_.packed.groups; }
    Index n_landmarks() const { return points_.packed.points; }
    Index n_values() const { return n_landmarks() + n_pseudo; }  // m + p
    Index features() const { return points_.packed.features; }   // d
    Index stride() const { return maximum(points_.packed.width, padded<T>(n_values())); }

    // Kernel arguments, products or distances, of the rows i[0] to i[R - 1] and the landmarks of a leaf: the first m
    // columns of out (R, stride()).
    template <int R, class Rows> void pairwise(const Rows& X, const Index (&i)[R], Index leaf, T* out) const {
        points_.pairwise(X, i, leaf, out, stride());
    }
    // Kernel values of these rows with the leaf's landmarks, and estimates of those with its pseudo-landmarks: the first
    // m + p columns of out (R, stride()), the others are zero; scratch of the same size
    template <int R, class Rows>
    void evaluate(const Rows& X, const Index (&i)[R], Index leaf, Span<T> out, Span<T> scratch) const {
        const Index m = n_landmarks(), n = stride();
        pairwise(X, i, leaf, out.data);
        for (int r = 0; n_pseudo && r < R; ++r) {
            const Span<T> row = out.slice(r * n, (r + 1) * n);
            const Matrix<const T> of_leaf{pseudo_distances_.data() + leaf * m * n_pseudo, m, n_pseudo, n_pseudo};
            const bool is_square = kernel.argument() == KernelArgument::squared_distance;
            bound_distances<T>(row.head(m), of_leaf, bounds_[leaf] == kLowerBound, is_square, row.data + m);
        }
        transform(kernel, out.head(R * n), scratch);
        for (int r = 0; r < R; ++r)
            for (T& beyond : out.slice(r * n + n_values(), (r + 1) * n)) beyond = T(0);
    }

  private:
    PairwisePoints<T> points_;
    std::vector<T> pseudo_distances_;
    std::vector<std::int64_t> bounds_;
};

// k groups of q linear functions of n numbers: computed together from packed weights, or one by one where that takes
// fewer operations, q (n + 16 lanes) < n width.
template <class W> class LinearMaps {
  public:
    explicit LinearMaps(Stack<const W> weights)
        : packed(weights), rows_(weights.data, weights.data + weights.size * weights.rows * weights.columns),
          is_narrow_(packed.points * (weights.columns + 16 * kFullLanes<W>) < weights.columns * packed.width) {}

    PackedPoints<W> packed;

    // totals (R, q) += the values of a group's functions; scratch (R, packed.width), aligned.
    template <int R, class T> void add(const T* const (&x)[R], Index group, W* scratch, double* totals) const {
        const Index q = packed.points, n = packed.features;
        if (!is_narrow_) {
            pairwise_rows<KernelArgument::inner_product>(x, packed[group], scratch, packed.width);
            return add_all<R>(scratch, totals);
        }
        for (int r = 0; r < R; ++r)
            for (Index j = 0; j < q; ++j) totals[r * q + j] += inner_product_in<W>(row(group, j), x[r], n);
    }
    template <int R> void add(Matrix<const W> X, const Index (&i)[R], Index group, W* scratch, double* totals) const {
        const W* x[R];
        for (int r = 0; r < R; ++r) x[r] = X[i[r]].data;
        add(x, group, scratch, totals);
    }
    template <int R>
    void add(const CSR<W>& X, const Index (&i)[R], Index group, W* scratch, double* totals) const {
        for (int r = 0; r < R; ++r)
            pairwise_sparse<KernelArgument::inner_product>(X.values(i[r]), X.columns_of(i[r]), packed[group], Span<const W>{},
                                              scratch + r * packed.width);
        add_all<R>(scratch, totals);
    }
    const W* row(Index group, Index j) const { return rows_.data() + (group * packed.points + j) * packed.features; }

  private:
    std::vector<W> rows_;
    bool is_narrow_;

    template <int R> void add_all(const W* scratch, double* totals) const {
        for (int r = 0; r < R; ++r)
            for (Index j = 0; j < packed.points; ++j) totals[r * packed.points + j] += scratch[r * packed.width + j];
    }
};

// Scratch for the decision values of a block of rows, four rows at a time.
template <class T> struct NystroemScratch {
    AlignedArray<T> distances, values, parts, powers, linear;
    AlignedArray<double> outputs, totals;
    std::vector<Index> ends, leaf, order;  // of rows: see group_by_leaf
};

// Decision functions of q machines in each of k leaves: <coef, f> + <f, P f> + <slope, x> + intercept, with the kernel
// values f (m + p,) of the leaf; P is lower triangular, zero for pseudo-landmarks.
template <class T> class NystroemMachine {
  public:
    using Value = T;
    // coef (k, q, m + p); products (k q, m, m): P, only their lower triangles are read, or (k q, 0, 0); slopes (k, q, d) or
    // (k, 0, d); intercept (k, q)
    NystroemMachine(std::shared_ptr<const Tree<T>> tree, std::shared_ptr<const Landmarks<T>> landmarks,
                    Stack<const double> coef, Stack<const T> products, Stack<const T> slopes, Matrix<const double> intercept)
        : tree_(std::move(tree)), landmarks_(std::move(landmarks)), coef_(coef), slopes_(slopes),
          products_(products.size, products.rows, products.columns),
          intercept_(intercept.data, intercept.data + intercept.rows * intercept.columns) {
        for (Index g = 0; g < products.size; ++g)
            for (Index a = 0; a < products.rows; ++a)
                for (Index b = 0; b <= a; ++b) products_.set(g, b, a, products[g][a][b]);
    }

    Index features() const { return landmarks_->features(); }
    Index n_outputs() const { return coef_.packed.points; }
    // Rows of a block: several for each leaf, so that its arrays are read once for several rows.
    Index block_rows() const { return clip<Index>(16 * landmarks_->n_leaves(), 256, 8192); }

    NystroemScratch<T> make_scratch(Index n_rows) const {
        const Index values = kTileRows * landmarks_->stride(), k = landmarks_->n_leaves();
        NystroemScratch<T> s;
        s.distances = AlignedArray<T>(kTileRows * tree_->width());
        s.values = AlignedArray<T>(values);
        s.powers = AlignedArray<T>(values);
        s.parts = AlignedArray<T>(kTileRows * products_.width);
        s.linear = AlignedArray<T>(kTileRows * slopes_.packed.width);
        s.outputs = AlignedArray<double>(kTileRows * coef_.packed.width);
        s.totals = AlignedArray<double>(kTileRows * n_outputs());
        if (is_grouped(n_rows)) s.ends.resize(k), s.leaf.resize(n_rows), s.order.resize(n_rows);
        return s;
    }

    // Given   X dense or CSR, its rows from `first` to `end`; s made for so many rows; out (n, q): rows written
    // Cost    a row: depth b + m + q inner products in d dimensions, m p + q (m + p + m^2 / 2) multiply-adds; four times
    //         as much of a row that is alone in its leaf
    // Exact   a row's values do not depend on the other rows: it is always one of four, if need be the same row
    // Twin    tests/naive/nystroem.py::route, pairwise, bound_distances, decision_value
    template <class Rows>
    void decision_values(const Rows& X, Index first, Index end, NystroemScratch<T>& s, Matrix<double> out) const {
        const FlushDenormals flush;
        if (!is_grouped(end - first)) {
            for (Index i = first; i < end; ++i) {
                Index leaf[kTileRows];
                tree_->find_leaves(X, {i, i, i, i}, s.distances.data(), leaf);
                evaluate_in_leaf<kTileRows>(X, {i, i, i, i}, leaf[0], s, out);
            }
            return;
        }
        group_by_leaf(X, first, end, s);
        Index t = 0;
        for (Index c = 0; c < landmarks_->n_leaves(); ++c) {
            const Index stop = s.ends[c], last = stop - 1;
            const auto row = [&](Index k) { return s.order[minimum(k, last)]; };
            for (; t < stop; t += kTileRows)
                evaluate_in_leaf<kTileRows>(X, {row(t), row(t + 1), row(t + 2), row(t + 3)}, c, s, out);
            t = stop;
        }
    }

  private:
    std::shared_ptr<const Tree<T>> tree_;
    std::shared_ptr<const Landmarks<T>> landmarks_;
    LinearMaps<double> coef_;
    LinearMaps<T> slopes_;
    PackedPoints<T> products_;  // column a of group (leaf, machine): row a of P
    std::vector<double> intercept_;

    bool is_grouped(Index n_rows) const { return n_rows >= kTileRows && n_rows >= landmarks_->n_leaves(); }

    // Sort the block's rows by leaf into `order`; those of leaf c end at ends[c].
    template <class Rows> void group_by_leaf(const Rows& X, Index first, Index end, NystroemScratch<T>& s) const {
        const Index k = landmarks_->n_leaves(), n = end - first;
        for (Index& count : s.ends) count = 0;
        for (Index i = 0; i < n; i += kTileRows) {
            const auto row = [&](Index r) { return first + minimum(i + r, n - 1); };
            Index leaf[kTileRows];
            tree_->find_leaves(X, {row(0), row(1), row(2), row(3)}, s.distances.data(), leaf);
            for (Index r = 0; r < kTileRows && i + r < n; ++r) s.leaf[i + r] = leaf[r];
        }
        for (Index i = 0; i < n; ++i) ++s.ends[s.leaf[i]];
        for (Index c = 0, begin = 0; c < k; ++c) begin += std::exchange(s.ends[c], begin);
        for (Index i = 0; i < n; ++i) s.order[s.ends[s.leaf[i]]++] = first + i;
    }

    // Write the decision values of the rows i[0] to i[R - 1], all of one leaf.
    template <int R, class Rows>
    void evaluate_in_leaf(const Rows& X, const Index (&i)[R], Index leaf, NystroemScratch<T>& s, Matrix<double> out) const {
        const Index q = n_outputs(), n = landmarks_->stride();
        double* totals = s.totals.data();
        landmarks_->evaluate(X, i, leaf, s.values.span(), s.powers.span());
        for (int r = 0; r < R; ++r)
            for (Index j = 0; j < q; ++j) totals[r * q + j] = intercept_[leaf * q + j];
        if (slopes_.packed.points) slopes_.add(X, i, leaf, s.linear.data(), totals);
        const T* f[R];
        for (int r = 0; r < R; ++r) f[r] = s.values.data() + r * n;
        if (products_.features) add_products(f, leaf, s.parts.data(), totals);
        coef_.add(f, leaf, s.outputs.data(), totals);
        for (int r = 0; r < R; ++r)
            for (Index j = 0; j < q; ++j) out[i[r]][j] = totals[r * q + j];
    }

    // totals (R, q) += <f, P f>
    template <int R> void add_products(const T* const (&f)[R], Index leaf, T* parts, double* totals) const {
        const Index q = n_outputs(), width = products_.width;
        for (Index j = 0; j < q; ++j) {
            pairwise_rows<KernelArgument::inner_product>(f, products_[leaf * q + j], parts, width, true);
            for (int r = 0; r < R; ++r) totals[r * q + j] += inner_product_in<double>(parts + r * width, f[r], width);
        }
    }
};

}  // namespace wm
