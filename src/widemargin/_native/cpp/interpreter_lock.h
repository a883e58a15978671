/* PyEval_RestoreThread and PyGILState_Ensure, in which a thread sleeps for ever instead of being ended with the interpreter. */
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif
void wm_restore_thread(PyThreadState* state);
PyGILState_STATE wm_ensure_state(void);
#ifdef __cplusplus
}
#endif
