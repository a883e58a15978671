"""Compiled steps of stochastic gradient descent on a machine of at most `budget` points.

One row against all points is a sum over its non-zeros of multiples of rows of `points`: every loop over slots is
vectorised, whether the row was dense or sparse. A step of size 1 / (lam t) that first scales by 1 - 1 / t gives

    lam t w_{t+1} = lam (t - 1) w_t + s_i y_i phi(x_i) [y_i f(x_i) < 1]

so the left side is what is kept: nothing is ever scaled, nothing can underflow.
"""

import math

import numpy as np

from ._policy import kernel

STEPS, FRONT, BACK, VIOLATIONS, MERGERS, REMOVALS = range(6)
BIAS, BIAS_LAG, CLOCK, CLOCK_WEIGHT, HINGE, DEGRADATION = range(6)
LOOKUP_WD, LOOKUP_H, GSS, GSS_PRECISE = range(4)
EXPONENT, KAPPA, LESS, _SHARE, _H, _SCORE, _AT, _U, _V, _LEFT, _RIGHT, _PRODUCT, _SPARE, _POWER = range(14)

GOLDEN, COARSE, FINE = 0.6180339887498949, 0.01, 1e-10  # the golden section, and how far the searches go
_MAGNITUDE = np.uint64(0x7FFFFFFFFFFFFFFF)  # a float64 without its sign bit: ordered like the absolute values


@kernel
def _squeeze(x, columns):
    """Drop the zeros of a full row where that saves work; returns how many values are left."""
    n = 0
    for k in range(x.size):
        columns[k] = k
        n += x[k] != 0
    if 4 * n > 3 * x.size:
        return x.size
    n = 0
    for k in range(x.size):
        if x[k] != 0:
            x[n], columns[n] = x[k], k
            n += 1
    return n


@kernel
def _load(rows, i, shift, x, columns):
    """Gather the non-zeros of row i, less the shift; returns how many, and their sum of squares."""
    square = 0.0
    if rows.starts.size:
        first = rows.starts[i]
        n = rows.starts[i + 1] - first
        for t in range(n):
            x[t], columns[t] = rows.data[first + t], rows.columns[first + t]
            square += np.float64(x[t]) * x[t]
        return n, square
    row = rows.data[i * x.size : (i + 1) * x.size]
    for k in range(x.size):
        x[k] = row[k] - shift[k]
        square += np.float64(x[k]) * x[k]
    return _squeeze(x, columns), square


@kernel
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


@kernel
def _expm1(values, power):
    """Replace x in [-87, 0] by exp(x) - 1, exact near 0 too, with elementwise.rbf's polynomial; power: scratch."""
    f = np.float32
    bits = power.view(np.int32)
    for j in range(values.size):
        x = values[j]
        x = x if x > f(-87.0) else f(-87.0)
        k = np.floor(x * f(1.44269504) + f(0.5))
        r = x - k * f(0.693359375) + k * f(2.12194440e-4)
        p = f(1.9875691e-4) * r + f(1.39819995e-3)
        p = p * r + f(8.33345191e-3)
        p = p * r + f(4.16657959e-2)
        p = p * r + f(1.66666655e-1)
        p = p * r + f(0.5)
        values[j] = p * r * r + r
        bits[j] = (np.int32(k) + np.int32(127)) << np.int32(23)
    for j in range(values.size):
        values[j] = values[j] * power[j] + (power[j] - f(1.0))


@kernel
def _rbf_row(size, sizes, gamma, rows):
    """From the inner products of one row, whose gamma |x|^2 is `size`: ln kappa, kappa - 1 and kappa for all points."""
    f = np.float32
    product, exponent, less, kappa = rows[_PRODUCT], rows[EXPONENT], rows[LESS], rows[KAPPA]
    two_gamma, s = f(2.0 * gamma), f(size)
    for j in range(product.size):
        e = two_gamma * product[j] - s - sizes[j]
        exponent[j] = e if e < f(0.0) else f(0.0)
        less[j] = e if e < f(0.0) else f(0.0)
    _expm1(less, rows[_POWER])
    for j in range(product.size):
        kappa[j] = f(1.0) + less[j]


@kernel
def _put(slot, n, size, weight, machine):
    """Write the gathered row into a slot."""
    points, x, columns = machine.points, machine.x, machine.columns
    if n < points.shape[0]:
        for k in range(points.shape[0]):
            points[k, slot] = 0
    for k in range(n):
        points[columns[k], slot] = x[k]
    machine.sizes[slot] = size
    machine.coef[0, slot], machine.coef[1, slot] = weight, weight * machine.sums[CLOCK]


@kernel
def _move(source, slot, points, sizes, coef):
    """Move a point to another slot, and empty the one it had."""
    for k in range(points.shape[0]):
        points[k, slot] = points[k, source]
    sizes[slot] = sizes[source]
    for row in range(2):
        coef[row, slot] = coef[row, source]
        coef[row, source] = 0.0


@kernel
def _smallest(coef, newest):
    """The slot of the smallest coefficient; of equal ones the newest, whose kernel values are at hand."""
    bits, one = coef.view(np.uint64), np.uint64(1)
    least = (bits[newest] & _MAGNITUDE) - one
    for j in range(coef.size):
        least = min(least, (bits[j] & _MAGNITUDE) - one)  # an empty slot's zero becomes the largest number
    slot = newest
    while (bits[slot] & _MAGNITUDE) - one != least:
        slot = slot + 1 if slot + 1 < coef.size else 0
    return slot


@kernel
def _value(h, m, log_kappa):
    """s(h) - 1."""
    return m * math.expm1((1.0 - h) ** 2 * log_kappa) + (1.0 - m) * math.expm1(h * h * log_kappa)


@kernel
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
        if is_left:
            x0, s0, x1, s1 = x, s, x0, s0
        else:
            x0, s0, x1, s1 = x1, s1, x, s
    return x0 if s0 > s1 else x1


@kernel
def _look_up_all(whole, side, share, kappa, rows, found, corners, out):
    """Bilinear interpolation for every partner: places, one load of 16 bytes each, weights. Only loads are scalar."""
    f = np.float32
    n = out.size
    at, u, v = rows[_AT].view(np.int32), rows[_U], rows[_V]
    last, most = f(side), f(side - 1)
    for j in range(n):
        a, b = (share[j] + share[j] - f(1.0)) * last, kappa[j] * last
        row, column = np.floor(a), np.floor(b)
        row = row if row < most else most
        column = column if column < most else most
        at[j] = np.int32(row * last + column)  # whole numbers up to 2^24 are exact in float32
        u[j], v[j] = a - row, b - column
    for j in range(n):
        found[j] = whole[np.uint32(at[j])]
    for j in range(n):
        low = corners[4 * j] + v[j] * (corners[4 * j + 1] - corners[4 * j])
        high = corners[4 * j + 2] + v[j] * (corners[4 * j + 3] - corners[4 * j + 2])
        out[j] = low + u[j] * (high - low)


@kernel
def _values(h, share, exponent, left, right, power, out):
    """s(h) - 1 for every partner; left, right and power are scratch."""
    one = np.float32(1.0)
    for j in range(h.size):
        left[j] = (one - h[j]) * (one - h[j]) * exponent[j]
        right[j] = h[j] * h[j] * exponent[j]
    _expm1(left, power)
    _expm1(right, power)
    for j in range(h.size):
        out[j] = right[j] + share[j] * (left[j] - right[j])


@kernel
def _search_all(share, exponent, h, low, s0, s1, left, right, power):
    """Fill h by `golden_section` for every partner at once, to `COARSE`: brackets differ, their width does not."""
    f = np.float32
    golden, width = f(GOLDEN), f(0.5)
    rest = f(1.0) - golden
    low[:] = f(0.5)
    h[:] = f(0.5) + golden * width
    _values(h, share, exponent, left, right, power, s1)
    h[:] = f(0.5) + rest * width
    _values(h, share, exponent, left, right, power, s0)
    while width > f(COARSE):
        step, width = rest * width, golden * width
        for j in range(h.size):
            low[j] = low[j] if s0[j] > s1[j] else low[j] + step
            h[j] = low[j] + (rest * width if s0[j] > s1[j] else golden * width)
        _values(h, share, exponent, left, right, power, left)
        for j in range(h.size):
            old0, old1 = s0[j], s1[j]
            s0[j] = left[j] if old0 > old1 else old1
            s1[j] = old0 if old0 > old1 else left[j]
    for j in range(h.size):
        h[j] = low[j] + (rest * width if s0[j] > s1[j] else golden * width)


@kernel
def _normalised(m, h, log_kappa):
    """wd = 2 m (1 - m) (kappa - 1) - v (2 + v) with v = s(h) - 1, in float64: exact for near copies too."""
    v = _value(h, m, log_kappa)
    return max(2.0 * m * (1.0 - m) * math.expm1(log_kappa) - v * (2.0 + v), 0.0)


@kernel
def _degradations(share, h, less, exponent, left, right, power, out):
    """The root of wd, as in `_normalised`, for every partner whose h is known."""
    f = np.float32
    _values(h, share, exponent, left, right, power, left)
    for j in range(h.size):
        wd = f(2.0) * share[j] * (f(1.0) - share[j]) * less[j] - left[j] * (f(2.0) + left[j])
        out[j] = math.sqrt(wd if wd > f(0.0) else f(0.0))


@kernel
def find_partner(i, lo, hi, coef, work, tables, rule):
    """The point with which point i is best merged.

    Given   i in [lo, hi), the slots of points of its sign, |coef[i]| the smallest of all; work: scratch whose rows
            EXPONENT, KAPPA and LESS hold ln kappa_ij, kappa_ij and kappa_ij - 1; tables: h, and the root of wd
    Returns slot j, h, squared degradation; j = -1 without a partner. z = h x_j + (1 - h) x_i
    Cost    one vectorised pass over the partners for a look-up; for a search, 12 with two exponentials each
    Source  Glasmachers, Qaadan 2018, Algorithm 1; degradations are compared by their roots, the table's second half
    Twin    tests/naive/budget.py::find_partner
    """
    if hi - lo < 2:
        return -1, 0.0, 0.0
    f, rows, side = np.float32, work.rows, tables.cells.shape[1]
    exponent, kappa = rows[EXPONENT, lo:hi], rows[KAPPA, lo:hi]
    share, h, score = rows[_SHARE, lo:hi], rows[_H, lo:hi], rows[_SCORE, lo:hi]
    left, right, power = rows[_LEFT, lo:hi], rows[_RIGHT, lo:hi], rows[_POWER, lo:hi]
    others, a = coef[lo:hi], coef[i]
    for j in range(share.size):
        share[j] = f(others[j]) / (f(others[j]) + f(a))
    if rule == LOOKUP_WD:
        _look_up_all(tables.whole[1], side, share, kappa, rows, work.found, work.corners, score)
    else:
        if rule == LOOKUP_H:
            _look_up_all(tables.whole[0], side, share, kappa, rows, work.found, work.corners, h)
        elif rule == GSS:
            _search_all(share, exponent, h, score, rows[_PRODUCT, lo:hi], rows[_SPARE, lo:hi], left, right, power)
        else:
            for j in range(share.size):
                h[j] = golden_section(share[j], exponent[j], FINE)
        _degradations(share, h, rows[LESS, lo:hi], exponent, left, right, power, score)
    for j in range(share.size):
        score[j] = score[j] * abs(f(others[j]) + f(a))
    score[i - lo] = f(np.inf)
    bits = score.view(np.int32)
    least, best = bits[0], 0
    for j in range(share.size):
        least = min(least, bits[j])
    while bits[best] != least:
        best += 1
    if rule == LOOKUP_WD:
        one = slice(best, best + 1)
        _look_up_all(tables.whole[0], side, share[one], kappa[one], rows, work.found, work.corners, h[one])
    total = others[best] + a
    return lo + best, h[best], total**2 * _normalised(others[best] / total, h[best], exponent[best])


@kernel
def _merge(i, j, h, log_kappa, points, coef):
    """Replace points i and j by z = h x_j + (1 - h) x_i with the best coefficient, in slot j; returns |z|^2."""
    f = np.float32
    at_j, at_i = f(h), f(1.0 - h)
    square = 0.0
    for k in range(points.shape[0]):
        z = at_j * points[k, j] + at_i * points[k, i]
        points[k, j] = z
        square += z * z
    near, far = math.exp((1.0 - h) ** 2 * log_kappa), math.exp(h * h * log_kappa)
    for row in range(2):
        coef[row, j] = coef[row, j] * near + coef[row, i] * far
    return square


@kernel
def _shrink(newest, machine, tables, step):
    """Merge two points, so that the machine has one less: Algorithm 1 of Glasmachers and Qaadan."""
    counts, coef, work, points, sizes = machine.counts, machine.coef, machine.work, machine.points, machine.sizes
    exponent = work.rows[EXPONENT]
    i = _smallest(coef[0], newest)
    if i != newest:
        for k in range(machine.x.size):
            machine.x[k] = points[k, i]
        n = _squeeze(machine.x, machine.columns)
        _products(machine.x, machine.columns, n, points, work.rows[_PRODUCT])
        _rbf_row(sizes[i], sizes, step.gamma, work.rows)
    is_front = coef[0, i] > 0.0
    lo, hi = (0, counts[FRONT]) if is_front else (coef.shape[1] - counts[BACK], coef.shape[1])
    j, h, degradation = find_partner(i, lo, hi, coef[0], work, tables, step.rule)
    if j >= 0:
        sizes[j] = step.gamma * _merge(i, j, h, np.float64(exponent[j]), points, coef)
        counts[MERGERS] += 1
    else:
        degradation = coef[0, i] ** 2
        counts[REMOVALS] += 1
    machine.sums[DEGRADATION] += degradation * (step.inverse_lam / counts[STEPS]) ** 2
    last = hi - 1 if is_front else lo
    coef[0, i] = coef[1, i] = 0.0
    if last != i:
        _move(last, i, points, sizes, coef)
    counts[FRONT if is_front else BACK] -= 1


@kernel
def _tick(t, sums):
    """Step t enters the average with weight t^31, and coefficients in units of 1 / (lam t) with t^30."""
    t2 = (1e-6 * t) ** 2  # whose powers overflow after 10^15 steps only
    t6 = t2 * t2 * t2
    t30 = t6 * t6 * t6 * t6 * t6
    sums[CLOCK] += t30
    sums[CLOCK_WEIGHT] += t30 * t


@kernel
def merge_steps(rows, order, push, machine, tables, step):
    """Steps on the given rows, with the Gaussian kernel; over budget, points are merged.

    Solve   min_w  lam/2 |w|^2 + mean_i s_i max(0, 1 - y_i f(x_i)) over machines of at most `budget` points
    Given   order (r,) int64: which rows, one step each; push (n,) float64: s_i y_i; tables: h, and the root of wd
    Returns nothing; machine updated in place
    Cost    nnz + 20 vector operations of n_slots entries a step; a merger costs a search, and d strided reads
    Source  Wang, Crammer, Vucetic 2012; Glasmachers, Qaadan 2018
    Twin    tests/naive/budget.py::Machine.step with merge
    """
    counts, sums, coef, rows_of = machine.counts, machine.sums, machine.coef[0], machine.work.rows
    x, columns, points, sizes, shift = machine.x, machine.columns, machine.points, machine.sizes, machine.shift
    product, kappa = rows_of[_PRODUCT], rows_of[KAPPA]
    for t in range(order.size):
        i = order[t]
        weight = push[i]
        n, square = _load(rows, i, shift, x, columns)
        _products(x, columns, n, points, product)
        _rbf_row(step.gamma * square, sizes, step.gamma, rows_of)
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
            slot = counts[FRONT] if weight > 0.0 else coef.size - 1 - counts[BACK]
            counts[FRONT if weight > 0.0 else BACK] += 1
            _put(slot, n, step.gamma * square, weight, machine)
            if counts[FRONT] + counts[BACK] > step.budget:
                _shrink(slot, machine, tables, step)
        _tick(counts[STEPS], sums)
