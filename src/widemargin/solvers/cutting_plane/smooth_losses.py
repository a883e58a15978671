"""Smooth losses: sums of a function of each decision value that has a derivative, with or without an intercept.

    R(f) = min_b sum_i s_i phi(f_i + b, y_i)

Planes come from the conjugate phi*(p) = max_z p z - phi(z), so that any slopes p_i are a plane below the risk:

    R(f) >= sum_i s_i (p_i f_i - phi*(p_i))      with an intercept, where sum_i s_i p_i = 0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from scipy.special import xlog1py, xlogy

from ..._threads import MAX_BLOCKS, ThreadTeam, count_blocks, row_blocks
from ..._types import ROUNDING, Matrix, RowIndices, Vector
from .line_search import ZERO_TOL, ChordSearch, find_zero, least_step
from .losses import RiskAndPlane

_BLOCK_ROWS = 2**13  # whose temporary arrays stay in cache

T = TypeVar("T")


class PointwiseFunction(Protocol):
    """A convex function phi(z, y) >= 0 of arrays z and y (n,), with a derivative in z."""

    def value(self, z: Vector, y: Vector) -> Vector:
        """phi."""

    def derivatives(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        """phi' and phi''; of the latter any value between those to the left and to the right."""

    def conjugate(self, slope: Vector, y: Vector) -> Vector:
        """phi*(slope), for slopes between 0 and a derivative of phi."""


@dataclass(frozen=True)
class SquaredHinge:
    """max(0, 1 - y z)^2, y = 1 or -1."""

    def value(self, z: Vector, y: Vector) -> Vector:
        """The square of the slack."""
        return np.square(np.maximum(0.0, 1.0 - y * z))

    def derivatives(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        """-2 y max(0, 1 - y z), and 2 within the margin."""
        slack = np.maximum(0.0, 1.0 - y * z)
        return -2.0 * y * slack, np.where(slack > 0.0, 2.0, 0.0)

    def conjugate(self, slope: Vector, y: Vector) -> Vector:
        """y p + p^2 / 4."""
        return slope * (y + 0.25 * slope)


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-y z)), y = 1 or -1."""

    def value(self, z: Vector, y: Vector) -> Vector:
        """Computed without overflow."""
        margin = y * z
        return np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)

    def derivatives(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        """-y a and a (1 - a), where a = 1 / (1 + exp(y z)) is the probability of the other class."""
        margin = y * z
        e = np.exp(-np.abs(margin))
        other = np.where(margin > 0.0, e, 1.0) / (1.0 + e)
        return -y * other, e / np.square(1.0 + e)

    def conjugate(self, slope: Vector, y: Vector) -> Vector:
        """a log a + (1 - a) log(1 - a) with a = -y p."""
        other = np.abs(slope)
        return np.asarray(xlogy(other, other) + xlog1py(1.0 - other, -other))


@dataclass(frozen=True)
class SquaredEpsilonInsensitive:
    """max(0, |y - z| - epsilon)^2."""

    epsilon: float

    def value(self, z: Vector, y: Vector) -> Vector:
        """The squared distance from the tube."""
        return np.square(np.maximum(0.0, np.abs(z - y) - self.epsilon))

    def derivatives(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        """Twice the signed distance, and 2 outside of the tube."""
        residual = z - y
        distance = np.maximum(0.0, np.abs(residual) - self.epsilon)
        return 2.0 * np.sign(residual) * distance, np.where(distance > 0.0, 2.0, 0.0)

    def conjugate(self, slope: Vector, y: Vector) -> Vector:
        """p y + epsilon |p| + p^2 / 4."""
        return slope * y + np.abs(slope) * (self.epsilon + 0.25 * np.abs(slope))


class SmoothLoss:
    """R(f) = sum_i s_i phi(f_i, y_i), or its minimum over an intercept b added to f.

    Parameters
    ----------
    function : PointwiseFunction
    y, s : ndarray of shape (n,)
        Targets, or labels 1 and -1; weights.
    team : ThreadTeam
    has_intercept : bool
    """

    n_outputs = 1
    hinge = first_plane = None
    accelerations = frozenset({"sample_start", "newton_cg"})

    def __init__(
        self, function: PointwiseFunction, y: Vector, s: Vector, team: ThreadTeam, *, has_intercept: bool
    ) -> None:
        self.n_rows = len(y)
        self.has_intercept = has_intercept
        self._function = function
        self._y = y
        self._s = s
        self.team = team
        self._blocks = row_blocks(self.n_rows, max(_BLOCK_ROWS, count_blocks(self.n_rows, MAX_BLOCKS)))
        self._chords = ChordSearch()
        self._guess = float(s @ y) / (float(s.sum()) or 1.0)  # where the next search for an intercept begins

    def intercept(self, f: Matrix) -> Vector:
        """The optimal intercept; zero without one."""
        return np.array([self._best_intercept(f[0])])

    def find_step(self, f: Matrix, f_end: Matrix, curvature: float, slope: float) -> float:
        """The minimiser; with an intercept along a chord."""
        rate = f_end[0] - f[0]
        if not self.has_intercept:
            return self._find_step(f[0], rate, curvature, slope)
        here = self._best_intercept(f[0])

        def optimum_at(k: float) -> float:
            return self._best_intercept(f[0] + k * rate)

        def step_on(b_rate: float) -> float:
            return self._find_step(f[0] + here, rate + b_rate, curvature, slope)

        return self._chords.find_step(here, optimum_at, step_on, least_step(f[0], f_end[0]))

    def advance(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> RiskAndPlane:
        """The plane's coefficients are s_i phi'(f_i + b); with an intercept, they sum to zero."""
        f += step * (f_end - f)
        b = self._best_intercept(f[0])
        risk = float(sum(self._map(lambda rows: self._s[rows] @ self._function.value(f[0, rows] + b, self._y[rows]))))
        if mu == 0.0 or f_end is f:
            return RiskAndPlane(risk, *self._plane(f[0] + b))
        at_plane = f[0] + mu * (f_end[0] - f[0])
        return RiskAndPlane(risk, *self._plane(at_plane + self._best_intercept(at_plane)))

    def restrict(self, chosen: RowIndices, factor: float = 1.0) -> SmoothLoss:
        """The loss of some samples."""
        y, s = self._y[chosen], factor * self._s[chosen]
        return SmoothLoss(self._function, y, s, self.team, has_intercept=self.has_intercept)

    def curvatures(self, f: Matrix) -> Vector:
        """s_i phi''(f_i + b) (n,), at the optimal intercept b."""
        z = f[0] + self._best_intercept(f[0])
        return np.concatenate(self._map(lambda rows: self._s[rows] * self._derivatives(z, rows)[1]))

    def _derivatives(self, z: Vector, rows: slice) -> tuple[Vector, Vector]:
        return self._function.derivatives(z[rows], self._y[rows])

    def _find_step(self, z: Vector, rate: Vector, curvature: float, slope: float) -> float:
        """The k >= 0 where the derivative of curvature k^2 / 2 + slope k + sum_i s_i phi(z_i + k rate_i) is zero."""

        def derivative(k: float) -> tuple[float, float]:
            first, second = np.sum(self._map(partial(self._line_sums, z, rate, k)), axis=0).tolist()
            return curvature * k + slope + first, curvature + second

        at_zero = derivative(0.0)[0]
        if at_zero >= 0.0:
            return 0.0
        return find_zero(derivative, 1.0, 1.0, ZERO_TOL * -at_zero, lo=0.0)

    def _line_sums(self, z: Vector, rate: Vector, k: float, rows: slice) -> tuple[float, float]:
        """First and second derivative of sum_i s_i phi(z_i + k rate_i) over some rows."""
        rate, s = rate[rows], self._s[rows]
        first, second = self._function.derivatives(z[rows] + k * rate, self._y[rows])
        return float(first @ (s * rate)), float(second @ (s * np.square(rate)))

    def _best_intercept(self, f: Vector) -> float:
        if not self.has_intercept:
            return 0.0

        def imbalance(b: float) -> tuple[float, float]:
            plus, minus, rate = np.sum(self._map(partial(self._slope_sums, f, b)), axis=0).tolist()
            total = (plus + minus) or 1.0
            return (plus - minus) / total, rate / total

        stride = 1.0 + float(np.ptp(f))
        self._guess = find_zero(imbalance, self._guess, stride, ROUNDING, is_limited=True)
        return self._guess

    def _slope_sums(self, f: Vector, b: float, rows: slice) -> tuple[float, float, float]:
        """Sums of positive slopes, of negative ones, and of curvatures over some rows."""
        first, second = self._function.derivatives(f[rows] + b, self._y[rows])
        s = self._s[rows]
        return float(s @ np.maximum(first, 0.0)), float(s @ np.maximum(-first, 0.0)), float(s @ second)

    def _plane(self, z: Vector) -> tuple[Matrix, float]:
        """Subgradient coefficients (1, n) at decision values z, which include the intercept, and the plane's offset."""
        slopes = np.concatenate(self._map(lambda rows: self._derivatives(z, rows)[0]))
        if self.has_intercept:  # rounding aside, both sums are equal: the larger one's slopes are reduced
            plus, minus = float(self._s @ np.maximum(slopes, 0.0)), float(self._s @ np.maximum(-slopes, 0.0))
            slopes *= np.where(slopes > 0.0, min(1.0, minus / (plus or 1.0)), min(1.0, plus / (minus or 1.0)))
        offsets = self._map(lambda rows: self._s[rows] @ self._function.conjugate(slopes[rows], self._y[rows]))
        return (self._s * slopes)[None], -float(sum(offsets))

    def _map(self, of_rows: Callable[[slice], T]) -> list[T]:
        """The function's values for all blocks of rows, on all threads."""
        return self.team.map(of_rows, self._blocks)
