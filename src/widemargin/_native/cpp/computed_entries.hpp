// Entries of the matrix K of an RBF or Laplacian kernel computed from short rows instead of read: a working set's tile, and
// sums of rows of K.
//
// The q entries of a tile's row are in q cache lines of K: where K is larger than the caches and rows are short, a kernel
// value takes a fifth of the time of a read. In a sum of rows of K it takes about twice the time of a read, but no K has
// to be written first; entries between far rows can be left out.
#pragma once
#include <algorithm>

#include "boxes.hpp"
#include "scratch.hpp"
#include "tile_qp.hpp"
#include "transpose.hpp"

namespace wm {

// Boxes of consecutive rows of X (m, d), block by block; entries of rows at a larger distance than `limit` from a block's
// box are left out of sums.
template <class T> struct RowBoxes {
    static constexpr Index kRows = 256;  // of a block

    RowBoxes() = default;
    RowBoxes(Matrix<const T> X, double limit)
        : lows(count_blocks(X.rows, kRows) * X.columns, kInfinity<T>), highs(lows.size(), -kInfinity<T>), limit(limit) {
        for (Index i = 0; i < X.rows; ++i) {
            T *low = lows.data() + i / kRows * X.columns, *high = highs.data() + i / kRows * X.columns;
            for (Index k = 0; k < X.columns; ++k) low[k] = minimum(low[k], X[i][k]), high[k] = maximum(high[k], X[i][k]);
        }
    }

    std::vector<T> lows, highs;  // (blocks, d)
    double limit = kInfinity<double>;
};

// The rows X (m, d) whose kernel matrix is K (m, m), and a copy of up to q chosen ones: those of a working set, or those
// whose dual variables it changed. squares (m,): |x|^2, of the RBF kernel; the Laplacian kernel needs none.
template <class T> class ComputedEntries {
  public:
    static constexpr Index kTileColumns = ProductScratch<T>::width;  // of a block of a tile
    static constexpr Index kSumColumns = RowBoxes<T>::kRows;         // of a block of sums

    ComputedEntries(Matrix<const T> all, Span<const double> squares, bool is_rbf, double gamma, const RowBoxes<T>& boxes,
                    Index size, Index n_threads)
        : all_(all), squares_(squares), is_rbf_(is_rbf), gamma_(gamma), boxes_(boxes), chosen_(size * all.columns),
          transposed_(boxes.lows.empty() ? 0 : size * all.columns), chosen_squares_(is_rbf ? size : 0),
          scratches_(n_threads, [&] { return Scratch(kTileColumns, all.columns, size); }) {}

    const void* source() const { return all_.data; }

    void choose(Span<const Index> rows) {
        n_ = rows.size;
        for (Index i = 0; i < n_; ++i) {
            std::copy_n(all_[rows[i]].data, all_.columns, chosen_.data() + i * all_.columns);
            if (is_rbf_) chosen_squares_[i] = squares_[rows[i]];
        }
    }

    // `choose`, for `add_rows`.
    void choose_for_sums(Span<const Index> rows) {
        choose(rows);
        for (Index k = 0; k < all_.columns && transposed_.size() > 0; ++k)
            for (Index i = 0; i < n_; ++i) transposed_[k * n_ + i] = chosen_[i * all_.columns + k];
    }

    Index n_tile_blocks() const { return count_blocks(n_, kTileColumns); }

    // Write the kernel values of the chosen rows from n_kept on, < n, with a block of the chosen rows (columns of the
    // tile); those with kept rows are mirrored.
    void fill_tile_block(Index block, Index n_kept, const Tile<T>& tile) {
        const Index first = block * kTileColumns, end = minimum(first + kTileColumns, n_);
        T* const into = tile.Q[n_kept].data;
        const Matrix<T> out{into + first, n_ - n_kept, end - first, tile.Q.stride};
        with_kernel([&](auto distance, auto& scratch) {
            kernel_matrix(chosen(distance, n_kept, n_), chosen(distance, first, end), gamma_, scratch.products, out);
        });
        if (first < n_kept) {
            const Matrix<const T> old{into + first, out.rows, minimum(end, n_kept) - first, tile.Q.stride};
            copy_transposed(old, Matrix<T>{tile.Q[first].data + n_kept, old.columns, old.rows, tile.Q.stride});
        }
        if (end == n_)
            for (Index i = n_kept; i < n_; ++i) std::fill(tile.Q[i].data + n_, tile.Q[i].data + tile.extent, T(0));
    }

    // f += coef' K[rows] for the chosen rows, in one block of columns; without those that are far from its box.
    void add_rows(Span<const double> coef, Span<double> f, Index block) {
        const Index first = block * kSumColumns, end = minimum(first + kSumColumns, f.size);
        const Matrix<double> out{f.data + first, 1, end - first, end - first};
        with_kernel([&](auto distance, auto& scratch) {
            const auto columns = part(distance, all_, squares_, first, end);
            const Index n = transposed_.size() > 0 ? gather_near<decltype(distance)::value>(coef, block, scratch) : n_;
            if (n == n_) {
                const Matrix<const double> weights{coef.data, 1, n_, n_};
                add_kernel_product(chosen(distance, 0, n_), weights, columns, gamma_, scratch.products, out);
            } else if (n > 0) {
                const Matrix<const T> rows{scratch.rows.data(), n, all_.columns, all_.columns};
                const Matrix<const double> weights{scratch.coef.data(), 1, n, n};
                const auto near = part(distance, rows, is_rbf_ ? as_span(std::as_const(scratch.squares)) : Span<const double>{}, 0, n);
                add_kernel_product(near, weights, columns, gamma_, scratch.products, out);
            }
        });
    }

  private:
    // Of one thread: for products; and the near ones of the chosen rows, with their coefficients and distances.
    struct Scratch {
        ProductScratch<T> products;
        std::vector<T> rows, distances;
        std::vector<double> coef, squares;

        Scratch(Index c, Index d, Index size) : products(c, d), rows(size * d), distances(size), coef(size), squares(size) {}
    };

    // Copy the chosen rows near the box of a block to the scratch, in their order, with their coefficients.
    template <KernelArgument distance> Index gather_near(Span<const double> coef, Index block, Scratch& near) const {
        const Index d = all_.columns;
        const Span<const T> low{boxes_.lows.data() + block * d, d}, high{boxes_.highs.data() + block * d, d};
        distances_to_box<distance>(Matrix<const T>{transposed_.data(), d, n_, n_}, low, high, near.distances.data());
        Index n = 0;
        for (Index i = 0; i < n_; ++i) {
            if (!(near.distances[i] <= boxes_.limit)) continue;
            std::copy_n(chosen_.data() + i * d, d, near.rows.data() + n * d);
            if (is_rbf_) near.squares[n] = chosen_squares_.data()[i];
            near.coef[n++] = coef[i];
        }
        return n;
    }

    // Call use(distance, scratch), the kernel's distance as a compile-time constant.
    template <class Use> void with_kernel(const Use& use) {
        using A = KernelArgument;
        scratches_.with_one([&](auto& scratch) {
            if (is_rbf_) use(std::integral_constant<A, A::squared_distance>(), scratch);
            else use(std::integral_constant<A, A::l1_distance>(), scratch);
        });
    }
    // The rows first ... end - 1 of X, with their squared norms if these are needed.
    template <class Distance>
    static KernelRows<Distance::value, Matrix<const T>> part(Distance, Matrix<const T> X, Span<const double> squares,
                                                                 Index first, Index end) {
        return KernelRows<Distance::value, Matrix<const T>>{X, squares}.slice(first, end);
    }
    template <class Distance> auto chosen(Distance distance, Index first, Index end) const {
        const Matrix<const T> rows{chosen_.data(), n_, all_.columns, all_.columns};
        return part(distance, rows, chosen_squares_.span(), first, end);
    }

    Matrix<const T> all_;
    Span<const double> squares_;
    bool is_rbf_;
    double gamma_;
    const RowBoxes<T>& boxes_;
    AlignedArray<T> chosen_;      // (q, d)
    AlignedArray<T> transposed_;  // (d, n) of the n chosen rows; empty without boxes
    AlignedArray<double> chosen_squares_;
    ScratchPool<Scratch> scratches_;
    Index n_ = 0;
};

}  // namespace wm
