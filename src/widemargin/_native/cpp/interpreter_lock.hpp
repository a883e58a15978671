// The interpreter's lock, released or held for a scope.
//
// A daemon thread may ask for the lock of an interpreter that ends. Python before 3.14 then ends the thread by
// pthread_exit, which on Linux unwinds its stack, and std::terminate is called at the first noexcept function. Here such a
// thread sleeps until the process ends (`interpreter_lock.c`). So does one that asks when the interpreter has ended, and has
// no states to give.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

#include "interpreter_lock.h"

namespace wm {

struct SleepIfUnwound {
    bool is_armed = true;
    ~SleepIfUnwound() {
        while (is_armed) std::this_thread::sleep_for(std::chrono::hours(1));
    }
};

// call(), which may ask for the lock and throws nothing. A frame of its own: no frame below it is noexcept.
template <class Call> __attribute__((noinline)) void sleep_at_interpreter_end(const Call& call) {
    SleepIfUnwound guard;
    call();
    guard.is_armed = false;
}

class LockReleased {
  public:
    LockReleased() : thread_state_(PyEval_SaveThread()) {}
    ~LockReleased() { wm_restore_thread(thread_state_); }
    LockReleased(const LockReleased&) = delete;
    LockReleased& operator=(const LockReleased&) = delete;

  private:
    PyThreadState* thread_state_;
};

class LockHeld {
  public:
    LockHeld() {
        if (!Py_IsInitialized()) SleepIfUnwound{};
        state_ = wm_ensure_state();
    }
    ~LockHeld() { PyGILState_Release(state_); }
    LockHeld(const LockHeld&) = delete;
    LockHeld& operator=(const LockHeld&) = delete;

  private:
    PyGILState_STATE state_;
};

}  // namespace wm
