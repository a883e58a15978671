"""The dual problem in signed form, and where a point of it stands: violation, intercept, primal value and gap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._native import dual

Vector = NDArray[np.float64]

MAX_RELATIVE_GAP = 0.05  # of the objective: a machine with more has not converged, however small its violation
_LEAST_CUT, _MOST_CUT = 1e-3, 0.5  # of a violation whose gap is too large


class DualProblem(NamedTuple):
    """Targets and signed bounds, float64 arrays of shape (n,)."""

    target: Vector
    lo: Vector
    hi: Vector


def make_box(problem: DualProblem, diagonal: Vector) -> dual.Box:
    """Add the scale that gives K a unit diagonal; where it vanishes it is lifted to 1e-12 of its largest entry."""
    if not np.all(np.isfinite(diagonal)):
        raise ValueError("kernel must be finite, but k(x, x) is NaN or infinite for some row")
    largest = float(np.max(diagonal, initial=0.0))
    floor = 1e-12 * largest if largest > 0 else 1.0
    return _box_of([*problem, 1.0 / np.sqrt(np.maximum(diagonal, floor))])


class Certificate(NamedTuple):
    """Where a point stands: intercept, primal value, duality gap, violation."""

    intercept: float
    objective: float
    gap: float
    violation: float

    def is_tight(self, max_relative_gap: float) -> bool:
        """Whether the gap is at most this share of the objective."""
        return self.gap <= max_relative_gap * self.objective or max_relative_gap == np.inf

    def tighter_tol(self, max_relative_gap: float) -> float:
        """The violation at which the gap would be half of that share, if the two fall in proportion."""
        return self.violation * float(
            np.clip(0.5 * max_relative_gap * self.objective / self.gap, _LEAST_CUT, _MOST_CUT)
        )


def svm_problem(y: Vector, upper: Vector) -> DualProblem:
    """The C-SVM's signed dual: labels y = +-1 and alpha in [0, upper]."""
    return DualProblem(y, np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0))


def restrict_box(box: dual.Box, rows: slice | NDArray[np.integer]) -> dual.Box:
    """The box of some of the coordinates."""
    return _box_of([part[rows] for part in (box.target, box.lo, box.hi, box.scale)])


def _box_of(parts: list[Vector]) -> dual.Box:
    return dual.Box(*(np.ascontiguousarray(part, np.float64) for part in parts))


def is_free(box: dual.Box, beta: Vector) -> NDArray[np.bool_]:
    """Which coordinates lie strictly between their bounds."""
    return np.asarray((beta > box.lo) & (beta < box.hi))


def rescale_to_zero_sum(beta: Vector) -> Vector:
    """Multiply the coordinates of the sign with the larger sum so that sum(beta) = 0."""
    up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if min(up, down) == 0:
        return np.zeros_like(beta)
    return np.asarray(np.where(beta > 0, beta * min(1.0, down / up), beta * min(1.0, up / down)))


def certify(
    box: dual.Box, beta: Vector, decision: Vector, violations: Vector, *, equality: bool, tol: float
) -> Certificate:
    """Where a feasible point stands.

    Parameters
    ----------
    box : dual.Box of (n,) arrays
    beta, decision : ndarray of shape (n,)
        The point and K beta.
    violations : ndarray of shape (n,)
        Overwritten with each coordinate's violation.
    equality : bool
    tol : float
        Below this violation the intercept is LIBSVM's, the mean over free coordinates; above it, where those are not
        in line yet, the one that is best for the primal.

    Returns
    -------
    Certificate

    Notes
    -----
    O(n), with the intercept before the end O(n log n). The gap is
    sum_i b_i g_i + hi_i max(0, -g_i) - lo_i max(0, g_i) with g = K b - t + intercept: free once g is known.
    """
    offset, violation = dual.kkt_violation(box, beta, decision, equality, violations)
    if equality:
        offset = _intercept(box, beta, decision, offset, converged=violation < tol)
    grad = decision - box.target + offset
    gap = beta @ grad + box.hi @ np.maximum(-grad, 0) - box.lo @ np.maximum(grad, 0)
    lower_bound = box.target @ beta - 0.5 * beta @ decision
    gap = max(float(gap), 0.0)
    return Certificate(float(offset), float(lower_bound) + gap, gap, float(violation))


def _intercept(box: dual.Box, beta: Vector, decision: Vector, midpoint: float, *, converged: bool) -> float:
    slack = box.target - decision
    if not converged:
        return _weighted_quantile(slack, box.hi - box.lo, float(box.hi.sum()))
    free = is_free(box, beta)
    return float(np.mean(slack[free])) if free.any() else midpoint


def _weighted_quantile(values: Vector, weights: Vector, total: float) -> float:
    """The smallest value up to which the weights sum to `total`.

    As a function of the intercept, the losses fall by hi for each coordinate with target - decision above it and rise
    by -lo for each below: sum(hi) units of hi - lo below it balance the two.
    """
    if not len(values):
        return 0.0
    order = np.argsort(values, kind="stable")
    k = int(np.searchsorted(np.cumsum(weights[order]), total))
    return float(values[order[min(k, len(order) - 1)]])
