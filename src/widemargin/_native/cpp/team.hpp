// Threads that share out the blocks of one computation.
//
// A team is the calling thread and n_threads - 1 helper threads. Each claims its next block from one atomic counter.
// Latency of a call on helpers that spin: about a microsecond.
//
//   - A helper spins for about a millisecond after its last block, where there is a core for each thread, then sleeps.
//   - The caller waits for at most some 10 microseconds until a spinning helper has begun: the scheduler may have put
//     both threads on one core. It does not wait for a sleeping helper, which may find no blocks left when it wakes up.
//   - While one thread computes with the team, a second caller computes its blocks alone.
//   - After a fork the child starts its own helpers, and waits for no mutex that a thread of the parent has locked.
//   - Where the system refuses another thread, the team takes half of those that it grants.
//   - `stop` and `stop_at` end a computation before its next block: `Stopped` is thrown when all threads have left it.
//
// Functions that run in helpers must not throw: memory is allocated and arguments are checked before.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "span.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define WM_PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define WM_PAUSE() asm volatile("yield")
#else
#define WM_PAUSE() std::this_thread::yield()
#endif

namespace wm {

using Clock = std::chrono::steady_clock;

inline std::int64_t nanoseconds_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// Number of forks between the process that loaded the module and this one.
inline std::atomic<int> fork_count{0};

// Thrown by a team's functions when they were stopped before the last block.
struct Stopped : std::exception {
    const char* what() const noexcept override { return "stopped before the last block"; }
};

class Team {
  public:
    // is_spinning: whether helpers spin between calls; for teams with a core for each thread
    explicit Team(int n_threads, bool is_spinning = true) : n_threads_(n_threads), is_spinning_(is_spinning) { start(); }
    ~Team() { close(); }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int n_threads() const { return n_threads_; }

    // Until `resume`, every computation ends before its next block.
    void stop() { stop_time_.store(0, std::memory_order_relaxed); }
    // The same from a time on, in nanoseconds of the steady clock.
    void stop_at(std::int64_t time) { stop_time_.store(time, std::memory_order_relaxed); }
    void resume() { stop_time_.store(kNever, std::memory_order_relaxed); }
    bool may_go_on() const { return is_before(stop_time_); }

    // End the helpers; from then on the caller computes alone.
    void close() {
        std::unique_lock<std::mutex> lock(call_mutex_, std::defer_lock);
        if (is_of_parent()) static_cast<void>(helpers_.release());
        else lock.lock();
        n_threads_ = 1;
        if (!helpers_) return;
        helpers_->join();
        helpers_.reset();
    }

    // Call visit(block) once for each block in [0, n_blocks). Before each block of the calling thread, between()
    // returns whether to continue. Throws Stopped if not all blocks were visited.
    template <class Visit, class Between> void for_each_block(Index n_blocks, const Visit& visit, const Between& between) {
        if (n_blocks <= 0) return;
        const auto go_on = [&] { return may_go_on() && between(); };
        std::unique_lock<std::mutex> lock(call_mutex_, std::try_to_lock);
        if (!lock.owns_lock() || n_threads_ == 1 || n_blocks == 1) {
            for (Index block = 0; block < n_blocks; ++block) {
                if (!go_on()) throw Stopped();
                visit(block);
            }
            return;
        }
        if (is_of_parent()) restart_after_fork();
        Job<Visit> job{visit, stop_time_, n_blocks};
        helpers_->open(job, is_spinning_);
        bool is_stopped = false;
        for (Index block; (block = job.claim()) < n_blocks;) {
            if (!go_on()) {
                is_stopped = true;
                job.cancel();
                break;
            }
            visit(block);
        }
        helpers_->close();
        if (is_stopped || job.is_cancelled.load()) throw Stopped();
    }
    template <class Visit> void for_each_block(Index n_blocks, const Visit& visit) {
        for_each_block(n_blocks, visit, [] { return true; });
    }

  private:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    static constexpr int kPolls = 20000;      // polls of a spinning helper: about a millisecond
    static constexpr int kFirstPolls = 1000;  // polls of the caller for the start of a spinning helper
    static constexpr int kLastPolls = 4000;   // polls of the caller for the helpers' end, before it yields its core

    struct AnyJob {
        virtual void work() = 0;
    };

    template <class Visit> struct Job final : AnyJob {
        const Visit& visit;
        const std::atomic<std::int64_t>& stop_time;
        const Index n_blocks;
        alignas(kCacheLine) std::atomic<Index> next{0};
        std::atomic<bool> is_cancelled{false};

        Job(const Visit& v, const std::atomic<std::int64_t>& t, Index n) : visit(v), stop_time(t), n_blocks(n) {}
        Index claim() { return next.fetch_add(1, std::memory_order_relaxed); }
        void cancel() {
            is_cancelled.store(true, std::memory_order_relaxed);
            next.store(n_blocks, std::memory_order_relaxed);
        }
        void work() override {
            for (Index block; (block = claim()) < n_blocks;) {
                if (!is_before(stop_time)) return cancel();
                visit(block);
            }
        }
    };

    // The helper threads and what they share with the caller.
    struct Helpers {
        std::vector<std::thread> threads;
        alignas(kCacheLine) std::atomic<std::uint64_t> epoch{0};  // number of calls: helpers wait for the next
        alignas(kCacheLine) std::atomic<AnyJob*> job{nullptr};
        alignas(kCacheLine) std::atomic<int> n_active{0};
        std::atomic<int> n_asleep{0};
        std::atomic<bool> is_over{false}, may_spin{true};
        std::mutex mutex;
        std::condition_variable wake;

        void open(AnyJob& next_job, bool spins) {
            may_spin.store(spins, std::memory_order_relaxed);
            const bool has_spinner = n_asleep.load() < static_cast<int>(threads.size());
            job.store(&next_job);
            epoch.fetch_add(1);
            if (n_asleep.load() > 0) {
                std::lock_guard<std::mutex> lock(mutex);
                wake.notify_all();
            }
            for (int poll = 0; has_spinner && spins && poll < kFirstPolls && n_active.load() == 0; ++poll) WM_PAUSE();
        }
        void close() {
            job.store(nullptr);  // helpers that arrive later find no job; the others are counted as active
            for (int poll = 0; n_active.load() != 0; ++poll) {
                if (poll < kLastPolls) WM_PAUSE();
                else std::this_thread::yield();
            }
        }
        void run_helper() {
            std::uint64_t seen = 0;
            while (wait_for_call(seen)) {
                n_active.fetch_add(1);  // before the load: the caller withdraws the job, then waits for active helpers
                if (AnyJob* current = job.load()) current->work();
                n_active.fetch_sub(1);
            }
        }
        bool wait_for_call(std::uint64_t& seen) {
            const auto has_call = [&] { return epoch.load() != seen; };
            for (int poll = 0; poll < kPolls && may_spin.load(std::memory_order_relaxed) && !has_call(); ++poll) WM_PAUSE();
            if (!has_call()) {
                std::unique_lock<std::mutex> lock(mutex);
                n_asleep.fetch_add(1);
                wake.wait(lock, has_call);
                n_asleep.fetch_sub(1);
            }
            seen = epoch.load();
            return !is_over.load();
        }
        void join() {
            is_over.store(true);
            {
                std::lock_guard<std::mutex> lock(mutex);
                epoch.fetch_add(1);
            }
            wake.notify_all();
            for (std::thread& thread : threads) thread.join();
        }
    };

    int n_threads_;
    const bool is_spinning_;
    std::atomic<std::int64_t> stop_time_{kNever};
    std::mutex call_mutex_;
    std::unique_ptr<Helpers> helpers_;  // none in a team of one
    std::atomic<int> fork_count_at_start_{0};

    static bool is_before(const std::atomic<std::int64_t>& stop_time) {
        const std::int64_t time = stop_time.load(std::memory_order_relaxed);
        return time == kNever || (time != 0 && nanoseconds_now() < time);
    }

    // Start the helpers; where the system refuses one, half of those that it grants, as others need some too: libraries
    // of OpenMP end the process where they cannot start theirs.
    void start() noexcept {
        fork_count_at_start_.store(fork_count.load());
        while (!start_helpers()) {
            const int n_started = helpers_ ? static_cast<int>(helpers_->threads.size()) : 0;
            if (helpers_) helpers_->join();
            helpers_.reset();
            n_threads_ = 1 + n_started / 2;
        }
    }
    // Whether all could be started.
    bool start_helpers() noexcept {
        if (n_threads_ == 1) return true;
        try {
            helpers_ = std::make_unique<Helpers>();
            Helpers* helpers = helpers_.get();
            for (int i = 1; i < n_threads_; ++i) helpers->threads.emplace_back([helpers] { helpers->run_helper(); });
        } catch (const std::exception&) {  // std::system_error: no thread; std::bad_alloc: no memory
            return false;
        }
        return true;
    }
    // In a forked child, which has none of the parent's threads.
    bool is_of_parent() const { return fork_count.load(std::memory_order_relaxed) != fork_count_at_start_.load(); }
    void restart_after_fork() {
        static_cast<void>(helpers_.release());
        start();
    }
};

}  // namespace wm
