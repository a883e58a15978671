// A kernel cache: entries of rows of K with the blocks of rows that are near them, kept from one sum of rows to the next.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "span.hpp"

namespace wm {

// Of a matrix of m rows and of blocks of `width` columns, in given memory, from its first cache line on; no row is removed.
template <class T> class EntryCache {
  public:
    EntryCache(Index m, Index n_blocks, Index width, Span<unsigned char> memory)
        : n_blocks_(n_blocks), width_(width), free_(memory.data), n_free_(static_cast<std::size_t>(memory.size)), places_(m),
          entries_(m) {
        void* first = free_;
        if (std::align(kCacheLine, 1, first, n_free_) != nullptr) free_ = static_cast<unsigned char*>(first);
        else n_free_ = 0;
    }

    bool has(Index row) const { return places_[row] != nullptr; }
    bool is_open() const { return is_open_; }  // whether rows may be added; a closed one may be read by several threads
    void close() { is_open_ = false; }

    // The row's entries with a block; null where that is far. The row must be there.
    T* entries(Index row, Index block) const {
        const std::int32_t place = places_[row][block];
        return place < 0 ? nullptr : entries_[row] + place * width_;
    }

    // Take memory for a row's entries with the blocks near it, which the caller then writes. A row without room closes the
    // cache.
    template <class IsNear> void add(Index row, const IsNear& is_near) {
        Index n_near = 0;
        for (Index block = 0; block < n_blocks_; ++block) n_near += is_near(block);
        const auto n_entries = static_cast<std::size_t>(n_near * width_) * sizeof(T);  // whole cache lines
        const auto needed = n_entries + static_cast<std::size_t>(n_blocks_) * sizeof(std::int32_t);
        if (needed > n_free_) return close();
        places_[row].reset(new std::int32_t[n_blocks_]);  // counted, but not in the memory: others could write to that
        entries_[row] = reinterpret_cast<T*>(free_);
        free_ += n_entries, n_free_ -= needed;
        for (Index block = 0, place = 0; block < n_blocks_; ++block)
            places_[row][block] = is_near(block) ? static_cast<std::int32_t>(place++) : -1;
    }

  private:
    Index n_blocks_, width_;
    unsigned char* free_;
    std::size_t n_free_;
    bool is_open_ = true;
    std::vector<std::unique_ptr<std::int32_t[]>> places_;  // of each row: where its entries with a block are, -1: far
    std::vector<T*> entries_;
};

}  // namespace wm
