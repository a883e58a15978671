"""Duals whose coordinate steps crawl: exact working sets, by Newton steps on the free coordinates.

Solve    min_b  1/2 b'Kb - t'b   s.t.  lo <= b <= hi   [and sum(b) = 0]
Given    K (m, m) in memory, positive semidefinite, of any rank; a feasible start
Method   Where K is nearly singular on the free coordinates, steps of one or two coordinates need a number of steps
         that grows with its condition. Here a working set of at most 512 rows is solved to rounding: Newton steps on
         its free coordinates, cut where coordinates reach their bounds, which hold them from then on; at the optimum
         of the free ones the largest violator is freed.
Cost     O(q^3 / 3) a step for q free coordinates; about as many steps as coordinates that change sides
Source   primal active sets: Nocedal, Wright, Numerical Optimization, 2006, algorithm 16.3; steps that meet several
         bounds: Bertsekas, SIAM J. Control Optim. 20, 1982; singular K: proximal point, Rockafellar 1976
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..._native import dual
from .certificate import certify, is_free

Vector = NDArray[np.float64]
Array = NDArray[np.floating]
Rows = NDArray[np.intp]
GoOn = Callable[[], bool]

SETS_PER_CHECK = 30  # working sets: nine real sets of up to 512 rows take up to 21 at C from 1 to 960
MAX_IDLE_CHECKS = 10  # looks, or rounds, without progress
_CUT_SHORT = 0.8  # of the steps allowed: working sets that take more on average end unsolved
_EPS = float(np.finfo(np.float64).eps)
_DAMPING, _MORE_DAMPING, _MOST_DAMPING = 1e-12, 100.0, 1e-2  # of a matrix of unit diagonal
_STEPS_PER_ROW = 20
_NEGLIGIBLE = 0.1  # of the goal: a violation
_SHORTER = 1 / 16  # of a projected step that does not decrease the objective


class ProgressMonitor:
    """Whether steps still come to something, asked now and then.

    They do while the objective falls beyond rounding or the violation by half, below the least value so far: float32
    entries let either rise for a while.
    """

    def __init__(self) -> None:
        self.n_idle = 0  # answers since the last progress
        self._value = self._violation = np.inf

    def __call__(self, box: dual.Box, beta: Vector, decision: Vector, violation: float) -> bool:
        """Whether anything has come of the steps since the last call."""
        value, rounding = objective(box, beta, decision)
        has_come = value < self._value - rounding or violation < 0.5 * self._violation
        self.n_idle = 0 if has_come else self.n_idle + 1
        self._value, self._violation = min(value, self._value), min(violation, self._violation)
        return has_come


class StallTest:
    """Whether coordinate steps have come to nothing: looked at after every `SETS_PER_CHECK` working sets of a problem.

    Parameters
    ----------
    size : int
        Rows of a working set. A problem of no more that is not solved by then is ill-conditioned. A larger one is
        where working sets end at their limit of steps, or ten looks have seen no progress.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._progress = ProgressMonitor()
        self._steps = 0

    def __call__(self, box: dual.Box, beta: Vector, decision: Vector, violation: float, n_steps: int) -> bool:
        """`n_steps` is the number of steps in all working sets so far."""
        if len(beta) <= self.size:
            return True
        is_cut_short = n_steps - self._steps > _CUT_SHORT * SETS_PER_CHECK * dual.STEPS_PER_ROW * self.size
        self._steps = n_steps
        self._progress(box, beta, decision, violation)
        return is_cut_short or self._progress.n_idle >= MAX_IDLE_CHECKS


def solve_newton_sets(
    K: Array,
    box: dual.Box,
    beta: Vector,
    decision: Vector,
    size: int,
    *,
    equality: bool,
    tol: float,
    go_on: GoOn,
    max_relative_gap: float = np.inf,
) -> int:
    """Improve beta and decision = K beta in place, as far as is asked for or rounding allows.

    Parameters
    ----------
    K : ndarray of shape (m, >= m)
        In its leading m columns.
    box : dual.Box of (m,) arrays
    beta, decision : ndarray of shape (m,)
    size : int
        Rows of a working set.
    equality : bool
    tol : float
        Largest violation.
    go_on : callable
        Asked before every step.
    max_relative_gap : float
        Largest share of the objective that the gap may be.

    Returns
    -------
    int
        Working sets solved.
    """
    m, violations, n_sets = len(beta), np.empty(len(beta)), 0
    makes_progress, last = ProgressMonitor(), np.empty(0, np.intp)
    while go_on():
        found = certify(box, beta, decision, violations, equality=equality, tol=tol)
        if found.violation < tol:
            if found.is_tight(max_relative_gap):
                break
            tol = found.tighter_tol(max_relative_gap)
        if not makes_progress(box, beta, decision, found.violation):
            break
        rows, last = _choose(box, beta, violations, size, last)
        new = _solve_set(K, rows, box, beta, decision, equality=equality, tol=tol, go_on=go_on)
        change, beta[rows] = new - beta[rows], new
        decision += K[:m, rows] @ change
        n_sets += 1
    return n_sets


def objective(box: dual.Box, beta: Vector, decision: Vector) -> tuple[float, float]:
    """1/2 b'Kb - t'b, and its rounding error: less of a decrease is none.

    An entry of K b is a sum of terms K_ij b_j, of at most sqrt(K_ii K_jj) |b_j|, with independent errors.
    """
    scaled = beta / box.scale
    rounding = _EPS * float(np.abs(box.target) @ np.abs(beta) + scaled @ scaled)
    return float(beta @ (0.5 * decision - box.target)), rounding


def _choose(box: dual.Box, beta: Vector, violations: Vector, size: int, last: Rows) -> tuple[Rows, Rows]:
    """The coordinates that most want to rise, and those that most want to fall, with the last ones chosen: (<= size,).

    `violations` is signed: positive where a coordinate should rise. Free coordinates without one come next. Returns
    the working set in ascending order, and what is new in it.
    """
    if len(beta) <= size:
        return np.arange(len(beta)), last
    rank = np.where(is_free(box, beta) & (violations == 0.0), np.finfo(np.float64).tiny, violations)
    rise, fall = (np.argpartition(-side, size // 4)[: size // 4] for side in (rank, -rank))
    new = np.union1d(rise, fall)
    return np.union1d(new, last), new


def _solve_set(
    K: Array, rows: Rows, box: dual.Box, beta: Vector, decision: Vector, *, equality: bool, tol: float, go_on: GoOn
) -> Vector:
    """The new values of some coordinates (q,), the others held."""
    scale, now = box.scale[rows], beta[rows]
    lo, hi = box.lo[rows], box.hi[rows]
    grad = decision[rows] - box.target[rows]
    entries = K[np.ix_(rows, rows)].astype(np.float64)
    noise = _EPS * (np.abs(K[rows, : len(beta)]) @ np.abs(beta) + np.abs(box.target[rows]))
    active = _ActiveSet(
        entries * scale[:, None] * scale,
        grad * scale,
        (lo - now) / scale,
        (hi - now) / scale,
        scale,
        goal=np.maximum(0.5 * tol, noise) * scale,
        equality=equality,
    )
    active.solve(go_on)
    new = np.clip(now + active.x * scale, lo, hi)
    new = np.where(active.hi == 0.0, hi, np.where(active.lo == 0.0, lo, new))
    if equality:  # the sum to its last digits
        roomiest = int(np.minimum(new - lo, hi - new).argmax())
        new[roomiest] = np.clip(new[roomiest] - (new - now).sum(), lo[roomiest], hi[roomiest])
    return new


class _ActiveSet:
    """min_x  1/2 x'Qx + g'x   s.t.  lo <= x <= hi   [and a'x = 0], from x = 0; all vectors of q.

    Parameters
    ----------
    Q : ndarray of shape (q, q)
        Of unit diagonal.
    grad, lo, hi : ndarray of shape (q,)
        Of the objective at x, and what x may still move: both are kept up to date.
    normal : ndarray of shape (q,)
        a > 0: the scale of the coordinates.
    goal : ndarray of shape (q,)
        Violations that are none.
    equality : bool
    """

    def __init__(
        self, Q: Vector, grad: Vector, lo: Vector, hi: Vector, normal: Vector, *, goal: Vector, equality: bool
    ) -> None:
        self.Q = Q
        self.grad = grad
        self.lo = lo
        self.hi = hi
        self.normal = normal
        self.goal = goal
        self.equality = equality
        self.x = np.zeros(len(Q))
        self.free = (lo < 0.0) & (hi > 0.0)
        self._damping = _DAMPING

    def solve(self, go_on: GoOn) -> None:
        """Steps on the free coordinates to their optimum, then with one more (or a pair) free."""
        for _ in range(_STEPS_PER_ROW * len(self.Q)):
            if not go_on() or (self._step() and not self._release()):
                return

    def _step(self) -> bool:
        """A Newton step on the free coordinates; whether it takes them to their optimum."""
        free = np.flatnonzero(self.free)
        if not len(free):
            return True
        direction, offset = self._newton(free)
        before = self._excess(free, offset)
        if before <= _NEGLIGIBLE or not direction.any():
            return True
        step, change, is_held = self._cut(free, direction)
        self.x[free] += step
        self.lo[free] -= step
        self.hi[free] -= step
        self.grad += change
        self.free[free[is_held]] = False
        return not is_held.any() and not _NEGLIGIBLE < self._excess(free, offset) < 0.5 * before

    def _excess(self, free: Rows, offset: float) -> float:
        """Largest violation of free coordinates, over its goal."""
        return float(np.max(np.abs(self.grad[free] - offset * self.normal[free]) / self.goal[free]))

    def _cut(self, free: Rows, direction: Vector) -> tuple[Vector, Vector, NDArray[np.bool_]]:
        """A step along the direction, no longer than 1, its change of the gradient, and which coordinates it bounds.

        The longest of some that are cut to the box and decrease the objective more than the one to the first bound;
        with the equality, which does not hold for a cut step, the one to the first bound.
        """
        bound = np.where(direction > 0, self.hi[free], self.lo[free])
        with np.errstate(over="ignore"):
            room = np.divide(bound, direction, out=np.full(len(free), np.inf), where=direction != 0)
        columns, grad = self.Q[:, free], self.grad[free]

        def cut(length: float) -> tuple[float, Vector, Vector]:
            step = np.where(room <= length, bound, length * direction)
            change = columns @ step
            return float(step @ (grad + 0.5 * change[free])), step, change

        first = min(1.0, float(room.min()))
        length, (decrease, step, change) = 1.0, cut(first)
        while not self.equality and length > first:
            trial = cut(length)
            if trial[0] < decrease:
                return trial[1], trial[2], room <= length
            length *= _SHORTER
        return step, change, room <= first

    def _newton(self, free: Rows) -> tuple[Vector, float]:
        """The free coordinates' way to their optimum with the others held, and the equality's multiplier.

        Damped by a multiple of the identity: where Q is singular, this is a step of the proximal point method, long
        along directions that Q does not see.
        """
        grad, normal = self.grad[free], self.normal[free]
        Q = self.Q[np.ix_(free, free)]
        while self._damping <= _MOST_DAMPING:
            damped = Q + self._damping * np.eye(len(free))
            try:
                factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                self._damping *= _MORE_DAMPING
                continue
            if not self.equality:
                return -cho_solve(factor, grad, check_finite=False), 0.0
            across, offset = cho_solve(factor, normal, check_finite=False), 0.0
            for _ in range(2):  # the first offset is of few digits where the steps are long
                along = cho_solve(factor, grad - offset * normal, check_finite=False)
                more = float(normal @ along / (normal @ across))
                offset += more
            direction = more * across - along
            return direction - normal * float(normal @ direction / (normal @ normal)), offset
        return np.zeros(len(free)), 0.0

    def _release(self) -> bool:
        """Free the largest violator, or with the equality the pair that violates most; False if there is none."""
        rising, falling = self.hi > 0.0, self.lo < 0.0
        if not self.equality:
            excess = np.maximum(np.where(rising, -self.grad, 0.0), np.where(falling, self.grad, 0.0))
            excess[self.free | (excess <= self.goal)] = 0.0
            chosen = [int(excess.argmax())] if excess.any() else []
        else:
            slope, goal = self.grad / self.normal, self.goal / self.normal
            up = int(np.where(rising, slope, np.inf).argmin())
            down = int(np.where(falling, slope, -np.inf).argmax())
            is_none = not rising[up] or not falling[down] or slope[down] - slope[up] <= max(goal[up], goal[down])
            chosen = [] if is_none else [k for k in (up, down) if not self.free[k]]
        self.free[chosen] = True
        return bool(chosen)
