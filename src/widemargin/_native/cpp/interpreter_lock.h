/* PyEval_RestoreThread, PyGILState_Ensure and function(first, second), in which a thread sleeps for ever instead of being
   ended with the interpreter. */
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif
void wm_restore_thread(PyThreadState* state);
PyGILState_STATE wm_ensure_state(void);
PyObject* wm_call(PyObject* function, PyObject* first, PyObject* second); /* a new reference, or NULL and an error */
#ifdef __cplusplus
}
#endif
