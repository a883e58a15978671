"""Compiled dual coordinate ascent for hinges: one row after another, in random order."""

import math

import numpy as np

from ._policy import kernel

_STEP = np.uint64(6364136223846793005)  # Knuth's linear congruential generator: the upper half of the state is random
_ADD = np.uint64(1442695040888963407)
_HALF = np.uint64(32)
_WINDOW = 4096


@kernel
def _inner(rows, d, i, w):
    """The product of row i with w, and its squared length."""
    data = rows.data
    product, square = 0.0, 0.0
    if rows.starts.shape[0] == 0:
        x = data[i * d : (i + 1) * d]
        for j in range(d):
            product += x[j] * w[j]
            square += x[j] * x[j]
    else:
        for t in range(rows.starts[i], rows.starts[i + 1]):
            product += data[t] * w[np.uint64(rows.columns[t])]  # unsigned: no test for a negative index
            square += data[t] * data[t]
    return product, square


@kernel
def _add(rows, d, i, scale, w):
    """Add a multiple of row i to w."""
    data = rows.data
    if rows.starts.shape[0] == 0:
        x = data[i * d : (i + 1) * d]
        for j in range(d):
            w[j] += scale * x[j]
    else:
        for t in range(rows.starts[i], rows.starts[i + 1]):
            w[np.uint64(rows.columns[t])] += scale * data[t]


@kernel
def _draw(random, n):
    """A number below n."""
    random[0] = random[0] * _STEP + _ADD
    return np.int64(((random[0] >> _HALF) * np.uint64(n)) >> _HALF)


@kernel
def ascend(rows, signed, C, sigma, alpha, w, order, active, border, random):
    """One epoch over the active rows: each dual variable in turn at its best.

    Solve   max_a  sum a - 1/2 |sum a_i y_i x_i|^2 - b sum a_i y_i - sigma/2 (sum a_i y_i)^2   s.t.  0 <= a_i <= C s_i
    Given   rows; signed (n,) = s y; alpha (n,) feasible; w (d + 1,) = sum alpha_i y_i x_i, and last the intercept
            b + sigma sum alpha_i y_i, both updated; sigma 0 for none;
            order (n,) int32, a permutation whose first `active` entries are visited; border (2,), the largest and the
            least projected gradient of the epoch before, replaced: what lies at a bound beyond them is set aside;
            random (1,) uint64
    Returns how many rows stay active
    Cost    two passes over a row that changes, one over the others
    Source  Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008, algorithm 3; the intercept by the method of multipliers
    Twin    tests/naive/cutting_plane.py::ascend
    """
    d = w.shape[0] - 1
    most, least = -math.inf, math.inf
    k = 0
    while k < active:
        other = k + _draw(random, min(active - k, _WINDOW))
        i = order[other]
        order[other], order[k] = order[k], i
        y = 1.0 if signed[i] > 0.0 else -1.0
        upper, a = C * abs(signed[i]), alpha[i]
        product, square = _inner(rows, d, i, w)
        grad = y * (product + w[d]) - 1.0
        if (a == 0.0 and grad > border[0]) or (a == upper and grad < border[1]):
            active -= 1
            order[k], order[active] = order[active], i
            continue
        k += 1
        if (a == 0.0 and grad >= 0.0) or (a == upper and grad <= 0.0):
            most, least = max(most, 0.0), min(least, 0.0)
            continue
        most, least = max(most, grad), min(least, grad)
        curvature = square + sigma
        new = min(max(a - grad / curvature, 0.0), upper) if curvature > 0.0 else upper
        if new != a:
            alpha[i] = new
            _add(rows, d, i, (new - a) * y, w)
            w[d] += sigma * (new - a) * y
    border[0] = most if most > 0.0 else math.inf
    border[1] = least if least < 0.0 else -math.inf
    return active
