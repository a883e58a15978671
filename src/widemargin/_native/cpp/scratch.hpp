// Memory for intermediate results: kept between calls, where fresh pages would take longer than what is computed in them,
// or a piece for each thread.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "aligned.hpp"

namespace wm {

// One array, kept between calls. Of several threads that take it at once one gets it, the others allocate their own. No
// thread waits for the mutex: in a forked child its owner may be missing.
class KeptScratch {
  public:
    std::unique_ptr<AlignedArray<double>> take() {
        std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) return nullptr;
        return std::move(kept_);
    }
    void give_back(std::unique_ptr<AlignedArray<double>>& numbers) {
        std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (lock.owns_lock()) kept_.swap(numbers);
    }

  private:
    std::mutex mutex_;
    std::unique_ptr<AlignedArray<double>> kept_;
};

// At least `size` numbers of any value: the array of `owner`, given back at the end of this object's life.
class Borrowed {
  public:
    Borrowed(KeptScratch& owner, Index size) : owner_(owner), memory_(owner.take()) {
        if (memory_ && memory_->size() >= size) return;
        memory_.reset();  // before the allocation: less memory at the peak
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

// Scratch of n threads, made before they begin: `with_one` lends one that no other thread uses.
template <class Scratch> class ScratchPool {
  public:
    template <class Make> ScratchPool(Index n, const Make& make) : is_taken_(n) {
        all_.reserve(n);
        for (Index i = 0; i < n; ++i) all_.push_back(make());
    }
    template <class Use> void with_one(const Use& use) {
        for (std::size_t i = 0;; i = (i + 1) % all_.size()) {
            if (is_taken_[i].exchange(true, std::memory_order_acquire)) continue;
            use(all_[i]);
            return is_taken_[i].store(false, std::memory_order_release);
        }
    }

  private:
    std::vector<Scratch> all_;
    std::vector<std::atomic<bool>> is_taken_;
};

}  // namespace wm
