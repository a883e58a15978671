// Inner products, squared distances and L1 distances (kernel arguments) of rows and a few points.
//
// Points are packed feature by feature: a register holds one feature of several points, and is combined with one number
// of a row. No sum is taken across a register, for any number of features, and of sparse rows only non-zeros are read.
#pragma once
#include <cmath>

#include "aligned.hpp"
#include "csr.hpp"
#include "registers.hpp"

namespace wm {

// What a kernel is a function of: a sum over the features of x u, of (x - u)^2, or of |x - u|.
enum class KernelArgument { inner_product, squared_distance, l1_distance };

constexpr int kMostColumns = kRegisterBytes == 64 ? 4 : 2;  // registers of a row of a tile, at most
constexpr int kTileRows = 4;                                // rows whose sums are computed together
constexpr Index kHalfBytes = kRegisterBytes > 16 ? kRegisterBytes / 2 : 16;  // of a register for few points

template <class T> constexpr Index kFullLanes = kRegisterBytes / sizeof(T);
template <class T> constexpr Index kHalfLanes = kHalfBytes / sizeof(T);
// n rounded up to whole registers, or to half a register if that holds all.
template <class T> constexpr Index padded(Index n) {
    const Index lanes = n <= kHalfLanes<T> ? kHalfLanes<T> : kFullLanes<T>;
    return count_blocks(n, lanes) * lanes;
}

// C registers of so many bytes, of one row of a tile.
template <class T, Index bytes, int C> struct Columns {
    using V = Register<T, bytes>;
    static constexpr int n = C;
    static constexpr Index lanes = C * Index(bytes / sizeof(T));
};

// Call visit(first column, Columns) for the registers of a row of `width` numbers.
template <class T, class Visit> inline void for_each_tile(Index width, const Visit& visit) {
    constexpr int most_columns = kMostColumns;
    Index c = 0;
    if (width % kFullLanes<T>) return visit(c, Columns<T, kHalfBytes, 1>());
    for (; c + most_columns * kFullLanes<T> <= width; c += most_columns * kFullLanes<T>)
        visit(c, Columns<T, kRegisterBytes, most_columns>());
    switch ((width - c) / kFullLanes<T>) {
        case 3: return visit(c, Columns<T, kRegisterBytes, (most_columns > 3 ? 3 : 1)>());
        case 2: return visit(c, Columns<T, kRegisterBytes, (most_columns > 2 ? 2 : 1)>());
        case 1: return visit(c, Columns<T, kRegisterBytes, 1>());
    }
}

// A group of points, packed: for each tile of columns one matrix, a row of it a feature.
template <class T> struct PackedGroup {
    const T* data;
    Index features, width;

    const T* tile(Index first_column) const { return data + features * first_column; }
};

// k groups of m points in d dimensions, feature by feature in tiles of columns (for_each_tile) of their own. `width` is
// m rounded up; the columns from m on are zeros.
template <class T> class PackedPoints {
  public:
    const Index groups, points, features, width;

    PackedPoints(Index k, Index m, Index d)
        : groups(k), points(m), features(d), width(padded<T>(m)),
          group_size_(count_blocks(d * width, kFullLanes<T>) * kFullLanes<T>), values_(k * group_size_) {}
    explicit PackedPoints(Stack<const T> all) : PackedPoints(all.size, all.rows, all.columns) {
        for (Index c = 0; c < groups; ++c)
            for (Index j = 0; j < points; ++j)
                for (Index k = 0; k < features; ++k) set(c, k, j, all[c][j][k]);
    }

    void set(Index group, Index feature, Index point, T value) {
        for_each_tile<T>(width, [&](Index c, auto columns) {
            if (c <= point && point < c + columns.lanes)
                values_.span()[group * group_size_ + c * features + feature * columns.lanes + point - c] = value;
        });
    }
    PackedGroup<T> operator[](Index group) const {
        return {values_.span().slice(group * group_size_, (group + 1) * group_size_).data, features, width};
    }

  private:
    const Index group_size_;
    AlignedArray<T> values_;
};

// The term of one feature: of a row with the value x, of several points with the values u.
template <KernelArgument kind, class T, class V> inline V term(T x, V u) {
    if constexpr (kind == KernelArgument::inner_product) return x * u;
    const V t = x - u;
    if constexpr (kind == KernelArgument::squared_distance) return t * t;
    return absolute<T>(t);
}

// term(x, u) - term(0, u): what a non-zero x adds to the sum of a row of zeros.
template <KernelArgument kind, class T, class V> inline V nonzero_term(T x, V u) {
    if constexpr (kind == KernelArgument::inner_product) return x * u;
    if constexpr (kind == KernelArgument::squared_distance) return x * (x - (u + u));
    return term<kind>(x, u) - term<kind>(T(0), u);
}

// Sums over n terms for R rows and C registers of points, or with is_added the sums in `out` and these; get(r, k) is term
// k of row r, place(k) its feature. Where R C is small, several partial sums hide the latency of additions.
template <class V, int R, int C, class T, class Get, class Place, class Term>
inline void sum_tile(Index n, const T* points, T* out, Index stride, const Get& get, const Place& place,
                     const Term& term_of, bool is_added = false) {
    constexpr int S = R * C >= 6 ? 1 : R * C >= 3 ? 2 : 4;
    constexpr Index lanes = sizeof(V) / sizeof(T);
    V sums[S][R][C] = {};
    if (is_added) {
            WM_UNROLL
        for (int r = 0; r < R; ++r) {
            WM_UNROLL
            for (int c = 0; c < C; ++c) std::memcpy(&sums[0][r][c], out + r * stride + c * lanes, sizeof(V));
        }
    }
    const auto add = [&](Index k, V(&into)[R][C]) __attribute__((always_inline)) {
        const auto* u = reinterpret_cast<const V*>(points) + place(k) * C;
            WM_UNROLL
        for (int r = 0; r < R; ++r) {
            const T x = get(r, k);
            WM_UNROLL
            for (int c = 0; c < C; ++c) into[r][c] += term_of(x, u[c]);
        }
    };
    Index k = 0;
    for (; k + S <= n; k += S) {
            WM_UNROLL
        for (int s = 0; s < S; ++s) add(k + s, sums[s]);
    }
    for (; k < n; ++k) add(k, sums[0]);
            WM_UNROLL
    for (int r = 0; r < R; ++r) {
            WM_UNROLL
        for (int c = 0; c < C; ++c) {
            V total = sums[0][r][c];
            WM_UNROLL
            for (int s = 1; s < S; ++s) total += sums[s][r][c];
            std::memcpy(out + r * stride + c * lanes, &total, sizeof total);
        }
    }
}

// The kernel arguments of R dense rows x and the points of a group.
//
// Given   x: R rows of d numbers; points: d features, `width` columns; out (R, width), its rows `stride` numbers apart:
//         written. is_lower: point j has zeros in all features but the first j + 1
// Cost    R d width multiply-adds, or twice as many operations for distances
// Twin    tests/naive/nystroem.py::pairwise
template <KernelArgument kind, int R, class X, class T>
void pairwise_rows(const X* const (&x)[R], PackedGroup<T> points, T* out, Index stride, bool is_lower = false) {
    const Index d = points.features;
    for_each_tile<T>(points.width, [&](Index c, auto columns) {
        using V = typename decltype(columns)::V;
        sum_tile<V, R, columns.n>(
            is_lower ? minimum(d, c + columns.lanes) : d, points.tile(c), out + c, stride,
            [&](int r, Index k) { return static_cast<T>(x[r][k]); }, [](Index k) { return k; },
            [](T v, V u) { return term<kind>(v, u); });
    });
}

// The kernel arguments of a sparse row and the points of a group.
//
// Given   points: d features, `width` columns; at_zero (width,): the sums of a row of zeros; out (width,): written
// Cost    nnz width multiply-adds, or two to four times as many operations for distances
// Twin    tests/naive/nystroem.py::pairwise
template <KernelArgument kind, class T>
void pairwise_sparse(Span<const T> values, Span<const Column> columns, PackedGroup<T> points, Span<const T> at_zero, T* out) {
    for_each_tile<T>(points.width, [&](Index c, auto registers) {
        using V = typename decltype(registers)::V;
        sum_tile<V, 1, registers.n>(
            values.size, points.tile(c), out + c, 0, [&](int, Index t) { return values.data[t]; },
            [&](Index t) { return static_cast<Index>(columns.data[t]); },
            [](T v, V u) { return nonzero_term<kind>(v, u); });
    });
    if constexpr (kind == KernelArgument::inner_product) return;
    for (Index j = 0; j < points.width; ++j)
        out[j] = maximum(out[j] + at_zero.data[j], T(0));  // no negative distances by rounding
}

// <a, b>, summed in the type Sum.
template <class Sum, class A, class B> Sum inner_product_in(const A* a, const B* b, Index n) {
    constexpr Index lanes = kRegisterBytes / sizeof(Sum);
    Sum sums[lanes] = {}, total = 0;
    Index j = 0;
    for (; j + lanes <= n; j += lanes)
        for (Index l = 0; l < lanes; ++l) sums[l] += static_cast<Sum>(a[j + l] * b[j + l]);
    for (; j < n; ++j) total += static_cast<Sum>(a[j] * b[j]);
    for (Index l = 0; l < lanes; ++l) total += sums[l];
    return total;
}

// Packed points, and the kernel argument of a row of zeros and each of them, to which non-zeros of sparse rows are added.
template <class T> class PairwisePoints {
  public:
    PackedPoints<T> packed;
    KernelArgument kind;

    PairwisePoints(Stack<const T> all, KernelArgument kind)
        : packed(all), kind(kind), at_zero_(kind == KernelArgument::inner_product ? 0 : all.size * packed.width) {
        if (kind == KernelArgument::inner_product) return;
        for (Index c = 0; c < all.size; ++c)
            for (Index j = 0; j < all.rows; ++j) at_zero_.span()[c * packed.width + j] = argument_at_zero(all[c][j]);
    }

    // out (R, width) = the kernel arguments of the rows i[0] to i[R - 1] and the points of a group.
    template <int R> void pairwise(Matrix<const T> X, const Index (&i)[R], Index group, T* out, Index stride) const {
        const T* x[R];
        for (int r = 0; r < R; ++r) x[r] = X[i[r]].data;
        by_kind([&](auto k) { pairwise_rows<k.value>(x, packed[group], out, stride); });
    }
    template <int R>
    void pairwise(const CSR<T>& X, const Index (&i)[R], Index group, T* out, Index stride) const {
        for (int r = 0; r < R; ++r)
            by_kind([&](auto k) {
                pairwise_sparse<k.value>(X.values(i[r]), X.columns_of(i[r]), packed[group], at_zero(group),
                                        out + r * stride);
            });
    }

  private:
    AlignedArray<T> at_zero_;

    Span<const T> at_zero(Index c) const {
        if (kind == KernelArgument::inner_product) return {};
        return at_zero_.span().slice(c * packed.width, (c + 1) * packed.width);
    }
    T argument_at_zero(Span<const T> point) const {
        double total = 0;
        for (const T u : point) total += kind == KernelArgument::squared_distance ? double(u) * u : std::abs(double(u));
        return static_cast<T>(total);
    }
    template <class Visit> void by_kind(const Visit& visit) const {
        using A = KernelArgument;
        switch (kind) {
            case A::inner_product: return visit(std::integral_constant<A, A::inner_product>());
            case A::squared_distance: return visit(std::integral_constant<A, A::squared_distance>());
            case A::l1_distance: return visit(std::integral_constant<A, A::l1_distance>());
        }
    }
};

}  // namespace wm
