// The interpreter's lock, released or held for a scope.
#pragma once
#include <nanobind/nanobind.h>

#include "interpreter_lock.h"

namespace wm {

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
    LockHeld() : state_(wm_ensure_state()) {}
    ~LockHeld() { PyGILState_Release(state_); }
    LockHeld(const LockHeld&) = delete;
    LockHeld& operator=(const LockHeld&) = delete;

  private:
    PyGILState_STATE state_;
};

}  // namespace wm
