// Which x86-64 level this processor and its operating system support: chosen from before any other module is loaded.
//
// Compiled with WM_PROGRAM: a program whose exit status says it. CPUID is asked directly, as not every compiler brings
// what __builtin_cpu_supports needs at run time.
#if defined(__x86_64__)
#include <cpuid.h>

namespace {

struct Registers {
    unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf) {
    Registers r;
    __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);  // leaves zeros where the leaf is unknown
    return r;
}

// The state that the operating system saves for each thread: bits 1 and 2 with AVX, 5 to 7 with AVX-512.
unsigned saved_state() {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

bool has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

int level() {
    constexpr unsigned kAvx = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29;     // FMA, MOVBE, OSXSAVE, AVX, F16C
    constexpr unsigned kAvx2 = 1u << 3 | 1u << 5 | 1u << 8;                             // BMI1, AVX2, BMI2
    constexpr unsigned kAvx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  // F, DQ, CD, BW, VL
    constexpr unsigned kLzcnt = 1u << 5;
    const Registers features = cpuid(7);
    if (!has(cpuid(1).c, kAvx) || !has(features.b, kAvx2) || !has(cpuid(0x80000001).c, kLzcnt)) return 2;
    if (!has(saved_state(), 0x06)) return 2;
    return has(features.b, kAvx512) && has(saved_state(), 0xe6) ? 4 : 3;
}

}  // namespace
#else
static int level() { return 0; }
#endif

#ifdef WM_PROGRAM
int main() { return level(); }
#else
#ifndef WM_FREE_THREADED  // which has no stable ABI before Python 3.15
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

static PyObject* x86_64_level(PyObject*, PyObject*) { return PyLong_FromLong(level()); }

static PyMethodDef methods[] = {
    {"x86_64_level", x86_64_level, METH_NOARGS, "2, 3 or 4 for x86-64-v2, v3, v4; 0 on other processors."},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_processor", nullptr, 0, methods, nullptr, nullptr, nullptr,
                                 nullptr};

PyMODINIT_FUNC PyInit__processor() {
    PyObject* module = PyModule_Create(&definition);
#ifdef WM_FREE_THREADED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);  // else the lock comes back for all
#endif
    return module;
}
#endif
