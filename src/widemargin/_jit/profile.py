"""Compiled hinge risk with the best intercept: r(f) = min_b sum_i s_i max(0, 1 - y_i (f_i + b)).

With v_i = y_i - f_i the hinges are max(0, y_i (v_i - b)), and the best b is the smallest value up to which the weights
s sum to those of the positive rows.
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
            kept += (lo <= value) & (value <= hi)
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
def find_quantile(values, weights, level, pool):
    """The smallest of the values up to which the weights sum to `level`: the best intercept, of values y - f.

    Given   values, weights (n,) float64; scratch: pool (2, n)
    Cost    O(n) expected; Floyd and Rivest's selection, with weights
    Twin    tests/naive/cutting_plane.py::profile_risk
    """
    return _quantile(values, weights, level, pool)


@kernel
def advance_values(f, target, signed, step, mu, best, near):
    """Move f to f + step (target - f) in place, and write y - f there and at the point of the plane. O(n)."""
    for i in range(f.shape[0]):
        y = 1.0 if signed[i] > 0.0 else -1.0
        f[i] += step * (target[i] - f[i])
        best[i] = y - f[i]
        near[i] = y - (f[i] + mu * (target[i] - f[i]))


@kernel
def cut_profile(v, signed, b, coef):
    """The plane of the risk at v = y - f, with b their best intercept, but for the rows on the border.

    Given   v, signed (n,); coef (n,), overwritten
    Returns the risk; the plane's offset; the excess of s y over violating rows; the weight of positive and of negative
            rows on the border
    """
    risk, offset, excess, plus, minus = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(v.shape[0]):
        s = abs(signed[i])
        is_violated = ((v[i] > b) & (signed[i] > 0.0)) | ((v[i] < b) & (signed[i] < 0.0))
        risk += s * abs(v[i] - b) if is_violated else 0.0
        offset += s if is_violated else 0.0
        excess += signed[i] if is_violated else 0.0
        coef[i] = -signed[i] if is_violated else 0.0
        plus += s if (v[i] == b) & (signed[i] > 0.0) else 0.0
        minus += s if (v[i] == b) & (signed[i] < 0.0) else 0.0
    return risk, offset, excess, plus, minus


@kernel
def share_border(v, signed, b, excess, plus, minus, coef):
    """Let rows on the border count in part, so that the coefficients sum to zero: the plane holds for every intercept.

    Given   what `cut_profile` has returned, over all rows; coef (n,), updated
    Returns what this adds to the plane's offset
    """
    on_plus, on_minus = _tie_shares(excess, plus, minus)
    for i in range(v.shape[0]):
        if v[i] == b:
            coef[i] = -(on_plus if signed[i] > 0.0 else on_minus) * signed[i]
    return on_plus * plus + on_minus * minus


@kernel
def settle_hinges(f, target, signed, lo, hi, least, most, v, dv, g):
    """As `settle_profile` for rows not yet looked at, with a guess of where the intercept lies for lo <= k <= hi.

    Given   f, target, signed (n,); v, dv, g (n,), their heads overwritten with the rows that are kept
    Returns how many are kept; the weight below, the excess and the derivative of the others; the weight of rows that
            come below `least`, and of those that never come above `most`: at most and at least the level if the guess
            is right
    """
    kept, below, excess, slope, under, within = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(f.shape[0]):
        s = abs(signed[i])
        rate = f[i] - target[i]
        value = (1.0 if signed[i] > 0.0 else -1.0) - f[i]
        at_lo, at_hi = value + lo * rate, value + hi * rate
        low, high = min(at_lo, at_hi), max(at_lo, at_hi)
        is_below, is_above = high < least, low > most
        is_violated = (is_below & (signed[i] < 0.0)) | (is_above & (signed[i] > 0.0))
        below += s if is_below else 0.0
        excess += signed[i] if is_violated else 0.0
        slope += signed[i] * rate if is_violated else 0.0
        under += s if low < least else 0.0
        within += s if high <= most else 0.0
        v[kept], dv[kept], g[kept] = value, rate, signed[i]
        kept += not (is_below | is_above)
    return kept, below, excess, slope, under, within


@kernel
def profile_slope(v, dv, g, k, settled, at, weights, pool):
    """Derivative of the risk along the line v + k dv, the intercept always at its best.

    Given   v, dv, g = s y (m,) float64, the rows that are not settled; settled: the level that is left for their
            weights, the excess of g and the derivative of the others; scratch: at, weights (>= m,), pool (2, >= m)
    Cost    O(m) expected
    Twin    tests/naive/cutting_plane.py::profile_slope
    """
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
        is_violated = ((at[i] > b) & (g[i] > 0.0)) | ((at[i] < b) & (g[i] < 0.0))
        is_plus, is_minus = (at[i] == b) & (g[i] > 0.0), (at[i] == b) & (g[i] < 0.0)
        excess += g[i] if is_violated else 0.0
        slope += term if is_violated else 0.0
        plus += g[i] if is_plus else 0.0
        minus -= g[i] if is_minus else 0.0
        plus_slope += term if is_plus else 0.0
        minus_slope += term if is_minus else 0.0
    on_plus, on_minus = _tie_shares(excess, plus, minus)
    return slope + on_plus * plus_slope + on_minus * minus_slope


@kernel
def settle_profile(v, dv, g, lo, hi, settled, at, weights, pool):
    """Keep at the front the rows that may change sides for lo <= k <= hi.

    Between the least and the most that the best intercept can be, which are quantiles of the rows' least and most.

    Given   as `profile_slope`; v, dv, g are overwritten
    Returns how many are kept; `settled` with the others
    """
    level, excess, slope = settled
    m = v.shape[0]
    if m == 0:
        return 0, settled
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
        is_violated = (is_below & (g[i] < 0.0)) | (is_above & (g[i] > 0.0))
        level -= abs(g[i]) if is_below else 0.0
        excess += g[i] if is_violated else 0.0
        slope += g[i] * dv[i] if is_violated else 0.0
        v[kept], dv[kept], g[kept] = v[i], dv[i], g[i]
        kept += not (is_below | is_above)
    return kept, (level, excess, slope)
