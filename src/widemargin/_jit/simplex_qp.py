"""Compiled solver of the cutting planes' reduced problem: steps in pairs, and Newton steps within a face."""

import math

from ._policy import kernel

_RIDGE = 1e-12  # relative: what keeps the factors of dependent planes finite


@kernel
def _gradient(H, b, beta, grad):
    for i in range(beta.shape[0]):
        value = -b[i]
        for j in range(beta.shape[0]):
            value += H[i, j] * beta[j]
        grad[i] = value


@kernel
def _move_pair(H, beta, grad, i):
    """Raise coordinate i at the cost of the one that pays best, by the second-order gain. False if none does."""
    best, j = 0.0, -1
    for k in range(beta.shape[0]):
        slope = grad[k] - grad[i]
        if beta[k] > 0.0 and slope > 0.0:
            gain = slope * slope / max(H[i, i] + H[k, k] - 2.0 * H[i, k], 1e-300)
            if gain > best:
                best, j = gain, k
    if j < 0:
        return False
    shift = min(beta[j], (grad[j] - grad[i]) / max(H[i, i] + H[j, j] - 2.0 * H[i, j], 1e-300))
    beta[i] += shift
    beta[j] -= shift
    for k in range(beta.shape[0]):
        grad[k] += shift * (H[i, k] - H[j, k])
    return True


@kernel
def _solve_factored(L, x, m):
    """Factor the leading m x m block of L, positive definite, in place (Cholesky); solve for x in place."""
    for i in range(m):
        for j in range(i + 1):
            value = L[i, j]
            for k in range(j):
                value -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(value) if i == j else value / L[j, j]
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]
    for i in range(m - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]


@kernel
def _newton_direction(H, beta, grad, L, step, face):
    """The best direction among the coordinates above zero, sum unchanged: into step[:m], their numbers in face.

    The heaviest coordinate pays for all others: the system is the Gram matrix of their differences from it.
    """
    m, r = 0, 0
    for i in range(beta.shape[0]):
        if beta[i] > beta[r]:
            r = i
    for i in range(beta.shape[0]):
        if beta[i] > 0.0 and i != r:
            face[m] = i
            m += 1
    for p in range(m):
        i = face[p]
        step[p] = grad[r] - grad[i]
        for q in range(p + 1):
            L[p, q] = H[i, face[q]] - H[i, r] - H[r, face[q]] + H[r, r]
        L[p, p] += _RIDGE * (H[i, i] + H[r, r]) + 1e-300
    _solve_factored(L, step, m)
    total = 0.0
    for p in range(m):
        total += step[p]
    face[m], step[m] = r, -total
    return m + 1


@kernel
def _move_in_face(H, beta, grad, L, step, face):
    """A Newton step within the face, up to its border. True if the border stopped it."""
    m = _newton_direction(H, beta, grad, L, step, face)
    length, stop = 1.0, -1
    for p in range(m):
        if step[p] < 0.0 and beta[face[p]] < -step[p] * length:
            length, stop = -beta[face[p]] / step[p], face[p]
    if not math.isfinite(length):
        return False
    for p in range(m):
        i = face[p]
        beta[i] = 0.0 if i == stop else max(0.0, beta[i] + length * step[p])
        for k in range(beta.shape[0]):
            grad[k] += length * step[p] * H[i, k]
    return stop >= 0


@kernel
def solve_simplex(H, b, beta, grad, L, step, face, tol, max_rounds):
    """Minimise over a simplex until the duality gap is small.

    Solve   min_beta  1/2 beta' H beta - b' beta   s.t.  beta >= 0, sum(beta) = the sum given   (in place)
    Given   H (>= t, >= t) float64, its head positive semi-definite; b, beta (t,), beta feasible; scratch:
            grad, step (t,), L (t, t), face (t,) int64
    Returns number of rounds; the gap that is left, sum(beta) max(-grad) + beta' grad with grad = H beta - b
    Cost    a round: a pair step, O(t), and Newton steps in the face it leads to, O(t m + m^3 / 6) with m planes in it
    Source  pair step: Fan, Chen, Lin 2005, JMLR 6, the paper's solver; Newton steps within the face, ours
    Twin    tests/naive/cutting_plane.py::solve_simplex
    """
    t = beta.shape[0]
    _gradient(H, b, beta, grad)
    gap = 0.0
    for done in range(max_rounds):
        i, total, gap = 0, 0.0, 0.0
        for j in range(t):
            total += beta[j]
            gap += beta[j] * grad[j]
            if grad[j] < grad[i]:
                i = j
        gap -= total * grad[i]
        if gap <= tol or not _move_pair(H, beta, grad, i):
            return done, gap
        for _ in range(t):
            if not _move_in_face(H, beta, grad, L, step, face):
                break
        if done % 16 == 15:
            _gradient(H, b, beta, grad)
    return max_rounds, gap
