// Blocks of consecutive rows, sums over blocks, and the rows that a pass selects: as masks or lists.
//
// Blocks depend on the number of rows only, and sums and lists are joined in the order of the blocks: results do not
// depend on the number of threads.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "span.hpp"

namespace wm {

constexpr Index kBlockRows = Index(1) << 14;  // smaller blocks take less time than the start of a thread on them
constexpr Index kWordRows = 64;               // of a mask, one bit each in a word

inline Index count_row_blocks(Index n) { return count_blocks(n, kBlockRows); }

// Block `number` of n rows: rows [first, end).
struct RowBlock {
    Index number, first, end;
    RowBlock(Index block, Index n) : number(block), first(block * kBlockRows), end(minimum(n, first + kBlockRows)) {}

    // The block's part of a vector (n,).
    template <class T> Span<T> of(Span<T> rows) const { return rows.slice(first, end); }
};

template <std::size_t k> using Sums = std::array<double, k>;

// The sums over n blocks of the k numbers that visit(block) returns, added in the order of the blocks. run(n, visit)
// calls visit(block) for each block, in any order.
template <std::size_t k, class Run, class Visit> Sums<k> sum_blocks(Index n, const Run& run, const Visit& visit) {
    std::vector<Sums<k>> parts(n);
    run(n, [&](Index block) { parts[block] = visit(block); });
    Sums<k> totals{};
    for (const Sums<k>& part : parts)
        for (std::size_t i = 0; i < k; ++i) totals[i] += part[i];
    return totals;
}

// Table of 1 << j, j < 64: below AVX2 there are no vector shifts by different numbers of bits
struct WordBits {
    std::uint64_t at[kWordRows];
    constexpr WordBits() : at() {
        for (Index j = 0; j < kWordRows; ++j) at[j] = std::uint64_t(1) << j;
    }
};
inline constexpr WordBits kBits;

// A subset of the rows of a block, one bit a row.
class RowMask {
  public:
    // set_word(first, count) returns the bits of the rows [first, first + count). For full words count is a compile-time
    // constant, so that the loop over them is vectorised.
    template <class SetWord> RowMask(Index n, const SetWord& set_word) : n_words_(count_blocks(n, kWordRows)) {
        Index word = 0;
        for (; (word + 1) * kWordRows <= n; ++word)
            words_[word] = set_word(word * kWordRows, std::integral_constant<Index, kWordRows>());
        if (word < n_words_) words_[word] = set_word(word * kWordRows, n - word * kWordRows);
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
                visit(word * kWordRows + __builtin_ctzll(left));
    }

  private:
    Index n_words_;
    std::uint64_t words_[kBlockRows / kWordRows];
};

// One list of entries for each block of rows, at most one entry a row. Blocks may be set in any order, by any thread.
template <class Entry> class BlockLists {
  public:
    explicit BlockLists(Index n) : entries_(new Entry[n]), lists_(count_row_blocks(n)) {}

    // Uninitialised memory for at most `count` entries of one block.
    Span<Entry> reserve(Index count) {
        return {entries_.get() + reserved_.fetch_add(count, std::memory_order_relaxed), count};
    }
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
    std::unique_ptr<Entry[]> entries_;  // (n,), uninitialised: only the pages of reserved entries are ever touched
    std::vector<Span<const Entry>> lists_;
    std::atomic<Index> reserved_{0};
};

}  // namespace wm
