// Python's arrays as arguments of compiled functions: their types, their views, and the checks of each call.
//
// An argument Span<T>, Matrix<T> or Stack<T> is a view of an array in C order with 1, 2 or 3 dimensions, for the time of
// the call; what outlives a call keeps the Vector or Array. nanobind refuses wrong dtypes, numbers of dimensions,
// layouts, and read-only arrays that would be written to (TypeError). The functions here check sizes that depend on each
// other (ValueError) and indices (IndexError).
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <string>

#include "interpreter_lock.hpp"
#include "span.hpp"

namespace wm {

namespace nb = nanobind;
using namespace nb::literals;

// Arrays in C order; with const T, read-only ones too.
template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Array = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Array3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T> using Array4 = nb::ndarray<T, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
// Matrices whose rows are contiguous, at any distance from each other: for example some columns of an array in C order.
template <class T> using RowsArray = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

// Annotation of each array argument: another dtype is refused. Converted, it would be a copy, and results written to
// it would be lost.
inline auto array(const char* name) { return nb::arg(name).noconvert(); }

template <class T> Span<T> span(const Vector<T>& v) { return {v.data(), static_cast<Index>(v.shape(0))}; }
template <class T> Matrix<T> matrix(const Array<T>& a) {
    const auto columns = static_cast<Index>(a.shape(1));
    return {a.data(), static_cast<Index>(a.shape(0)), columns, columns};
}
template <class T> Stack<T> stack(const Array3<T>& a) {
    return {a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1)), static_cast<Index>(a.shape(2))};
}
// A matrix (r, c) without gaps between its rows, as a vector (r c,).
template <class T> Span<T> flat(Matrix<T> a) { return {a.data, a.rows * a.columns}; }

// Arrays of Python that view memory of a bound object: returned as a property, they keep the object alive.
template <class T> auto view(Span<T> v) {
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(v.data, {static_cast<std::size_t>(v.size)});
}
template <class T> auto view(Matrix<T> m) {
    return nb::ndarray<nb::numpy, T, nb::ndim<2>>(
        m.data, {static_cast<std::size_t>(m.rows), static_cast<std::size_t>(m.columns)}, {}, {m.stride, 1});
}

// ------------------------------------------------------------------------------------------------------------- checks

inline std::string text(Index n) { return std::to_string(n); }
inline std::string text(std::string_view part) { return std::string(part); }

// Raise a ValueError or an IndexError, whose message is made of strings and numbers.
template <class... Parts> [[noreturn]] void raise_value_error(const Parts&... parts) {
    throw nb::value_error((text(parts) + ...).c_str());
}
template <class... Parts> [[noreturn]] void raise_index_error(const Parts&... parts) {
    throw nb::index_error((text(parts) + ...).c_str());
}

inline void check_size(const char* name, Index size, Index wanted) {
    if (size != wanted) raise_value_error(name, " must be ", wanted, ", got ", size);
}
inline void check_at_least(const char* name, Index value, Index lowest) {
    if (value < lowest) raise_value_error(name, " must be at least ", lowest, ", got ", value);
}
inline void check_at_most(const char* name, Index value, Index highest) {
    if (value > highest) raise_value_error(name, " must be at most ", highest, ", got ", value);
}

struct Length {
    const char* name;
    Index size;
    Length(const char* n, Index s) : name(n), size(s) {}
    template <class View, class = decltype(View::size)> Length(const char* n, const View& v) : name(n), size(v.size) {}
};
// Check that all these arrays have n entries.
inline void check_lengths(Index n, std::initializer_list<Length> arrays) {
    for (const Length& array : arrays)
        if (array.size != n) check_size(("len(" + text(array.name) + ")").c_str(), array.size, n);
}
template <class T> void check_shape(const char* name, Matrix<T> array, Index rows, Index columns) {
    check_lengths(rows, {{name, array.rows}});
    if (array.columns != columns) check_size((text(name) + ".shape[1]").c_str(), array.columns, columns);
}

template <class T> Matrix<T> rows_matrix(const RowsArray<T>& a, const char* name) {
    if (a.shape(0) > 0 && a.shape(1) > 1 && a.stride(1) != 1) raise_value_error(name, " must have contiguous rows");
    if (a.shape(0) > 1 && a.stride(0) < static_cast<std::int64_t>(a.shape(1)))
        raise_value_error(name, " must have rows that do not overlap");
    return {a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1)), a.stride(0)};
}

// Check that all indices are in [0, n). O(size), vectorised; the message names the first that is not.
template <class I> void check_indices(const char* name, Span<const I> indices, Index n) {
    bool is_wrong = false;
    for (Index i = 0; i < indices.size; ++i) {
        const auto index = static_cast<Index>(indices.data[i]);
        is_wrong |= (index < 0) | (index >= n);
    }
    if (!is_wrong) return;
    Index i = 0;
    while (0 <= indices[i] && static_cast<Index>(indices[i]) < n) ++i;
    raise_index_error(name, "[", i, "] must be in [0, ", n, "), got ", static_cast<Index>(indices[i]));
}

// A copy of indices that are all in [0, n): the argument may share memory with what the call writes to.
inline std::vector<Index> checked_copy(const char* name, Span<const Index> indices, Index n) {
    const std::vector<Index> own(indices.begin(), indices.end());
    check_indices(name, as_span(own), n);
    return own;
}

// Check that starts (P + 1,) ascends from 0 to n; returns the size of the largest slice.
inline Index check_starts(Span<const Index> starts, Index n) {
    check_at_least("len(starts)", starts.size, 1);
    check_size("starts[0]", starts[0], 0);  // first: no difference of ascending starts can overflow then
    Index largest = 0;
    for (Index p = 0; p + 1 < starts.size; ++p) {
        check_at_least("starts", starts[p + 1], starts[p]);
        largest = maximum(largest, starts[p + 1] - starts[p]);
    }
    check_size("starts[-1]", starts[starts.size - 1], n);
    return largest;
}

// Check that two arrays share no memory: indices that were checked must not be overwritten while they are in use.
template <class T, class U> void check_apart(const char* name, Span<T> a, const char* other, Span<U> b) {
    const auto begin = [](const auto& x) { return reinterpret_cast<std::uintptr_t>(x.data); };
    if (a.size > 0 && b.size > 0 && begin(a) < begin(b) + b.size * sizeof(U) && begin(b) < begin(a) + a.size * sizeof(T))
        raise_value_error(name, " and ", other, " must not share memory");
}

}  // namespace wm

namespace nanobind::detail {

// The conversion of an array of Python to one of the views.
template <class View, class Array, View (*view_of)(const Array&)> struct view_caster {
    static constexpr auto Name = make_caster<Array>::Name;
    template <class> using Cast = View;
    make_caster<Array> array;

    template <class> static constexpr bool can_cast() { return true; }
    template <class Flags> bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        return array.from_python(source, flags, cleanup);
    }
    explicit operator View() { return view_of(array.value); }
};
template <class T>
struct type_caster<wm::Span<T>> : view_caster<wm::Span<T>, wm::Vector<T>, &wm::span<T>> {};
template <class T>
struct type_caster<wm::Matrix<T>> : view_caster<wm::Matrix<T>, wm::Array<T>, &wm::matrix<T>> {};
template <class T>
struct type_caster<wm::Stack<T>> : view_caster<wm::Stack<T>, wm::Array3<T>, &wm::stack<T>> {};

}  // namespace nanobind::detail
