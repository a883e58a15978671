"""The multiclass hinge of Crammer and Singer, and a line search for its derivative by bracketing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._native import linear
from ..._threads import ThreadTeam
from ..._types import Labels, Matrix, RowIndices, Vector
from .losses import RiskAndPlane

_PRECISION = 1e-11  # gain left / curvature k^2, at most: the step has gained at least half of that square
_MIN_STEP = 1e-12  # take a shorter step as it is: it changes nothing


class MulticlassHingeLoss:
    """Crammer and Singer's multiclass hinge, R(f) = sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i).

    Parameters
    ----------
    y : ndarray of shape (n,), int64
        Classes 0, ..., n_classes - 1.
    s : ndarray of shape (n,)
        Weights.
    n_classes : int
    team : ThreadTeam
    """

    hinge = smooth = first_plane = None
    accelerations = frozenset({"sample_start", "dual_alone"})

    def __init__(self, y: Labels, s: Vector, n_classes: int, team: ThreadTeam) -> None:
        self.y = y
        self.s = s
        self.n_outputs = n_classes
        self.n_rows = len(y)
        self._team = team
        self._native = linear.MulticlassHinge(y, s, n_classes)
        self._latest_step = 1.0

    def intercept(self, f: Matrix) -> Vector:
        """Zeros."""
        return np.zeros(self.n_outputs)

    def find_step(self, f: Matrix, f_end: Matrix, curvature: float, slope: float) -> float:
        """A bracketing search for the zero of the derivative, from half to twice the latest step."""
        line = _MulticlassHingeLine(self._native, self._team, f, f_end)
        step = minimise_on_line(line, curvature, slope, 0.5 * self._latest_step, 2.0 * self._latest_step)
        self._latest_step = step or 1.0
        return step

    def advance(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> RiskAndPlane:
        """The plane's coefficients of a sample are s_i at its worst class, -s_i at its own; one pass over f."""
        coef = np.empty_like(f)
        risk, offset = self._native.advance(self._team.native, f, f_end, step, mu, coef)
        return RiskAndPlane(risk, coef, offset)

    def restrict(self, chosen: RowIndices, factor: float = 1.0) -> MulticlassHingeLoss:
        """The loss of some samples, for the same classes, present or not."""
        return MulticlassHingeLoss(self.y[chosen], factor * self.s[chosen], self.n_outputs, self._team)


class _MulticlassHingeLine:
    """The multiclass hinge along the line from f to f_end: a convex function of the step k, a sum over samples."""

    def __init__(self, native: linear.MulticlassHinge, team: ThreadTeam, f: Matrix, f_end: Matrix) -> None:
        self._native = native
        self._line = team.native, f, f_end
        self._rows = np.arange(f.shape[1])
        self._dropped_slope = 0.0

    def slope(self, k: float) -> float:
        """Right derivative at k."""
        return self._dropped_slope + float(self._native.slope(*self._line, self._rows, k))

    def drop_linear_rows(self, lo: float, hi: float) -> None:
        """Replace samples that are linear between lo and hi by their slope: later steps lie between these."""
        n_kept, slope = self._native.drop_linear_rows(*self._line, self._rows, lo, hi)
        self._rows = self._rows[:n_kept]
        self._dropped_slope += slope


def minimise_on_line(line: _MulticlassHingeLine, curvature: float, slope: float, lo: float, hi: float) -> float:
    """The k >= 0 that minimises ``curvature k^2 / 2 + slope k + line(k)``, curvature > 0, probably in [lo, hi].

    Regula falsi with the Illinois rule: the derivative at an end that stays twice is halved. Exact once the bracket
    lies within one linear piece of the derivative. With dropped samples O(n) where breakpoints are spread out.
    """

    def derivative(k: float) -> float:
        return curvature * k + slope + line.slope(k)

    (lo, at_lo), (hi, at_hi) = _bracket(derivative, lo, hi)
    weighted_lo, weighted_hi, last_side, dropped_width = at_lo, at_hi, 0, math.inf
    while at_hi * (hi - lo) > _PRECISION * curvature * hi * hi and hi > _MIN_STEP:
        if hi - lo <= 0.5 * dropped_width:
            line.drop_linear_rows(lo, hi)
            dropped_width = hi - lo
        k = (lo * weighted_hi - hi * weighted_lo) / (weighted_hi - weighted_lo)
        if not lo < k < hi:
            return min(max(k, lo), hi)  # the zero is an end, to rounding
        at_k = derivative(k)
        side = -1 if at_k < 0.0 else 1
        if side < 0:
            lo, weighted_lo = k, at_k
            weighted_hi *= 0.5 if last_side == side else 1.0
        else:
            hi, weighted_hi, at_hi = k, at_k, at_k
            weighted_lo *= 0.5 if last_side == side else 1.0
        last_side = side
    return hi


def _bracket(
    derivative: Callable[[float], float], lo: float, hi: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """A step (k, derivative(k)) on either side of the zero of an increasing derivative, k >= 0.

    These are lo and hi, if the zero is between them; 0 and lo, if it is below lo, or 0 twice where derivative(0) >= 0.
    If it is above hi, hi is doubled until it is not.
    """
    at_lo = derivative(lo)
    if at_lo >= 0.0:
        at_zero = derivative(0.0)
        return (0.0, at_zero), ((0.0, at_zero) if at_zero >= 0.0 else (lo, at_lo))
    at_hi = derivative(hi)
    while at_hi < 0.0:
        lo, at_lo, hi = hi, at_hi, 2.0 * hi
        at_hi = derivative(hi)
    return (lo, at_lo), (hi, at_hi)
