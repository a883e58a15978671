"""Compiled hinge risk with the best intercept: r(f) = min_b sum_i s_i max(0, 1 - y_i (f_i + b)).

With v_i = y_i - f_i the hinges are max(0, y_i (v_i - b)), and the best b is the smallest value up to which the weights s
sum to those of the positive rows.
"""

import math

from ._policy import kernel

_SAMPLE = 1024


@kernel
def _select(values, weights, level):
    """The smallest of the values up to which the weights sum to `level`. Both arrays are permuted. O(n) expected."""
    first, end = 0, values.shape[0]
    while end - first > 1:
        a, b, c = values[first], values[(first + end) // 2], values[end - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        below, here = 0.0, 0.0
        left, i, right = first, first, end
        while i < right:  # three ways: < pivot, = pivot, > pivot
            value = values[i]
            if value < pivot:
                below += weights[i]
                values[i], values[left] = values[left], value
                weights[i], weights[left] = weights[left], weights[i]
                left += 1
                i += 1
            elif value > pivot:
                right -= 1
                values[i], values[right] = values[right], value
                weights[i], weights[right] = weights[right], weights[i]
            else:
                here += weights[i]
                i += 1
        if level <= below and left > first:
            end = left
        elif level <= below + here or right == end:
            return pivot
        else:
            level -= below + here
            first = right
    return values[first]


@kernel
def _bounds(values, weights, level, total, pool):
    """Two values that probably enclose the quantile: those of a sample, a few standard errors to either side."""
    n = values.shape[0]
    stride = n // _SAMPLE
    mass = 0.0
    for i in range(_SAMPLE):
        pool[0, i] = values[i * stride]
        pool[1, i] = weights[i * stride]
        mass += pool[1, i]
    share = level / total
    margin = 4.0 * math.sqrt(share * (1.0 - share) / _SAMPLE) + 2.0 / _SAMPLE if 0.0 < share < 1.0 else 1.0
    sample, sample_weights = pool[0, :_SAMPLE], pool[1, :_SAMPLE]
    lo, hi = -math.inf, math.inf
    if share - margin > 0.0:
        lo = _select(sample, sample_weights, mass * (share - margin))
    if share + margin < 1.0:
        hi = _select(sample, sample_weights, mass * (share + margin))
    return lo, hi


@kernel
def _quantile(values, weights, level, pool):
    """As `_select`, leaving the arrays as they are: most rows are only compared with the bounds that a sample gives."""
    n = values.shape[0]
    lo, hi = -math.inf, math.inf
    if n >= 8 * _SAMPLE:
        total = 0.0
        for i in range(n):
            total += weights[i]
        lo, hi = _bounds(values, weights, level, total, pool)
    for attempt in range(2):
        below, upto, kept = 0.0, 0.0, 0
        for i in range(n):
            value, weight = values[i], weights[i]
            below += weight if value < lo else 0.0
            upto += weight if value <= hi else 0.0
            pool[0, kept] = value
            pool[1, kept] = weight
            kept += lo <= value <= hi
        if attempt == 1 or (below < level <= upto and kept > 0):
            break
        lo, hi = -math.inf, math.inf
    return _select(pool[0, :kept], pool[1, :kept], level - below)


@kernel
def _tie_shares(excess, plus, minus):
    """Which part of the positive and of the negative rows on the border count as violating, so that all balance."""
    if excess < 0.0:
        return (min(1.0, -excess / plus), 0.0) if plus > 0.0 else (0.0, 0.0)
    return (0.0, min(1.0, excess / minus)) if minus > 0.0 else (0.0, 0.0)


@kernel
def best_intercept(v, signed, level, weights, pool):
    """The b that minimises the hinges.

    Given   v, signed (n,) float64, signed = s y; level = the sum of s over y > 0; scratch: weights (n,), pool (2, n + 1)
    Returns b, one of v
    Cost    O(n) expected; Floyd and Rivest's selection, with weights
    Twin    tests/naive/cutting_plane.py::best_intercept
    """
    for i in range(v.shape[0]):
        weights[i] = abs(signed[i])
    return _quantile(v, weights, level, pool)


@kernel
def cut_profile(v, signed, b, coef):
    """The plane of the risk at v = y - f, with b their best intercept.

    Rows on the border count in part, so that sum_i coef_i = 0: the plane holds whatever the intercept.

    Given   v, signed (n,); coef (n,), overwritten
    Returns the risk; the plane's offset
    """
    risk, offset, excess, plus, minus = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(v.shape[0]):
        s = abs(signed[i])
        coef[i] = 0.0
        if v[i] == b:
            plus += s if signed[i] > 0.0 else 0.0
            minus += s if signed[i] < 0.0 else 0.0
        elif (v[i] > b) == (signed[i] > 0.0):
            risk += s * abs(v[i] - b)
            offset += s
            excess += signed[i]
            coef[i] = -signed[i]
    on_plus, on_minus = _tie_shares(excess, plus, minus)
    for i in range(v.shape[0]):
        if v[i] == b:
            share = on_plus if signed[i] > 0.0 else on_minus
            coef[i] = -share * signed[i]
            offset += share * abs(signed[i])
    return risk, offset


@kernel
def _slope(v, dv, g, k, settled, at, weights, pool):
    """Derivative of the risk at k, from the rows (v, dv, g) and those already settled."""
    level, excess, slope = settled
    if v.shape[0] == 0:
        return slope
    for i in range(v.shape[0]):
        at[i] = v[i] + k * dv[i]
        weights[i] = abs(g[i])
    b = _quantile(at[: v.shape[0]], weights[: v.shape[0]], level, pool)
    plus, minus, plus_slope, minus_slope = 0.0, 0.0, 0.0, 0.0
    for i in range(v.shape[0]):
        term = g[i] * dv[i]
        is_tie, is_violated = at[i] == b, (at[i] > b) == (g[i] > 0.0)
        excess += g[i] if is_violated and not is_tie else 0.0
        slope += term if is_violated and not is_tie else 0.0
        plus += g[i] if is_tie and g[i] > 0.0 else 0.0
        minus -= g[i] if is_tie and g[i] < 0.0 else 0.0
        plus_slope += term if is_tie and g[i] > 0.0 else 0.0
        minus_slope += term if is_tie and g[i] < 0.0 else 0.0
    on_plus, on_minus = _tie_shares(excess, plus, minus)
    return slope + on_plus * plus_slope + on_minus * minus_slope


@kernel
def _settle(v, dv, g, lo, hi, settled, at, weights, pool):
    """Keep at the front the rows that may change sides for lo <= k <= hi; return how many, and what the others add."""
    level, excess, slope = settled
    m = v.shape[0]
    for i in range(m):
        at[i] = min(v[i] + lo * dv[i], v[i] + hi * dv[i])
        weights[i] = abs(g[i])
    least = _quantile(at[:m], weights[:m], level, pool)
    for i in range(m):
        at[i] = max(v[i] + lo * dv[i], v[i] + hi * dv[i])
    most = _quantile(at[:m], weights[:m], level, pool)
    kept = 0
    for i in range(m):
        at_lo, at_hi = v[i] + lo * dv[i], v[i] + hi * dv[i]
        is_below, is_above = max(at_lo, at_hi) < least, min(at_lo, at_hi) > most
        is_violated = (is_below and g[i] < 0.0) or (is_above and g[i] > 0.0)
        level -= abs(g[i]) if is_below else 0.0
        excess += g[i] if is_violated else 0.0
        slope += g[i] * dv[i] if is_violated else 0.0
        v[kept], dv[kept], g[kept] = v[i], dv[i], g[i]
        kept += not (is_below or is_above)
    return kept, (level, excess, slope)


@kernel
def search_profile(v, dv, g, level, curvature, slope, lo, hi, at, weights, pool):
    """Minimise along a line, the intercept always at its best.

    Solve   min_k>=0  1/2 curvature k^2 + slope k + r(f + k df)
    Given   v = y - f, dv = -df, g = s y (n,) float64, permuted; level = the sum of s over y > 0; a guess of the bracket,
            0 <= lo < hi; scratch: at, weights (n,), pool (2, n + 1)
    Returns k, to 1e-13 of itself; exact once the bracket lies within one linear piece of the derivative
    Cost    O(n) expected: rows that cannot change sides within the bracket are settled and not looked at again
    Source  ours; the derivative is monotone, as the minimum over b of a jointly convex function is convex
    Twin    tests/naive/cutting_plane.py::search_profile
    """
    settled = (level, 0.0, 0.0)
    at_lo = curvature * lo + slope + _slope(v, dv, g, lo, settled, at, weights, pool)
    if at_lo >= 0.0:
        hi, lo = lo, 0.0
        at_hi, at_lo = at_lo, slope + _slope(v, dv, g, 0.0, settled, at, weights, pool)
        if at_lo >= 0.0:
            return 0.0
    else:
        at_hi = curvature * hi + slope + _slope(v, dv, g, hi, settled, at, weights, pool)
    while at_hi < 0.0 and hi < 1e300:
        lo, at_lo, hi = hi, at_hi, 2.0 * hi
        at_hi = curvature * hi + slope + _slope(v, dv, g, hi, settled, at, weights, pool)
    m, bisect = v.shape[0], False
    while hi - lo > 1e-13 * hi + 1e-16 and at_hi > 0.0:
        if m > 0:
            m, settled = _settle(v[:m], dv[:m], g[:m], lo, hi, settled, at, weights, pool)
        k = 0.5 * (lo + hi) if bisect else (lo * at_hi - hi * at_lo) / (at_hi - at_lo)
        if not lo < k < hi:
            break
        at_k = curvature * k + slope + _slope(v[:m], dv[:m], g[:m], k, settled, at, weights, pool)
        bisect = not bisect
        if at_k < 0.0:
            lo, at_lo = k, at_k
        else:
            hi, at_hi = k, at_k
    return hi
