/* Calls into the interpreter by threads that it may end there.

   A daemon thread may ask for the lock of an interpreter that ends. Python before 3.14 then ends the thread by
   pthread_exit, which on Linux unwinds its stack: std::terminate is called at the first noexcept function. Such a thread
   sleeps here until the process ends. pthread_exit runs the handlers of pthread_cleanup_push, which in C are reached by a
   jump, before any frame of C++ is unwound: neither Clang's C++ runtime, which a build without a compiler has, nor
   AddressSanitizer knows the unwinding of the C library. */
#include "interpreter_lock.h"

#ifdef _WIN32
#include <windows.h>
#define pthread_cleanup_push(routine, argument)
#define pthread_cleanup_pop(execute)
#define sleep Sleep
#else
#include <pthread.h>
#include <unistd.h>
#endif

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
    if (!Py_IsInitialized()) sleep_for_ever(NULL); /* an interpreter that has ended has no states to give */
    pthread_cleanup_push(sleep_for_ever, NULL);
    state = PyGILState_Ensure();
    pthread_cleanup_pop(0);
    return state;
}

PyObject* wm_call(PyObject* function, PyObject* first, PyObject* second) {
    PyObject* result;
    pthread_cleanup_push(sleep_for_ever, NULL);
    result = PyObject_CallFunctionObjArgs(function, first, second, NULL);
    pthread_cleanup_pop(0);
    return result;
}
