"""Compiled passes over dense rows: products with them, and sums of some of them. Everything adds up in float64."""

from ._policy import kernel
from ._prefetch import prefetch_range

_NARROW, _MANY = 512, 0.375  # bytes of a row, share of the rows: memory sends more of these faster than with gaps
_AHEAD = 16  # rows that are asked for in advance


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
def row_outputs(X, w, out):
    """Products of the rows of X with one vector.

    Given   X (n, d), C-contiguous; w (d,) float64; out (n,) float64, overwritten
    Cost    n d multiplications; reads X once
    Twin    X.astype(float) @ w
    """
    for i in range(X.shape[0]):
        total = 0.0
        row = X[i]
        for j in range(X.shape[1]):
            total += row[j] * w[j]
        out[i] = total


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
def _pick(weights, rows):
    """List the rows whose weight is not zero; return how many. No branch to mispredict."""
    count = 0
    for i in range(weights.shape[0]):
        rows[count] = i
        count += weights[i] != 0.0
    return count


@kernel
def _list(rows, n):
    """List all n rows; return how many."""
    for i in range(n):
        rows[i] = i
    return n


@kernel
def row_sum(X, coef, rows, out):
    """Weighted sums of the rows of X, one for each row of coef. Few rows are read that have weight 0.

    Given   X (n, d), C-contiguous; coef (k, n) float64; rows int64, scratch of n or more; out (k, d) float64, added to
    Cost    d multiplications for each non-zero of coef, or for every row where these are many and narrow; four rows at
            a time share the traffic of a sum
    Twin    out += coef @ X.astype(float)
    """
    for c in range(coef.shape[0]):
        weights = coef[c]
        total = out[c]
        count = _pick(weights, rows)
        if count > _MANY * X.shape[0] and X.shape[1] * X.itemsize <= _NARROW:
            count = _list(rows, X.shape[0])
        t = 0
        while t + 4 <= count:
            i0, i1, i2, i3 = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
            s0, s1, s2, s3 = weights[i0], weights[i1], weights[i2], weights[i3]
            x0, x1, x2, x3 = X[i0], X[i1], X[i2], X[i3]
            for j in range(X.shape[1]):
                total[j] += s0 * x0[j] + s1 * x1[j] + s2 * x2[j] + s3 * x3[j]
            t += 4
        while t < count:
            scale = weights[rows[t]]
            row = X[rows[t]]
            for j in range(X.shape[1]):
                total[j] += scale * row[j]
            t += 1


@kernel
def column_sum(X, coef, rows, out):
    """As `row_sum`, for X in Fortran's order.

    Given   X (n, d), F-contiguous; the rest as there
    """
    for c in range(coef.shape[0]):
        weights = coef[c]
        count = _pick(weights, rows)
        for j in range(X.shape[1]):
            column = X[:, j]
            total = 0.0
            for t in range(count):
                total += weights[rows[t]] * column[rows[t]]
            out[c, j] += total
