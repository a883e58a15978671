// Entries of an RBF kernel matrix K computed from short rows instead of read: a working set's tile, and sums of rows of K.
//
// The q entries of a tile's row are in q cache lines of K: where K is larger than the caches and rows are short, a kernel
// value takes a fifth of the time of a read. In a sum of rows of K it takes about twice the time of a read, but no K has
// to be written first.
#pragma once
#include <algorithm>

#include "row_products.hpp"
#include "scratch.hpp"
#include "tile_qp.hpp"
#include "transpose.hpp"

namespace wm {

// The rows X (m, d) whose RBF kernel matrix is K (m, m), and a copy of up to q chosen ones: those of a working set, or
// those whose dual variables it changed.
class ComputedEntries {
  public:
    using Rows = RBFRows<Matrix<const float>>;
    static constexpr Index kTileColumns = ProductScratch<float>::width;  // of a block of a tile
    static constexpr Index kSumColumns = 256;                            // of a block of sums

    ComputedEntries(const Rows& all, double gamma, Index size, Index n_threads)
        : all_(all), gamma_(gamma), chosen_(size * all.rows.columns), chosen_squares_(size),
          scratches_(n_threads, [&] { return ProductScratch<float>(kTileColumns, all.rows.columns); }) {}

    const void* source() const { return all_.rows.data; }

    void choose(Span<const Index> rows) {
        n_ = rows.size;
        for (Index i = 0; i < n_; ++i) {
            std::copy_n(all_.rows[rows[i]].data, all_.rows.columns, chosen_.data() + i * all_.rows.columns);
            chosen_squares_[i] = all_.squares[rows[i]];
        }
    }

    Index n_tile_blocks() const { return count_blocks(n_, kTileColumns); }

    // Write the kernel values of the chosen rows from n_kept on, < n, with a block of the chosen rows (columns of the
    // tile); those with kept rows are mirrored.
    void fill_tile_block(Index block, Index n_kept, const Tile<float>& tile) {
        const Index first = block * kTileColumns, end = minimum(first + kTileColumns, n_);
        float* const into = tile.Q[n_kept].data;
        const Matrix<float> out{into + first, n_ - n_kept, end - first, tile.Q.stride};
        scratches_.with_one([&](auto& scratch) { rbf_matrix(chosen(n_kept, n_), chosen(first, end), gamma_, scratch, out); });
        if (first < n_kept) {
            const Matrix<const float> old{into + first, out.rows, minimum(end, n_kept) - first, tile.Q.stride};
            copy_transposed(old, Matrix<float>{tile.Q[first].data + n_kept, old.columns, old.rows, tile.Q.stride});
        }
        if (end == n_)
            for (Index i = n_kept; i < n_; ++i) std::fill(tile.Q[i].data + n_, tile.Q[i].data + tile.extent, 0.0f);
    }

    // f += coef' K[rows] for the chosen rows, in one block of columns.
    void add_rows(Span<const double> coef, Span<double> f, Index block) {
        const Index first = block * kSumColumns, end = minimum(first + kSumColumns, f.size);
        const Rows columns{all_.rows.slice(first, end), all_.squares.slice(first, end)};
        const Matrix<double> out{f.data + first, 1, end - first, end - first};
        scratches_.with_one([&](auto& scratch) {
            add_rbf_product(chosen(0, n_), Matrix<const double>{coef.data, 1, n_, n_}, columns, gamma_, scratch, out);
        });
    }

  private:
    Rows chosen(Index first, Index end) const {
        const Index d = all_.rows.columns;
        return {{chosen_.data() + first * d, end - first, d, d}, chosen_squares_.span().slice(first, end)};
    }

    Rows all_;
    double gamma_;
    AlignedArray<float> chosen_;  // (q, d)
    AlignedArray<double> chosen_squares_;
    ScratchPool<ProductScratch<float>> scratches_;
    Index n_ = 0;
};

}  // namespace wm
