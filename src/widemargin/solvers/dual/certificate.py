"""The certificate of a feasible point of a dual problem: intercept, primal objective, duality gap and KKT violation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..._native import dual
from ..._types import Mask, RowIndices, Vector
from ..quantile import midpoint_quantile, midpoint_quantiles
from ..results import Certificate, DualResult, DualResults, History
from .problem import (
    is_free,
    loss_multipliers,
    one_sided_derivatives,
    penalty,
    restrict_terms,
    total_loss,
    without_rounding,
)

NO_LIMIT = int(np.iinfo(np.int64).max)
MAX_RELATIVE_GAP = 0.05  # a machine with a larger gap / primal objective has not converged, however small its violation
_LEAST_FACTOR = 1e-3  # multiply the tolerance by no less than this where the gap is too large
_AIM = 0.7  # go on to a violation for which so much of the allowed gap is expected
_MOST_SCALED = 30.0  # machines with gaps beyond so many times the allowed one are not scaled
_ROUNDED_SQUARE = 1e-5  # - beta'K beta / its terms' magnitudes, up to which it may be rounding
START_TOL = 0.1  # solve to no less than this what gives a start, or landmarks' weights: levels, refine step


@dataclass(frozen=True)
class Limits:
    """Where the solve of a dual ends; of many problems what the methods take and return are columns (P,).

    A converged machine has a KKT violation below `tol` and a gap / primal objective of at most `max_relative_gap`:
    where it is larger at `tol`, the tolerance is made smaller. That is infinite for kernels that are not positive
    semidefinite, where the gap is no bound. `max_iter` limits the working sets of each dual; -1 is no limit. With
    `scales` the gap is that of a machine near the point (`scaled`).
    """

    tol: float
    max_relative_gap: float = MAX_RELATIVE_GAP
    max_iter: int = -1
    scales: bool = False

    @property
    def intercept_tol(self) -> float:
        """The tolerance for `certify`: `tol`, or the gap allowed, as the mean of free values makes gaps larger."""
        return min(self.tol, self.max_relative_gap)

    @property
    def max_sets(self) -> int:
        """`max_iter`, or the largest integer."""
        return self.max_iter if self.max_iter >= 0 else NO_LIMIT

    def are_met(self, certificate: Certificate) -> Any:
        """Whether a machine with this certificate has converged."""
        return (certificate.violation < self.tol) & self.is_tight(certificate)

    def is_tight(self, certificate: Certificate) -> Any:
        """Whether the gap is small enough."""
        if self.max_relative_gap == np.inf:
            return np.ones_like(certificate.gap, np.bool_)[()]
        return certificate.gap <= self.max_relative_gap * abs(certificate.primal_objective)

    def next_tol(self, tol: Any, certificate: Certificate) -> Any:
        """The tolerance to go on with: `tol`, or less if the violation is below it and the gap is too large.

        Less: where the gap is `_AIM` times the allowed one if it is proportional to the violation.
        """
        is_wide = np.logical_not(self.is_tight(certificate)) & (certificate.violation < tol)
        if not is_wide.any():
            return tol
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.divide(_AIM * self.max_relative_gap * abs(certificate.primal_objective), certificate.gap)
        return np.where(is_wide, certificate.violation * np.maximum(factor, _LEAST_FACTOR), tol)[()]


def certify(
    terms: dual.SeparableTerms, beta: Vector, decision: Vector, violations: Vector, *, has_intercept: bool, tol: float
) -> Certificate:
    """The certificate of a feasible point beta (n,) with decision values K beta (n,), without intercept.

    `violations` (n,) is overwritten with the signed KKT violations, positive where a coordinate should increase. Where
    the violation is below `tol` the intercept is LIBSVM's, the mean of target - decision over free coordinates. Above
    it, where these values still differ, and where no coordinate is free, it is the minimiser of the primal objective:
    the midpoint, if the minimisers are an interval. For squared losses the intercept is always that minimiser.

    O(n), expected where the intercept minimises the primal; no kernel entry is needed. With g = K beta - t + intercept
    the gap is beta'g, plus `penalty` and the losses (`total_loss`).
    """
    _, violation = dual.kkt_violation(terms, beta, decision, has_intercept, violations)
    intercept = _intercept(terms, beta, decision, converged=violation < tol) if has_intercept else 0.0
    grad, norm = decision - terms.target + intercept, penalty(terms, beta)
    gap = max(float(beta @ grad + norm + total_loss(terms, grad)), 0.0)
    lower_bound = terms.target @ beta - norm - 0.5 * beta @ decision
    return Certificate(intercept, float(lower_bound) + gap, gap, float(violation))


def scaled(
    terms: dual.SeparableTerms, beta: Vector, decision: Vector, certificate: Certificate, limits: Limits
) -> tuple[Certificate, float]:
    """The certificate with the primal objective of a beta instead of beta (n,), for the best factor a >= 1; and a.

    Free coordinates have decision values near the kink, on both sides of it: losses which a slightly larger machine
    does not have. At a large C these are most of the gap. a = 1 without `limits.scales`, and where
    the gap is small enough or beyond `_MOST_SCALED` times the allowed one. O(n), ten to twenty times.
    """
    allowed = limits.max_relative_gap * abs(certificate.primal_objective)
    square = float(beta @ decision)
    if not limits.scales or not allowed < certificate.gap <= _MOST_SCALED * allowed or not square > 0.0:
        return certificate, 1.0

    def primal(a: float) -> float:
        return 0.5 * a**2 * square + total_loss(terms, a * decision - terms.target + certificate.intercept)

    most = 1.0 + certificate.gap / square
    found = minimize_scalar(primal, bounds=(1.0, most), method="bounded", options={"xatol": 0.01 * (most - 1.0)})
    if not found.fun < certificate.primal_objective:
        return certificate, 1.0
    gap = max(found.fun - certificate.lower_bound, 0.0)
    return certificate._replace(primal_objective=float(found.fun), gap=float(gap)), float(found.x)


def certify_each(
    terms: dual.SeparableTerms, beta: Vector, decision: Vector, starts: RowIndices, *, has_intercept: bool, tol: float
) -> Certificate:
    """`certify` of many problems, as columns (P,): problem p has the coordinates starts[p]:starts[p + 1].

    Those without epsilon and D are certified in common passes; a converged one does not depend on the others.
    """
    first, sizes = starts[:-1], starts[1:] - starts[:-1]
    if terms.epsilon or terms.curvature is not None:
        parts = (slice(*ends) for ends in pairwise(starts.tolist()))
        points = ((restrict_terms(terms, part), beta[part], decision[part]) for part in parts)
        each = [certify(*p, np.empty(len(p[1])), has_intercept=has_intercept, tol=tol) for p in points]
        return Certificate(*np.array(each, np.float64).reshape(-1, 4).T)
    if not (is_there := sizes > 0).all():  # `reduceat` takes no empty parts
        columns, kept = np.zeros((4, len(sizes))), np.append(first[is_there], starts[-1])
        columns[:, is_there] = certify_each(terms, beta, decision, kept, has_intercept=has_intercept, tol=tol)
        return Certificate(*columns)
    grad = decision - terms.target
    right, left = one_sided_derivatives(terms, beta, grad)
    rise, fall = np.minimum.reduceat(right, first), np.maximum.reduceat(left, first)
    violation, intercept = np.maximum(np.maximum(-rise, fall), 0.0), np.zeros(len(sizes))
    if has_intercept:
        violation = np.where(np.isinf(rise) | np.isinf(fall), 0.0, np.maximum(fall - rise, 0.0))
        intercept = _intercepts(terms, beta, grad, first, sizes, violation < tol)
    grad = grad + intercept.repeat(sizes)
    loss = terms.hi * np.maximum(-grad, 0.0) - terms.lo * np.maximum(grad, 0.0)
    gap = np.maximum(np.add.reduceat(beta * grad + loss, first), 0.0)
    lower_bound = np.add.reduceat((terms.target - 0.5 * decision) * beta, first)
    return Certificate(intercept, lower_bound + gap, gap, violation)


def _intercepts(
    terms: dual.SeparableTerms, beta: Vector, grad: Vector, starts: RowIndices, sizes: RowIndices, converged: Mask
) -> Vector:
    """`_intercept` of each problem."""
    totals = np.add.reduceat(np.abs(beta), starts)
    free = is_free(terms, without_rounding(terms, beta, totals.repeat(sizes)))
    n_free = np.add.reduceat(free, starts, dtype=np.int64)
    mean = np.add.reduceat(np.where(free, -grad, 0.0), starts) / np.maximum(n_free, 1)
    is_mean = converged & (n_free > 0)
    if is_mean.all():
        return np.asarray(mean)
    best = midpoint_quantiles(-grad, terms.hi - terms.lo, np.add.reduceat(terms.hi - beta, starts), starts)
    return np.where(is_mean, mean, best)


def make_result(
    beta: Vector,
    decision: Vector,
    certificate: Certificate,
    elapsed: float,
    *,
    converged: bool,
    n_iter: int = 0,
    scale: float = 1.0,
) -> DualResult:
    """The result of a point beta (m,) with K beta (m,), and one row of history, `elapsed` seconds after the start."""
    history = History()
    history.record_point(elapsed, beta, certificate)
    return DualResult(beta, decision, *certificate, converged, n_iter, history, scale)


def have_negative_square(results: DualResults) -> Mask:
    """Whether beta'K beta < 0, beyond rounding: K is then not positive semidefinite, and the gap is no gap. (P,)"""
    terms = results.beta * results.decision
    return np.asarray(results.sums(terms) < -_ROUNDED_SQUARE * results.sums(np.abs(terms)))


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


def _intercept(terms: dual.SeparableTerms, beta: Vector, decision: Vector, *, converged: bool) -> float:
    """The intercept that `certify` describes."""
    residual, eps = terms.target - decision, terms.epsilon
    if terms.curvature is not None:
        return _root_intercept(terms, residual, float(beta.sum()))
    if converged:
        free = is_free(terms, without_rounding(terms, beta, np.abs(beta).sum()))
        if free.any():
            return float(np.mean(residual[free] - eps * np.sign(beta[free])))
    # Slope of the primal in b: sum(beta), -hi_i for each i with t_i - f_i - eps > b, -lo_i for each with
    # t_i - f_i + eps < b. At its minimum sum(hi) - sum(beta) of the weights hi and -lo belong to values below b.
    total = float(terms.hi.sum() - beta.sum())
    if eps == 0.0:
        return midpoint_quantile(residual, terms.hi - terms.lo, total)
    return midpoint_quantile(np.r_[residual - eps, residual + eps], np.r_[terms.hi, -terms.lo], total)


def _root_intercept(terms: dual.SeparableTerms, residual: Vector, total: float) -> float:
    """The minimiser b of the primal objective with squared losses of residual - b: their multipliers have this sum.

    The sum decreases in b, piecewise linearly: Newton steps, kept between points of either sign. Every third step
    bisects, as Newton steps alone can go to and fro between two pieces.
    """
    low, high = (float(residual.min()), float(residual.max())) if len(residual) else (0.0, 0.0)
    if high - low <= 2.0 * terms.epsilon:  # no losses: the midpoint of an interval
        return 0.5 * (low + high)
    weights = 1.0 / np.asarray(terms.curvature)
    low, high = low - terms.epsilon, high + terms.epsilon
    b, rounding = float(weights @ residual / weights.sum()), 4 * np.finfo(np.float64).eps * max(-low, high)
    for k in range(160):  # 53 bisections halve to rounding
        multipliers = loss_multipliers(terms, b - residual)
        excess = float(multipliers.sum()) - total
        if excess == 0.0:
            break
        low, high = (b, high) if excess > 0.0 else (low, b)
        slope = float(weights[(multipliers != 0.0) & (multipliers > terms.lo) & (multipliers < terms.hi)].sum())
        step = excess / slope if slope else np.inf
        new = b + step if k % 3 < 2 and low <= b + step <= high else 0.5 * (low + high)
        if new == b or abs(step) <= rounding:
            break
        b = new
    return b
