"""The dual on ill-conditioned kernel matrices: working sets solved by Newton steps on the free coordinates.

Solve    min_beta  1/2 beta'(K + D) beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]
Given    K (m, m) in memory, positive semidefinite, of any rank; a feasible start
Method   The number of one- or two-coordinate steps grows with the condition number of K on the free coordinates. Here
         each working set of at most 512 rows is solved to rounding by a primal active-set method: a Newton step on the
         free coordinates; coordinates that reach a bound are fixed there; at the optimum of the free ones the largest
         violator becomes free.
Cost     O(q^3 / 3) a step for q free coordinates; about as many steps as coordinates that reach or leave a bound
Source   primal active sets: Nocedal, Wright, Numerical Optimization, 2006, algorithm 16.3; steps that meet several
         bounds: Bertsekas, SIAM J. Control Optim. 20, 1982; singular K: proximal point, Rockafellar 1976
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..._native import dual
from ..._types import ROUNDING, Array, Mask, Matrix, RowIndices, Vector
from ..results import Certificate
from .certificate import Limits, certify
from .problem import is_free, restrict_terms
from .stopping import EPS, StallTest

GoOn = Callable[[], bool]

_NEGLIGIBLE = 0.1  # free coordinates are optimal below this violation / tolerance


def solve_newton_sets(
    K: Array,
    terms: dual.SeparableTerms,
    beta: Vector,
    decision: Vector,
    size: int,
    limits: Limits,
    go_on: GoOn,
    *,
    has_intercept: bool,
) -> int:
    """Improve beta (m,) and decision = K beta (m,) in place, to the limits or until rounding ends progress.

    The kernel matrix is the leading m columns of K. A working set has `size` rows; of the limits `max_iter` is ignored.
    `go_on` is called before every step, and the solver stops where it returns False. Returns the working sets solved.
    """
    m, violations, n_sets = len(beta), np.empty(len(beta)), 0
    stall_test, last = StallTest(max_idle=1), np.empty(0, np.intp)
    tol = limits.tol
    while go_on():
        certificate = certify(terms, beta, decision, violations, has_intercept=has_intercept, tol=tol)
        tol = limits.next_tol(tol, certificate)
        if certificate.violation < tol:
            break
        if stall_test.observe(terms, beta, decision, certificate.violation):
            break
        rows, last = _select_working_set(terms, beta, violations, size, last)
        rounding = EPS * (np.abs(K[rows, :m]) @ np.abs(beta) + np.abs(terms.target[rows]))
        own = K[np.ix_(rows, rows)], restrict_terms(terms, rows), beta[rows], decision[rows]
        new = _solve_set(*own, certificate, np.maximum(0.5 * tol, rounding), has_intercept, go_on)
        change, beta[rows] = new - beta[rows], new
        decision += K[:m, rows] @ change
        n_sets += 1
    return n_sets


def _select_working_set(
    terms: dual.SeparableTerms, beta: Vector, violations: Vector, size: int, last: RowIndices
) -> tuple[RowIndices, RowIndices]:
    """A working set of at most `size` coordinates in ascending order, and those of them that are new.

    A quarter of it has the largest positive `violations` (the coordinate should increase), a quarter the most negative
    ones, then free coordinates; the rest is `last`, the new coordinates of the working set before.
    """
    if len(beta) <= size:
        return np.arange(len(beta)), last
    rank = np.where(is_free(terms, beta) & (violations == 0.0), np.finfo(np.float64).tiny, violations)
    increasing, decreasing = (np.argpartition(-side, size // 4)[: size // 4] for side in (rank, -rank))
    new = np.union1d(increasing, decreasing)
    return np.union1d(new, last), new


def _solve_set(
    K: Array,
    terms: dual.SeparableTerms,
    beta: Vector,
    decision: Vector,
    certificate: Certificate,
    tol: Vector,
    has_intercept: bool,
    go_on: GoOn,
) -> Vector:
    """The optimal values (q,) of a working set, all others fixed, with K (q, q), to violations of `tol` (q,).

    With epsilon > 0 every coordinate stays on its side of zero; one at zero gets the side on which the dual objective
    decreases, given the intercept.
    """
    lo, hi, scale = terms.lo, terms.hi, terms.scale
    curvature = 0.0 if terms.curvature is None else terms.curvature
    grad = decision - terms.target + curvature * beta
    if terms.epsilon:
        at_zero = np.where(grad + certificate.intercept < 0.0, 1.0, -1.0)
        side = np.where(beta != 0.0, np.sign(beta), at_zero)
        lo, hi = np.where(side > 0, np.maximum(lo, 0.0), lo), np.where(side > 0, hi, np.minimum(hi, 0.0))
        grad = grad + terms.epsilon * side
    Q = K.astype(np.float64) * scale[:, None] * scale
    Q[np.diag_indices(len(Q))] += curvature * scale**2
    bounds = (lo - beta) / scale, (hi - beta) / scale
    newton = _BoxNewton(Q, grad * scale, *bounds, scale, tol=tol * scale, has_intercept=has_intercept)
    newton.solve(go_on)
    new = np.clip(beta + newton.x * scale, lo, hi)
    new = np.where(newton.hi == 0.0, hi, np.where(newton.lo == 0.0, lo, new))
    if has_intercept:  # the rounding error of the sum goes to the coordinate farthest from its bounds
        farthest = int(np.minimum(new - lo, hi - new).argmax())
        new[farthest] = np.clip(new[farthest] - (new - beta).sum(), lo[farthest], hi[farthest])
    return new


class _BoxNewton:
    """min_x  1/2 x'Qx + g'x   s.t.  lo <= x <= hi   [and a'x = 0], from x = 0; all vectors of q.

    Q has a unit diagonal; grad, the gradient at x, and lo and hi, the bounds less x, are updated with x. `normal` is a
    > 0, the scale of the coordinates, `tol` the largest violation of each coordinate at the end.
    """

    def __init__(
        self, Q: Matrix, grad: Vector, lo: Vector, hi: Vector, normal: Vector, *, tol: Vector, has_intercept: bool
    ) -> None:
        self.Q = Q
        self.grad = grad
        self.lo = lo
        self.hi = hi
        self.normal = normal
        self.tol = tol
        self.has_intercept = has_intercept
        self.x = np.zeros(len(Q))
        self.free = (lo < 0.0) & (hi > 0.0)
        self._damping = ROUNDING  # added to a unit diagonal

    def solve(self, go_on: GoOn) -> None:
        """Minimise over the free coordinates, free the largest violator (or violating pair), and repeat."""
        for _ in range(20 * len(self.Q)):
            if not go_on() or (self._step() and not self._release_violators()):
                return

    def _step(self) -> bool:
        """Take a Newton step on the free coordinates; return whether they are optimal then."""
        free = np.flatnonzero(self.free)
        if not len(free):
            return True
        direction, multiplier = self._newton(free)
        before = self._relative_violation(free, multiplier)
        if before <= _NEGLIGIBLE or not direction.any():
            return True
        step, change, is_bounded = self._projected_step(free, direction)
        self.x[free] += step
        self.lo[free] -= step
        self.hi[free] -= step
        self.grad += change
        self.free[free[is_bounded]] = False
        after = self._relative_violation(free, multiplier)
        return not is_bounded.any() and not _NEGLIGIBLE < after < 0.5 * before

    def _relative_violation(self, free: RowIndices, multiplier: float) -> float:
        """Largest violation / tolerance of the free coordinates, given the multiplier of a'x = 0."""
        return float(np.max(np.abs(self.grad[free] - multiplier * self.normal[free]) / self.tol[free]))

    def _projected_step(self, free: RowIndices, direction: Vector) -> tuple[Vector, Vector, Mask]:
        """A step along `direction` of length <= 1, the change of the gradient, and which coordinates reach a bound.

        Lengths 1, 1/16, 1/256, ..., each clipped to the box, are tried until one decreases the objective more than the
        step to the first bound does. With a'x = 0, which clipping violates, it is the step to that bound.
        """
        bound = np.where(direction > 0, self.hi[free], self.lo[free])
        with np.errstate(over="ignore"):
            room = np.divide(bound, direction, out=np.full(len(free), np.inf), where=direction != 0)
        columns, grad = self.Q[:, free], self.grad[free]

        def clipped(length: float) -> tuple[float, Vector, Vector]:
            """A clipped step of this length: the change of the objective, the step, the change of the gradient."""
            step = np.where(room <= length, bound, length * direction)
            change = columns @ step
            return float(step @ (grad + 0.5 * change[free])), step, change

        first = min(1.0, float(room.min()))
        length, (value, step, change) = 1.0, clipped(first)
        while not self.has_intercept and length > first:
            trial = clipped(length)
            if trial[0] < value:
                return trial[1], trial[2], room <= length
            length /= 16
        return step, change, room <= first

    def _newton(self, free: RowIndices) -> tuple[Vector, float]:
        """The Newton direction of the free coordinates with the others fixed, and the multiplier of a'x = 0.

        Q is damped by a multiple of the identity, increased until the Cholesky factorisation exists: where Q is
        singular this is a proximal point step, long in the null space of Q.
        """
        grad, normal = self.grad[free], self.normal[free]
        Q = self.Q[np.ix_(free, free)]
        while self._damping <= 1e-2:
            damped = Q + self._damping * np.eye(len(free))
            try:
                factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                self._damping *= 100.0
                continue
            if not self.has_intercept:
                return -cho_solve(factor, grad, check_finite=False), 0.0
            solved_normal, multiplier = cho_solve(factor, normal, check_finite=False), 0.0
            for _ in range(2):  # where the direction is long, cancellation leaves the first multiplier few digits
                solved_grad = cho_solve(factor, grad - multiplier * normal, check_finite=False)
                more = float(normal @ solved_grad / (normal @ solved_normal))
                multiplier += more
            direction = more * solved_normal - solved_grad
            return direction - normal * float(normal @ direction / (normal @ normal)), multiplier
        return np.zeros(len(free)), 0.0

    def _release_violators(self) -> bool:
        """Free the largest violator, or with a'x = 0 the maximal violating pair; returns False if there is none."""
        can_rise, can_fall = self.hi > 0.0, self.lo < 0.0
        if not self.has_intercept:
            violations = np.maximum(np.where(can_rise, -self.grad, 0.0), np.where(can_fall, self.grad, 0.0))
            violations[self.free | (violations <= self.tol)] = 0.0
            chosen = [int(violations.argmax())] if violations.any() else []
        else:
            slope, tol = self.grad / self.normal, self.tol / self.normal
            up = int(np.where(can_rise, slope, np.inf).argmin())
            down = int(np.where(can_fall, slope, -np.inf).argmax())
            is_none = not can_rise[up] or not can_fall[down] or slope[down] - slope[up] <= max(tol[up], tol[down])
            chosen = [] if is_none else [k for k in (up, down) if not self.free[k]]
        self.free[chosen] = True
        return bool(chosen)
