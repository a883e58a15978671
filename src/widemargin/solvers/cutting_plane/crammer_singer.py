"""The multiclass hinge of Crammer and Singer: the loss, and its dual raised to the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._native import linear
from ..._threads import VALUES_PER_CHECK, ThreadTeam
from ..._types import Labels, Matrix, RowIndices, Vector
from ...data import RowAccess
from .derivative_zeros import minimise_on_line
from .losses import RiskAndPlane


class MulticlassHingeLoss:
    """Crammer and Singer's multiclass hinge, R(f) = sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i).

    y (n,) are the classes 0, ..., n_classes - 1, s (n,) the weights.
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


class MulticlassDual:
    """The dual of a machine with Crammer and Singer's hinge, raised until the duality gap is small, without planes.

    Solve    max_beta  sum_i beta_(i, y_i) - 1/2 |W|^2,  W = X'beta    s.t.  each row of beta sums to 0, beta_ic <= 0
             but beta_(i, y_i) <= C s_i
    Given    wide X (n, d), whose samples can be visited one by one, perhaps with a `constant` as a further feature, 0
             for none; `squared_norms` (n,), without it; `tol`, the largest relative gap at the end; `go_on`, called
             after every epoch: False when time is up. Once the team is stopped, epochs raise `Stopped`
    Method   Epochs of coordinate ascent: each row of beta in turn is set to its maximiser, a projection of k variables
    Returns  W, where the primal's best point is searched next, and the dual objective, a lower bound of the primal
    Cost     an epoch: 2 k operations a value of X
    Source   Keerthi, Sundararajan, Chang, Hsieh, Lin, A Sequential Dual Method for Large Scale Multi-Class Linear SVMs,
             KDD 2008
    Twin     tests/naive/cutting_plane.py::multiclass_ascend

    With several columns for each sample, cutting planes have little to add, as `dual_alone` says for hinges: a problem
    has as many degrees of freedom as samples, times classes.
    """

    def __init__(
        self,
        X: RowAccess,
        constant: float,
        loss: MulticlassHingeLoss,
        squared_norms: Vector,
        tol: float,
        team: ThreadTeam,
        go_on: Callable[[], bool],
    ) -> None:
        (n, d), k = X.shape, loss.n_outputs
        self._arrays = X.row_arrays
        self._constant = constant
        self._loss = loss
        self._squared_norms = squared_norms
        self._tol = tol
        self._team = team
        self._go_on = go_on
        self._C = 1.0
        self._beta, self._W = np.zeros((n, k)), np.zeros((d + 1, k))  # W, and the constant's weights as its last row
        self._rng = np.random.default_rng(0)
        self._most_epochs = max(1, int(VALUES_PER_CHECK / max(1, k * linear.count_values(X.row_arrays))))

    @property
    def point(self) -> Matrix:
        """W' (k, d), or (k, d + 1) with the weights of the constant."""
        return np.array(self._W.T if self._constant else self._W[:-1].T, order="C")

    def set_risk_weight(self, C: float) -> None:
        """Change the weight of the risk: the dual point is scaled as far as its objective rises."""
        longest, square = C / self._C, float(np.vdot(self._W, self._W))
        self._C = C
        factor = min(longest, self._total() / square) if square > 0.0 else longest
        self._beta *= factor
        self._W *= factor

    def ascend(self) -> None:
        """Epochs until their gap is small; on large data until 1e8 values are visited."""
        loss, n = self._loss, len(self._beta)
        for _ in range(self._most_epochs):
            order = self._rng.permutation(n)
            point = self._C, self._constant, self._beta, self._W
            gap = linear.multiclass_epoch(
                self._team.native, self._arrays, loss.y, loss.s, self._squared_norms, *point, order
            )
            if gap <= self._tol * (self.bound() + gap) or not self._go_on():
                break

    def take_decision_values(self, f: Vector) -> None:
        """No use is made of the decision values of `point`."""

    def bound(self) -> float:
        """The dual objective."""
        return self._total() - 0.5 * float(np.vdot(self._W, self._W))

    def _total(self) -> float:
        return float(self._beta[np.arange(len(self._beta)), self._loss.y].sum())
