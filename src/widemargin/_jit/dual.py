"""Compiled solvers of the kernel machine's dual on a kernel matrix in memory.

Signed form, with no labels in the loops: beta = y * alpha, targets t, bounds around zero,

    min  1/2 b'Kb - t'b   s.t.  lo <= b <= hi   [and sum(b) = 0: the dual of an intercept]

and gradient f - t, where f = K b are the decision values. A *tile* is a gathered, contiguous (q, q) piece of
K; its steps count from the point where it was gathered, so a float32 tile loses nothing that the next one
does not restore. LLVM vectorises every loop over a tile except a floating-point maximum: maxima are taken
over the bit patterns of non-negative floats, which are ordered like the floats themselves.
"""

import numpy as np

from ._policy import kernel

_CHECK_EVERY = 16  # steps between two looks at the violation inside a tile
_MIN_CURVATURE = 1e-6  # of a pair with unit diagonal: nearly equal points
_MIN_TRANSFER_CURVATURE = 1e-12  # LIBSVM's tau
_STEPS_PER_ROW = 20  # a tile is left after so many steps per row: the gradient outside it is stale by then
_BINS = 256
_NONE = 1e300  # no such coordinate


@kernel
def _argmax(bits):
    best, t = bits[0], 0
    for bit in bits:
        best = max(best, bit)
    while bits[t] != best:
        t += 1
    return t


@kernel
def _extremes(grad, lo, hi):
    """Smallest gradient of a coordinate free to rise, largest of one free to fall."""
    rise, fall = _NONE, -_NONE
    for t in range(grad.shape[0]):
        if hi[t] > 0.0 and grad[t] < rise:
            rise = grad[t]
        if lo[t] < 0.0 and grad[t] > fall:
            fall = grad[t]
    return rise, fall


@kernel
def _offset_and_violation(rise, fall, equality):
    """The intercept that splits the violation evenly, and LIBSVM's m - M (or, without one, the larger side)."""
    if not equality:
        return 0.0, max(-rise, fall, 0.0)
    if rise == _NONE:
        return (0.0 if fall == -_NONE else -fall), 0.0
    if fall == -_NONE:
        return -rise, 0.0
    return -0.5 * (rise + fall), max(fall - rise, 0.0)


@kernel
def measure(box, beta, f, equality, out):
    """Write each row's violation of its optimality condition: positive where beta should rise, negative to fall.

    Given   box of (m,) arrays; beta, f (m,): a feasible point and its decision values K beta
    Returns the intercept (0 without the equality), the violation that `tol` is compared with; fills out (m,)
    Cost    O(m), no allocation
    Source  Fan, Chen, Lin 2005, JMLR 6, section 2; without intercept: largest projected gradient
    Twin    tests/naive/dual.py::violation
    """
    rise, fall = _NONE, -_NONE
    for t in range(beta.shape[0]):
        g = f[t] - box.target[t]
        if beta[t] < box.hi[t] and g < rise:
            rise = g
        if beta[t] > box.lo[t] and g > fall:
            fall = g
    b, worst = _offset_and_violation(rise, fall, equality)
    for t in range(beta.shape[0]):
        g = f[t] - box.target[t] + b
        out[t] = -g if (g < 0.0 and beta[t] < box.hi[t]) or (g > 0.0 and beta[t] > box.lo[t]) else 0.0
    return b, worst


@kernel
def largest_rows(violation, side, k, out):
    """Indices of about the k rows of largest violation, by a histogram.

    Given   violation (m,) float64 as `measure` writes it; side: 1 for rows that ask to rise, -1 to fall, 0 for both
    Returns how many were written to out (>= k,) int64: at most k, in no order but that the top bins come first
    Cost    O(m), no sort
    Twin    tests/naive/dual.py::largest_rows
    """
    top = 0.0
    for v in violation:
        top = max(top, side * v if side != 0.0 else abs(v))
    if top <= 0.0 or k <= 0:
        return 0
    bins, count = np.zeros(violation.size, np.int64), np.zeros(_BINS + 2, np.int64)  # bin 0: not asked for
    for i in range(violation.size):
        v = side * violation[i] if side != 0.0 else abs(violation[i])
        if v > 0.0:
            bins[i] = 1 + int(v / top * _BINS)
            count[bins[i]] += 1
    total, edge = 0, _BINS + 1
    while edge > 0 and total + count[edge] <= k:
        total += count[edge]
        edge -= 1
    n = 0
    for in_edge in range(2):
        for i in range(violation.size):
            if bins[i] > 0 and n < k and (bins[i] == edge if in_edge else bins[i] > edge):
                out[n] = i
                n += 1
    return n


@kernel
def _single_gains(grad, lo, hi, gain):
    """Exact decrease of the objective by the best step of each coordinate alone."""
    half = grad.dtype.type(0.5)
    for t in range(grad.shape[0]):
        s = -grad[t]
        s = s if s > lo[t] else lo[t]
        s = s if s < hi[t] else hi[t]
        gain[t] = -s * (grad[t] + half * s)


@kernel
def _pair_gains(row, grad, lo, hi, i, gain):
    """Exact decrease by a clipped joint step of coordinate i and each other one."""
    number = grad.dtype.type
    one, half, floor = number(1.0), number(0.5), number(_MIN_CURVATURE)
    gi, li, ui = grad[i], lo[i], hi[i]
    for t in range(grad.shape[0]):
        r = row[t]
        gt = grad[t]
        det = one - r * r
        det = det if det > floor else floor
        s = (r * gt - gi) / det
        s = s if s > li else li
        s = s if s < ui else ui
        u = -gt - r * s
        u = u if u > lo[t] else lo[t]
        u = u if u < hi[t] else hi[t]
        s = -gi - r * u
        s = s if s > li else li
        s = s if s < ui else ui
        gain[t] = -(s * (gi + half * s + r * u) + u * (gt + half * u))


@kernel
def _move(tile, i, j, s, u):
    """Step coordinates i and j of a tile by s and u."""
    Qi, Qj, grad = tile.Q[i], tile.Q[j], tile.grad
    for t in range(grad.shape[0]):
        grad[t] += s * Qi[t] + u * Qj[t]
    for t, d in ((i, s), (j, u)):
        tile.lo[t] -= d
        tile.hi[t] -= d
        tile.step[t] += d


@kernel
def solve_box_tile(tile, tol):
    """Pairs of coordinates, each pair solved exactly in its box.

    Solve   min_d  1/2 d'Qd + grad'd   s.t.  lo <= d <= hi      (in place, from d = 0)
    Given   tile.Q (q, q) of unit diagonal; grad, lo <= 0 <= hi (q,)
    Returns number of steps; tile.step = d, grad = Qd + grad, lo and hi shifted by -d
    Cost    O(q) a step, three passes over vectors of length q; no allocation
    Source  first coordinate: largest decrease by itself; second: largest decrease of the pair. The box case of
            second-order working sets, Fan, Chen, Lin 2005; coordinate choice as in Hsieh et al. 2014, section 3
    Twin    tests/naive/dual.py::solve_box_qp
    """
    grad, lo, hi, gain, bits = tile.grad, tile.lo, tile.hi, tile.gain, tile.bits
    number, step = grad.dtype.type, 0
    floor = number(_MIN_CURVATURE)
    while step < _STEPS_PER_ROW * grad.shape[0]:
        if step % _CHECK_EVERY == 0:
            rise, fall = _extremes(grad, lo, hi)
            if max(-rise, fall) < tol:
                break
        _single_gains(grad, lo, hi, gain)
        i = _argmax(bits)
        alone = gain[i]
        if alone <= 0:
            break
        _pair_gains(tile.Q[i], grad, lo, hi, i, gain)
        gain[i] = alone
        j = _argmax(bits)
        gi = grad[i]
        if gain[j] <= alone:
            _move(tile, i, i, number(min(max(-gi, lo[i]), hi[i])), number(0))
        else:
            r = tile.Q[i, j]
            s = number(min(max((r * grad[j] - gi) / max(number(1) - r * r, floor), lo[i]), hi[i]))
            u = number(min(max(-grad[j] - r * s, lo[j]), hi[j]))
            s = number(min(max(-gi - r * u, lo[i]), hi[i]))
            _move(tile, i, j, s, u)
        step += 1
    return step


@kernel
def _offset_violations(grad, lo, hi, b, gain):
    """Violation of each coordinate at offset b."""
    zero = grad.dtype.type(0)
    for t in range(grad.shape[0]):
        g = grad[t] + b
        up = -g if hi[t] > zero else zero
        down = g if lo[t] < zero else zero
        v = up if up > down else down
        gain[t] = v if v > zero else zero


@kernel
def _transfer_gains(row, diagonal, grad, limit, i, up, room_i, gain):
    """Exact decrease by moving up * d onto coordinate i and as much off each other one; limit is that one's."""
    number = grad.dtype.type
    zero, half, two, floor = number(0), number(0.5), number(2), number(_MIN_TRANSFER_CURVATURE)
    gi, di = grad[i], diagonal[i]
    for t in range(grad.shape[0]):
        slope = up * (grad[t] - gi)
        curve = di + diagonal[t] - two * row[t]
        curve = curve if curve > floor else floor
        room = -up * limit[t]
        room = room if room < room_i else room_i
        d = slope / curve
        d = d if d > zero else zero
        d = d if d < room else room
        gain[t] = d * (slope - half * curve * d)


@kernel
def solve_equality_tile(tile, tol):
    """Pairs of coordinates moved against each other: SMO with an exact second-order choice of the partner.

    Solve   min_d  1/2 d'Qd + grad'd   s.t.  lo <= d <= hi, sum(d) = 0      (in place, from d = 0)
    Given   tile.Q (q, q) and its diagonal; grad, lo <= 0 <= hi (q,)
    Returns number of steps; tile.step = d, grad = Qd + grad, lo and hi shifted by -d
    Cost    O(q) a step, no allocation
    Source  Fan, Chen, Lin 2005, JMLR 6, algorithm 2 (WSS 2), with the clipped instead of the free gain
    Twin    tests/naive/dual.py::solve_equality_qp
    """
    grad, lo, hi, gain, bits = tile.grad, tile.lo, tile.hi, tile.gain, tile.bits
    number = grad.dtype.type
    b, step, until_check = number(0), 0, 0
    while step < _STEPS_PER_ROW * grad.shape[0]:
        fresh = until_check == 0
        if fresh:
            rise, fall = _extremes(grad, lo, hi)
            if fall - rise < tol:
                break
            b = number(-0.5 * (rise + fall))
            until_check = _CHECK_EVERY
        _offset_violations(grad, lo, hi, b, gain)
        i = _argmax(bits)
        up = number(1) if grad[i] + b < 0 else number(-1)
        room = hi[i] if up > 0 else -lo[i]
        _transfer_gains(tile.Q[i], tile.diagonal, grad, lo if up > 0 else hi, i, up, room, gain)
        j = _argmax(bits)
        if gain[j] <= 0:
            if fresh:
                break
            until_check = 0
            continue
        curve = max(tile.diagonal[i] + tile.diagonal[j] - 2 * tile.Q[i, j], _MIN_TRANSFER_CURVATURE)
        d = min(up * (grad[j] - grad[i]) / curve, room, -up * (lo[j] if up > 0 else hi[j]))
        _move(tile, i, j, number(up * d), number(-up * d))
        until_check -= 1
        step += 1
    return step


@kernel
def _renew(work, limit, equality):
    """Keep the newer half of a full set and fill up with the largest violators; with the equality, of both sides."""
    rows, violation = work.rows, work.violation
    keep = limit // 2 if work.filled[0] == limit and limit < violation.size else 0
    for t in range(keep):
        rows[t] = rows[limit - keep + t]
        violation[rows[t]] = 0.0
    if equality:
        keep += largest_rows(violation, 1.0, (limit - keep + 1) // 2, rows[keep:])
    work.filled[0] = keep + largest_rows(violation, -1.0 if equality else 0.0, limit - keep, rows[keep:])
    return work.filled[0]


@kernel
def _gather(K, box, beta, f, rows, b, equality, tile):
    """Copy a working set into the tile and return its least scale; rows left over cannot move."""
    number = tile.grad.dtype.type
    least_scale = _NONE
    for i in range(tile.grad.shape[0]):
        tile.step[i] = 0
        if i >= rows.shape[0]:
            tile.grad[i] = tile.lo[i] = tile.hi[i] = 0
            continue
        w = rows[i]
        s = 1.0 if equality else box.scale[w]
        least_scale = min(least_scale, s)
        tile.diagonal[i] = 1.0 / (box.scale[w] * box.scale[w])
        tile.grad[i] = (f[w] - box.target[w] + b) * s
        tile.lo[i] = (box.lo[w] - beta[w]) / s
        tile.hi[i] = (box.hi[w] - beta[w]) / s
        source = K[w]
        into = tile.Q[i]
        for j in range(rows.shape[0]):
            into[j] = source[rows[j]]
        if not equality:
            for j in range(rows.shape[0]):
                into[j] *= number(s * box.scale[rows[j]])
    return least_scale


@kernel
def _scatter(box, beta, rows, equality, tile, work):
    """Take the tile's steps over into beta, exactly onto the bounds where one was hit; note which rows changed."""
    n = 0
    for i in range(rows.shape[0]):
        w = rows[i]
        new = beta[w] + tile.step[i] * (1.0 if equality else box.scale[w])
        if tile.hi[i] == 0:
            new = box.hi[w]
        elif tile.lo[i] == 0:
            new = box.lo[w]
        new = min(max(new, box.lo[w]), box.hi[w])
        if new != beta[w]:
            work.changed[n], work.change[n] = w, new - beta[w]
            beta[w] = new
            n += 1
    return n


@kernel
def add_rows(K, rows, coef, f, first, last):
    """f += coef' K[rows] in the columns from `first` to `last`, eight rows a pass, in f's precision.

    Given   K (r, >= m) float32 or float64; rows (k,) int64; coef (k,) float64; f (m,) float64, changed in place
    Cost    k (last - first) multiply-adds; K[rows] is read once, f k / 8 times
    Twin    f + coef @ K[rows].astype(float64)
    """
    f, n, k = f[first:last], rows.shape[0], 0
    while k + 8 <= n:
        r0, r1, r2, r3 = K[rows[k], first:], K[rows[k + 1], first:], K[rows[k + 2], first:], K[rows[k + 3], first:]
        r4, r5, r6, r7 = K[rows[k + 4], first:], K[rows[k + 5], first:], K[rows[k + 6], first:], K[rows[k + 7], first:]
        c0, c1, c2, c3 = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
        c4, c5, c6, c7 = coef[k + 4], coef[k + 5], coef[k + 6], coef[k + 7]
        for j in range(f.shape[0]):
            four = c0 * r0[j] + c1 * r1[j] + c2 * r2[j] + c3 * r3[j]
            f[j] += four + (c4 * r4[j] + c5 * r5[j] + c6 * r6[j] + c7 * r7[j])
        k += 8
    for t in range(k, n):
        row, c = K[rows[t], first:], coef[t]
        for j in range(f.shape[0]):
            f[j] += c * row[j]


@kernel
def solve_set(K, box, beta, f, tile, work, tol, equality):
    """Choose a working set, gather its tile and solve it; f = K beta is left to be updated.

    Given   K (m, >= m); box of (m,) arrays; beta, f = K beta (m,); tile of q <= m rows; work, empty at first
    Returns how many rows changed, steps inside, intercept and violation before; beta updated, work.changed and
            work.change tell which rows and by how much
    Cost    a working set reads q^2 entries of K; O(q) a step
    Source  decomposition with carry-over: Joachims 1999; newer half kept as in ThunderSVM and oneDAL. Inside,
            a tile is solved to a tenth of the violation it started with
    """
    b, worst = measure(box, beta, f, equality, work.violation)
    if worst < tol:
        return 0, 0, b, worst
    rows = work.rows[: _renew(work, tile.grad.shape[0], equality)]
    least_scale = _gather(K, box, beta, f, rows, b, equality, tile)
    goal = max(0.5 * tol, 0.1 * worst)
    steps = solve_equality_tile(tile, goal) if equality else solve_box_tile(tile, goal * least_scale)
    return _scatter(box, beta, rows, equality, tile, work), steps, b, worst


@kernel
def solve_active(K, box, beta, f, tile, work, tol, equality, max_outer):
    """Working sets on a kernel matrix in memory.

    Solve   min_b  1/2 b'Kb - t'b   s.t.  lo <= b <= hi  [, sum(b) = 0]      (in place, from a feasible beta)
    Returns working sets solved, steps inside them, intercept, violation left; beta and f updated
    Cost    a working set reads q^2 entries of K to fill the tile and up to q m to update f; given as `solve_set` is
    Twin    tests/naive/dual.py::solve_box_qp, solve_equality_qp
    """
    outer, inner = 0, 0
    while True:
        if outer >= max_outer:
            b, worst = measure(box, beta, f, equality, work.violation)
            break
        n, steps, b, worst = solve_set(K, box, beta, f, tile, work, tol, equality)
        inner += steps
        if n == 0:
            break
        add_rows(K, work.changed[:n], work.change[:n], f, np.int64(0), f.shape[0])
        outer += 1
    return outer, inner, b, worst
