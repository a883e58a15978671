"""The multiclass hinge of Crammer and Singer."""

from __future__ import annotations

import numpy as np

from ..._native import linear
from ..._threads import ThreadTeam
from ..._types import Labels, Matrix, RowIndices, Vector
from .line_search import minimise_on_line
from .losses import RiskAndPlane


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

    hinge = first_plane = None
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
