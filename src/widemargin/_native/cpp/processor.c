/* Which x86-64 level this processor and its operating system support: chosen from before any other module is loaded.

   Compiled with WM_PROGRAM: a program whose exit status says it. CPUID is asked directly, as not every compiler brings
   what __builtin_cpu_supports needs at run time. */
#if defined(__x86_64__)
#include <cpuid.h>

struct registers {
    unsigned a, b, c, d;
};

static struct registers cpuid(unsigned leaf) {
    struct registers r = {0, 0, 0, 0};
    __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d); /* leaves them at 0 where the leaf is unknown */
    return r;
}

/* The state that the operating system saves for each thread: bits 1 and 2 with AVX, 5 to 7 with AVX-512. */
static unsigned saved_state(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

static int level(void) {
    const unsigned avx_c = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29; /* FMA, MOVBE, OSXSAVE, AVX, F16C */
    const unsigned avx2_b = 1u << 3 | 1u << 5 | 1u << 8;                         /* BMI1, AVX2, BMI2 */
    const unsigned avx512_b = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F, DQ, CD, BW, VL */
    const unsigned lzcnt_c = 1u << 5;
    const struct registers features = cpuid(7);
    if (!has(cpuid(1).c, avx_c) || !has(features.b, avx2_b) || !has(cpuid(0x80000001).c, lzcnt_c)) return 2;
    if (!has(saved_state(), 0x06)) return 2;
    return has(features.b, avx512_b) && has(saved_state(), 0xe6) ? 4 : 3;
}
#else
static int level(void) { return 0; }
#endif

#ifdef WM_PROGRAM
int main(void) { return level(); }
#else
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

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
#endif
