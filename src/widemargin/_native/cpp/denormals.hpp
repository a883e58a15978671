// Flush denormal numbers to zero in the current thread, during the life of an object.
//
// Products of small kernel values are denormal, and an operation on a denormal number takes about a hundred cycles.
#pragma once
#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace wm {

class FlushDenormals {
  public:
    FlushDenormals() : before_(get()) { set(before_ | kFlush); }
    ~FlushDenormals() { set(before_); }
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

  private:
#if defined(__x86_64__) || defined(_M_X64)
    using Control = unsigned;
    static constexpr Control kFlush = 0x8040;  // flush results to zero, take operands as zero
    static Control get() { return _mm_getcsr(); }
    static void set(Control control) { _mm_setcsr(control); }
#elif defined(__aarch64__)
    using Control = std::uint64_t;
    static constexpr Control kFlush = Control(1) << 24;
    static Control get() {
        Control control;
        asm volatile("mrs %0, fpcr" : "=r"(control));
        return control;
    }
    static void set(Control control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
#else
    using Control = int;
    static constexpr Control kFlush = 0;
    static Control get() { return 0; }
    static void set(Control) {}
#endif
    const Control before_;
};

}  // namespace wm
