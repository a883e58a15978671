// The size of this processor level's vector registers, for loops that keep sums in them.
#pragma once
#include "span.hpp"

namespace wm {

#if defined(__AVX512F__)
constexpr Index kRegisterBytes = 64;
#elif defined(__AVX__)
constexpr Index kRegisterBytes = 32;
#else
constexpr Index kRegisterBytes = 16;
#endif

// So many numbers of type T as one value; they may stand anywhere in memory.
template <class T, Index lanes> struct RegisterOf {
    typedef T Type __attribute__((vector_size(lanes * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <class T> struct RegisterOf<T, 1> {
    using Type = T;
};
template <class T, Index lanes> using Register = typename RegisterOf<T, lanes>::Type;

}  // namespace wm
