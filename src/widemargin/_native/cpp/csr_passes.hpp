// Passes over sparse rows: their products with k vectors, X W', and k weighted sums of them, A X.
//
// Blocks of rows depend on the data only, and sums of blocks are added in their order: results do not depend on the
// number of threads. Several vectors are interleaved in groups, so that a non-zero is one vector operation on
// contiguous memory.
#pragma once
#include <algorithm>

#include "csr.hpp"
#include "registers.hpp"

namespace wm {

constexpr Index kProductNonzeros = Index{1} << 15;  // of the rows of a block of X W': about 20 microseconds
// of A X:
constexpr Index kSumBlocks = 64;                  // of rows with a sum of their own, at most
constexpr Index kSumNonzeros = Index{1} << 14;    // of the rows of each such block, at least
constexpr Index kSumShare = 4;                    // non-zeros / columns of a block, at least
constexpr Index kManyGroups = 8;                  // of sums: from here on threads share out groups, not blocks of rows
constexpr Index kSumEntries = Index{1} << 22;     // of all blocks' sums, at most: 32 MiB
constexpr Index kCachedEntries = Index{1} << 17;  // of a group's sums: 1 MiB, a second-level cache
constexpr Index kRowsTogether = 128;              // rows whose weights are loaded at a time
constexpr Index kColumnsTogether = 512;           // of a block of `interleave` or `add_blocks`

// G contiguous numbers in registers, one for each of G vectors.
template <int G> struct Group {
    static constexpr int most_lanes = static_cast<int>(kLanes);
    static constexpr int lanes = G < most_lanes ? G : most_lanes, registers = G / lanes;
    using Values = Pack<double, lanes>;
    Values values[registers];

    static Group load(const double* from) {
        Group group;
        for (int r = 0; r < registers; ++r) group.values[r] = *reinterpret_cast<const Values*>(from + r * lanes);
        return group;
    }
    void store(double* to) const {
        for (int r = 0; r < registers; ++r) *reinterpret_cast<Values*>(to + r * lanes) = values[r];
    }
    void add(double factor, const Group& other) {
        for (int r = 0; r < registers; ++r) values[r] += factor * other.values[r];
    }
};

// How many of k vectors (d,) are interleaved: 1 where non-zeros are few, else 2, 4 or 8, of at most `most_numbers` numbers
// in total.
inline int group_size(Index k, Index nnz, Index d, Index most_numbers) {
    int size = k == 1 || nnz < 2 * d ? 1 : k == 2 ? 2 : k <= 4 ? 4 : 8;
    while (size > 1 && size * d > most_numbers) size /= 2;
    return size;
}

// Call f with the size of groups as a compile-time constant.
template <class F> void with_group_size(int size, F f) {
    switch (size) {
        case 1: return f(std::integral_constant<int, 1>());
        case 2: return f(std::integral_constant<int, 2>());
        case 4: return f(std::integral_constant<int, 4>());
        default: return f(std::integral_constant<int, 8>());
    }
}

// The number of rows of a block of X W'.
template <class T> Index product_block_rows(const CSR<T>& X) {
    return clip<Index>(kProductNonzeros / maximum<Index>(1, X.nnz() / maximum<Index>(1, X.rows())), 1, kProductNonzeros);
}

// The number of blocks of rows with their own sums, for k sums in groups of `size`.
template <class T> Index count_sum_blocks(const CSR<T>& X, Index k, Index size) {
    if (count_blocks(k, size) >= kManyGroups) return 1;
    const Index blocks = clip<Index>(X.nnz() / maximum(kSumShare * X.columns, kSumNonzeros), 1, kSumBlocks);
    return clip<Index>(kSumEntries / maximum<Index>(1, k * X.columns), 1, blocks);
}

// Columns first .. end of k vectors in groups of G: into[g, j, c] = W[g G + c, j], zeros where there is no such vector.
template <int G> void interleave(Matrix<const double> W, Index first, Index end, double* into) {
    for (Index row = 0; row < count_blocks(W.rows, G) * G; ++row) {
        double* const to = into + row / G * W.columns * G + row % G;
        const double* const from = row < W.rows ? W[row].data : nullptr;
        for (Index j = first; j < end; ++j) to[j * G] = from ? from[j] : 0.0;
    }
}

constexpr Index kPartialSums = 4;  // of a product: additions to a single one would wait for each other

// <x, w> for the non-zeros of a row. Its sums are written as a vector, in the order of `row_products`: a compiler would
// vectorise them by the width of the indices, and results would depend on it.
template <class T> double row_product(const T* x, const Column* columns, Index n, const double* w) {
    Pack<double, kPartialSums> sums{};
    const auto at = [&](Index t) { return w[static_cast<Index>(columns[t])]; };
    Index t = 0;
    for (; t + kPartialSums <= n; t += kPartialSums) {
        using Four = Pack<double, kPartialSums>;
        sums += Four{double(x[t]), double(x[t + 1]), double(x[t + 2]), double(x[t + 3])} *
                Four{at(t), at(t + 1), at(t + 2), at(t + 3)};
    }
    if (const Index m = n - t; m > 0) {
        const auto value = [&](Index k) { return k < m ? static_cast<double>(x[t + k]) : 0.0; };
        const auto weight = [&](Index k) { return k < m ? at(t + k) : 0.0; };
        sums += Pack<double, kPartialSums>{value(0), value(1), value(2), 0.0} *
                Pack<double, kPartialSums>{weight(0), weight(1), weight(2), 0.0};
    }
    const auto pair = __builtin_shufflevector(sums, sums, 0, 1) + __builtin_shufflevector(sums, sums, 2, 3);
    return pair[0] + pair[1];
}

// products (G,) = W @ x for the non-zeros of a row; W (d, G).
template <int G, class T>
void row_products(const T* x, const Column* columns, Index n, const double* W, double* products) {
    Group<G> sums[kPartialSums] = {};
    const auto add = [&](Index t, Index s) {
        sums[s].add(static_cast<double>(x[t]), Group<G>::load(W + static_cast<Index>(columns[t]) * G));
    };
    Index t = 0;
    for (; t + kPartialSums <= n; t += kPartialSums)
        for (Index s = 0; s < kPartialSums; ++s) add(t + s, s);
    for (Index s = 0; t + s < n; ++s) add(t + s, s);
    sums[0].add(1.0, sums[2]);
    sums[1].add(1.0, sums[3]);
    sums[0].add(1.0, sums[1]);
    sums[0].store(products);
}

// out[:, first:end] = W X[first:end]', in float64.
//
// Given   CSR rows X (n, d); W (groups, d, G), k vectors as `interleave` leaves them; out (k, n)
// Cost    count_blocks(k, G) nnz vector operations of G numbers; the rows are read for each group: they should fit a
//         cache
// Twin    W @ X.toarray().T
template <int G, class T>
void csr_matvec(const CSR<T>& X, const double* W, Index first, Index end, Matrix<double> out) {
    for (Index c = 0; c < out.rows; c += G, W += G * X.columns)
        for (Index i = first; i < end; ++i) {
            const Index begin = X.row_begin(i), n = X.row_end(i) - begin;
            const T* const x = X.data.data + begin;
            const Column* const columns = X.indices.data + begin;
            if constexpr (G == 1) out[c][i] = row_product(x, columns, n, W);
            else {
                double products[G];
                row_products<G>(x, columns, n, W, products);
                for (Index s = 0; s < G; ++s)
                    if (c + s < out.rows) out[c + s][i] = products[s];
            }
        }
}

// weights (n, G) = (coef - base)[c:c + G, first:first + n]', base empty for zeros. Lists the rows with a non-zero weight,
// and returns their number.
template <int G>
Index load_weights(Matrix<const double> coef, Matrix<const double> base, Index c, Index first, Index n, double* weights,
                   Index* rows) {
    for (Index s = 0; s < G; ++s) {
        const double* const a = c + s < coef.rows ? coef[c + s].data + first : nullptr;
        const double* const b = a && base.rows ? base[c + s].data + first : nullptr;
        for (Index i = 0; i < n; ++i) weights[i * G + s] = a ? a[i] : 0.0;
        if (b)
            for (Index i = 0; i < n; ++i) weights[i * G + s] -= b[i];
    }
    Index count = 0;
    for (Index i = 0; i < n; ++i) {  // no branch, which would often be mispredicted
        bool has_weight = false;
        for (Index s = 0; s < G; ++s) has_weight |= weights[i * G + s] != 0.0;
        rows[count] = i;
        count += has_weight;
    }
    return count;
}

// total (d, G) = ((coef - base)[c:c + G, first:end] X[first:end])'
//
// Given   CSR rows X (n, d); coef (k, n); base (k, n) or empty
// Cost    a vector operation of G numbers for each non-zero of a row with a weight that is not zero
// Twin    (coef - base) @ X.toarray()
template <int G, class T>
void csr_rmatvec(const CSR<T>& X, Matrix<const double> coef, Matrix<const double> base, Index c, Index first, Index end,
             double* total) {
    double weights[kRowsTogether * G];
    Index rows[kRowsTogether];
    std::fill_n(total, X.columns * G, 0.0);
    for (; first < end; first += kRowsTogether) {
        const Index n = load_weights<G>(coef, base, c, first, minimum(kRowsTogether, end - first), weights, rows);
        for (Index k = 0; k < n; ++k) {
            const auto weight = Group<G>::load(weights + rows[k] * G);
            const Index row_end = X.row_end(first + rows[k]);
            const T* const x = X.data.data;
            const Column* const columns = X.indices.data;
            for (Index t = X.row_begin(first + rows[k]); t < row_end; ++t) {
                double* const into = total + static_cast<Index>(columns[t]) * G;
                auto sum = Group<G>::load(into);
                sum.add(static_cast<double>(x[t]), weight);
                sum.store(into);
            }
        }
    }
}

// out[:, first:end], the sums of all blocks of rows: sums (blocks, groups, d, G), added in the order of the blocks.
template <int G> void add_blocks(const double* sums, Index blocks, Index first, Index end, Matrix<double> out) {
    const Index groups = count_blocks(out.rows, G), size = out.columns * G;
    for (Index c = 0; c < out.rows; ++c) {
        const double* const from = sums + c / G * size + c % G;
        double* const into = out[c].data;
        for (Index j = first; j < end; ++j) into[j] = from[j * G];
        for (Index b = 1; b < blocks; ++b)
            for (Index j = first; j < end; ++j) into[j] += from[b * groups * size + j * G];
    }
}

}  // namespace wm
