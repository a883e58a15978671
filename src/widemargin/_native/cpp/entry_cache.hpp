// A kernel cache: entries of rows of K with the blocks of rows that are near them, kept from one sum of rows to the next.
#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "span.hpp"

namespace wm {

// Of a matrix of m rows and of blocks of `width` columns; entries take at most `capacity` bytes, and no row is removed.
template <class T> class EntryCache {
  public:
    EntryCache(Index m, Index n_blocks, Index width, double capacity)
        : n_blocks_(n_blocks), width_(width), free_bytes_(capacity), places_(m), entries_(m) {}

    bool has(Index row) const { return places_[row] != nullptr; }
    bool is_open() const { return is_open_; }  // whether rows may be added; a closed one may be read by several threads
    void close() { is_open_ = false; }

    // The row's entries with a block; null where that is far. The row must be there.
    T* entries(Index row, Index block) const {
        const std::int32_t place = places_[row][block];
        return place < 0 ? nullptr : entries_[row].get() + place * width_;
    }

    // Take memory for a row's entries with the blocks near it, which the caller then writes. A row without room closes the
    // cache.
    template <class IsNear> void add(Index row, const IsNear& is_near) {
        Index n_near = 0;
        for (Index block = 0; block < n_blocks_; ++block) n_near += is_near(block);
        const double needed = static_cast<double>(n_near * width_) * sizeof(T) + static_cast<double>(n_blocks_) * sizeof(std::int32_t);
        if (needed > free_bytes_) return close();
        std::unique_ptr<std::int32_t[]> places(new (std::nothrow) std::int32_t[n_blocks_]);
        std::unique_ptr<T[]> entries(new (std::nothrow) T[n_near * width_]);
        if (!places || !entries) return close();
        free_bytes_ -= needed;
        for (Index block = 0, place = 0; block < n_blocks_; ++block)
            places[block] = is_near(block) ? static_cast<std::int32_t>(place++) : -1;
        places_[row] = std::move(places);
        entries_[row] = std::move(entries);
    }

  private:
    Index n_blocks_, width_;
    double free_bytes_;
    bool is_open_ = true;
    std::vector<std::unique_ptr<std::int32_t[]>> places_;  // of each row: where its entries with a block are, -1: far
    std::vector<std::unique_ptr<T[]>> entries_;
};

}  // namespace wm
