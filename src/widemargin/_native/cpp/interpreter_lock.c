/* The interpreter's lock, asked for by threads that may be ended there (see interpreter_lock.hpp).

   pthread_exit runs the handlers of pthread_cleanup_push, which in C are reached by a jump, before any frame of C++ is
   unwound: Clang's C++ runtime, which a build without a compiler has, cannot be unwound by the C library's. */
#include "interpreter_lock.h"

#ifdef _WIN32
void wm_restore_thread(PyThreadState* state) { PyEval_RestoreThread(state); }
PyGILState_STATE wm_ensure_state(void) { return PyGILState_Ensure(); }
#else
#include <pthread.h>
#include <unistd.h>

static void sleep_for_ever(void* unused) {
    (void)unused;
    for (;;) sleep(3600);
}

void wm_restore_thread(PyThreadState* state) {
    pthread_cleanup_push(sleep_for_ever, NULL);
    PyEval_RestoreThread(state);
    pthread_cleanup_pop(0);
}

PyGILState_STATE wm_ensure_state(void) {
    PyGILState_STATE state;
    pthread_cleanup_push(sleep_for_ever, NULL);
    state = PyGILState_Ensure();
    pthread_cleanup_pop(0);
    return state;
}
#endif
