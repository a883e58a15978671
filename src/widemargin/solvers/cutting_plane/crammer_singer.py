"""The multiclass hinge of Crammer and Singer, as a risk for the cutting plane solver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._native import linear
from ..._threads import ThreadTeam
from ...data import RowArrays
from .line_search import find_step
from .losses import Cut

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]


class MarginRisk:
    """Crammer and Singer's multiclass hinge, sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i).

    Parameters
    ----------
    y : ndarray of shape (n,), int64
        Classes 0, ..., n_classes - 1.
    s : ndarray of shape (n,)
        Weights.
    n_classes : int
    team : ThreadTeam
    """

    def __init__(self, y: NDArray[np.int64], s: Vector, n_classes: int, team: ThreadTeam) -> None:
        self.y = y
        self.s = s
        self.n_outputs = n_classes
        self.n_rows = len(y)
        self._team = team
        self._hinge = linear.MulticlassHinge(y, s, n_classes)
        self._guess = 1.0

    def intercept(self, f: Matrix) -> Vector:
        """None."""
        return np.zeros(self.n_outputs)

    def ascent(self, arrays: RowArrays, n_features: int) -> None:
        """None."""

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """A bracketing search on the derivative."""
        line = _MarginLine(self._hinge, self._team, f, target)
        step = find_step(line, curvature, slope, 0.5 * self._guess, 2.0 * self._guess)
        self._guess = step or 1.0
        return step

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """One pass over the outputs."""
        coef = np.empty_like(f)
        risk, offset = self._hinge.advance(self._team.native, f, target, step, mu, coef)
        return Cut(risk, coef, offset)

    def part(self, chosen: Indices, factor: float = 1.0) -> MarginRisk:
        """For the same classes, present or not."""
        return MarginRisk(self.y[chosen], factor * self.s[chosen], self.n_outputs, self._team)


class _MarginLine:
    """The multiclass hinge along a line: a maximum of lines for each row."""

    def __init__(self, hinge: linear.MulticlassHinge, team: ThreadTeam, f: Matrix, target: Matrix) -> None:
        self._hinge = hinge
        self._line = team.native, f, target
        self._rows = np.arange(f.shape[1])
        self._settled = 0.0

    def slope(self, k: float) -> float:
        return self._settled + float(self._hinge.slope(*self._line, self._rows, k))

    def settle(self, lo: float, hi: float) -> None:
        kept, slope = self._hinge.drop_linear_rows(*self._line, self._rows, lo, hi)
        self._rows = self._rows[:kept]
        self._settled += slope
