"""The dual problem in the coefficients beta, for each machine.

    min_beta  1/2 beta'(K + D) beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]

The constraint on the sum is the dual of an unregularised intercept b. The diagonal D is zero but for squared losses.

C-SVM: beta_i = y_i alpha_i, t = y, eps = 0, bounds 0 and y_i C s_i, s = 0. Regression: beta = alpha - alpha*, t = y,
bounds -C s_i and C s_i, s = 0; of a quantile q, eps = 0 and the bounds are (q - 1) C s_i and q C s_i; of the squared
loss D_ii = 1 / (2 C s_i), and the bounds hold for any optimum. One-class machine: beta = alpha, t = 0, eps = 0, bounds
0 and s_i, s = nu sum(s_i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..._native import dual
from ..._types import LEAST_NORMAL, ROUNDING, Labels, Mask, RowIndices, Vector
from ...data.labels import class_pairs
from ...kernels.functions import check_finite
from ..results import coordinates_of, starts_of

_MOST_ROUNDED = 0.01  # of a coordinate's box, at most, is rounding


class DualProblem(NamedTuple):
    """min 1/2 beta'(K + D) beta - target'beta + epsilon |beta|_1 subject to lo <= beta <= hi [and a fixed sum(beta)].

    target, lo, hi and `curvature`, the diagonal of D > 0 or None for D = 0, are float64 arrays (n,); epsilon >= 0. With
    `has_intercept` sum(beta) keeps the value of the start: nu sum(hi) for a whole problem, whose `uniform_point`,
    `sparse_point` and `nearby_point` have it.
    """

    target: Vector
    lo: Vector
    hi: Vector
    epsilon: float = 0.0
    nu: float = 0.0
    has_intercept: bool = False
    curvature: Vector | None = None

    def take(self, rows: slice | RowIndices) -> DualProblem:
        """The problem of the coordinates `rows` alone."""
        curvature = None if self.curvature is None else self.curvature[rows]
        return self._replace(target=self.target[rows], lo=self.lo[rows], hi=self.hi[rows], curvature=curvature)

    def uniform_point(self) -> Vector:
        """nu hi (n,): feasible, and so is its restriction to any subset of the coordinates."""
        return self.nu * self.hi

    def sparse_point(self) -> Vector:
        """A feasible point (n,) with few coordinates other than zero: those of a random order, at their upper bound."""
        zero = np.zeros(len(self.hi))
        return self.nearby_point(zero) if self.nu else zero

    def nearby_point(self, beta: Vector) -> Vector:
        """A point (n,) of the sum nu sum(hi) that an intercept requires, near `beta` (n,), which is within the bounds.

        Coordinates are changed one after the other, in a random order, nonzero ones first, until the sum is right:
        those of the sign of the surplus to zero, or, with nu and too small a sum, any to their upper bound. All but one
        of them thus end at zero or at a bound.
        """
        missing = self.nu * self.hi.sum() - beta.sum()
        sign = np.sign(missing)
        order = np.random.default_rng(0).permutation(len(beta))
        order = order[np.argsort(beta[order] == 0.0, kind="stable")]
        room = self.hi - beta if self.nu and missing > 0 else np.maximum(-sign * beta, 0.0)
        room, point = room[order], beta.copy()
        point[order] += sign * np.clip(abs(missing) - (np.cumsum(room) - room), 0.0, room)
        return np.clip(point, self.lo, self.hi)


def svm_problem(y: Vector, upper: Vector, *, has_intercept: bool = False) -> DualProblem:
    """The dual of the C-SVM in beta = y * alpha, for labels y = +-1 and 0 <= alpha <= upper, all of shape (n,)."""
    signed = y * upper
    return DualProblem(y, np.minimum(signed, 0.0), np.maximum(signed, 0.0), 0.0, 0.0, has_intercept)


def pair_problem(
    classes: Labels, upper: Vector, first: int, second: int, *, has_intercept: bool = False
) -> tuple[RowIndices, DualProblem]:
    """The rows of two classes, and their binary problem on these rows; the first class is positive.

    `classes` (n,) are the rows' class numbers, `upper` (n,) the upper bounds of alpha. (In a problem of two
    classes alone the second is positive.)
    """
    rows = np.flatnonzero((classes == first) | (classes == second))
    y = 2.0 * (classes[rows] == first) - 1.0
    return rows, svm_problem(y, upper[rows], has_intercept=has_intercept)


class PairProblems:
    """The binary problems of all pairs of k classes, as `pair_problem`, in the order of combinations(range(k), 2).

    `classes` (n,) are class numbers, each from 0 to the largest with a row; `upper` (n,) the upper bounds of alpha.
    """

    def __init__(self, classes: Labels, upper: Vector, *, has_intercept: bool) -> None:
        self.classes = classes
        self.upper = upper
        self.has_intercept = has_intercept
        self.class_sizes = np.bincount(classes)
        self.first, self.second = class_pairs(len(self.class_sizes))
        self.sizes: RowIndices = self.class_sizes[self.first] + self.class_sizes[self.second]  # (n_pairs,), of rows

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, p: int) -> Callable[[], tuple[RowIndices, DualProblem]]:
        """A function that returns the rows of a pair, and its problem on these."""
        pair = int(self.first[p]), int(self.second[p])
        return partial(pair_problem, self.classes, self.upper, *pair, has_intercept=self.has_intercept)

    def join(self, pairs: RowIndices) -> tuple[RowIndices, RowIndices, DualProblem]:
        """Rows (N,) of some pairs, starts (P + 1,) of each pair's rows among these, and the problem of all N rows."""
        members, sizes = np.array([self.first[pairs], self.second[pairs]]).T, self.sizes[pairs]
        places = coordinates_of(starts_of(self.class_sizes), members.ravel())
        starts = starts_of(sizes)
        number = np.arange(len(pairs)).repeat(sizes)
        rows = self.classes.argsort(kind="stable")[places]
        rows = rows[np.lexsort((rows, number))]
        y = 2.0 * (self.classes[rows] == members[number, 0]) - 1.0
        return rows, starts, svm_problem(y, self.upper[rows], has_intercept=self.has_intercept)


def regression_problem(
    y: Vector,
    upper: Vector,
    epsilon: float,
    slopes: tuple[float, float] = (1.0, 1.0),
    *,
    has_intercept: bool = False,
    is_squared: bool = False,
) -> DualProblem:
    """The dual of the epsilon-insensitive loss: target values y, and beta = alpha - alpha* in [-upper, upper].

    The loss has the two `slopes`, times upper, where a target is above the prediction, and below it: the bounds of
    beta. Of a quantile q they are q and 1 - q.

    Of squared losses upper_i max(0, |r_i| - epsilon)^2, with residuals r, |beta_i| is 2 upper_i (|r_i| - epsilon). None
    of them exceeds the loss P of a constant in any machine as good as this: thus |beta_i| <= 2 sqrt(upper_i P).
    """
    if not is_squared:
        above, below = (without_denormals(slope * upper) for slope in slopes)
        return DualProblem(y, -below, above, epsilon, has_intercept=has_intercept)
    constant = upper @ y / upper.sum() if has_intercept else 0.0
    with np.errstate(over="ignore"):
        bound = 2.0 * np.sqrt(upper * (float(upper @ np.square(y - constant)) or 1.0))
    curvature = 0.5 / np.where(upper > 0.0, upper, 1.0)  # of any size where beta is 0
    return DualProblem(y, -bound, bound, epsilon, has_intercept=has_intercept, curvature=curvature)


def without_denormals(bounds: Vector) -> Vector:
    """The bounds (n,), denormal ones 0, as compiled loops take them."""
    return np.where(np.abs(bounds) < LEAST_NORMAL, 0.0, bounds)


def one_class_problem(weights: Vector, nu: float) -> DualProblem:
    """The one-class machine's dual: beta in [0, weights], sum(beta) = nu sum(weights)."""
    return DualProblem(np.zeros(len(weights)), np.zeros(len(weights)), weights, nu=nu, has_intercept=True)


def join_problems(parts: Sequence[DualProblem]) -> DualProblem:
    """One problem of the coordinates of several, with the numbers of the first."""
    target, lo, hi = (np.concatenate(vectors) for vectors in list(zip(*parts, strict=True))[:3])
    curvatures = [part.curvature for part in parts if part.curvature is not None]
    return parts[0]._replace(target=target, lo=lo, hi=hi, curvature=np.concatenate(curvatures) if curvatures else None)


def make_terms(problem: DualProblem, diagonal: Vector) -> dual.SeparableTerms:
    """The problem's separable terms, with scale_i = (K + D)_ii^(-1/2): in beta_i / scale_i, K + D has a unit diagonal.

    K_ii, the `diagonal` (n,), is raised to at least 1e-12 of the largest.
    """
    check_finite(diagonal, "k(x, x)")
    largest = float(diagonal.max(initial=0.0))
    floor = 1e-12 * largest if largest > 0 else 1.0
    scale = 1.0 / np.sqrt(np.maximum(diagonal, floor) + (0.0 if problem.curvature is None else problem.curvature))
    parts = problem.target, problem.lo, problem.hi, scale
    target, lo, hi, scale = [np.ascontiguousarray(part, np.float64) for part in parts]
    curvature = None if problem.curvature is None else np.ascontiguousarray(problem.curvature, np.float64)
    return dual.SeparableTerms(target, lo, hi, scale, problem.epsilon, curvature)


def restrict_terms(terms: dual.SeparableTerms, rows: slice | RowIndices) -> dual.SeparableTerms:
    """The terms of the coordinates `rows` alone."""
    curvature = None if terms.curvature is None else terms.curvature[rows]
    parts = terms.target[rows], terms.lo[rows], terms.hi[rows], terms.scale[rows]
    return dual.SeparableTerms(*parts, terms.epsilon, curvature)


def is_free(terms: dual.SeparableTerms, beta: Vector) -> Mask:
    """Mask (n,) of the free coordinates, lo < beta < hi and, with epsilon > 0, beta != 0."""
    free = (beta > terms.lo) & (beta < terms.hi)
    return np.asarray(free & (beta != 0.0) if terms.epsilon else free)


def without_rounding(terms: dual.SeparableTerms, beta: Vector, total: Any) -> Vector:
    """beta (n,) with coordinates at a bound, or with epsilon at 0, that rounding has moved: put back there.

    `total` is sum(|beta|), or (n,) each coordinate's: the fixed sum(beta) leaves to some coordinates what other
    coordinates' bounds do not add up to, some `ROUNDING` of it. Of weighted rows 1 % of a coordinate's box, at most.
    """
    slack = np.minimum(ROUNDING * total, _MOST_ROUNDED * (terms.hi - terms.lo))
    if terms.epsilon:
        beta = np.where(np.abs(beta) <= slack, 0.0, beta)
    return np.where(beta <= terms.lo + slack, terms.lo, np.where(beta >= terms.hi - slack, terms.hi, beta))


def penalty(problem: DualProblem | dual.SeparableTerms, beta: Vector) -> float:
    """eps |beta|_1 + 1/2 beta'D beta."""
    norm = problem.epsilon * float(np.abs(beta).sum()) if problem.epsilon else 0.0
    return norm if problem.curvature is None else norm + 0.5 * float(problem.curvature @ np.square(beta))


def one_sided_derivatives(terms: dual.SeparableTerms, beta: Vector, grad: Vector) -> tuple[Vector, Vector]:
    """Right and left derivatives (n,) of the dual objective in each coordinate.

    `grad` (n,) is K beta - t + intercept.

    At an upper bound the right one is infinite, at a lower bound the left one is minus infinity.
    """
    eps = terms.epsilon
    right = np.where(beta < terms.hi, grad + np.where(beta >= 0, eps, -eps), np.inf)
    left = np.where(beta > terms.lo, grad + np.where(beta > 0, eps, -eps), -np.inf)
    return right, left


def total_loss(terms: dual.SeparableTerms, grad: Vector) -> float:
    """sum_i hi_i max(0, -g_i - eps) - lo_i max(0, g_i - eps) for `grad` g = K beta - t + intercept (n,).

    These are the losses of the primal objective times C: hinge losses, or epsilon-insensitive ones. With D the sum of
    max -g_i b - eps |b| - 1/2 D_ii b^2 over lo_i <= b <= hi_i: squared ones.
    """
    eps = terms.epsilon
    if terms.curvature is not None:
        multipliers = loss_multipliers(terms, grad)
        return float(-multipliers @ grad) - penalty(terms, multipliers)
    above, below = (-grad - eps, grad - eps) if eps else (-grad, grad)
    return float(terms.hi @ np.maximum(above, 0.0) - terms.lo @ np.maximum(below, 0.0))


def loss_multipliers(terms: dual.SeparableTerms, grad: Vector) -> Vector:
    """The b (n,) at which the maxima of `total_loss` are attained: minus the slopes of the losses. D must be given."""
    shrunk = np.sign(-grad) * np.maximum(np.abs(grad) - terms.epsilon, 0.0)
    return np.asarray(np.clip(shrunk / terms.curvature, terms.lo, terms.hi))


def slope_sums(problem: DualProblem | dual.SeparableTerms, objective: Any, sums: Callable[[Vector], Any]) -> Any:
    """Sums of the losses' largest slopes: by the bounds or, with D, by Cauchy and Schwarz from the objective."""
    bounds = sums(np.maximum(problem.hi, -problem.lo))
    if problem.curvature is None:
        return bounds
    return np.minimum(bounds, np.sqrt(2.0 * np.abs(objective) * sums(1.0 / problem.curvature)))


def kink_distances(problem: DualProblem | dual.SeparableTerms, decision: Vector, intercept: float) -> Vector:
    """Distances (n,) of decision values from the kinks of the losses: the margin, or the nearer border of the tube."""
    return np.asarray(np.abs(np.abs(decision - problem.target + intercept) - problem.epsilon))
