"""The dual problem in the coefficients beta, and the certificate of a feasible point.

    min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]

The constraint on the sum is the dual of an unregularised intercept b.

C-SVM: beta_i = y_i alpha_i, t = y, eps = 0, bounds 0 and y_i C s_i, s = 0. Regression: beta = alpha - alpha*, t = y,
bounds -C s_i and C s_i, s = 0. One-class machine: beta = alpha, t = 0, eps = 0, bounds 0 and s_i, s = nu sum(s_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._native import dual, hinge
from ..._types import Labels, Mask, RowIndices, Vector
from ..results import DualResult, History

NO_LIMIT = int(np.iinfo(np.int64).max)
MAX_RELATIVE_GAP = 0.05  # gap / objective above which a machine has not converged, however small its violation
_TOL_FACTORS = 1e-3, 0.5  # least and most reduction of the tolerance where the gap is too large


class DualProblem(NamedTuple):
    """min 1/2 beta'K beta - target'beta + epsilon |beta|_1 subject to lo <= beta <= hi.

    target, lo, hi are float64 arrays of shape (n,); epsilon >= 0. With an intercept also sum(beta) = nu sum(hi).
    """

    target: Vector
    lo: Vector
    hi: Vector
    epsilon: float = 0.0
    nu: float = 0.0

    def take(self, rows: slice | RowIndices) -> DualProblem:
        """The problem of the coordinates `rows` alone."""
        return self._replace(target=self.target[rows], lo=self.lo[rows], hi=self.hi[rows])

    def uniform_point(self) -> Vector:
        """nu hi (n,): feasible, and so is its restriction to any subset of the coordinates."""
        return self.nu * self.hi

    def sparse_point(self) -> Vector:
        """A feasible point (n,) with few coordinates other than zero: those of a random order, at their upper bound."""
        zero = np.zeros(len(self.hi))
        return self.nearby_point(zero) if self.nu else zero

    def nearby_point(self, beta: Vector) -> Vector:
        """A point (n,) of the sum that an intercept requires, near `beta` (n,), which is within the bounds.

        Coordinates are changed one after the other, in a random order, until the sum is right: those of the larger side
        to zero, or, with nu and too small a sum, to their upper bound, the nonzero ones first. All but one of them
        thus end at a bound, where they need no kernel entries.
        """
        missing = self.nu * self.hi.sum() - beta.sum()
        sign = np.sign(missing)
        order = np.random.default_rng(0).permutation(len(beta))
        order = order[np.argsort(beta[order] == 0.0, kind="stable")]
        room = self.hi - beta if self.nu and missing > 0 else np.maximum(-sign * beta, 0.0)
        room, point = room[order], beta.copy()
        point[order] += sign * np.clip(abs(missing) - (np.cumsum(room) - room), 0.0, room)
        return np.clip(point, self.lo, self.hi)


def make_terms(problem: DualProblem, diagonal: Vector) -> dual.SeparableTerms:
    """The separable terms with scale = K_ii^(-1/2), where K_ii is raised to at least 1e-12 of the largest K_ii."""
    if not np.all(np.isfinite(diagonal)):
        raise ValueError("kernel must be finite, but k(x, x) is NaN or infinite for some row")
    largest = float(np.max(diagonal, initial=0.0))
    floor = 1e-12 * largest if largest > 0 else 1.0
    scale = 1.0 / np.sqrt(np.maximum(diagonal, floor))
    return _terms_of([problem.target, problem.lo, problem.hi, scale], problem.epsilon)


@dataclass(frozen=True)
class Limits:
    """How far a dual is solved.

    Attributes
    ----------
    has_intercept : bool
        Whether sum(beta) keeps its value: the dual of an unregularised intercept.
    tol : float
        Largest KKT violation of a converged machine.
    max_relative_gap : float
        Largest gap / objective of a converged machine: where it is larger at `tol`, the tolerance is made smaller.
        Infinite for kernels that are not positive semidefinite, where the gap is no bound.
    max_iter : int
        Working sets of each dual; -1 for no limit.
    """

    has_intercept: bool
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
    """The optimal intercept at a feasible point, the primal objective, the duality gap and the KKT violation."""

    intercept: float
    objective: float
    gap: float
    violation: float

    def is_tight(self, max_relative_gap: float) -> bool:
        """Whether gap <= max_relative_gap * objective; true for an infinite limit."""
        return self.gap <= max_relative_gap * abs(self.objective) or max_relative_gap == np.inf

    def tighter_tol(self, max_relative_gap: float) -> float:
        """A smaller tolerance, at which the gap is half the allowed one if it is proportional to the violation."""
        return self.violation * float(np.clip(0.5 * max_relative_gap * abs(self.objective) / self.gap, *_TOL_FACTORS))


def svm_problem(y: Vector, upper: Vector) -> DualProblem:
    """The dual of the C-SVM in beta = y * alpha, for labels y = +-1 and 0 <= alpha <= upper, all of shape (n,)."""
    return DualProblem(y, np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0))


def pair_problem(classes: Labels, upper: Vector, first: int, second: int) -> tuple[RowIndices, DualProblem]:
    """The rows of two classes, and their binary problem on these rows; the first class is positive.

    `classes` (n,) are the rows' class numbers, `upper` (n,) the upper bounds of alpha.
    """
    rows = np.flatnonzero((classes == first) | (classes == second))
    return rows, svm_problem(np.where(classes[rows] == first, 1.0, -1.0), upper[rows])


def regression_problem(y: Vector, upper: Vector, epsilon: float) -> DualProblem:
    """The dual of the epsilon-insensitive loss: target values y, and beta = alpha - alpha* in [-upper, upper]."""
    return DualProblem(y, -upper, upper, epsilon)


def one_class_problem(weights: Vector, nu: float) -> DualProblem:
    """The one-class machine's dual: beta in [0, weights], sum(beta) = nu sum(weights)."""
    return DualProblem(np.zeros(len(weights)), np.zeros(len(weights)), weights, nu=nu)


def restrict_terms(terms: dual.SeparableTerms, rows: slice | RowIndices) -> dual.SeparableTerms:
    """The terms of the coordinates `rows`."""
    return _terms_of([part[rows] for part in (terms.target, terms.lo, terms.hi, terms.scale)], terms.epsilon)


def _terms_of(parts: list[Vector], epsilon: float) -> dual.SeparableTerms:
    target, lo, hi, scale = (np.ascontiguousarray(part, np.float64) for part in parts)
    return dual.SeparableTerms(target, lo, hi, scale, epsilon)


def is_free(terms: dual.SeparableTerms, beta: Vector) -> Mask:
    """Mask (n,) of the free coordinates, lo < beta < hi and, with epsilon > 0, beta != 0."""
    free = (beta > terms.lo) & (beta < terms.hi)
    return np.asarray(free & (beta != 0.0) if terms.epsilon else free)


def kink_distances(problem: DualProblem | dual.SeparableTerms, decision: Vector, intercept: float) -> Vector:
    """Distances (n,) of the decision values from the kinks of the losses: the margin, or the border of the tube."""
    return np.asarray(np.abs(np.abs(decision - problem.target + intercept) - problem.epsilon))


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
        these still differ, and the intercept is the minimiser of the primal objective.

    Returns
    -------
    Certificate

    Notes
    -----
    O(n), expected where the intercept minimises the primal. The gap is
    sum_i beta_i g_i + eps |beta_i| + hi_i max(0, -g_i - eps) - lo_i max(0, g_i - eps) with g = K beta - t + intercept;
    no kernel entry is needed.
    """
    intercept, violation = dual.kkt_violation(terms, beta, decision, has_intercept, violations)
    if has_intercept:
        intercept = _intercept(terms, beta, decision, intercept, converged=violation < tol)
    grad, eps = decision - terms.target + intercept, terms.epsilon
    above, below, norm = (-grad - eps, grad - eps, eps * np.abs(beta).sum()) if eps else (-grad, grad, 0.0)
    loss = terms.hi @ np.maximum(above, 0) - terms.lo @ np.maximum(below, 0)
    gap = beta @ grad + norm + loss
    lower_bound = terms.target @ beta - norm - 0.5 * beta @ decision
    gap = max(float(gap), 0.0)
    return Certificate(float(intercept), float(lower_bound) + gap, gap, float(violation))


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


def join_results(rows: list[RowIndices], parts: list[DualResult], n: int, elapsed: float) -> DualResult:
    """Join the results of independent problems in one of n coordinates: sums of objectives and gaps, largest violation.

    `rows` has each part's coordinates; `elapsed`, in seconds, is for the single row of the history.
    """
    beta, decision = np.zeros(n), np.zeros(n)
    for mine, part in zip(rows, parts, strict=True):
        beta[mine], decision[mine] = part.beta, part.decision
    objective, gap = sum(part.objective for part in parts), sum(part.gap for part in parts)
    certificate = Certificate(0.0, objective, gap, max((part.violation for part in parts), default=0.0))
    converged, n_iter = all(part.converged for part in parts), sum(part.n_iter for part in parts)
    return make_result(beta, decision, certificate, elapsed, converged=converged, n_iter=n_iter)


def _intercept(
    terms: dual.SeparableTerms, beta: Vector, decision: Vector, midpoint: float, *, converged: bool
) -> float:
    slack, eps = terms.target - decision, terms.epsilon
    if not converged:
        # Slope of the primal in b: sum(beta), -hi_i for each i with t_i - f_i - eps > b, -lo_i for each with
        # t_i - f_i + eps < b. At its minimum sum(hi) - sum(beta) of the weights hi and -lo belong to values below b.
        total = float(terms.hi.sum() - beta.sum())
        if eps == 0.0:
            return hinge.weighted_quantile(slack, terms.hi - terms.lo, total) if len(slack) else 0.0
        return hinge.weighted_quantile(np.r_[slack - eps, slack + eps], np.r_[terms.hi, -terms.lo], total)
    free = is_free(terms, beta)
    return float(np.mean(slack[free] - eps * np.sign(beta[free]))) if free.any() else midpoint
