"""Compiled dual coordinate ascent for hinges: one row after another, in random order."""

import math

import numpy as np

from ._policy import borrower
from ._prefetch import prefetch, prefetch_range

_FAR = 2**23  # bytes of data that no cache is trusted to hold
_AHEAD = 8  # rows: the memory's answer takes about as long as their steps
_BYTES = 256  # of a row: the processor foresees the others


@borrower
def _expect(rows, d, i):
    """Have row i on its way when its turn comes: the processor foresees no random order."""
    first, end = i * d, (i + 1) * d
    if rows.starts.shape[0] > 0:
        first, end = rows.starts[i], rows.starts[i + 1]
        prefetch_range(rows.columns, first, min(end, first + _BYTES // rows.columns.itemsize))
    prefetch_range(rows.data, first, min(end, first + _BYTES // rows.data.itemsize))


@borrower
def _inner(rows, d, i, w):
    """The product of row i with w."""
    product = 0.0
    if rows.starts.shape[0] == 0:
        x = rows.data[i * d : (i + 1) * d]
        for j in range(d):
            product += x[j] * w[j]
    else:
        first, end = rows.starts[i], rows.starts[i + 1]
        x, columns = rows.data[first:end], rows.columns[first:end]  # slices: no test for a negative index
        for t in range(x.shape[0]):
            product += x[t] * w[np.uint64(columns[t])]
    return product


@borrower
def _square(rows, d, i):
    """Squared length of row i."""
    if rows.starts.shape[0] == 0:
        x = rows.data[i * d : (i + 1) * d]
    else:
        x = rows.data[rows.starts[i] : rows.starts[i + 1]]
    square = 0.0
    for t in range(x.shape[0]):
        square += float(x[t]) * float(x[t])
    return square


@borrower
def _add(rows, d, i, scale, w):
    """Add a multiple of row i to w."""
    if rows.starts.shape[0] == 0:
        x = rows.data[i * d : (i + 1) * d]
        for j in range(d):
            w[j] += scale * x[j]
    else:
        first, end = rows.starts[i], rows.starts[i + 1]
        x, columns = rows.data[first:end], rows.columns[first:end]
        for t in range(x.shape[0]):
            w[np.uint64(columns[t])] += scale * x[t]


@borrower
def ascend(rows, signed, C, sigma, alpha, w, order, border):
    """One epoch: each dual variable in turn at its best.

    Solve   max_a  sum a - 1/2 |sum a_i y_i x_i|^2 - b sum a_i y_i - sigma/2 (sum a_i y_i)^2   s.t.  0 <= a_i <= C s_i
    Given   rows; signed (n,) = s y; alpha (n,) feasible; w (d + 1,) = sum alpha_i y_i x_i, and last the intercept
            b + sigma sum alpha_i y_i, both updated; sigma 0 for none;
            order (m,) int64, the rows to visit, replaced at its head by those that are not set aside, in this order;
            border (2,), the largest and the least projected gradient of the epoch before, replaced: what lies at a
            bound beyond them is set aside
    Returns how many rows are not set aside
    Cost    three passes over a row that changes, one over the others
    Source  Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008, algorithm 3; the intercept by the method of multipliers
    Twin    tests/naive/cutting_plane.py::ascend
    """
    d = w.shape[0] - 1
    most, least = -math.inf, math.inf
    kept = 0
    is_far = rows.data.shape[0] * rows.data.itemsize > _FAR
    for k in range(order.shape[0]):
        if is_far:
            later = order[min(k + _AHEAD, order.shape[0] - 1)]
            _expect(rows, d, later)
            prefetch(signed, later)
            prefetch(alpha, later)
        i = order[k]
        y = 1.0 if signed[i] > 0.0 else -1.0
        upper, a = C * abs(signed[i]), alpha[i]
        grad = y * (_inner(rows, d, i, w) + w[d]) - 1.0
        if (a == 0.0 and grad > border[0]) or (a == upper and grad < border[1]):
            continue
        order[kept] = i
        kept += 1
        if (a == 0.0 and grad >= 0.0) or (a == upper and grad <= 0.0):
            most, least = max(most, 0.0), min(least, 0.0)
            continue
        most, least = max(most, grad), min(least, grad)
        curvature = _square(rows, d, i) + sigma
        new = min(max(a - grad / curvature, 0.0), upper) if curvature > 0.0 else upper
        if new != a:
            alpha[i] = new
            _add(rows, d, i, (new - a) * y, w)
            w[d] += sigma * (new - a) * y
    border[0] = most if most > 0.0 else math.inf
    border[1] = least if least < 0.0 else -math.inf
    return kept


@borrower
def add_rows(rows, coef, w):
    """Add rows, each with its weight, to a vector.

    Given   rows; coef (n,); w (d + 1,), its last entry left as it is
    Cost    a pass over the rows whose weight is not zero
    Twin    w[:d] += coef @ X.astype(float)
    """
    for i in range(coef.shape[0]):
        if coef[i] != 0.0:
            _add(rows, w.shape[0] - 1, i, coef[i], w)
