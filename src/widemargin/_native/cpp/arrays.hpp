// The border between Python's arrays and compiled code: types of arguments, their views, and the checks of each call.
//
// nanobind refuses wrong dtypes, numbers of dimensions, layouts and read-only arrays for writing (TypeError); what it
// cannot know, sizes that belong together and indices, is checked here (ValueError, IndexError).
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "span.hpp"
#include "team.hpp"

namespace wm {

namespace nb = nanobind;
using namespace nb::literals;

// Arrays in C order; const T: read-only ones are welcome.
template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Array = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Array3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T> using Array4 = nb::ndarray<T, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
template <class T> using FortranArray = nb::ndarray<T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
// Rows that are contiguous, one at any distance from the next: a slice of columns of an array in C order.
template <class T> using RowsArray = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

// Each argument's annotation: an array of another dtype is refused, not converted into a copy that nobody sees.
inline auto array(const char* name) { return nb::arg(name).noconvert(); }

template <class T> Span<T> span(const Vector<T>& v) { return {v.data(), static_cast<Index>(v.shape(0))}; }
template <class T> Matrix<T> matrix(const Array<T>& a) {
    const auto columns = static_cast<Index>(a.shape(1));
    return {a.data(), static_cast<Index>(a.shape(0)), columns, columns};
}
template <class T> Stack<T> stack(const Array3<T>& a) {
    return {a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1)), static_cast<Index>(a.shape(2))};
}
template <class T> Matrix<T> rows_matrix(const RowsArray<T>& a, const char* name) {
    if (a.shape(0) > 0 && a.shape(1) > 1 && a.stride(1) != 1)
        throw nb::value_error((std::string(name) + " must have contiguous rows").c_str());
    if (a.shape(0) > 1 && a.stride(0) < static_cast<std::int64_t>(a.shape(1)))
        throw nb::value_error((std::string(name) + " must have rows that do not overlap").c_str());
    return {a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1)), a.stride(0)};
}

// That a size is what other arguments ask for.
inline void check_size(const char* name, Index size, Index wanted) {
    if (size != wanted)
        throw nb::value_error(
            (std::string(name) + " must be " + std::to_string(wanted) + ", got " + std::to_string(size)).c_str());
}
inline void check_at_least(const char* name, Index size, Index wanted) {
    if (size < wanted)
        throw nb::value_error(
            (std::string(name) + " must be at least " + std::to_string(wanted) + ", got " + std::to_string(size))
                .c_str());
}

// That all indices are in [0, n). O(size), vectorised; the message names the first that is not.
template <class I> void check_indices(const char* name, Span<const I> indices, Index n) {
    bool is_wrong = false;
    for (Index i = 0; i < indices.size; ++i) {
        const auto index = static_cast<Index>(indices.data[i]);
        is_wrong |= (index < 0) | (index >= n);
    }
    if (!is_wrong) return;
    Index i = 0;
    while (0 <= indices[i] && static_cast<Index>(indices[i]) < n) ++i;
    throw nb::index_error((std::string(name) + "[" + std::to_string(i) + "] must be in [0, " + std::to_string(n) +
                           "), got " + std::to_string(indices[i]))
                              .c_str());
}

// That two arrays share no memory: indices that were checked must not be written over while they are in use.
template <class T, class U> void check_apart(const char* name, Span<T> a, const char* other, Span<U> b) {
    const auto begin = [](const auto& x) { return reinterpret_cast<std::uintptr_t>(x.data); };
    if (a.size > 0 && b.size > 0 && begin(a) < begin(b) + b.size * sizeof(U) && begin(b) < begin(a) + a.size * sizeof(T))
        throw nb::value_error((std::string(name) + " and " + other + " must not share memory").c_str());
}

// Runs Python's signal handlers now and then, from code that has let the interpreter's lock go. They run in the main
// thread alone; what they raise (KeyboardInterrupt) is kept until `rethrow`.
class SignalHandlers {
  public:
    // Whether to go on.
    bool operator()() {
        const std::int64_t now = nanoseconds_now();
        if (now < next_look_ || has_error_) return !has_error_;
        next_look_ = now + kEvery;
        nb::gil_scoped_acquire lock;
        return !(has_error_ = PyErr_CheckSignals() != 0);
    }
    void rethrow() const {
        if (!has_error_) return;
        nb::gil_scoped_acquire lock;
        throw nb::python_error();
    }

  private:
    static constexpr std::int64_t kEvery = 20'000'000;  // nanoseconds
    std::int64_t next_look_ = nanoseconds_now() + kEvery;
    bool has_error_ = false;
};

// A team's blocks, called with the interpreter's lock let go; an exception of a signal handler ends the computation
// before its next block.
template <class Visit> void for_each_block(Team& team, Index n_blocks, const Visit& visit) {
    SignalHandlers run_signal_handlers;
    try {
        team.for_each_block(n_blocks, visit, [&] { return run_signal_handlers(); });
    } catch (const Stopped&) {
        run_signal_handlers.rethrow();
        throw;
    }
}

}  // namespace wm
