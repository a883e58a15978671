// Arrays that begin at a cache line: a register load across two lines takes two reads.
#pragma once
#include <cstdlib>
#include <memory>
#include <new>

#include "span.hpp"

namespace wm {

// `size` zeros, of a type whose zero is all bytes zero; pages that are never written to take no memory.
template <class T> class AlignedArray {
  public:
    AlignedArray() = default;
    explicit AlignedArray(Index size) : memory_(allocate(size)), data_(align(memory_.get())), size_(size) {}

    T* data() { return data_; }
    const T* data() const { return data_; }
    Index size() const { return size_; }
    T& operator[](Index i) { return span()[i]; }
    Span<T> span() { return {data_, size_}; }
    Span<const T> span() const { return {data_, size_}; }

  private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };

    std::unique_ptr<void, Free> memory_;
    T* data_ = nullptr;
    Index size_ = 0;

    static void* allocate(Index size) {
        void* memory = std::calloc(static_cast<std::size_t>(size) + (kCacheLine + sizeof(T) - 1) / sizeof(T), sizeof(T));
        if (memory == nullptr) throw std::bad_alloc();
        return memory;
    }
    static T* align(void* memory) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        return reinterpret_cast<T*>((address + kCacheLine - 1) / kCacheLine * kCacheLine);
    }
};

}  // namespace wm
