"""Compiled hinge risk with the best intercept: r(f) = min_b sum_i s_i max(0, 1 - y_i (f_i + b)).

With v_i = y_i - f_i the hinges are max(0, y_i (v_i - b)), and the best b is the smallest value up to which the weights s
sum to those of the positive rows.
"""

from ._policy import kernel


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
def _tie_shares(excess, plus, minus):
    """Which part of the positive and of the negative rows on the border count as violating, so that all balance."""
    if excess < 0.0:
        return (min(1.0, -excess / plus), 0.0) if plus > 0.0 else (0.0, 0.0)
    return (0.0, min(1.0, excess / minus)) if minus > 0.0 else (0.0, 0.0)


@kernel
def best_intercept(v, signed, level, values, weights):
    """The b that minimises the hinges.

    Given   v, signed (n,) float64, signed = s y; level = the sum of s over y > 0; values, weights (n,), scratch
    Returns b, one of v
    Cost    O(n) expected
    Twin    tests/naive/cutting_plane.py::best_intercept
    """
    for i in range(v.shape[0]):
        values[i] = v[i]
        weights[i] = abs(signed[i])
    return _select(values, weights, level)


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
def _slope(v, dv, g, k, settled, values, weights, at):
    """Derivative of the risk at k, from the rows (v, dv, g) and those already settled."""
    level, excess, slope = settled
    for i in range(v.shape[0]):
        at[i] = v[i] + k * dv[i]
        values[i] = at[i]
        weights[i] = abs(g[i])
    b = _select(values, weights, level)
    plus, minus, plus_slope, minus_slope = 0.0, 0.0, 0.0, 0.0
    for i in range(v.shape[0]):
        term = g[i] * dv[i]
        if at[i] == b:
            plus += max(g[i], 0.0)
            minus -= min(g[i], 0.0)
            plus_slope += term if g[i] > 0.0 else 0.0
            minus_slope += term if g[i] < 0.0 else 0.0
        elif (at[i] > b) == (g[i] > 0.0):
            excess += g[i]
            slope += term
    on_plus, on_minus = _tie_shares(excess, plus, minus)
    return slope + on_plus * plus_slope + on_minus * minus_slope


@kernel
def _settle(v, dv, g, lo, hi, settled, values, weights):
    """Keep at the front the rows that may change sides for lo <= k <= hi; return how many, and what the others add."""
    level, excess, slope = settled
    m = v.shape[0]
    for i in range(m):
        values[i] = min(v[i] + lo * dv[i], v[i] + hi * dv[i])
        weights[i] = abs(g[i])
    least = _select(values, weights, level)
    for i in range(m):
        values[i] = max(v[i] + lo * dv[i], v[i] + hi * dv[i])
        weights[i] = abs(g[i])
    most = _select(values, weights, level)
    kept = 0
    for i in range(m):
        at_lo, at_hi = v[i] + lo * dv[i], v[i] + hi * dv[i]
        is_below = max(at_lo, at_hi) < least
        if is_below or min(at_lo, at_hi) > most:
            if is_below:
                level -= abs(g[i])
            if is_below == (g[i] < 0.0):
                excess += g[i]
                slope += g[i] * dv[i]
        else:
            v[kept], dv[kept], g[kept] = v[i], dv[i], g[i]
            kept += 1
    return kept, (level, excess, slope)


@kernel
def search_profile(v, dv, g, level, curvature, slope, guess, values, weights, at):
    """Minimise along a line, the intercept always at its best.

    Solve   min_k>=0  1/2 curvature k^2 + slope k + r(f + k df)
    Given   v = y - f, dv = -df, g = s y (n,) float64, permuted; level = the sum of s over y > 0; guess > 0;
            values, weights, at (n,), scratch
    Returns k, to 1e-13 of itself; exact once the bracket lies within one linear piece of the derivative
    Cost    O(n) expected: rows that cannot change sides within the bracket are settled and not looked at again
    Source  ours; the derivative is monotone, as the minimum over b of a jointly convex function is convex
    Twin    tests/naive/cutting_plane.py::search_profile
    """
    settled = (level, 0.0, 0.0)
    lo, at_lo = 0.0, slope + _slope(v, dv, g, 0.0, settled, values, weights, at)
    if at_lo >= 0.0:
        return 0.0
    hi = guess
    at_hi = curvature * hi + slope + _slope(v, dv, g, hi, settled, values, weights, at)
    while at_hi < 0.0 and hi < 1e300:
        lo, at_lo, hi = hi, at_hi, 2.0 * hi
        at_hi = curvature * hi + slope + _slope(v, dv, g, hi, settled, values, weights, at)
    m = v.shape[0]
    bisect = False
    while hi - lo > 1e-13 * hi and at_hi > 0.0:
        m, settled = _settle(v[:m], dv[:m], g[:m], lo, hi, settled, values[:m], weights[:m])
        k = 0.5 * (lo + hi) if bisect else (lo * at_hi - hi * at_lo) / (at_hi - at_lo)
        if not lo < k < hi:
            break
        at_k = curvature * k + slope + _slope(v[:m], dv[:m], g[:m], k, settled, values[:m], weights[:m], at[:m])
        bisect = not bisect
        if at_k < 0.0:
            lo, at_lo = k, at_k
        else:
            hi, at_hi = k, at_k
    return hi
