// Sums over the features of a row and of several points at once: inner products, squared and L1 distances.
//
// Points are few and packed: feature by feature, so that a register holds one feature of several points and each number
// of a row is met by all of them. Nothing is summed across a register, whatever the number of features, and of a sparse
// row only the non-zeros are looked at.
#pragma once
#include <cmath>
#include <memory>
#include <new>
#include <vector>

#include "aligned.hpp"
#include "csr.hpp"
#include "span.hpp"

namespace wm {

enum class Measure { products, squares, differences };  // what is summed: x u, (x - u)^2, |x - u|

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64, kMostColumns = 4;  // of registers of a tile's columns
#elif defined(__AVX__)
constexpr int kRegisterBytes = 32, kMostColumns = 2;
#else
constexpr int kRegisterBytes = 16, kMostColumns = 2;
#endif
constexpr int kTileRows = 4;

template <class T> struct RegisterOf;
template <> struct RegisterOf<float> { typedef float type __attribute__((vector_size(kRegisterBytes))); };
template <> struct RegisterOf<double> { typedef double type __attribute__((vector_size(kRegisterBytes))); };
template <class T> using Register = typename RegisterOf<T>::type;
template <class T> constexpr Index kLanes = kRegisterBytes / sizeof(T);
template <class T> constexpr Index whole_registers(Index n) { return count_blocks(n, kLanes<T>) * kLanes<T>; }

// k groups of m points in d dimensions: of each group a (d, width) matrix, where width is m rounded up to whole
// registers; the columns from m on are zeros.
template <class T> class PackedPoints {
  public:
    const Index groups, points, features, width;

    PackedPoints(Index k, Index m, Index d)
        : groups(k), points(m), features(d), width(whole_registers<T>(m)), values_(k * d * width) {}
    explicit PackedPoints(Stack<const T> all) : PackedPoints(all.size, all.rows, all.columns) {
        for (Index c = 0; c < groups; ++c)
            for (Index j = 0; j < points; ++j)
                for (Index k = 0; k < features; ++k) set(c, k, j, all[c][j][k]);
    }

    void set(Index group, Index feature, Index point, T value) {
        values_.view()[(group * features + feature) * width + point] = value;
    }
    Matrix<const T> operator[](Index group) const {
        const Index size = features * width;
        return {values_.view().slice(group * size, (group + 1) * size).data, features, width, width};
    }

  private:
    AlignedArray<T> values_;
};

template <Measure kind, class T> inline Register<T> term(T x, Register<T> u) {
    if constexpr (kind == Measure::products) return x * u;
    const Register<T> t = x - u;
    if constexpr (kind == Measure::squares) return t * t;
    return t < 0 ? -t : t;
}

// What a non-zero adds to the sum that a row of zeros would have.
template <Measure kind, class T> inline Register<T> change(T x, Register<T> u) {
    if constexpr (kind == Measure::products) return x * u;
    if constexpr (kind == Measure::squares) return x * (x - (u + u));
    return term<kind>(x, u) - term<kind>(T(0), u);
}

// The sums over d features of R rows and C registers of points. Where R C is small, several partial sums of each hide
// the latency of additions. `get(r, k)` is a number of row r, `place(k)` the feature that it belongs to.
template <int R, int C, class T, class Get, class Place, class Term>
inline void sum_tile(Index d, const T* points, Index width, T* out, Index stride, const Get& get, const Place& place,
                     const Term& term_of) {
    constexpr int S = R * C >= 6 ? 1 : R * C >= 3 ? 2 : 4;
    Register<T> sums[S][R][C] = {};
    const auto add = [&](Index k, Register<T>(&into)[R][C]) __attribute__((always_inline)) {
        const auto* u = reinterpret_cast<const Register<T>*>(points + place(k) * width);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            const T x = get(r, k);
#pragma GCC unroll 4
            for (int c = 0; c < C; ++c) into[r][c] += term_of(x, u[c]);
        }
    };
    Index k = 0;
    for (; k + S <= d; k += S) {
#pragma GCC unroll 4
        for (int s = 0; s < S; ++s) add(k + s, sums[s]);
    }
    for (; k < d; ++k) add(k, sums[0]);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
            Register<T> total = sums[0][r][c];
#pragma GCC unroll 4
            for (int s = 1; s < S; ++s) total += sums[s][r][c];
            *reinterpret_cast<Register<T>*>(out + r * stride + c * kLanes<T>) = total;
        }
    }
}

// Call visit(first column, number of registers as a constant) for the registers of a row of `width` numbers.
template <class T, class Visit> inline void for_each_tile(Index width, const Visit& visit) {
    Index c = 0;
    for (; c + kMostColumns * kLanes<T> <= width; c += kMostColumns * kLanes<T>)
        visit(c, std::integral_constant<int, kMostColumns>());
    switch ((width - c) / kLanes<T>) {
        case 3: return visit(c, std::integral_constant<int, (kMostColumns > 3 ? 3 : 1)>());
        case 2: return visit(c, std::integral_constant<int, 2>());
        case 1: return visit(c, std::integral_constant<int, 1>());
    }
}

// Given   x: R dense rows of d numbers; points (d, width) of PackedPoints; out (R, width), its rows `stride` numbers
//         apart and aligned: written. is_lower: row k of the points is known to be zero before column k.
// Cost    R d width multiply-adds, or twice as many operations for distances
// Twin    tests/naive/nystrom.py::measure
template <Measure kind, int R, class X, class T>
void measure_rows(const X* const (&x)[R], Matrix<const T> points, T* out, Index stride, bool is_lower = false) {
    const Index d = points.rows, width = points.columns;
    for_each_tile<T>(width, [&](Index c, auto columns) {
        constexpr int C = decltype(columns)::value;
        sum_tile<R, C>(
            is_lower ? least(d, c + C * kLanes<T>) : d, points.data + c, width, out + c, stride,
            [&](int r, Index k) { return static_cast<T>(x[r][k]); }, [](Index k) { return k; },
            [](T v, Register<T> u) { return term<kind, T>(v, u); });
    });
}

// Given   a sparse row; points (d, width); at_zero (width,): the sums of a row of zeros; out (width,), aligned: written
// Cost    nnz width multiply-adds, or two to four times as many operations for distances
// Twin    tests/naive/nystrom.py::measure
template <Measure kind, class T, class I>
void measure_sparse(Span<const T> values, Span<const I> columns, Matrix<const T> points, Span<const T> at_zero, T* out) {
    for_each_tile<T>(points.columns, [&](Index c, auto n) {
        sum_tile<1, decltype(n)::value>(
            values.size, points.data + c, points.columns, out + c, 0, [&](int, Index t) { return values.data[t]; },
            [&](Index t) { return static_cast<Index>(columns.data[t]); },
            [](T v, Register<T> u) { return change<kind, T>(v, u); });
    });
    if constexpr (kind == Measure::products) return;
    for (Index j = 0; j < points.columns; ++j)
        out[j] = most(out[j] + at_zero.data[j], T(0));  // rounding must not make a distance negative
}

// Packed points and what a row of zeros measures to each: those that rows, dense or sparse, are compared with.
template <class T> class MeasuredPoints {
  public:
    PackedPoints<T> packed;
    Measure kind;

    MeasuredPoints(Stack<const T> all, Measure kind)
        : packed(all), kind(kind), at_zero_(kind == Measure::products ? 0 : all.size * packed.width) {
        if (kind == Measure::products) return;
        for (Index c = 0; c < all.size; ++c)
            for (Index j = 0; j < all.rows; ++j) at_zero_.view()[c * packed.width + j] = size_of(all[c][j]);
    }

    // Sums of the rows i[0] to i[R - 1] and the points of a group: out (R, width).
    template <int R> void measure(Matrix<const T> X, const Index (&i)[R], Index group, T* out, Index stride) const {
        const T* x[R];
        for (int r = 0; r < R; ++r) x[r] = X[i[r]].data;
        by_kind([&](auto k) { measure_rows<k.value>(x, packed[group], out, stride); });
    }
    template <int R, class I>
    void measure(const CSR<T, I>& X, const Index (&i)[R], Index group, T* out, Index stride) const {
        for (int r = 0; r < R; ++r)
            by_kind([&](auto k) {
                measure_sparse<k.value>(X.values(i[r]), X.columns_of(i[r]), packed[group], at_zero(group),
                                        out + r * stride);
            });
    }

  private:
    AlignedArray<T> at_zero_;

    Span<const T> at_zero(Index c) const {
        return kind == Measure::products ? Span<const T>{} : at_zero_.view().slice(c * packed.width, (c + 1) * packed.width);
    }
    T size_of(Span<const T> point) const {
        double total = 0;
        for (const T u : point) total += kind == Measure::squares ? double(u) * u : std::abs(double(u));
        return static_cast<T>(total);
    }
    template <class Visit> void by_kind(const Visit& visit) const {
        switch (kind) {
            case Measure::products: return visit(std::integral_constant<Measure, Measure::products>());
            case Measure::squares: return visit(std::integral_constant<Measure, Measure::squares>());
            case Measure::differences: return visit(std::integral_constant<Measure, Measure::differences>());
        }
    }
};

}  // namespace wm
