"""Smooth losses: sums of a function of each decision value that has a derivative, with or without an intercept.

    R(f) = min_b sum_i s_i phi(f_i + b, y_i)

Planes come from the conjugate phi*(p) = max_z p z - phi(z), so that any slopes p_i are a plane below the risk:

    R(f) >= sum_i s_i (p_i f_i - phi*(p_i))      with an intercept, where sum_i s_i p_i = 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._native import smooth as compiled
from ..._threads import ThreadTeam
from ..._types import ROUNDING, Matrix, RowIndices, Vector
from .derivative_zeros import ZERO_TOL, ChordSearch, find_zero, least_step
from .losses import RiskAndPlane, Segment

# phi(z, y) with its derivatives and its conjugate
PointwiseFunction = compiled.SquaredHinge | compiled.Logistic | compiled.SquaredEpsilonInsensitive


class _Point(NamedTuple):
    """What is known of decision values f (1, n)."""

    risk: float
    coef: Matrix  # slopes (1, n): of the plane there
    offset: float
    curvatures: Vector  # (n,)
    f: Matrix | None = None


class SmoothLoss:
    """R(f) = sum_i s_i phi(f_i, y_i), or its minimum over an intercept b added to f; y: targets, or labels 1, -1."""

    n_outputs = 1
    hinge = first_plane = None
    accelerations = frozenset({"sample_start", "newton_steps"})

    def __init__(
        self, function: PointwiseFunction, y: Vector, s: Vector, team: ThreadTeam, *, has_intercept: bool
    ) -> None:
        self.n_rows = len(y)
        self.has_intercept = has_intercept
        self._function = function
        self._y = y
        self._s = s
        self.team = team
        self._chords = ChordSearch()
        self._guess = float(s @ y) / (float(s.sum()) or 1.0)  # where the next search for an intercept begins
        self._latest = _Point(0.0, s[None], 0.0, s)  # of `advance`

    def intercept(self, f: Matrix) -> Vector:
        """The optimal intercept; zero without one."""
        return np.array([self._best_intercept(f, f, 0.0)])

    def find_step(self, f: Matrix, f_end: Matrix, curvature: float, slope: float) -> float:
        """The minimiser; with an intercept along a chord."""
        if not self.has_intercept:
            return self._find_step((f[0], f_end[0], (0.0, 0.0)), curvature, slope)
        here = self._best_intercept(f, f, 0.0)

        def step_on(b_rate: float) -> float:
            return self._find_step((f[0], f_end[0], (here, here + b_rate)), curvature, slope)

        return self._chords.find_step(
            here, lambda k: self._best_intercept(f, f_end, k), step_on, least_step(f[0], f_end[0])
        )

    def advance(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> RiskAndPlane:
        """The plane's coefficients are s_i phi'(f_i + b); with an intercept, they sum to zero.

        With mu = 0, f_end is a Newton step's: there is a plane of the quadratic model at f, too.
        """
        further = [self._model_plane(f, f_end)] if mu == 0.0 and self._latest.f is f and f_end is not f else []
        self._latest = self._advance(f, f_end, step)
        at_best = RiskAndPlane(*self._latest[:3], further)
        if mu == 0.0 or f_end is f:
            return at_best
        at_plane = self._advance(f.copy(), f_end, mu)
        return at_best._replace(coef=at_plane.coef, offset=at_plane.offset)

    def restrict(self, chosen: RowIndices, factor: float = 1.0) -> SmoothLoss:
        """The loss of some samples."""
        y, s = self._y[chosen], factor * self._s[chosen]
        return SmoothLoss(self._function, y, s, self.team, has_intercept=self.has_intercept)

    def curvatures(self, f: Matrix) -> Vector:
        """s_i phi''(f_i + b) (n,), at the optimal intercept b."""
        return self._latest.curvatures if self._latest.f is f else self._advance(f, f, 0.0).curvatures

    def _advance(self, f: Matrix, f_end: Matrix, step: float) -> _Point:
        """Move f to f + step (f_end - f) in place; what is known of that point."""
        coef, curvatures = np.empty_like(f), np.empty(self.n_rows)
        b, *sums = self._best_intercept_and_slopes(f, f_end, step) if self.has_intercept else (0.0, 1.0, 1.0)
        factors = _balancing_factors(*sums)
        risk, offset = self._function.advance(
            self.team.native, f[0], f_end[0], step, b, self._y, self._s, *factors, coef[0], curvatures
        )
        return _Point(risk, coef, offset, curvatures, f)

    def _model_plane(self, f: Matrix, f_end: Matrix) -> tuple[Matrix, float, None]:
        """The plane whose slopes are those of the quadratic model at f, its latest point, on the way to f_end."""
        coef, curvatures, shift, factors = self._latest.coef, self._latest.curvatures, 0.0, (1.0, 1.0)
        slopes, samples = np.empty_like(f), (self._y, self._s)
        if self.has_intercept:
            shift = -float(curvatures @ (f_end[0] - f[0])) / (float(curvatures.sum()) or 1.0)
        sums = self._function.model_slopes(
            self.team.native, f[0], f_end[0], shift, coef[0], curvatures, *samples, slopes[0]
        )
        factors = _balancing_factors(*sums) if self.has_intercept else (1.0, 1.0)
        return slopes, self._function.plane_offset(self.team.native, *samples, *factors, slopes[0]), None

    def _find_step(self, segment: Segment, curvature: float, slope: float) -> float:
        """The k >= 0 where the derivative of curvature k^2 / 2 + slope k + the risk along the segment is zero."""
        f, f_end, intercepts = segment

        def derivative(k: float) -> tuple[float, float]:
            first, second = self._function.line_derivatives(
                self.team.native, f, f_end, *intercepts, self._y, self._s, k
            )
            return curvature * k + slope + first, curvature + second

        at_zero = derivative(0.0)[0]
        if at_zero >= 0.0:
            return 0.0
        return find_zero(derivative, 1.0, 1.0, ZERO_TOL * -at_zero, lo=0.0)

    def _best_intercept(self, f: Matrix, f_end: Matrix, k: float) -> float:
        return self._best_intercept_and_slopes(f, f_end, k)[0] if self.has_intercept else 0.0

    def _best_intercept_and_slopes(self, f: Matrix, f_end: Matrix, k: float) -> tuple[float, float, float]:
        """The optimal intercept at f + k (f_end - f), and the sums of positive and of negative slopes there."""
        known: dict[float, tuple[float, float]] = {}

        def imbalance(b: float) -> tuple[float, float]:
            plus, minus, rate = self._function.slope_sums(self.team.native, f[0], f_end[0], k, b, self._y, self._s)
            known[b] = plus, minus
            total = (plus + minus) or 1.0
            return (plus - minus) / total, rate / total

        stride = 1.0 + float(np.ptp(f))
        b = self._guess = find_zero(imbalance, self._guess, stride, ROUNDING, is_limited=True)
        if b not in known:
            imbalance(b)
        return b, *known[b]


def _balancing_factors(plus: float, minus: float) -> tuple[float, float]:
    """Factors of positive and of negative slopes whose sums are these: the larger sum is reduced to the other."""
    return min(1.0, minus / (plus or 1.0)), min(1.0, plus / (minus or 1.0))


class SquaredHingeLoss(SmoothLoss):
    """R(f) = sum_i s_i max(0, 1 - y_i f_i)^2, which has a dual that epochs of coordinate ascent raise."""

    accelerations = SmoothLoss.accelerations | {"dual_alone", "interior_point"}

    def __init__(self, y: Vector, s: Vector, team: ThreadTeam, *, has_intercept: bool) -> None:
        super().__init__(compiled.SquaredHinge(), y, s, team, has_intercept=has_intercept)
        self.signed_weights = s * y

    def restrict(self, chosen: RowIndices, factor: float = 1.0) -> SquaredHingeLoss:
        """The loss of some samples."""
        y, s = self._y[chosen], factor * self._s[chosen]
        return SquaredHingeLoss(y, s, self.team, has_intercept=self.has_intercept)
