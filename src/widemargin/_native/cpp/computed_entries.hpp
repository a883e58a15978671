// Entries of the matrix K of an RBF or Laplacian kernel computed from short rows instead of read: a working set's tile, and
// sums of rows of K.
//
// The q entries of a tile's row are in q cache lines of K: where K is larger than the caches and rows are short, a kernel
// value takes a fifth of the time of a read. In a sum of rows of K it takes about twice the time of a read, but no K has
// to be written first; entries between far rows can be left out, and the others kept.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "boxes.hpp"
#include "entry_cache.hpp"
#include "kernel_rows.hpp"
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
// whose dual variables it changed. squares (m,): |x|^2, of the RBF kernel; the Laplacian kernel needs none. `cache`: the
// entries that sums keep, with boxes alone; null: none.
template <class T> class ComputedEntries {
  public:
    static constexpr Index kTileColumns = ProductScratch<T>::width;  // of a block of a tile
    static constexpr Index kSumColumns = RowBoxes<T>::kRows;         // of a block of sums
    static constexpr Index kRowsTogether = 8;                        // of kept entries, whose sums are added to f at once

    ComputedEntries(Matrix<const T> all, Span<const double> squares, bool is_rbf, double gamma, const RowBoxes<T>& boxes,
                    Index size, Index n_threads, EntryCache<T>* cache = nullptr)
        : all_(all), squares_(squares), is_rbf_(is_rbf), gamma_(gamma), boxes_(boxes), cache_(cache),
          chosen_(size * all.columns), transposed_(boxes.lows.empty() ? 0 : size * all.columns),
          chosen_squares_(is_rbf ? size : 0), n_threads_(n_threads),
          scratches_(n_threads, [&] { return Scratch(all.columns, size, is_open() ? size * kSumColumns : 0); }),
          is_near_(is_open() ? size * count_blocks(all.rows, kSumColumns) : 0) {
        kept_.reserve(size), others_.reserve(size), other_coef_.reserve(size);
    }

    const void* source() const { return all_.data; }

    void choose(Span<const Index> rows) {
        n_ = rows.size;
        for (Index i = 0; i < n_; ++i) {
            std::copy_n(all_[rows[i]].data, all_.columns, chosen_.data() + i * all_.columns);
            if (is_rbf_) chosen_squares_[i] = squares_[rows[i]];
        }
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

    // f += coef' K[rows], without entries that are far. run(n, visit) calls visit(block) for n blocks of columns of f.
    template <class Run> void add_rows(Span<const Index> rows, Span<const double> coef, Span<double> f, const Run& run) {
        const Index n_blocks = count_blocks(f.size, kSumColumns);
        if (cache_ == nullptr) return add_computed(rows, coef, f, run);
        if (is_open()) fill_cache(rows, run);
        kept_.clear(), others_.clear(), other_coef_.clear();
        for (Index i = 0; i < rows.size; ++i) {
            if (cache_->has(rows[i])) kept_.emplace_back(rows[i], coef[i]);
            else others_.push_back(rows[i]), other_coef_.push_back(coef[i]);
        }
        std::sort(kept_.begin(), kept_.end());
        // Row after row, as their entries follow each other in memory; rows near each other are near the same blocks.
        const Index n_parts = minimum(n_blocks, n_threads_), n_kept = static_cast<Index>(kept_.size());
        run(n_parts, [&](Index part) {
            for (Index first = 0; first < n_kept; first += kRowsTogether)
                for (Index block = part * n_blocks / n_parts; block < (part + 1) * n_blocks / n_parts; ++block) {
                    RowSum<T> sum(column_block(f, block));
                    for (Index i = first; i < minimum(first + kRowsTogether, n_kept); ++i)
                        if (const T* const entries = cache_->entries(kept_[i].first, block)) sum.add(kept_[i].second, entries);
                    sum.finish();
                }
        });
        if (!others_.empty()) add_computed(as_span(std::as_const(others_)), as_span(std::as_const(other_coef_)), f, run);
    }

    // Compute the entries of those of the rows that the cache has not, as far as it has room.
    template <class Run> void fill_cache(Span<const Index> rows, const Run& run) {
        const Index n_blocks = count_blocks(all_.rows, kSumColumns);
        others_.clear();
        for (const Index row : rows)
            if (!cache_->has(row)) others_.push_back(row);
        if (others_.empty()) return;
        choose_for_sums(as_span(std::as_const(others_)));
        run(n_blocks, [&](Index block) {
            with_kernel([&](auto distance, auto& scratch) {
                find_near(distance, block, scratch);
                for (Index i = 0; i < n_; ++i) is_near_[i * n_blocks + block] = scratch.distances[i] <= boxes_.limit;
            });
        });
        for (Index i = 0; i < n_; ++i)
            cache_->add(others_[i], [&](Index block) { return is_near_[i * n_blocks + block] != 0; });
        run(n_blocks, [&](Index block) {
            with_kernel([&](auto distance, auto& scratch) {
                const auto entries = [&](Index i) {
                    return cache_->has(others_[i]) ? cache_->entries(others_[i], block) : nullptr;
                };
                const Index n = gather(scratch, [&](Index i) { return entries(i) != nullptr; });
                if (n == 0) return;
                const auto columns = block_of(distance, block);
                const Index width = n_rows(columns.rows);
                const Matrix<T> out{scratch.entries.data(), n, width, width};
                kernel_matrix(gathered(distance, scratch, n), columns, gamma_, scratch.products, out);
                for (Index i = 0; i < n; ++i) std::copy_n(out[i].data, width, entries(scratch.chosen[i]));
            });
        });
    }

  private:
    // Of one thread: for products; and copies of the near ones of the chosen rows, with what belongs to them.
    struct Scratch {
        ProductScratch<T> products;
        std::vector<T> rows, distances, entries;
        std::vector<double> coef, squares;
        std::vector<Index> chosen;

        Scratch(Index d, Index size, Index n_entries)
            : products(kTileColumns, d), rows(size * d), distances(size), entries(n_entries), coef(size), squares(size),
              chosen(size) {}
    };

    bool is_open() const { return cache_ != nullptr && cache_->is_open(); }

    static Span<double> column_block(Span<double> f, Index block) {
        return f.slice(block * kSumColumns, minimum((block + 1) * kSumColumns, f.size));
    }

    // `choose`, for sums: the chosen rows' features, one after the other, are compared with boxes.
    void choose_for_sums(Span<const Index> rows) {
        choose(rows);
        for (Index k = 0; k < all_.columns && transposed_.size() > 0; ++k)
            for (Index i = 0; i < n_; ++i) transposed_[k * n_ + i] = chosen_[i * all_.columns + k];
    }

    // `add_rows` with computed entries.
    template <class Run> void add_computed(Span<const Index> rows, Span<const double> coef, Span<double> f, const Run& run) {
        choose_for_sums(rows);
        run(count_blocks(f.size, kSumColumns), [&](Index block) {
            const Span<double> sums = column_block(f, block);
            const Matrix<double> out{sums.data, 1, sums.size, sums.size};
            with_kernel([&](auto distance, auto& scratch) {
                const auto columns = block_of(distance, block);
                const bool has_boxes = transposed_.size() > 0;
                if (has_boxes) find_near(distance, block, scratch);
                const Index n = has_boxes ? gather(scratch, [&](Index i) { return scratch.distances[i] <= boxes_.limit; }) : n_;
                if (n == n_) {
                    const Matrix<const double> weights{coef.data, 1, n_, n_};
                    add_kernel_product(chosen(distance, 0, n_), weights, columns, gamma_, scratch.products, out);
                } else if (n > 0) {
                    for (Index i = 0; i < n; ++i) scratch.coef[i] = coef[scratch.chosen[i]];
                    const Matrix<const double> weights{scratch.coef.data(), 1, n, n};
                    add_kernel_product(gathered(distance, scratch, n), weights, columns, gamma_, scratch.products, out);
                }
            });
        });
    }

    // Write the distances of the chosen rows to the box of a block.
    template <class Distance> void find_near(Distance, Index block, Scratch& scratch) const {
        const Index d = all_.columns;
        const Span<const T> low{boxes_.lows.data() + block * d, d}, high{boxes_.highs.data() + block * d, d};
        distances_to_box<Distance::value>(Matrix<const T>{transposed_.data(), d, n_, n_}, low, high, scratch.distances.data());
    }

    // Copy those of the chosen rows to the scratch, in their order; returns their number.
    template <class Is> Index gather(Scratch& scratch, const Is& is_wanted) const {
        const Index d = all_.columns;
        Index n = 0;
        for (Index i = 0; i < n_; ++i) {
            if (!is_wanted(i)) continue;
            std::copy_n(chosen_.data() + i * d, d, scratch.rows.data() + n * d);
            if (is_rbf_) scratch.squares[n] = chosen_squares_.data()[i];
            scratch.chosen[n++] = i;
        }
        return n;
    }
    template <class Distance> auto gathered(Distance distance, const Scratch& scratch, Index n) const {
        const Matrix<const T> rows{scratch.rows.data(), n, all_.columns, all_.columns};
        return part(distance, rows, is_rbf_ ? as_span(scratch.squares) : Span<const double>{}, 0, n);
    }
    template <class Distance> auto block_of(Distance distance, Index block) const {
        return part(distance, all_, squares_, block * kSumColumns, minimum((block + 1) * kSumColumns, all_.rows));
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
    EntryCache<T>* cache_;
    AlignedArray<T> chosen_;      // (q, d)
    AlignedArray<T> transposed_;  // (d, n) of the n chosen rows; empty without boxes
    AlignedArray<double> chosen_squares_;
    Index n_threads_;
    ScratchPool<Scratch> scratches_;
    std::vector<unsigned char> is_near_;  // (q, blocks): whether a chosen row is near a block
    std::vector<std::pair<Index, double>> kept_;  // rows of a sum, and their coefficients
    std::vector<Index> others_;
    std::vector<double> other_coef_;
    Index n_ = 0;
};

}  // namespace wm
