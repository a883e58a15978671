// Numbers that one vector register holds, for loops that keep sums in registers.
#pragma once
#include "span.hpp"

namespace wm {

#if defined(__AVX512F__)
constexpr Index kPackBytes = 64;  // of a register of this processor level
#elif defined(__AVX__)
constexpr Index kPackBytes = 32;
#else
constexpr Index kPackBytes = 16;
#endif

// n numbers of type T, which may stand anywhere in memory.
template <class T, Index n> struct PackOf {
    typedef T Type __attribute__((vector_size(n * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <class T> struct PackOf<T, 1> {
    using Type = T;
};
template <class T, Index n> using Pack = typename PackOf<T, n>::Type;

}  // namespace wm
