// Memory that an object keeps between calls: fresh pages can cost more than what is computed in them.
#pragma once
#include <memory>
#include <mutex>
#include <utility>

#include "aligned.hpp"

namespace wm {

// Of several threads that ask at once, one gets what was kept, and the others get memory of their own.
class KeptScratch {
  public:
    std::unique_ptr<AlignedArray<double>> take() {
        std::lock_guard<std::mutex> mine(mutex_);
        return std::move(kept_);
    }
    void give_back(std::unique_ptr<AlignedArray<double>>& numbers) {
        std::lock_guard<std::mutex> mine(mutex_);
        kept_.swap(numbers);
    }

  private:
    std::mutex mutex_;
    std::unique_ptr<AlignedArray<double>> kept_;
};

// Numbers of any value, borrowed as long as this lives.
class Borrowed {
  public:
    Borrowed(KeptScratch& owner, Index size) : owner_(owner), memory_(owner.take()) {
        if (memory_ && memory_->size() >= size) return;
        memory_.reset();  // first, so that both are not there at a time
        memory_ = std::make_unique<AlignedArray<double>>(size);
    }
    ~Borrowed() { owner_.give_back(memory_); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    double* numbers() { return memory_->data(); }

  private:
    KeptScratch& owner_;
    std::unique_ptr<AlignedArray<double>> memory_;
};

}  // namespace wm
