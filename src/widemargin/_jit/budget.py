"""Compiled steps of stochastic gradient descent on a machine of at most `budget` points.

One row against all points is a sum over its non-zeros of multiples of rows of `points`: every loop over slots is
vectorised, whether the row was dense or sparse. A step of size 1 / (lam t) that first scales by 1 - 1 / t gives

    lam t w_{t+1} = lam (t - 1) w_t + s_i y_i phi(x_i) [y_i f(x_i) < 1]

so the left side is what is kept: nothing is ever scaled, nothing can underflow.
"""

import math

import numpy as np

from ._policy import borrower, pasted_borrower

STEPS, FRONT, BACK, VIOLATIONS, MERGERS, REMOVALS = range(6)
BIAS, BIAS_LAG, CLOCK, WEIGHT, WEIGHTS, HINGE, DEGRADATION = range(7)
COEF, LAG, SIZE, SCALE, LEAST = range(5)  # the last one in hand alone: no coefficient is smaller
PLACE, LOSS = range(2)  # the tables: of h, and of the root of wd
EXPONENT, KAPPA, _PRODUCT, _POWER, _SHARE, _H, _SCORE, _LOW, _S0, _S1 = range(10)
GOLDEN = 0.6180339887498949


@borrower
def _load(rows, i, shift, x, columns):
    """Gather the non-zeros of row i, less the shift, and their columns; returns how many, and their sum of squares."""
    square, n, left, first, is_sparse = 0.0, x.size, 0, i * x.size, rows.starts.size > 0
    if is_sparse:
        first = rows.starts[i]
        n = rows.starts[i + 1] - first
    for t in range(n):
        column = rows.columns[first + t] if is_sparse else np.int32(t)
        value = rows.data[first + t] - shift[column]
        x[left], columns[left] = value, column  # written over, if it is zero
        left += value != 0
        square += np.float64(value) * value
    return left, square


@borrower
def _products(x, columns, n, points, out):
    """Inner products of one row's n non-zeros with all points."""
    out[:] = 0
    k = 0
    while k + 4 <= n:
        v0, v1, v2, v3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        r0, r1 = points[columns[k]], points[columns[k + 1]]
        r2, r3 = points[columns[k + 2]], points[columns[k + 3]]
        for j in range(out.size):
            out[j] += v0 * r0[j] + v1 * r1[j] + v2 * r2[j] + v3 * r3[j]
        k += 4
    while k < n:
        v = x[k]
        r = points[columns[k]]
        for j in range(out.size):
            out[j] += v * r[j]
        k += 1


@borrower
def _expm1(values, power, bits):
    """Replace x in [-87, 0] by exp(x) - 1, exact near 0 too; power, bits: scratch, one memory as float32 and int32."""
    f = np.float32
    for j in range(values.size):
        x = values[j]
        x = x if x > f(-87.0) else f(-87.0)
        k = np.floor(x * f(1.44269504) + f(0.5))
        r = x - k * f(0.693359375) + k * f(2.12194440e-4)
        p = (f(1.9875691e-4) * r + f(1.39819995e-3)) * r + f(8.33345191e-3)
        p = ((p * r + f(4.16657959e-2)) * r + f(1.66666655e-1)) * r + f(0.5)
        values[j] = p * r * r + r
        bits[j] = (np.int32(k) + np.int32(127)) << np.int32(23)
    for j in range(values.size):
        values[j] = values[j] * power[j] + (power[j] - f(1.0))


@borrower
def _meet(n, gamma, machine):
    """The row in hand, of n non-zeros, against all points: ln kappa and kappa."""
    f, rows, slots = np.float32, machine.work.rows, machine.slots
    product, exponent, kappa = rows[_PRODUCT], rows[EXPONENT], rows[KAPPA]
    _products(machine.x, machine.columns, n, machine.points, product)
    two_gamma, s = f(2.0 * gamma), f(machine.hand[SIZE])
    for j in range(product.size):
        e = two_gamma * f(slots[SCALE, j]) * product[j] - s - f(slots[SIZE, j])
        exponent[j] = kappa[j] = e if e < f(0.0) else f(0.0)
    _expm1(kappa, rows[_POWER], machine.work.bits[_POWER])
    for j in range(product.size):
        kappa[j] += f(1.0)


@borrower
def _put(n, machine):
    """Give the row in hand a slot, on the side of its sign."""
    points, slots, counts, hand = machine.points, machine.slots, machine.counts, machine.hand
    is_front = hand[COEF] > 0.0
    at = counts[FRONT] if is_front else points.shape[1] - 1 - counts[BACK]
    counts[FRONT if is_front else BACK] += 1
    points[:, at] = 0
    for k in range(n):
        points[machine.columns[k], at] = machine.x[k]
    for row in range(4):
        slots[row, at] = hand[row]
    hand[LEAST] = min(hand[LEAST], abs(hand[COEF]))


@borrower
def _find_lighter(coef, a):
    """The slot of the smallest coefficient, or -1 if none is smaller than the one in hand."""
    n_lighter, least, slot = 0, abs(a), -1
    for j in range(coef.size):
        n_lighter += (abs(coef[j]) < least) & (coef[j] != 0.0)
    for j in range(coef.size if n_lighter > 0 else 0):  # with weights only: otherwise new points are the lightest
        if abs(coef[j]) < least and coef[j] != 0.0:
            slot, least = j, abs(coef[j])
    return slot


@borrower
def _exchange(n, i, machine):
    """Put the row in hand into a slot, and take point i out instead; returns its number of non-zeros."""
    _put(n, machine)
    points, slots, counts = machine.points, machine.slots, machine.counts
    is_front = slots[COEF, i] > 0.0
    last = counts[FRONT] - 1 if is_front else points.shape[1] - counts[BACK]
    counts[FRONT if is_front else BACK] -= 1
    n, scale = 0, np.float32(slots[SCALE, i])
    for k in range(points.shape[0]):
        machine.x[n], machine.columns[n] = scale * points[k, i], k
        n += points[k, i] != 0
        points[k, i] = points[k, last]
    for row in range(4):
        machine.hand[row], slots[row, i] = slots[row, i], slots[row, last]
    machine.hand[SCALE], slots[COEF, last], slots[LAG, last] = 1.0, 0.0, 0.0
    return n


@borrower
def _value(h, m, log_kappa):
    """s(h) - 1."""
    return m * math.expm1((1.0 - h) ** 2 * log_kappa) + (1.0 - m) * math.expm1(h * h * log_kappa)


@borrower
def golden_section(m, log_kappa, precision):
    """Maximise s(h) = m kappa^((1 - h)^2) + (1 - m) kappa^(h^2) over h in [1/2, 1].

    Given   m in [1/2, 1]: then the maximum over [0, 1] lies there, and s has no other one there
    Returns h, the better inner point of a bracket of width `precision`: two exponentials for each factor 0.618
    Twin    tests/naive/budget.py::best_h
    """
    low, width = 0.5, 0.5
    x0, x1 = low + (1.0 - GOLDEN) * width, low + GOLDEN * width
    s0, s1 = _value(x0, m, log_kappa), _value(x1, m, log_kappa)
    while width > precision:
        width *= GOLDEN
        is_left = s0 > s1
        low = low if is_left else x0
        x = low + (1.0 - GOLDEN if is_left else GOLDEN) * width
        s = _value(x, m, log_kappa)
        x0, s0, x1, s1 = (x, s, x0, s0) if is_left else (x1, s1, x, s)
    return x0 if s0 > s1 else x1


@borrower
def _look_up_all(tables, which, share, kappa, work, out):
    """Bilinear interpolation for every partner: places, one load of 16 bytes each, weights. Only loads are scalar."""
    f = np.float32
    n, cells, corners, side = out.size, tables.cells[which], work.corners, tables.pairs.shape[1]
    at, u, v = work.bits[_LOW], work.rows[_S0], work.rows[_S1]
    last, most = f(side), f(side - 1)
    for j in range(n):
        a, b = (share[j] + share[j] - f(1.0)) * last, kappa[j] * last
        row, column = np.floor(a), np.floor(b)
        row = row if row < most else most
        column = column if column < most else most
        at[j] = np.int32(row * (last + f(1.0)) + column)  # whole numbers up to 2^24 are exact in float32
        u[j], v[j] = a - row, b - column
    for j in range(n):
        work.found[j] = cells[np.uint32(at[j])]
    for j in range(n):
        low = corners[4 * j] + v[j] * (corners[4 * j + 2] - corners[4 * j])
        high = corners[4 * j + 1] + v[j] * (corners[4 * j + 3] - corners[4 * j + 1])
        out[j] = low + u[j] * (high - low)


@borrower
def _values(h, share, exponent, work, out):
    """s(h) - 1 for every partner."""
    one, n = np.float32(1.0), h.size
    left, right = work.parts[:n], work.parts[n : 2 * n]
    for j in range(n):
        left[j] = (one - h[j]) * (one - h[j]) * exponent[j]
        right[j] = h[j] * h[j] * exponent[j]
    _expm1(work.parts[: 2 * n], work.powers, work.power_bits)
    for j in range(n):
        out[j] = right[j] + share[j] * (left[j] - right[j])


@borrower
def _search_all(share, exponent, kappa, h, low, s0, s1, new, work, precision):
    """Fill h by `golden_section` for every partner at once: brackets differ, their width does not.

    Then one step of Newton's method from the last point looked at, whose exponentials are still there: beside a heavy
    point the best 1 - h is smaller than any bracket. Where s bends upwards, that point or h = 1, whichever is better.
    """
    f, n = np.float32, h.size
    golden, rest, width = f(GOLDEN), f(1.0 - GOLDEN), f(0.5)
    low[:] = f(0.5)
    h[:] = f(0.5) + golden * width
    _values(h, share, exponent, work, s1)
    h[:] = f(0.5) + rest * width
    _values(h, share, exponent, work, s0)
    while width > f(precision):
        step, width = rest * width, golden * width
        for j in range(n):
            low[j] = low[j] if s0[j] > s1[j] else low[j] + step
            h[j] = low[j] + (rest * width if s0[j] > s1[j] else golden * width)
        _values(h, share, exponent, work, new)
        for j in range(n):
            old0, old1 = s0[j], s1[j]
            s0[j] = new[j] if old0 > old1 else old1
            s1[j] = old0 if old0 > old1 else new[j]
    for j in range(n):
        x, away, log_kappa = h[j], f(1.0) - h[j], exponent[j]
        near, far = share[j] * (f(1.0) + work.parts[j]), (f(1.0) - share[j]) * (f(1.0) + work.parts[n + j])
        bend = near * (f(1.0) + f(2.0) * away * away * log_kappa) + far * (f(1.0) + f(2.0) * x * x * log_kappa)
        still = x if near + far > share[j] + (f(1.0) - share[j]) * kappa[j] else f(1.0)
        x = x + (away * near - x * far) / (bend if bend > f(0.0) else f(1.0))  # s' and s'' over 2 ln kappa
        x = x if x > low[j] else low[j]
        x = x if x < low[j] + width else low[j] + width
        h[j] = x if bend > f(0.0) else still


@borrower
def _degradations(ratio, h, exponent, work, out):
    """(1 - B^2) + r^2 (1 - A^2) - 2 r (A B - kappa), r = a_j / a: the squared degradation over a^2, h being known.

    A and B: k(z, x_j) and k(z, x_i). A plain 1 - s^2 has no digits left for near copies, and beside heavy points.
    """
    f, n, parts = np.float32, h.size, work.parts
    for j in range(n):
        cross = f(2.0) * h[j] * (f(1.0) - h[j])
        parts[j] = f(2.0) * (f(1.0) - h[j]) * (f(1.0) - h[j]) * exponent[j]
        parts[n + j] = f(2.0) * h[j] * h[j] * exponent[j]
        parts[2 * n + j] = (f(1.0) - cross) * exponent[j]
        parts[3 * n + j] = cross * exponent[j]
    _expm1(parts[: 4 * n], work.powers, work.power_bits)
    for j in range(n):
        r = ratio[j]
        lost = f(2.0) * r * (f(1.0) + parts[2 * n + j]) * parts[3 * n + j] - parts[n + j] - r * r * parts[j]
        out[j] = lost if lost > f(0.0) else f(0.0)


@borrower
def find_partner(a, lo, hi, coef, work, tables, precision):
    """The point with which the row in hand is best merged.

    Given   a, the coefficient in hand; slots [lo, hi) of `coef`, all of its sign and none smaller; work: rows EXPONENT
            and KAPPA hold ln kappa and kappa; to which precision h is searched, 0.0 to look it up, or None to look up
            the degradation: then numba leaves out all the rest
    Returns slot j, h, squared degradation; j = -1 without a partner. z = h x_j + (1 - h) x
    Cost    one vectorised pass over the partners for a look-up; for a search, 12 with two exponentials each
    Source  Glasmachers, Qaadan 2018, Algorithm 1
    Twin    tests/naive/budget.py::find_partner
    """
    if hi <= lo:
        return -1, 0.0, 0.0
    f, rows, coef, inverse = np.float32, work.rows, coef[lo:hi], 1.0 / a
    exponent, kappa, share = rows[EXPONENT, lo:hi], rows[KAPPA, lo:hi], rows[_SHARE, lo:hi]
    h, score, order = rows[_H, lo:hi], rows[_SCORE, lo:hi], work.bits[_SCORE, lo:hi]
    ratio = rows[_PRODUCT, lo:hi]  # products are no longer needed
    for j in range(share.size):
        r = coef[j] * inverse
        ratio[j] = r if r < 1e12 else 1e12  # beyond it z is the heavy point, to the last digit
        share[j] = ratio[j] / (ratio[j] + f(1.0))
    if precision is None:
        _look_up_all(tables, LOSS, share, kappa, work, score)
        for j in range(share.size):
            score[j] = score[j] * (ratio[j] + f(1.0))
    else:
        if precision == 0.0:
            _look_up_all(tables, PLACE, share, kappa, work, h)
        elif precision > 1e-3:  # what float32 can tell
            low, s0, s1 = rows[_LOW, lo:hi], rows[_S0, lo:hi], rows[_S1, lo:hi]
            _search_all(share, exponent, kappa, h, low, s0, s1, score, work, precision)
        else:
            for j in range(share.size):
                h[j] = golden_section(share[j], exponent[j], precision)
        _degradations(ratio, h, exponent, work, score)
    least, best = order[0], 0  # whole numbers are compared by vectors, float32 ones are not
    for j in range(share.size):
        least = min(least, order[j])
    while order[best] != least:
        best += 1
    m, place = coef[best] / (coef[best] + a), np.float64(h[best])
    if precision is None:  # the place, in the cell where the loss was looked up
        work.found[0] = tables.cells[PLACE, np.uint32(work.bits[_LOW, best])]
        u, v, c = rows[_S0, best], rows[_S1, best], work.corners
        low, high = c[0] + v * (c[2] - c[0]), c[1] + v * (c[3] - c[1])
        place = np.float64(low + u * (high - low))
    value = _value(place, m, exponent[best])  # wd in float64: 2 m (1 - m) (kappa - 1) - value (2 + value)
    lost = 2.0 * m * (1.0 - m) * math.expm1(exponent[best]) - value * (2.0 + value)
    return lo + best, place, (coef[best] + a) ** 2 * max(lost, 0.0)


@borrower
def _merge(n, j, h, log_kappa, machine):
    """Replace point j and the row x in hand by z = h x_j + (1 - h) x with the best coefficient, in slot j.

    Column j of `points` is scaled by `slots`: only the non-zeros of x are touched. |z|^2 is h |x_j|^2 + (1 - h) |x|^2 -
    h (1 - h) |x_j - x|^2, in which old rounding errors shrink with h.
    """
    points, slots, hand = machine.points, machine.slots, machine.hand
    slots[SIZE, j] = h * slots[SIZE, j] + (1.0 - h) * hand[SIZE] + h * (1.0 - h) * log_kappa
    slots[SCALE, j] *= h
    if slots[SCALE, j] < 1e-15:
        for k in range(points.shape[0]):
            points[k, j] *= np.float32(slots[SCALE, j])
        slots[SCALE, j] = 1.0
    at_x = np.float32((1.0 - h) / slots[SCALE, j])
    for k in range(n):
        points[machine.columns[k], j] += at_x * machine.x[k]
    near, far = math.exp((1.0 - h) ** 2 * log_kappa), math.exp(h * h * log_kappa)
    for row in range(2):
        slots[row, j] = slots[row, j] * near + hand[row] * far
    hand[LEAST] = min(hand[LEAST], abs(slots[COEF, j]))


@pasted_borrower
def _make_room(n, machine, tables, step):
    """Merge the lightest point, most often the row in hand: Algorithm 1 of Glasmachers and Qaadan."""
    counts, coef, work, hand = machine.counts, machine.slots[COEF], machine.work, machine.hand
    if abs(hand[COEF]) > hand[LEAST]:
        lighter = _find_lighter(coef, hand[COEF])
        if lighter >= 0:
            n = _exchange(n, lighter, machine)
            _meet(n, step.gamma, machine)
        else:
            hand[LEAST] = abs(hand[COEF])
    lo, hi = (0, counts[FRONT]) if hand[COEF] > 0.0 else (coef.size - counts[BACK], coef.size)
    j, h, degradation = find_partner(hand[COEF], lo, hi, coef, work, tables, step.rule)
    if j >= 0:
        _merge(n, j, h, np.float64(work.rows[EXPONENT, j]), machine)
        counts[MERGERS] += 1
    else:
        degradation = hand[COEF] ** 2
        counts[REMOVALS] += 1
    machine.sums[DEGRADATION] += degradation * (step.inverse_lam / counts[STEPS]) ** 2


@borrower
def _tick(t, pace, sums, lag):
    """Enter step t into the average: weights grow like t^3, and by a factor of 1 + pace where points change."""
    sums[WEIGHT] *= 1.0 + 3.0 / t + pace
    sums[CLOCK] += sums[WEIGHT] / t  # coefficients are in units of 1 / (lam t)
    sums[WEIGHTS] += sums[WEIGHT]
    if sums[WEIGHT] > 1e100:
        unit = 1.0 / sums[WEIGHT]
        for at in (BIAS_LAG, CLOCK, WEIGHT, WEIGHTS):
            sums[at] *= unit
        for j in range(lag.size):
            lag[j] *= unit


@borrower
def merge_steps(rows, order, push, machine, tables, step):
    """Steps on the given rows, with the Gaussian kernel; over budget, points are merged.

    Solve   min_w  lam/2 |w|^2 + mean_i s_i max(0, 1 - y_i f(x_i)) over machines of at most `budget` points
    Given   order (r,) int64: which rows, one step each; push (n,) float64: s_i y_i; tables: as for find_partner
    Returns nothing; machine updated in place
    Cost    nnz + 20 vector operations of n_slots entries; a merger: a search and nnz strided writes. Wang et al. 2012
    Twin    tests/naive/budget.py::Machine.step with merge
    """
    counts, sums, coef, hand = machine.counts, machine.sums, machine.slots[COEF], machine.hand
    kappa = machine.work.rows[KAPPA]
    hand[LEAST] = 0.0
    for t in range(order.size):
        weight, pace = push[order[t]], 0.0
        n, square = _load(rows, order[t], machine.shift, machine.x, machine.columns)
        hand[COEF], hand[LAG], hand[SIZE], hand[SCALE] = weight, weight * sums[CLOCK], step.gamma * square, 1.0
        _meet(n, step.gamma, machine)
        f = sums[BIAS]
        for j in range(coef.size):
            f += coef[j] * kappa[j]
        counts[STEPS] += 1
        margin = (f if weight > 0.0 else -f) * step.inverse_lam / max(counts[STEPS] - 1, 1)
        if margin < 1.0 and weight != 0.0:
            counts[VIOLATIONS] += 1
            sums[HINGE] += abs(weight) * (1.0 - margin)
            sums[BIAS] += step.intercept * weight
            sums[BIAS_LAG] += step.intercept * weight * sums[CLOCK]
            if counts[FRONT] + counts[BACK] < step.budget:
                _put(n, machine)
            else:
                _make_room(n, machine, tables, step)
                pace = 1.0 / step.budget
        _tick(counts[STEPS], pace, sums, machine.slots[LAG])
