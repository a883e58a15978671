// Memory that an object keeps between calls: fresh pages can cost more than what is computed in them.
#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include "span.hpp"

namespace wm {

// Of several threads that ask at once, one gets what was kept, and the others get memory of their own.
class KeptScratch {
  public:
    std::vector<double> take() {
        std::lock_guard<std::mutex> mine(mutex_);
        return std::move(kept_);
    }
    void give_back(std::vector<double>& numbers) {
        std::lock_guard<std::mutex> mine(mutex_);
        kept_.swap(numbers);
    }

  private:
    std::mutex mutex_;
    std::vector<double> kept_;
};

// Numbers of any value, borrowed as long as this lives; they begin a cache line.
class Borrowed {
  public:
    Borrowed(KeptScratch& owner, Index size) : owner_(owner), memory_(owner.take()) {
        const auto wanted = static_cast<std::size_t>(size) + kCacheLine / sizeof(double);
        if (memory_.size() >= wanted) return;
        memory_ = std::vector<double>();  // first, so that both are not there at a time
        memory_.resize(wanted);
    }
    ~Borrowed() { owner_.give_back(memory_); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    double* numbers() {
        const auto past_line = reinterpret_cast<std::uintptr_t>(memory_.data()) % kCacheLine;
        return memory_.data() + (past_line ? (kCacheLine - past_line) / sizeof(double) : 0);
    }

  private:
    KeptScratch& owner_;
    std::vector<double> memory_;
};

}  // namespace wm
