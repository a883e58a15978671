"""Compiled exact line search along a sum of hinges, and what else is done with all rows' outputs.

The passes take blocks of `size` rows by `turns.take_turn`, so several threads may call them with the same turn.
"""

import numpy as np

from ._policy import kernel
from .turns import take_room, take_turn


@kernel
def scan_hinges(f, target, shifts, signed, lo, hi, size, turn, keys, jumps, room, places, slopes):
    """Where the derivative of r(k) = sum_i s_i max(0, 1 - y_i (f_i + k (target_i - f_i))) jumps, for lo < k < hi.

    Given   f, target (n,) float64, less their intercepts, which are in shifts; signed (n,) = s y; hi finite; keys,
            jumps (n,), their heads overwritten; room, places, as for `turns.take_room`; slopes (blocks,), overwritten
            with the derivative just after lo
    Cost    O(n), one pass; no branch to mispredict
    Source  Franc and Sonnenburg 2008, appendix A, table 5
    Twin    tests/naive/cutting_plane.py::hinge_slope
    """
    rows, found, rises = np.empty(size, np.int64), np.empty(size), np.empty(size)
    here, change = shifts[0], shifts[1] - shifts[0]
    block = take_turn(turn, places.shape[0])
    while block < places.shape[0]:
        part = slice(block * size, (block + 1) * size)
        g, end, weights = f[part], target[part], signed[part]
        slope, count = 0.0, 0
        for i in range(g.shape[0]):
            y = 1.0 if weights[i] > 0.0 else -1.0
            rate = -y * (end[i] - g[i] + change)
            at_lo = 1.0 - y * (g[i] + here) + lo * rate
            slope += abs(weights[i]) * rate if (at_lo > 0.0) | ((at_lo == 0.0) & (rate > 0.0)) else 0.0
        for i in range(g.shape[0]):
            y = 1.0 if weights[i] > 0.0 else -1.0
            rate = -y * (end[i] - g[i] + change)
            base = 1.0 - y * (g[i] + here)
            rows[count] = i  # overwritten by the next one unless it counts
            count += (base + lo * rate > 0.0) != (base + hi * rate > 0.0)
        kept = 0
        for t in range(count):
            i = rows[t]
            y = 1.0 if weights[i] > 0.0 else -1.0
            rate = -y * (end[i] - g[i] + change)
            key = (y * (g[i] + here) - 1.0) / rate
            found[kept], rises[kept] = key, abs(weights[i] * rate)
            kept += key > lo
        slopes[block] = slope
        first = take_room(room, places, block, kept)
        keys[first : first + kept], jumps[first : first + kept] = found[:kept], rises[:kept]
        block = take_turn(turn, places.shape[0])


@kernel
def advance_hinges(f, target, signed, step, mu, size, turn, coef, sums):
    """Move to the best point of the line, and read off the plane near it.

    Given   f (n,) outputs of the old best point, replaced by those of the new one, f + step (target - f);
            target, signed (n,) as above; coef (n,), overwritten: the plane's weight of each row; sums (blocks, 2),
            overwritten with the risk at the new best point and the plane's offset
    Cost    O(n), one pass or two
    Source  Franc and Sonnenburg 2008, equations 7 and 8 and the subgradient below 4
    """
    block = take_turn(turn, sums.shape[0])
    while block < sums.shape[0]:
        part = slice(block * size, (block + 1) * size)
        g, end, weights, slopes = f[part], target[part], signed[part], coef[part]
        if step != 0.0:  # else f may be the target itself, and the loop would not be vectorised
            for i in range(g.shape[0]):
                g[i] += step * (end[i] - g[i])
        risk, offset = 0.0, 0.0
        for i in range(g.shape[0]):
            s = abs(weights[i])
            y = 1.0 if weights[i] > 0.0 else -1.0
            risk += s * max(0.0, 1.0 - y * g[i])
            is_violated = 1.0 - y * (g[i] + mu * (end[i] - g[i])) > 0.0
            slopes[i] = -weights[i] if is_violated else 0.0
            offset += s if is_violated else 0.0
        sums[block, 0], sums[block, 1] = risk, offset
        block = take_turn(turn, sums.shape[0])


@kernel
def rounded_sides(f, shift, signed, width, size, turn, sums):
    """The slopes of positive and of negative rows in `rounded_hinges`, and how a shift changes them.

    Given   sums (blocks, 3), overwritten with the sum of s a over positive rows; over negative ones; minus the
            derivative of the first less the second
    Cost    O(n), one pass
    """
    block = take_turn(turn, sums.shape[0])
    while block < sums.shape[0]:
        part = slice(block * size, (block + 1) * size)
        g, weights = f[part], signed[part]
        plus, minus, rate = 0.0, 0.0, 0.0
        for i in range(g.shape[0]):
            s = abs(weights[i])
            y = 1.0 if weights[i] > 0.0 else -1.0
            a = min(1.0, max(0.0, 0.5 + (1.0 - y * (g[i] + shift)) / (2.0 * width)))
            plus += s * a if weights[i] > 0.0 else 0.0
            minus += s * a if weights[i] < 0.0 else 0.0
            rate += s if (a > 0.0) & (a < 1.0) else 0.0
        sums[block, 0], sums[block, 1], sums[block, 2] = plus, minus, rate / (2.0 * width)
        block = take_turn(turn, sums.shape[0])


@kernel
def rounded_hinges(f, shift, signed, width, plus, minus, size, turn, coef, sums):
    """Hinges with a rounded corner, s_i max_(0 <= a <= 1) a m_i + width a (1 - a) with m = 1 - y (f + shift).

    Given   f (n,) outputs, less their intercept, which is shift; signed (n,) = s y; width > 0; plus, minus, in [0, 1]:
            factors of the slopes a of positive and of negative rows; coef (n,), overwritten with -s y a; sums
            (blocks, 4), overwritten with their sum; sum_i s_i a_i; sum_i s_i (max(0, m_i) - a_i m_i), by how much that
            plane is below the hinges; the sum of the hinges
    Cost    O(n), one pass
    Source  Nesterov, Smooth minimization of non-smooth functions, Mathematical Programming 103, 2005
    Twin    tests/naive/cutting_plane.py::rounded_hinges
    """
    block = take_turn(turn, sums.shape[0])
    while block < sums.shape[0]:
        part = slice(block * size, (block + 1) * size)
        g, weights, slopes = f[part], signed[part], coef[part]
        value, offset, loss, risk = 0.0, 0.0, 0.0, 0.0
        for i in range(g.shape[0]):
            s = abs(weights[i])
            y = 1.0 if weights[i] > 0.0 else -1.0
            m = 1.0 - y * (g[i] + shift)
            risk += s * max(0.0, m)
            a = min(1.0, max(0.0, 0.5 + m / (2.0 * width)))
            value += s * (a * m + width * a * (1.0 - a))
            a *= plus if weights[i] > 0.0 else minus
            offset += s * a
            loss += s * (max(0.0, m) - a * m)
            slopes[i] = -weights[i] * a
        sums[block, 0], sums[block, 1], sums[block, 2], sums[block, 3] = value, offset, loss, risk
        block = take_turn(turn, sums.shape[0])


@kernel
def near_corner(f, shift, signed, distance, size, turn, rows, room, places):
    """List the rows with weight whose margin is near 1, the corner of their hinge. No branch.

    Given   f (n,) outputs, less their intercept, which is shift; signed (n,) = s y; rows (n,) int64, its head
            overwritten; room, places as in `scan_hinges`
    Cost    O(n), one pass
    Twin    np.flatnonzero((np.abs(1 - np.sign(signed) * (f + shift)) <= distance) & (signed != 0))
    """
    found = np.empty(size, np.int64)
    block = take_turn(turn, places.shape[0])
    while block < places.shape[0]:
        first = block * size
        g, weights = f[first : first + size], signed[first : first + size]
        count = 0
        for i in range(g.shape[0]):
            y = 1.0 if weights[i] > 0.0 else -1.0
            found[count] = first + i
            count += (abs(1.0 - y * (g[i] + shift)) <= distance) & (weights[i] != 0.0)
        into = take_room(room, places, block, count)
        rows[into : into + count] = found[:count]
        block = take_turn(turn, places.shape[0])


@kernel
def _swap(a, b, i, j):
    a[i], a[j] = a[j], a[i]
    b[i], b[j] = b[j], b[i]


@kernel
def _median(keys, first, end):
    """The middle one of three keys."""
    a, b, c = keys[first], keys[(first + end) // 2], keys[end - 1]
    return max(min(a, b), min(max(a, b), c))


@kernel
def find_root(keys, jumps, curvature, slope, lo):
    """The k >= lo where a line with upward jumps crosses zero.

    Solve   0 in curvature k + slope + sum of jumps[keys < k]   (at a key: anything within its jump)
    Given   keys, jumps (m,), all keys > lo, jumps >= 0, in any order (permuted); curvature > 0
    Returns k; lo if the derivative is not negative just after it
    Cost    O(m) expected: quickselect, one side of each pivot is never looked at again
    Source  Franc and Sonnenburg 2008, appendix A, with selection instead of their sort
    Twin    tests/naive/cutting_plane.py::find_root
    """
    if curvature * lo + slope >= 0.0:
        return lo
    first, end = 0, keys.shape[0]
    while first < end:
        pivot = _median(keys, first, end)
        below, here = 0.0, 0.0
        left, i, right = first, first, end
        while i < right:  # three ways: keys < pivot, = pivot, > pivot
            if keys[i] < pivot:
                below += jumps[i]
                _swap(keys, jumps, left, i)
                left += 1
                i += 1
            elif keys[i] > pivot:
                right -= 1
                _swap(keys, jumps, i, right)
            else:
                here += jumps[i]
                i += 1
        before = curvature * pivot + slope + below
        if before >= 0.0:
            end = left
        elif before + here >= 0.0:
            return pivot
        else:
            slope += below + here
            first = right
    return -slope / curvature
