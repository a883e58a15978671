"""The certificate of a feasible point of a dual problem: intercept, primal objective, duality gap and KKT violation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._native import dual
from ..._types import Mask, RowIndices, Vector
from ..quantile import midpoint_quantile, midpoint_quantiles
from ..results import DualResult, History
from .problem import is_free, one_sided_derivatives, total_loss

NO_LIMIT = int(np.iinfo(np.int64).max)
MAX_RELATIVE_GAP = 0.05  # a machine with a larger gap / primal objective has not converged, however small its violation
_TOL_FACTORS = 1e-3, 0.5  # multiply the tolerance by no less and no more than this where the gap is too large
_ROUNDED_SQUARE = 1e-5  # - beta'K beta / its terms' magnitudes, up to which it may be rounding
START_TOL = 0.1  # solve to no less than this what only gives a start: levels, refine step, first steps of blocks


@dataclass(frozen=True)
class Limits:
    """Where the solve of a dual ends.

    Attributes
    ----------
    tol : float
        Largest KKT violation of a converged machine.
    max_relative_gap : float
        Largest gap / primal objective of a converged machine: where it is larger at `tol`, the tolerance is made
        smaller. Infinite for kernels that are not positive semidefinite, where the gap is no bound.
    max_iter : int
        Working sets of each dual; -1 for no limit.
    """

    tol: float
    max_relative_gap: float = MAX_RELATIVE_GAP
    max_iter: int = -1

    @property
    def max_sets(self) -> int:
        """`max_iter`, or the largest integer."""
        return self.max_iter if self.max_iter >= 0 else NO_LIMIT

    def are_met(self, certificate: Certificate) -> bool:
        """Whether a machine with this certificate has converged."""
        return certificate.violation < self.tol and certificate.is_tight(self.max_relative_gap)


class Certificate(NamedTuple):
    """The intercept (see `certify`), the primal objective, the duality gap and the KKT violation."""

    intercept: float
    primal_objective: float
    gap: float
    violation: float

    @property
    def lower_bound(self) -> float:
        """Of the optimum: minus the dual objective."""
        return self.primal_objective - self.gap

    def is_tight(self, max_relative_gap: float) -> bool:
        """Whether gap <= max_relative_gap * primal objective; true for an infinite limit."""
        return self.gap <= max_relative_gap * abs(self.primal_objective) or max_relative_gap == np.inf

    def tighter_tol(self, max_relative_gap: float) -> float:
        """A smaller tolerance, at which the gap is half the allowed one if it is proportional to the violation."""
        factor = 0.5 * max_relative_gap * abs(self.primal_objective) / self.gap
        return self.violation * float(np.clip(factor, *_TOL_FACTORS))


def certify(
    terms: dual.SeparableTerms, beta: Vector, decision: Vector, violations: Vector, *, has_intercept: bool, tol: float
) -> Certificate:
    """Compute the certificate of a feasible point.

    Parameters
    ----------
    terms : dual.SeparableTerms of (n,) arrays
    beta, decision : ndarray of shape (n,)
        A feasible point, and its decision values K beta without intercept.
    violations : ndarray of shape (n,)
        Overwritten with the signed KKT violations: positive where a coordinate should increase.
    has_intercept : bool
        Whether sum(beta) is fixed: the dual of an unregularised intercept.
    tol : float
        Below this violation the intercept is LIBSVM's, the mean of target - decision over free coordinates. Above it
        these values still differ, and the intercept is the minimiser of the primal objective.

    Returns
    -------
    Certificate

    Notes
    -----
    O(n), expected where the intercept minimises the primal; no kernel entry is needed. With g = K beta - t + intercept
    the gap is sum_i beta_i g_i + eps |beta_i|, plus the losses (`total_loss`).
    """
    intercept, violation = dual.kkt_violation(terms, beta, decision, has_intercept, violations)
    if has_intercept:
        intercept = _intercept(terms, beta, decision, intercept, converged=violation < tol)
    grad, eps = decision - terms.target + intercept, terms.epsilon
    norm = eps * np.abs(beta).sum() if eps else 0.0
    gap = beta @ grad + norm + total_loss(terms, grad)
    lower_bound = terms.target @ beta - norm - 0.5 * beta @ decision
    gap = max(float(gap), 0.0)
    return Certificate(float(intercept), float(lower_bound) + gap, gap, float(violation))


def certify_each(
    terms: dual.SeparableTerms, beta: Vector, decision: Vector, starts: RowIndices, *, has_intercept: bool, tol: float
) -> list[Certificate]:
    """`certify` of many problems without epsilon, in common passes: of problem p from coordinate starts[p] on.

    `starts` (P,) are ascending, and every problem has a coordinate.
    """
    sizes = np.diff(np.append(starts, len(beta)))
    grad = decision - terms.target
    right, left = one_sided_derivatives(terms, beta, grad)
    rise, fall = np.minimum.reduceat(right, starts), np.maximum.reduceat(left, starts)
    violation, intercept = np.maximum(np.maximum(-rise, fall), 0.0), np.zeros(len(starts))
    if has_intercept:
        violation = np.where(np.isinf(rise) | np.isinf(fall), 0.0, np.maximum(fall - rise, 0.0))
        intercept = _intercepts(terms, beta, grad, starts, (rise, fall), violation < tol)
    grad = grad + np.repeat(intercept, sizes)
    loss = terms.hi * np.maximum(-grad, 0.0) - terms.lo * np.maximum(grad, 0.0)
    gap = np.maximum(np.add.reduceat(beta * grad + loss, starts), 0.0)
    lower_bound = np.add.reduceat((terms.target - 0.5 * decision) * beta, starts)
    columns = intercept, lower_bound + gap, gap, violation
    return list(map(Certificate, *(column.tolist() for column in columns)))


def _intercepts(
    terms: dual.SeparableTerms,
    beta: Vector,
    grad: Vector,
    starts: RowIndices,
    bounds: tuple[Vector, Vector],
    converged: Mask,
) -> Vector:
    """`_intercept` of each problem; `bounds` are its KKT bounds, of which one may be infinite."""
    rise, fall = bounds
    finite_rise, finite_fall = np.where(np.isinf(rise), fall, rise), np.where(np.isinf(fall), rise, fall)
    midpoint = -0.5 * (finite_rise + finite_fall)
    free = is_free(terms, beta)
    n_free = np.add.reduceat(free, starts, dtype=np.int64)
    mean = np.add.reduceat(np.where(free, -grad, 0.0), starts) / np.maximum(n_free, 1)
    found = np.where(n_free > 0, mean, np.where(np.isinf(midpoint), 0.0, midpoint))
    if converged.all():
        return np.asarray(found)
    best = midpoint_quantiles(-grad, terms.hi - terms.lo, np.add.reduceat(terms.hi - beta, starts), starts)
    return np.where(converged, found, best)


def make_result(
    beta: Vector,
    decision: Vector,
    certificate: Certificate,
    elapsed: float,
    *,
    converged: bool,
    n_iter: int = 0,
) -> DualResult:
    """The result of a point beta (m,) with K beta (m,), and one row of history, `elapsed` seconds after the start."""
    history = History()
    history.record_point(elapsed, beta, certificate)
    return DualResult(beta, decision, *certificate, converged, n_iter, history)


def has_negative_square(result: DualResult) -> bool:
    """Whether beta'K beta < 0, beyond rounding: K is then not positive semidefinite, and the gap is no gap."""
    magnitude = float(np.abs(result.beta) @ np.abs(result.decision))
    return float(result.beta @ result.decision) < -_ROUNDED_SQUARE * magnitude


def join_results(rows: list[RowIndices], parts: list[DualResult], n: int, elapsed: float) -> DualResult:
    """The results of independent problems as one of n coordinates: sums of objectives and gaps, largest violation.

    `rows` has each part's coordinates; `elapsed`, in seconds, is for the single row of the history.
    """
    beta, decision = np.zeros(n), np.zeros(n)
    for index, part in zip(rows, parts, strict=True):
        beta[index], decision[index] = part.beta, part.decision
    objective, gap = sum(part.objective for part in parts), sum(part.gap for part in parts)
    certificate = Certificate(0.0, objective, gap, max((part.violation for part in parts), default=0.0))
    converged, n_iter = all(part.converged for part in parts), sum(part.n_iter for part in parts)
    return make_result(beta, decision, certificate, elapsed, converged=converged, n_iter=n_iter)


def _intercept(
    terms: dual.SeparableTerms, beta: Vector, decision: Vector, midpoint: float, *, converged: bool
) -> float:
    """The intercept that `certify` describes; `midpoint` of its KKT bounds where no coordinate is free."""
    residual, eps = terms.target - decision, terms.epsilon
    if not converged:
        # Slope of the primal in b: sum(beta), -hi_i for each i with t_i - f_i - eps > b, -lo_i for each with
        # t_i - f_i + eps < b. At its minimum sum(hi) - sum(beta) of the weights hi and -lo belong to values below b.
        total = float(terms.hi.sum() - beta.sum())
        if eps == 0.0:
            return midpoint_quantile(residual, terms.hi - terms.lo, total)
        return midpoint_quantile(np.r_[residual - eps, residual + eps], np.r_[terms.hi, -terms.lo], total)
    free = is_free(terms, beta)
    return float(np.mean(residual[free] - eps * np.sign(beta[free]))) if free.any() else midpoint
