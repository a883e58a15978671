// Blocks of rows, and lists of what is found in them.
//
// Blocks depend on the number of rows alone; their sums and lists are joined in their order, so that results do not
// depend on the threads.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <type_traits>
#include <vector>

#include "span.hpp"

namespace wm {

constexpr Index kBlockRows = Index(1) << 14;  // fewer take less time than to hand them to a thread
constexpr Index kGroup = 64;                  // rows whose bits are in one word

inline Index count_row_blocks(Index n) { return count_blocks(n, kBlockRows); }

// The block's number, and which of n rows it has.
struct RowBlock {
    Index number, first, end;
    RowBlock(Index block, Index n) : number(block), first(block * kBlockRows), end(least(n, first + kBlockRows)) {}

    // The block's part of what there is of each row.
    template <class T> Span<T> of(Span<T> rows) const { return rows.slice(first, end); }
};

template <std::size_t k> using Sums = std::array<double, k>;

// 1 << j for j < 64: a load, where processors lack shifts by different numbers of bits
struct WordBits {
    std::uint64_t at[kGroup];
    constexpr WordBits() : at() {
        for (Index j = 0; j < kGroup; ++j) at[j] = std::uint64_t(1) << j;
    }
};
inline constexpr WordBits kBits;

// Some rows of a block: a bit for each.
class RowMask {
  public:
    // Let set_word(first, count) return the bits of each group of `count` rows from `first` on; count is a constant,
    // which makes for vectorised loops, for all groups but a last one that is not full.
    template <class SetWord> RowMask(Index n, const SetWord& set_word) : n_words_(count_blocks(n, kGroup)) {
        Index word = 0;
        for (; (word + 1) * kGroup <= n; ++word)
            words_[word] = set_word(word * kGroup, std::integral_constant<Index, kGroup>());
        if (word < n_words_) words_[word] = set_word(word * kGroup, n - word * kGroup);
    }
    Index count() const {
        Index total = 0;
        for (Index word = 0; word < n_words_; ++word) total += __builtin_popcountll(words_[word]);
        return total;
    }
    // Call visit(i) for each row of the mask, in ascending order.
    template <class Visit> void for_each(const Visit& visit) const {
        for (Index word = 0; word < n_words_; ++word)
            for (std::uint64_t left = words_[word]; left != 0; left &= left - 1)
                visit(word * kGroup + __builtin_ctzll(left));
    }

  private:
    Index n_words_;
    std::uint64_t words_[kBlockRows / kGroup];
};

// Lists of entries, one for each block of rows, at most one entry for each row. Blocks come in any order.
template <class Entry> class BlockLists {
  public:
    explicit BlockLists(Index n) : room_(new Entry[n]), lists_(count_row_blocks(n)) {}

    // Uninitialised room for at most `count` entries of one block, for its thread alone.
    Span<Entry> reserve(Index count) { return {room_.get() + reserved_.fetch_add(count, std::memory_order_relaxed), count}; }
    void set(Index block, Span<const Entry> list) { lists_[block] = list; }

    Index size() const {
        Index total = 0;
        for (const Span<const Entry>& list : lists_) total += list.size;
        return total;
    }
    // Call visit(k, entry) with the k-th entry, in the order of the blocks.
    template <class Visit> void for_each(const Visit& visit) const {
        Index k = 0;
        for (const Span<const Entry>& list : lists_)
            for (const Entry& entry : list) visit(k++, entry);
    }

  private:
    std::unique_ptr<Entry[]> room_;  // for all rows; of its memory no more is touched than is reserved
    std::vector<Span<const Entry>> lists_;
    std::atomic<Index> reserved_{0};
};

}  // namespace wm
