"""The dual on ill-conditioned kernel matrices: working sets solved by Newton steps on the free coordinates.

Solve    min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]
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
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..._native import dual
from ..._types import Array, Rows, Vector
from .certificate import certify, is_free

GoOn = Callable[[], bool]

SETS_PER_CHECK = 30  # working sets between stall tests: nine data sets of up to 512 rows took 21 at most, C <= 960
MAX_IDLE_CHECKS = 10  # tests without progress, one after another, that are a stall
_MAX_ROUNDING = 1e-3  # of decision values; more is beyond precision (see `StallTest`), and there:
_MAX_IDLE_BEYOND = 4  # at most, instead of `MAX_IDLE_CHECKS`
_LEAST_DECREASE = 0.01  # of the objective / primal objective of beta = 0 that is progress
_STEP_LIMIT_SHARE = 0.8  # mean steps of a working set / its limit of steps, above which it mostly ends unsolved
_EPS = float(np.finfo(np.float64).eps)
_DAMPING, _DAMPING_FACTOR, _MAX_DAMPING = 1e-12, 100.0, 1e-2  # added to a unit diagonal
_STEPS_PER_ROW = 20
_NEGLIGIBLE = 0.1  # violation / tolerance below which free coordinates are optimal
_BACKTRACKING = 1 / 16  # factor of a projected step that does not decrease the objective


class StallTest:
    """Tests now and then whether a solver has stalled: no progress in `max_idle` tests, one after another.

    Progress: the dual objective fell below its least value so far by more than rounding, or the violation below half
    of its least value. (With float32 entries either can increase for a while.)

    Where decision values of bounded support vectors are beyond the precision of float64, no optimum with such vectors
    can be certified, yet the objective may fall for hours. There only a decrease of 1 % of the primal objective of
    beta = 0 counts, and four tests without progress are a stall instead of ten. Chosen on 1,500 rows of random labels,
    C = 1e10: those of 1 to 5 columns end in 1 to 7 s, and those of 10 columns, which are separable, converge.
    """

    def __init__(self, max_idle: int = MAX_IDLE_CHECKS) -> None:
        self.max_idle = max_idle
        self._n_idle = 0  # tests since the last progress
        self._value = self._violation = np.inf

    def __call__(self, terms: dual.SeparableTerms, beta: Vector, decision: Vector, violation: float) -> bool:
        """Whether the solver has stalled."""
        value, least_decrease = objective(terms, beta, decision)
        if is_beyond_precision(terms):
            self.max_idle = min(self.max_idle, _MAX_IDLE_BEYOND)
            least_decrease = max(least_decrease, _LEAST_DECREASE * primal_at_zero(terms))
        has_progress = value < self._value - least_decrease or violation < 0.5 * self._violation
        self._n_idle = 0 if has_progress else self._n_idle + 1
        self._value, self._violation = min(value, self._value), min(violation, self._violation)
        return self._n_idle >= self.max_idle


class CoordinateStallTest:
    """Tests, after every `SETS_PER_CHECK` working sets of a problem, whether coordinate steps have stalled.

    Parameters
    ----------
    size : int
        Rows of a working set. A problem of at most `size` rows has stalled at the first test; a larger one if its
        working sets end at their limit of steps, or by `StallTest`.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._is_stalled = StallTest()
        self._steps = 0

    def __call__(
        self, terms: dual.SeparableTerms, beta: Vector, decision: Vector, violation: float, n_steps: int
    ) -> bool:
        """`n_steps` is the number of steps in all working sets so far."""
        if len(beta) <= self.size:
            return True
        is_cut_short = n_steps - self._steps > _STEP_LIMIT_SHARE * SETS_PER_CHECK * dual.STEPS_PER_ROW * self.size
        self._steps = n_steps
        return self._is_stalled(terms, beta, decision, violation) or is_cut_short


def solve_newton_sets(
    K: Array,
    terms: dual.SeparableTerms,
    beta: Vector,
    decision: Vector,
    size: int,
    *,
    has_intercept: bool,
    tol: float,
    go_on: GoOn,
    max_relative_gap: float = np.inf,
) -> int:
    """Improve beta (m,) and decision = K beta (m,) in place, until `tol` or until rounding ends progress.

    Parameters
    ----------
    K : ndarray of shape (m, >= m)
        The kernel matrix is the leading m columns.
    terms : dual.SeparableTerms of (m,) arrays
    beta, decision : ndarray of shape (m,)
    size : int
        Rows of a working set.
    has_intercept : bool
    tol : float
        Largest violation.
    go_on : callable
        Called before every step; the solver stops where it returns False.
    max_relative_gap : float
        Largest gap / objective at the end.

    Returns
    -------
    int
        Working sets solved.
    """
    m, violations, n_sets = len(beta), np.empty(len(beta)), 0
    is_stalled, last = StallTest(max_idle=1), np.empty(0, np.intp)
    while go_on():
        certificate = certify(terms, beta, decision, violations, has_intercept=has_intercept, tol=tol)
        if certificate.violation < tol:
            if certificate.is_tight(max_relative_gap):
                break
            tol = certificate.tighter_tol(max_relative_gap)
        if is_stalled(terms, beta, decision, certificate.violation):
            break
        rows, last = _select_working_set(terms, beta, violations, size, last)
        new = _solve_set(
            K, rows, terms, beta, decision, certificate.intercept, has_intercept=has_intercept, tol=tol, go_on=go_on
        )
        change, beta[rows] = new - beta[rows], new
        decision += K[:m, rows] @ change
        n_sets += 1
    return n_sets


def is_beyond_precision(terms: dual.SeparableTerms) -> bool:
    """Whether decision values with all coordinates at their bounds could have a rounding error above 1e-3."""
    with np.errstate(over="ignore"):
        return bool(
            _EPS * float(np.sum(terms.hi - terms.lo)) > _MAX_ROUNDING * float(np.min(terms.scale, initial=np.inf)) ** 2
        )


def primal_at_zero(terms: dual.SeparableTerms) -> float:
    """The primal objective of the machine beta = 0: an upper bound of the negative dual objective."""
    return float(terms.hi @ np.maximum(terms.target, 0.0) - terms.lo @ np.maximum(-terms.target, 0.0))


def objective(terms: dual.SeparableTerms, beta: Vector, decision: Vector) -> tuple[float, float]:
    """The dual objective 1/2 beta'K beta - t'beta + eps |beta|_1, and its rounding error.

    An entry of K beta is a sum of terms K_ij beta_j, of at most sqrt(K_ii K_jj) |beta_j|, with independent errors.
    """
    scaled = beta / terms.scale
    size, norm = np.abs(terms.target) @ np.abs(beta), terms.epsilon * np.abs(beta).sum()
    rounding = _EPS * float(size + norm + scaled @ scaled)
    return float(beta @ (0.5 * decision - terms.target) + norm), rounding


def _select_working_set(
    terms: dual.SeparableTerms, beta: Vector, violations: Vector, size: int, last: Rows
) -> tuple[Rows, Rows]:
    """A working set of at most `size` coordinates in ascending order, and those of them that are new.

    A quarter of it has the largest positive `violations` (the coordinate should increase), a quarter the most negative
    ones, then free coordinates; the rest is `last`, the new coordinates of the working set before.
    """
    if len(beta) <= size:
        return np.arange(len(beta)), last
    rank = np.where(is_free(terms, beta) & (violations == 0.0), np.finfo(np.float64).tiny, violations)
    rise, fall = (np.argpartition(-side, size // 4)[: size // 4] for side in (rank, -rank))
    new = np.union1d(rise, fall)
    return np.union1d(new, last), new


def _solve_set(
    K: Array,
    rows: Rows,
    terms: dual.SeparableTerms,
    beta: Vector,
    decision: Vector,
    intercept: float,
    *,
    has_intercept: bool,
    tol: float,
    go_on: GoOn,
) -> Vector:
    """The optimal values of the coordinates `rows` (q,) with all others fixed, to rounding.

    With epsilon > 0 every coordinate stays on its side of zero; one at zero takes the side where the objective is
    smaller, given the intercept.
    """
    scale, now = terms.scale[rows], beta[rows]
    lo, hi = terms.lo[rows], terms.hi[rows]
    grad = decision[rows] - terms.target[rows]
    if terms.epsilon:
        side = np.where(now != 0.0, np.sign(now), np.where(grad + intercept < 0.0, 1.0, -1.0))
        lo, hi = np.where(side > 0, np.maximum(lo, 0.0), lo), np.where(side > 0, hi, np.minimum(hi, 0.0))
        grad = grad + terms.epsilon * side
    entries = K[np.ix_(rows, rows)].astype(np.float64)
    noise = _EPS * (np.abs(K[rows, : len(beta)]) @ np.abs(beta) + np.abs(terms.target[rows]))
    newton = _BoxNewton(
        entries * scale[:, None] * scale,
        grad * scale,
        (lo - now) / scale,
        (hi - now) / scale,
        scale,
        tol=np.maximum(0.5 * tol, noise) * scale,
        has_intercept=has_intercept,
    )
    newton.solve(go_on)
    new = np.clip(now + newton.x * scale, lo, hi)
    new = np.where(newton.hi == 0.0, hi, np.where(newton.lo == 0.0, lo, new))
    if has_intercept:  # the rounding error of the sum goes to the coordinate farthest from its bounds
        farthest = int(np.minimum(new - lo, hi - new).argmax())
        new[farthest] = np.clip(new[farthest] - (new - now).sum(), lo[farthest], hi[farthest])
    return new


class _BoxNewton:
    """min_x  1/2 x'Qx + g'x   s.t.  lo <= x <= hi   [and a'x = 0], from x = 0; all vectors of q.

    Parameters
    ----------
    Q : ndarray of shape (q, q)
        Of unit diagonal.
    grad, lo, hi : ndarray of shape (q,)
        Gradient at x, and the bounds less x: both are updated with x.
    normal : ndarray of shape (q,)
        a > 0: the scale of the coordinates.
    tol : ndarray of shape (q,)
        Largest violation of each coordinate at the end.
    has_intercept : bool
        Whether a'x = 0 is a constraint.
    """

    def __init__(
        self, Q: Vector, grad: Vector, lo: Vector, hi: Vector, normal: Vector, *, tol: Vector, has_intercept: bool
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
        self._damping = _DAMPING

    def solve(self, go_on: GoOn) -> None:
        """Minimise over the free coordinates, free the largest violator (or violating pair), and repeat."""
        for _ in range(_STEPS_PER_ROW * len(self.Q)):
            if not go_on() or (self._step() and not self._release_violators()):
                return

    def _step(self) -> bool:
        """Take a Newton step on the free coordinates; whether they are optimal then."""
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

    def _relative_violation(self, free: Rows, multiplier: float) -> float:
        """Largest violation / tolerance of the free coordinates, given the multiplier of a'x = 0."""
        return float(np.max(np.abs(self.grad[free] - multiplier * self.normal[free]) / self.tol[free]))

    def _projected_step(self, free: Rows, direction: Vector) -> tuple[Vector, Vector, NDArray[np.bool_]]:
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
            length *= _BACKTRACKING
        return step, change, room <= first

    def _newton(self, free: Rows) -> tuple[Vector, float]:
        """The Newton direction of the free coordinates with the others fixed, and the multiplier of a'x = 0.

        Q is damped by a multiple of the identity, increased until the Cholesky factorisation exists: where Q is
        singular this is a proximal point step, long in the null space of Q.
        """
        grad, normal = self.grad[free], self.normal[free]
        Q = self.Q[np.ix_(free, free)]
        while self._damping <= _MAX_DAMPING:
            damped = Q + self._damping * np.eye(len(free))
            try:
                factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                self._damping *= _DAMPING_FACTOR
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
        """Free the largest violator, or with a'x = 0 the maximal violating pair; False if there is none."""
        rising, falling = self.hi > 0.0, self.lo < 0.0
        if not self.has_intercept:
            violations = np.maximum(np.where(rising, -self.grad, 0.0), np.where(falling, self.grad, 0.0))
            violations[self.free | (violations <= self.tol)] = 0.0
            chosen = [int(violations.argmax())] if violations.any() else []
        else:
            slope, tol = self.grad / self.normal, self.tol / self.normal
            up = int(np.where(rising, slope, np.inf).argmin())
            down = int(np.where(falling, slope, -np.inf).argmax())
            is_none = not rising[up] or not falling[down] or slope[down] - slope[up] <= max(tol[up], tol[down])
            chosen = [] if is_none else [k for k in (up, down) if not self.free[k]]
        self.free[chosen] = True
        return bool(chosen)
