"""Compiled passes over dense rows: products with them, and sums of some of them. Everything adds up in float64."""

import numpy as np

from ._policy import kernel
from ._prefetch import prefetch_on, prefetch_range
from ._weights import TOGETHER, load_weights, pick
from .turns import take_turn

_NARROW, _MANY = 512, 0.375  # bytes of a row, share of the rows: memory sends more of these faster than with gaps
_MULTIPLIED = 256  # rows of a product of matrices
_AHEAD = 16  # rows that are asked for in advance
_AHEAD_BYTES = 8192  # where rows follow each other: the processor itself does not look beyond a page


@kernel
def are_finite(numbers, zero, size, turn):
    """Whether there is neither NaN nor infinity in the blocks of this size that are taken here.

    Given   numbers (n,); zero, of their dtype: times a finite number it is zero, which LLVM should not know it for;
            turn, as for `all_row_outputs`
    Cost    reads the numbers once
    Twin    np.isfinite(numbers).all(), of all threads' blocks
    """
    n, ahead, total = numbers.shape[0], _AHEAD_BYTES // numbers.itemsize, zero
    n_blocks = -(-n // size)
    block = take_turn(turn, n_blocks)
    while block < n_blocks:
        first = block * size
        end, asked = min(first + size, n), first
        for part in range(first, end, TOGETHER):
            asked = prefetch_on(numbers, asked, part + TOGETHER + ahead)
            few = numbers[part : min(part + TOGETHER, end)]
            for i in range(few.shape[0]):
                total += zero * few[i]
        block = take_turn(turn, n_blocks)
    return total == zero


@kernel
def take_rows(X, chosen, out):
    """Copy some rows.

    Given   X (n, d), C-contiguous; chosen (m,) int64; out (m, d), overwritten
    Twin    X[chosen]
    """
    d = X.shape[1]
    for k in range(chosen.shape[0]):
        later = chosen[min(k + _AHEAD, chosen.shape[0] - 1)] * d
        prefetch_range(X, later, later + d)
        row = X[chosen[k]]
        for j in range(d):
            out[k, j] = row[j]


@kernel
def all_taken_rows(X, chosen, size, turn, out):
    """`take_rows` in blocks of so many of the chosen rows, each taken by one of the threads with the same turn."""
    n_blocks = -(-chosen.shape[0] // size)
    block = take_turn(turn, n_blocks)
    while block < n_blocks:
        part = slice(block * size, (block + 1) * size)
        take_rows(X, chosen[part], out[part])
        block = take_turn(turn, n_blocks)


@kernel
def row_outputs(X, w, out):
    """Products of the rows of X with one vector.

    Given   X (n, d), C-contiguous; w (d,) float64; out (n,) float64, overwritten
    Cost    n d multiplications; reads X once; four rows at a time share the reading of w
    Twin    X.astype(float) @ w
    """
    n, d = X.shape
    ahead, asked, i = _AHEAD_BYTES // X.itemsize, 0, 0
    while i + 4 <= n:
        asked = prefetch_on(X, asked, (i + 4) * d + ahead)
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        p0, p1, p2, p3 = 0.0, 0.0, 0.0, 0.0
        for j in range(d):
            p0 += x0[j] * w[j]
            p1 += x1[j] * w[j]
            p2 += x2[j] * w[j]
            p3 += x3[j] * w[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = p0, p1, p2, p3
        i += 4
    while i < n:
        product = 0.0
        row = X[i]
        for j in range(d):
            product += row[j] * w[j]
        out[i] = product
        i += 1


@kernel
def all_row_outputs(X, w, size, turn, out):
    """`row_outputs` in blocks of so many rows, each taken by one of the threads that call this with the same turn."""
    n_blocks = -(-X.shape[0] // size)
    block = take_turn(turn, n_blocks)
    while block < n_blocks:
        rows = slice(block * size, (block + 1) * size)
        row_outputs(X[rows], w, out[rows])
        block = take_turn(turn, n_blocks)


@kernel
def column_outputs(X, w, out):
    """As `row_outputs`, for X in Fortran's order: column by column."""
    out[:] = 0.0
    for j in range(X.shape[1]):
        column = X[:, j]
        scale = w[j]
        for i in range(X.shape[0]):
            out[i] += scale * column[i]


@kernel
def _list(rows, n):
    """List all n rows; return how many."""
    for i in range(n):
        rows[i] = i
    return n


@kernel
def _add_rows(X, weights, rows, total):
    """`row_sum` of so few rows that their numbers fit the scratch."""
    n, d = X.shape
    is_narrow = d * X.itemsize <= _NARROW
    count = pick(weights, rows)
    are_all = is_narrow and count > _MANY * n
    if are_all:
        count = _list(rows, n)
    ahead, asked, t = _AHEAD_BYTES // X.itemsize, 0, 0
    while t + 4 <= count:
        if are_all:
            asked = prefetch_on(X, asked, (t + 4) * d + ahead)
        elif is_narrow:
            for k in range(t + _AHEAD, min(t + _AHEAD + 4, count)):
                prefetch_range(X, rows[k] * d, (rows[k] + 1) * d)
        i0, i1, i2, i3 = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
        s0, s1, s2, s3 = weights[i0], weights[i1], weights[i2], weights[i3]
        x0, x1, x2, x3 = X[i0], X[i1], X[i2], X[i3]
        for j in range(d):
            total[j] += s0 * x0[j] + s1 * x1[j] + s2 * x2[j] + s3 * x3[j]
        t += 4
    while t < count:
        scale = weights[rows[t]]
        row = X[rows[t]]
        for j in range(d):
            total[j] += scale * row[j]
        t += 1


@kernel
def row_sum(X, coef, rows, out):
    """Weighted sums of the rows of X, one for each row of coef. Few rows are read that have weight 0.

    Given   X (n, d), C-contiguous; coef (k, n) float64; rows int64, scratch: so many rows are looked at together;
            out (k, d) float64, added to
    Cost    d multiplications for each non-zero of coef, or for every row where these are many and narrow; four rows at
            a time share the traffic of a sum
    Twin    out += coef @ X.astype(float)
    """
    for c in range(coef.shape[0]):
        for first in range(0, X.shape[0], rows.shape[0]):
            end = min(first + rows.shape[0], X.shape[0])
            _add_rows(X[first:end], coef[c, first:end], rows, out[c])


@kernel
def all_row_sums(X, coef, since, size, turn, out):
    """Sums of each block of so many rows, taken by one of the threads that call this with the same turn.

    Given   X, coef as for `row_sum`; since (k, n) float64, whose sums are subtracted, or (k, 0); out (blocks, k, d)
            float64, overwritten
    Cost    that of `row_sum`, where rows of equal weights in coef and since have weight 0
    """
    weights, rows = np.empty(TOGETHER), np.empty(TOGETHER, np.int64)
    total = np.empty(X.shape[1])  # apart from those of other threads: they would fight for the cache line between two
    block = take_turn(turn, out.shape[0])
    while block < out.shape[0]:
        last = min((block + 1) * size, X.shape[0])
        for c in range(coef.shape[0]):
            total[:] = 0.0
            for first in range(block * size, last, TOGETHER):
                end = min(first + TOGETHER, last)
                _add_rows(X[first:end], load_weights(coef, since, c, first, end, weights), rows, total)
            out[block, c] = total
        block = take_turn(turn, out.shape[0])


@kernel
def all_moments(X, chosen, centre, factors, size, turn, out):
    """Second moments of some rows less their centre, each times a factor, in blocks as for `all_row_sums`.

    Given   X (n, d), C-contiguous; chosen (m,) int64; centre (d,), factors (m,) float64; out (blocks, d, d) float64,
            overwritten
    Cost    m d^2 multiplications, in products of matrices that fit a second-level cache; BLAS, with one thread each
    Twin    A.T @ A with A = (X[chosen] - centre) * factors[:, None]
    """
    d = X.shape[1]
    scaled, product, total = np.empty((_MULTIPLIED, d)), np.empty((d, d)), np.empty((d, d))
    block = take_turn(turn, out.shape[0])
    while block < out.shape[0]:
        last = min((block + 1) * size, chosen.shape[0])
        total[:] = 0.0
        for first in range(block * size, last, _MULTIPLIED):
            rows = chosen[first : min(first + _MULTIPLIED, last)]
            for k in range(rows.shape[0]):
                later = rows[min(k + _AHEAD, rows.shape[0] - 1)] * d
                prefetch_range(X, later, later + d)
                row, into, factor = X[rows[k]], scaled[k], factors[first + k]
                for j in range(d):
                    into[j] = (row[j] - centre[j]) * factor
            some = scaled[: rows.shape[0]]
            total += np.dot(some.T, some, product)
        out[block] = total
        block = take_turn(turn, out.shape[0])


@kernel
def column_sum(X, coef, rows, out):
    """As `row_sum`, for X in Fortran's order.

    Given   X (n, d), F-contiguous; the rest as there
    """
    for c in range(coef.shape[0]):
        for first in range(0, X.shape[0], rows.shape[0]):
            weights = coef[c, first : first + rows.shape[0]]
            count = pick(weights, rows)
            for j in range(X.shape[1]):
                column = X[first : first + rows.shape[0], j]
                total = 0.0
                for t in range(count):
                    total += weights[rows[t]] * column[rows[t]]
                out[c, j] += total
