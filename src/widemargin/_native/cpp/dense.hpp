// Passes over dense rows: X w, weighted sums of rows, copies of rows. Sums are float64.
//
// Blocks depend on the shapes only, and sums of blocks are added in their order: results do not depend on the number of
// threads. run(n_blocks, visit) calls visit(block) for each block, in any order, in any thread. Arrays in Fortran order
// are given as their transpose Xt (d, n), whose rows are contiguous.
#pragma once
#include <atomic>
#include <vector>

#include "registers.hpp"
#include "span.hpp"

namespace wm {

constexpr Index kBlockBytes = 1 << 18;  // of rows in a block: about ten microseconds
constexpr Index kBatchRows = 1024;      // rows whose weights fit the first-level cache
constexpr Index kAheadRows = 16;        // rows that are prefetched where some are skipped
constexpr Index kAheadBytes = 8192;     // prefetched of consecutive rows: the processor itself stops at a page's end

// The number of rows of a block of kBlockBytes.
inline Index rows_of_block(Index row_bytes) { return maximum<Index>(1, kBlockBytes / maximum<Index>(1, row_bytes)); }

// Prefetches consecutive rows that are read in order, kAheadBytes in advance.
template <class T> class Stream {
  public:
    explicit Stream(Matrix<const T> X) : next_(X.data), is_dense_(X.stride == X.columns || X.rows == 1) {}
    [[gnu::always_inline]] void read_up_to(const T* end) {
        end += kAheadBytes / sizeof(T);
        for (; is_dense_ && next_ < end; next_ += kCacheLine / sizeof(T)) WM_PREFETCH(next_);
    }

  private:
    const T* next_;
    const bool is_dense_;
};

// Whether none of n numbers is NaN or infinite, the numbers whose exponent has all bits set.
template <class T> bool are_finite(const T* numbers, Index n) {
    constexpr auto kInfinity = sizeof(T) == 4 ? Bits<T>(0x7f800000) : Bits<T>(0x7ff0000000000000);
    Stream<T> stream({numbers, 1, n, n});
    Bits<T> largest = 0;
    for (Index first = 0; first < n; first += kBatchRows) {
        const Index end = minimum(first + kBatchRows, n);
        stream.read_up_to(numbers + end);
        for (Index i = first; i < end; ++i) largest = maximum<Bits<T>>(largest, bit_cast<Bits<T>>(numbers[i]) & kInfinity);
    }
    return largest < kInfinity;
}
template <class T, class Run> bool are_finite(Span<const T> numbers, const Run& run) {
    constexpr Index kSize = 8 * kBlockBytes / sizeof(T);
    std::atomic<bool> result{true};
    run(count_blocks(numbers.size, kSize), [&](Index block) {
        if (!result.load(std::memory_order_relaxed)) return;
        const Index first = block * kSize;
        if (!are_finite(numbers.data + first, minimum(kSize, numbers.size - first))) result.store(false);
    });
    return result;
}

// ---------------------------------------------------------------------------------------------------------- products

constexpr Index kRowsAtOnce = 4, kVectorsAtOnce = kRegisterBytes == 64 ? 4 : 2;  // whose products are in registers

// <x_r, w_v> for R rows and V vectors (d,). Each is summed in the same order, whatever R and V: decision values depend
// neither on a row's place nor on the number of rows.
template <Index R, Index V, class T>
WM_INLINE void product_tile(const T* x, Index x_stride, const double* w, Index w_stride, Index d, double* out,
                            Index out_stride) {
    Lanes sums[R][V] = {};
    const auto add = [&](const auto& load, Index j) {
#ifdef __clang__
#pragma clang fp reassociate(off) // Clang sums the steps of one row in another order than those of four
#endif
        Lanes rows[R];
        WM_UNROLL
        for (Index r = 0; r < R; ++r) rows[r] = load(x + r * x_stride + j);
        WM_UNROLL
        for (Index v = 0; v < V; ++v) {
            const Lanes lanes = load(w + v * w_stride + j);
            WM_UNROLL
            for (Index r = 0; r < R; ++r) sums[r][v] += rows[r] * lanes;
        }
    };
    Index j = 0;
    for (; j + kLanes <= d; j += kLanes) add([](const auto* from) { return load_lanes(from); }, j);
    if (j < d) add([&](const auto* from) { return load_part(from, d - j); }, j);
    for (Index v = 0; v < V; ++v)
        for (Index r = 0; r < R; ++r) out[v * out_stride + r] = sum_lanes(sums[r][v]);
}

// out[:, :rows] = W X' for V vectors W (V, d)
template <Index V, class T>
void product_rows(Matrix<const T> X, const double* w, Index w_stride, double* out, Index out_stride) {
    const Index d = X.columns;
    Stream<T> stream(X);
    Index i = 0;
    for (; i + kRowsAtOnce <= X.rows; i += kRowsAtOnce) {
        stream.read_up_to(X[i + kRowsAtOnce - 1].data + d);
        product_tile<kRowsAtOnce, V>(X[i].data, X.stride, w, w_stride, d, out + i, out_stride);
    }
    for (; i < X.rows; ++i) product_tile<1, V>(X[i].data, X.stride, w, w_stride, d, out + i, out_stride);
}

// out (k, n) = W X'
//
// Given   X (n, d), W (k, d)
// Cost    reads X once from memory; four rows at a time share the reading of W
// Twin    W @ X.T
template <class T, class Run>
void matvec(Matrix<const T> X, Matrix<const double> W, Matrix<double> out, const Run& run) {
    const Index size = rows_of_block(X.columns * sizeof(T));
    run(count_blocks(X.rows, size), [&](Index block) {
        const Index first = block * size;
        const Matrix<const T> rows = X.slice(first, minimum(first + size, X.rows));
        for (Index v = 0; v < W.rows;) {
            const bool is_tile = v + kVectorsAtOnce <= W.rows;
            const auto multiply = is_tile ? product_rows<kVectorsAtOnce, T> : product_rows<1, T>;
            multiply(rows, W[v].data, W.stride, out[v].data + first, out.stride);
            v += is_tile ? kVectorsAtOnce : 1;
        }
    });
}

// out (k, n) = W Xt, Xt (d, n); n a multiple of kLanes, so that every column is summed in the same order. Not inlined:
// compiled twice, it might not be.
template <class T>
[[gnu::noinline]] void sum_columns(Matrix<const T> Xt, Matrix<const double> W, Matrix<double> out) {
    const Index n = Xt.columns;
    for (Index v = 0; v < W.rows; ++v)
        for (Index i = 0; i < n; ++i) out[v][i] = 0.0;
    Index j = 0;
    for (; j + 4 <= Xt.rows; j += 4) {
        const T* const x[] = {Xt[j].data, Xt[j + 1].data, Xt[j + 2].data, Xt[j + 3].data};
        for (Index v = 0; v < W.rows; ++v) {
            const double* w = W[v].data + j;
            add_four(x, {w[0], w[1], w[2], w[3]}, out[v].data, n);
        }
    }
    for (; j < Xt.rows; ++j)
        for (Index v = 0; v < W.rows; ++v) add_scaled(Xt[j].data, W[v][j], out[v].data, n);
}

// W X' for X in Fortran order: weighted sums of the rows of Xt (d, n), a block of columns at a time. The last columns are
// copied to kLanes.
template <class T, class Run>
void matvec_transposed(Matrix<const T> Xt, Matrix<const double> W, Matrix<double> out, const Run& run) {
    const Index size = (W.rows > 1 ? 1 : 4) * kBatchRows, d = Xt.rows;
    run(count_blocks(Xt.columns, size), [&](Index block) {
        const Index first = block * size, n = minimum(size, Xt.columns - first), whole = n / kLanes * kLanes;
        sum_columns<T>({Xt.data + first, d, whole, Xt.stride}, W, {out.data + first, W.rows, whole, out.stride});
        const Index m = n - whole, begin = first + whole;
        if (m == 0) return;
        std::vector<T> copy(d * kLanes);
        std::vector<double> sums(W.rows * kLanes);
        for (Index j = 0; j < d; ++j)
            for (Index i = 0; i < m; ++i) copy[j * kLanes + i] = Xt[j].data[begin + i];
        sum_columns<T>({copy.data(), d, kLanes, kLanes}, W, {sums.data(), W.rows, kLanes, kLanes});
        for (Index v = 0; v < W.rows; ++v)
            for (Index i = 0; i < m; ++i) out[v].data[begin + i] = sums[v * kLanes + i];
    });
}

// -------------------------------------------------------------------------------------------------------------- sums

// Row weights of k sums: coef - base, both (k, n); base may be empty.
struct RowWeights {
    Matrix<const double> coef, base;

    // The weights of sum c of the n <= kBatchRows rows from `first`: a part of coef itself, or written to scratch.
    const double* load(Index c, Index first, Index n, double* scratch) const {
        const double* a = coef[c].data + first;
        if (!base.data) return a;
        const double* b = base[c].data + first;
        for (Index i = 0; i < n; ++i) scratch[i] = a[i] - b[i];
        return scratch;
    }
};

// List the rows of non-zero weight, without branches; returns their number.
inline Index list_nonzero(const double* weights, Index n, Index* rows) {
    Index count = 0;
    for (Index i = 0; i < n; ++i) {
        rows[count] = i;
        count += weights[i] != 0.0;
    }
    return count;
}

constexpr double kManyShare = 0.375;  // share of the rows from which reading all of them is faster than skipping some

// total (d,) += sum_i weights_i x_i over the rows of X (n <= kBatchRows, d). Rows of weight 0 are skipped, unless rows
// are narrow and most weights are not zero.
template <class T> void add_weighted_rows(Matrix<const T> X, const double* weights, Index* rows, double* total) {
    constexpr Index kNarrow = 512;  // bytes of a row
    const Index d = X.columns;
    const bool is_narrow = d * static_cast<Index>(sizeof(T)) <= kNarrow;
    Index count = list_nonzero(weights, X.rows, rows);
    const bool are_all = is_narrow && count > kManyShare * X.rows;
    if (are_all)
        for (count = 0; count < X.rows; ++count) rows[count] = count;
    Stream<T> stream(X);
    Index t = 0;
    for (; t + 4 <= count; t += 4) {
        const Index* i = rows + t;
        const T* const x[] = {X[i[0]].data, X[i[1]].data, X[i[2]].data, X[i[3]].data};
        if (are_all) stream.read_up_to(x[3] + d);
        else if (is_narrow)
            for (Index k = t + kAheadRows; k < minimum(t + kAheadRows + 4, count); ++k)
                prefetch(X[rows[k]].data, X[rows[k]].data + d);
        add_four(x, {weights[i[0]], weights[i[1]], weights[i[2]], weights[i[3]]}, total, d);
    }
    for (; t < count; ++t) add_scaled(X[rows[t]].data, weights[rows[t]], total, d);
}

// total (d,) += Xt weights, Xt (d, n <= kBatchRows). Entries of weight 0 are skipped, unless most weights are not zero.
template <class T> void add_weighted_columns(Matrix<const T> Xt, const double* weights, Index* rows, double* total) {
    const Index n = Xt.columns, count = list_nonzero(weights, n, rows);
    const bool are_many = count > kManyShare * n;
    double nonzero[kBatchRows];
    for (Index t = 0; t < count; ++t) nonzero[t] = weights[rows[t]];
    for (Index j = 0; j < Xt.rows; ++j) {
        const T* x = Xt[j].data;
        if (are_many) {
            if (j + 1 < Xt.rows) prefetch(x + Xt.stride, x + Xt.stride + minimum<Index>(n, kAheadBytes / 2 / sizeof(T)));
            total[j] += inner_product(x, weights, n);
        } else {
            double sum = 0.0;
            for (Index t = 0; t < count; ++t) sum += nonzero[t] * x[rows[t]];
            total[j] += sum;
        }
    }
}

// The tasks of weighted sums over n rows of d columns: each pair of a block of rows, with sums of its own, and a tile of
// columns.
struct SumPlan {
    static constexpr Index kMostTasks = 64, kTileColumns = 2048, kLeastRows = 256;  // columns: of a tile, at most

    Index rows, columns;  // of a block, of a tile
    Index n_row_blocks, n_tiles;

    SumPlan(Index n, Index d, Index row_bytes) {
        n_tiles = maximum<Index>(1, count_blocks(d, kTileColumns));
        columns = count_blocks(count_blocks(d, n_tiles), 16) * 16;
        const Index n_blocks = maximum<Index>(1, kMostTasks / n_tiles);
        rows = maximum(maximum(kLeastRows, rows_of_block(minimum(row_bytes, kTileColumns * 8))), count_blocks(n, n_blocks));
        n_row_blocks = count_blocks(n, rows);
    }
};

// out (k, d), written: k weighted sums of n rows. add(first, n, tile, d, weights, rows, total) adds to total (d,) the weighted
// sum of the n rows from `first`, of their d columns from `tile`; rows (n,) is scratch.
template <class Run, class Add>
void sum_rows(const SumPlan& plan, Index n, const RowWeights& weights, Matrix<double> out, const Run& run,
              const Add& add) {
    const Index k = out.rows, d = out.columns;
    const Index stride = plan.n_row_blocks > 1 ? d + 8 : 0;  // sums of two blocks never share a cache line
    std::vector<double> parts(plan.n_row_blocks * k * stride);
    for (Index c = 0; c < k; ++c)
        for (double& total : out[c]) total = 0.0;
    run(plan.n_row_blocks * plan.n_tiles, [&](Index task) {
        const Index block = task / plan.n_tiles, tile = task % plan.n_tiles * plan.columns;
        const Index width = minimum(plan.columns, d - tile), last = minimum((block + 1) * plan.rows, n);
        double scratch[kBatchRows];
        Index rows[kBatchRows];
        for (Index first = block * plan.rows; first < last; first += kBatchRows) {
            const Index count = minimum(kBatchRows, last - first);
            for (Index c = 0; c < k; ++c) {
                double* total = stride ? parts.data() + (block * k + c) * stride : out[c].data;
                add(first, count, tile, width, weights.load(c, first, count, scratch), rows, total + tile);
            }
        }
    });
    for (Index block = 0; stride && block < plan.n_row_blocks; ++block)
        for (Index c = 0; c < k; ++c) add_scaled(parts.data() + (block * k + c) * stride, 1.0, out[c].data, d);
}

// out (k, d) = (coef - base) X
//
// Given   X (n, d); weights: coef (k, n), base (k, n) or empty
// Cost    d multiply-adds for each non-zero weight, or for every row where these are many and narrow; memory for the
//         sums of at most 64 blocks, 2^17 k numbers
// Twin    (coef - base) @ X.astype(float)
template <class T, class Run>
void rmatvec(Matrix<const T> X, const RowWeights& weights, Matrix<double> out, const Run& run) {
    const auto add = [&](Index first, Index n, Index tile, Index d, const double* w, Index* rows, double* total) {
        add_weighted_rows<T>({X.data + first * X.stride + tile, n, d, X.stride}, w, rows, total);
    };
    sum_rows(SumPlan(X.rows, X.columns, X.columns * sizeof(T)), X.rows, weights, out, run, add);
}
// The same for X in Fortran order.
template <class T, class Run>
void rmatvec_transposed(Matrix<const T> Xt, const RowWeights& weights, Matrix<double> out, const Run& run) {
    const auto add = [&](Index first, Index n, Index tile, Index d, const double* w, Index* rows, double* total) {
        add_weighted_columns<T>({Xt.data + tile * Xt.stride + first, d, n, Xt.stride}, w, rows, total);
    };
    sum_rows(SumPlan(Xt.columns, Xt.rows, Xt.rows * sizeof(T)), Xt.columns, weights, out, run, add);
}

// ------------------------------------------------------------------------------------------------------------- copies

// Copy a row of n numbers, without a call of memcpy: for a short row that would take as long as the copy.
template <class T> void copy_row(const T* from, T* to, Index n) {
    constexpr Index kPart = 32 / sizeof(T);
    if (n < kPart) {
        for (Index j = 0; j < n; ++j) {
            to[j] = from[j];
            asm volatile("");  // prevents GCC from calling memcpy
        }
        return;
    }
    for (Index j = 0; j + kPart < n; j += kPart) std::memcpy(to + j, from + j, 32);
    std::memcpy(to + n - kPart, from + n - kPart, 32);
}

// out (m, d) = X[chosen]
template <class T, class Run>
void take_rows(Matrix<const T> X, Span<const Index> chosen, Matrix<T> out, const Run& run) {
    const Index d = X.columns, size = rows_of_block(d * sizeof(T));
    run(count_blocks(chosen.size, size), [&](Index block) {
        for (Index k = block * size; k < minimum((block + 1) * size, chosen.size); ++k) {
            const T* later = X[chosen[minimum(k + kAheadRows, chosen.size - 1)]].data;
            prefetch(later, later + d);
            copy_row(X[chosen[k]].data, out[k].data, d);
        }
    });
}

// out (m, d) = Xt.T[chosen]
template <class T, class Run>
void take_columns(Matrix<const T> Xt, Span<const Index> chosen, Matrix<T> out, const Run& run) {
    const Index size = minimum<Index>(rows_of_block(Xt.rows * sizeof(T)), kBatchRows);
    run(count_blocks(chosen.size, size), [&](Index block) {
        for (Index j = 0; j < Xt.rows; ++j) {
            const T* x = Xt[j].data;
            for (Index k = block * size; k < minimum((block + 1) * size, chosen.size); ++k) out[k].data[j] = x[chosen[k]];
        }
    });
}

}  // namespace wm
