// Threads of a team, and Python's signal handlers, in code that does not hold the interpreter's lock.
#pragma once
#include <nanobind/nanobind.h>

#include "interpreter_lock.hpp"
#include "row_blocks.hpp"
#include "team.hpp"

namespace wm {

namespace nb = nanobind;

// Runs Python's signal handlers every 20 ms, in code that does not hold the interpreter's lock. Python runs them in the
// main thread only. An exception that they raise (KeyboardInterrupt) is kept until `rethrow`.
class SignalHandlers {
  public:
    // Whether no handler has raised an exception.
    bool operator()() {
        const std::int64_t now = nanoseconds_now();
        if (now < next_check_ || has_error_) return !has_error_;
        next_check_ = now + kInterval;
        LockHeld lock;
        return !(has_error_ = PyErr_CheckSignals() != 0);
    }
    void rethrow() const {
        if (!has_error_) return;
        LockHeld lock;
        throw nb::python_error();
    }

  private:
    static constexpr std::int64_t kInterval = 20'000'000;  // nanoseconds
    std::int64_t next_check_ = nanoseconds_now() + kInterval;
    bool has_error_ = false;
};

// compute(go_on) in a caller that does not hold the interpreter's lock; go_on() is whether to continue: false once the team
// was stopped, or a signal handler has raised an exception, which is raised in place of Stopped.
template <class Compute> auto run_until_stopped(const Team& team, const Compute& compute) {
    SignalHandlers run_signal_handlers;
    try {
        return compute([&] { return team.may_go_on() && run_signal_handlers(); });
    } catch (const Stopped&) {
        run_signal_handlers.rethrow();
        throw;
    }
}

// Team::for_each_block for a caller that does not hold the interpreter's lock; an exception of a signal handler ends
// the computation before its next block.
template <class Visit> void for_each_block(Team& team, Index n_blocks, const Visit& visit) {
    run_until_stopped(team, [&](const auto& go_on) { team.for_each_block(n_blocks, visit, go_on); });
}

// The same as a function of the blocks: run(n_blocks, visit). It is static so that functions that are instantiated with its
// type are local to their file: GCC then inlines those with one caller, which vectorises their loops.
[[maybe_unused]] static auto run_in(Team& team) {
    return [&team](Index n_blocks, const auto& visit) { for_each_block(team, n_blocks, visit); };
}

// A tuple of the k sums over n rows of what visit(block) returns for each block, without the interpreter's lock.
template <std::size_t k, class Visit> auto sum_row_blocks(Team& team, Index n, const Visit& visit) {
    LockReleased unlocked;
    return std::tuple_cat(
        sum_blocks<k>(count_row_blocks(n), run_in(team), [&](Index block) { return visit(RowBlock(block, n)); }));
}

}  // namespace wm
