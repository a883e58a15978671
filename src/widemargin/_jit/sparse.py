"""Compiled primitives on CSR rows."""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from ._policy import kernel, written_by_hand
from ._weights import TOGETHER, load_weights, pick
from .turns import take_turn

PANEL_BYTES = 256  # of a panel's row that vector registers take whole: four of the largest there are
_CACHED_COLUMNS = 192  # rows of a panel that a first-level cache holds with what else goes through it


@kernel
def _spread(data, indices, indptr, first, panel, width, clear):
    """Write rows first .. first + width as columns of a dense (d, w) panel, or clear them away again."""
    for k in range(width):
        for t in range(indptr[first + k], indptr[first + k + 1]):
            if clear:
                panel[indices[t], k] = 0
            else:
                panel[indices[t], k] += data[t]


def _add_rows_plainly(out, start, data, indices, first, last, panel):
    w = panel.shape[1]
    out[start : start + w] += data[first:last] @ panel[indices[first:last]]


@written_by_hand(_add_rows_plainly)
def _add_rows(typing_context, out, start, data, indices, first, last, panel):
    """out[start : start + w] += data[first:last] @ panel[indices[first:last]], with all w sums in vector registers.

    Given   panel (d, w) of w numbers that are `PANEL_BYTES` together; out, data, indices: C-contiguous vectors
    Cost    w (last - first) multiply-adds, a panel row each: a loop of ours over w would, before each of them, have to
            find out whether `out` overlaps the panel, and would load and store the sums
    """

    def generate(context, builder, signature, args):
        kinds, number, place = signature.args, context.get_data_type(panel.dtype), ir.IntType(64)
        itemsize = context.get_abi_sizeof(number)
        vector = ir.VectorType(number, PANEL_BYTES // itemsize)
        arrays = {k: context.make_array(kinds[k])(context, builder, args[k]) for k in (0, 2, 3, 6)}
        start, first, last = (context.cast(builder, args[k], kinds[k], types.int64) for k in (1, 4, 5))
        stride = builder.sdiv(cgutils.unpack_tuple(builder, arrays[6].strides)[0], place(itemsize))

        def element(k, index, kind):
            value = builder.load(builder.gep(arrays[k].data, [index]))
            return context.cast(builder, value, kinds[k].dtype, kind)

        def vector_at(k, index):
            return builder.bitcast(builder.gep(arrays[k].data, [index]), vector.as_pointer())

        target = vector_at(0, start)
        before, entry = builder.load(target, align=itemsize), builder.block
        head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        t, total = builder.phi(place), builder.phi(vector)
        builder.cbranch(builder.icmp_signed("<", t, last), body, end)
        builder.position_at_end(body)
        lane, everywhere = ir.IntType(32), ir.VectorType(ir.IntType(32), vector.count)(None)
        factor = builder.insert_element(vector(ir.Undefined), element(2, t, panel.dtype), lane(0))
        factors = builder.shuffle_vector(factor, vector(ir.Undefined), everywhere)
        row = builder.load(vector_at(6, builder.mul(element(3, t, types.int64), stride)), align=itemsize)
        sums = builder.fadd(total, builder.fmul(row, factors, flags=["contract"]), flags=["contract"])
        following = builder.add(t, place(1))
        builder.branch(head)
        for phi, at_first, later in ((t, first, following), (total, before, sums)):
            phi.add_incoming(at_first, entry)
            phi.add_incoming(later, body)
        builder.position_at_end(end)
        builder.store(total, target, align=itemsize)
        return context.get_dummy_value()

    return types.void(out, start, data, indices, first, last, panel), generate


@kernel
def _sum_narrow_rows(into, data, indices, first, last, panel):
    """into = data[first:last] @ panel[indices[first:last]] on a panel of any width, four rows at a time."""
    w, t = into.shape[0], first
    into[:] = 0
    while t + 4 <= last:
        v0, v1, v2, v3 = data[t], data[t + 1], data[t + 2], data[t + 3]
        r0, r1 = panel[indices[t]], panel[indices[t + 1]]
        r2, r3 = panel[indices[t + 2]], panel[indices[t + 3]]
        for k in range(w):
            into[k] += v0 * r0[k] + v1 * r1[k] + v2 * r2[k] + v3 * r3[k]
        t += 4
    while t < last:
        v, row = data[t], panel[indices[t]]
        for k in range(w):
            into[k] += v * row[k]
        t += 1


@kernel
def _cut(indices, indptr, n_blocks):
    """Where the non-zeros of each row pass from one block of columns to the next: (r, n_blocks + 1)."""
    cuts = np.empty((indptr.shape[0] - 1, n_blocks + 1), np.int64)
    for i in range(cuts.shape[0]):
        t, end = indptr[i], indptr[i + 1]
        for block in range(n_blocks):
            cuts[i, block] = t
            while t < end and indices[t] < (block + 1) * _CACHED_COLUMNS:
                t += 1
        cuts[i, n_blocks] = end
    return cuts


@kernel
def _inner_by_blocks(data, indices, indptr, other_data, other_indices, other_indptr, panel, out):
    """`csr_inner` with a panel as wide as registers, by blocks of columns that stay in the first-level cache."""
    r, width = out.shape[0], panel.shape[1]
    cuts = _cut(indices, indptr, -(-panel.shape[0] // _CACHED_COLUMNS))
    last_columns = np.empty((r, width), out.dtype)
    for first in range(0, out.shape[1], width):
        w = min(width, out.shape[1] - first)
        _spread(other_data, other_indices, other_indptr, first, panel, w, False)
        into, start = (out, first) if w == width else (last_columns, 0)
        for block in range(cuts.shape[1] - 1):
            for i in range(r):
                if block == 0:
                    into[i, start : start + width] = 0
                _add_rows(into[i], start, data, indices, cuts[i, block], cuts[i, block + 1], panel)
        if w < width:
            for i in range(r):
                for k in range(w):  # an array into a slice would compile its error messages: two seconds
                    out[i, first + k] = last_columns[i, k]
        panel[:] = 0


@kernel
def csr_inner(data, indices, indptr, other_data, other_indices, other_indptr, panel, out):
    """Inner products of the CSR rows of one set with those of another.

    Given   two CSR row sets of one dtype; panel (d, w) of zeros, given back so, whose rows are best `PANEL_BYTES`;
            out (r, c), overwritten
    Cost    nnz(one) c / w vector operations of w entries: a row's non-zeros scale dense rows of the panel, which holds
            w rows of the other set as columns
    Twin    one.toarray() @ other.toarray().T
    """
    width = panel.shape[1]
    if width * panel.itemsize == PANEL_BYTES:
        _inner_by_blocks(data, indices, indptr, other_data, other_indices, other_indptr, panel, out)
        return
    for first in range(0, out.shape[1], width):
        w = min(width, out.shape[1] - first)
        _spread(other_data, other_indices, other_indptr, first, panel, w, False)
        for i in range(out.shape[0]):
            _sum_narrow_rows(out[i, first : first + w], data, indices, indptr[i], indptr[i + 1], panel)
        _spread(other_data, other_indices, other_indptr, first, panel, w, True)


@kernel
def count_nonzeros(X, indptr):
    """Write into indptr (n + 1,) int64 where the non-zeros of each row of X (n, d) would start.

    Cost    one pass
    Twin    scipy.sparse.csr_array(X).indptr
    """
    indptr[0] = 0
    for i in range(X.shape[0]):
        count = 0
        row = X[i]
        for j in range(X.shape[1]):
            count += row[j] != 0
        indptr[i + 1] = indptr[i] + count


@kernel
def copy_nonzeros(X, data, indices):
    """Write the values and columns of the non-zeros of X (n, d), by rows; one entry more than there are is overwritten.

    Cost    one pass; no branch waits for a comparison
    Twin    scipy.sparse.csr_array(X)
    """
    t = 0
    for i in range(X.shape[0]):
        row = X[i]
        for j in range(X.shape[1]):
            data[t] = row[j]
            indices[t] = j
            t += row[j] != 0


@kernel
def csr_outputs(data, indices, indptr, W, size, turn, out):
    """Products of CSR rows with k vectors, added up in float64, in blocks of so many rows by `turns.take_turn`.

    Given   CSR rows (n, d); W (k, d) float64; turn, shared by the threads that call this; out (k, n) float64,
            overwritten
    Cost    k nnz multiplications; reads a block k times: it should fit a cache
    Twin    W @ one.toarray().T
    """
    n_blocks = -(-out.shape[1] // size)
    block = take_turn(turn, n_blocks)
    while block < n_blocks:
        first = block * size
        for c in range(out.shape[0]):
            w, into = W[c], out[c, first : first + size]
            for i in range(into.shape[0]):
                here = slice(indptr[first + i], indptr[first + i + 1])
                x, columns = data[here], indices[here]
                product = 0.0
                for t in range(x.shape[0]):
                    product += x[t] * w[np.uint64(columns[t])]  # unsigned: no test for a negative index
                into[i] = product
        block = take_turn(turn, n_blocks)


@kernel
def _add_weighted(data, indices, indptr, weights, rows, total):
    """Add rows of weights other than 0, first listed: each test of a weight would be guessed, often wrongly."""
    for k in range(pick(weights, rows)):
        i = rows[k]
        here, scale = slice(indptr[i], indptr[i + 1]), weights[i]
        x, columns = data[here], indices[here]
        for t in range(x.shape[0]):
            total[np.uint64(columns[t])] += scale * x[t]


@kernel
def csr_row_sums(data, indices, indptr, coef, since, size, group, turn, out):
    """Weighted sums of each block of CSR rows, so many sums at a time, by `turns.take_turn`.

    Given   CSR rows (n, d); coef (k, n) float64; since (k, n) float64, whose sums are subtracted, or (k, 0); turn,
            shared by the threads that call this; out (blocks, k, d) float64, overwritten
    Cost    a multiplication for each non-zero of a row whose weight is not zero
    Twin    coef @ one.toarray(), of each block
    """
    weights, rows = np.empty(TOGETHER), np.empty(TOGETHER, np.int64)
    total = np.empty(out.shape[2])  # apart from those of other threads: they would fight for the cache line between two
    n_groups = -(-coef.shape[0] // group)
    n_tasks = out.shape[0] * n_groups
    task = take_turn(turn, n_tasks)
    while task < n_tasks:
        block, sums = task // n_groups, task % n_groups * group
        last = min((block + 1) * size, coef.shape[1])
        for c in range(sums, min(sums + group, coef.shape[0])):
            total[:] = 0.0
            for first in range(block * size, last, TOGETHER):
                end = min(first + TOGETHER, last)
                some = load_weights(coef, since, c, first, end, weights)
                _add_weighted(data, indices, indptr[first : end + 1], some, rows, total)
            out[block, c] = total
        task = take_turn(turn, n_tasks)
