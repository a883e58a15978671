/* Which x86-64 level this processor and its operating system support: chosen from before any other module is loaded. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

static int level(void) {
#if defined(__x86_64__) || defined(_M_X64)
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
          __builtin_cpu_supports("fma")))
        return 2;
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl")))
        return 3;
    return 4;
#else
    return 0;
#endif
}

static PyObject *x86_64_level(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLong(level());
}

static PyMethodDef methods[] = {
    {"x86_64_level", x86_64_level, METH_NOARGS, "2, 3 or 4 for x86-64-v2, v3, v4; 0 on other processors."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_processor", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__processor(void) { return PyModule_Create(&definition); }
