"""Compiled hinge risk with the best intercept: r(f) = min_b sum_i s_i max(0, 1 - y_i (f_i + b)).

With v_i = y_i - f_i the hinges are max(0, y_i (v_i - b)), and the best b is the smallest value up to which the weights
s sum to those of the positive rows. The passes take blocks of `size` rows by `turns.take_turn`, as in `linesearch`.
"""

import numpy as np

from ._policy import kernel
from .turns import take_room, take_turn


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
def find_quantile(values, weights, level):
    """The smallest of the values up to which the weights sum to `level`: the best intercept, of values y - f.

    Given   values, weights (n,) float64, permuted
    Cost    O(n) expected
    Twin    tests/naive/cutting_plane.py::profile_risk
    """
    return _select(values, weights, level)


@kernel
def values_between(f, target, k, signed, lo, hi, size, turn, values, kept, weights, room, places, sums):
    """The values y - f at f + k (target - f), and those of them that a quantile is known to be among.

    Given   f, target, signed (n,) = s y; values (n,), overwritten; kept, weights (n,), their heads overwritten with
            the values in [lo, hi] and their s; room, places as in `linesearch.scan_hinges`; sums (blocks, 2),
            overwritten with the weight of values below lo, and of those up to hi
    Cost    O(n), one pass; no branch to mispredict
    Source  Floyd and Rivest, Expected Time Bounds for Selection, CACM 18, 1975, with weights
    """
    found, theirs = np.empty(size), np.empty(size)
    block = take_turn(turn, places.shape[0])
    while block < places.shape[0]:
        part = slice(block * size, (block + 1) * size)
        g, end, some, out = f[part], target[part], signed[part], values[part]
        count, below, upto = 0, 0.0, 0.0
        for i in range(g.shape[0]):
            s = abs(some[i])
            value = (1.0 if some[i] > 0.0 else -1.0) - (g[i] + k * (end[i] - g[i]))
            out[i] = value
            below += s if value < lo else 0.0
            upto += s if value <= hi else 0.0
            found[count], theirs[count] = value, s
            count += (lo <= value) & (value <= hi)
        sums[block, 0], sums[block, 1] = below, upto
        first = take_room(room, places, block, count)
        kept[first : first + count], weights[first : first + count] = found[:count], theirs[:count]
        block = take_turn(turn, places.shape[0])


@kernel
def advance_profile(f, target, signed, step, best, values, near, size, turn, coef, sums):
    """Move to the best point of the line, and read off the plane near it, but for the rows on the border.

    Given   f (n,) outputs of the old best point, replaced by those of the new one, f + step (target - f); target,
            signed (n,); best, the new point's best intercept; values (n,), y - f near it, and near, their best
            intercept; coef (n,), overwritten: the plane's weight of each row; sums (blocks, 5), overwritten with the
            risk at the new best point; the plane's offset; the excess of s y over violating rows; the weight of
            positive and of negative rows on the border
    Cost    O(n), one pass or two
    """
    block = take_turn(turn, sums.shape[0])
    while block < sums.shape[0]:
        part = slice(block * size, (block + 1) * size)
        g, end, weights, at, slopes = f[part], target[part], signed[part], values[part], coef[part]
        if step != 0.0:  # else f may be the target itself, and the loop would not be vectorised
            for i in range(g.shape[0]):
                g[i] += step * (end[i] - g[i])
        risk, offset, excess, plus, minus = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(g.shape[0]):
            s = abs(weights[i])
            is_positive = weights[i] > 0.0
            y = 1.0 if is_positive else -1.0
            risk += s * max(0.0, 1.0 - y * (g[i] + best))
            is_violated = ((at[i] > near) & is_positive) | ((at[i] < near) & (not is_positive))
            offset += s if is_violated else 0.0
            excess += weights[i] if is_violated else 0.0
            slopes[i] = -weights[i] if is_violated else 0.0
            plus += s if (at[i] == near) & is_positive else 0.0
            minus += s if (at[i] == near) & (not is_positive) else 0.0
        total = sums[block]
        total[0], total[1], total[2], total[3], total[4] = risk, offset, excess, plus, minus
        block = take_turn(turn, sums.shape[0])


@kernel
def share_border(values, signed, near, on_plus, on_minus, coef):
    """Let rows on the border count in part: which part of the positive and of the negative ones. coef is updated."""
    for i in range(values.shape[0]):
        if values[i] == near:
            coef[i] = -(on_plus if signed[i] > 0.0 else on_minus) * signed[i]
