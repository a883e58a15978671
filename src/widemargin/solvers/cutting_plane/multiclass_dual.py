"""The dual of Crammer and Singer's problem to the end, for wide samples: epochs of coordinate ascent, without planes.

Solve    max_beta  sum_i beta_(i, y_i) - 1/2 |W|^2,  W = X'beta    s.t.  each row of beta sums to 0, beta_ic <= 0 but
         beta_(i, y_i) <= C s_i
Given    X (n, d) whose samples can be visited one by one, perhaps with a constant last feature; classes y (n,); weights
         s (n,); C
Method   Each row of beta in turn is set to its maximiser, a projection of k variables
Returns  W, where the primal's best point is searched next, and the dual objective, a lower bound of the primal
Cost     an epoch: 2 k operations a value of X
Source   Keerthi, Sundararajan, Chang, Hsieh, Lin, A Sequential Dual Method for Large Scale Multi-Class Linear SVMs, KDD
         2008
Twin     tests/naive/cutting_plane.py::multiclass_ascend

With several columns for each sample, cutting planes have little to add, as `dual_alone` says for hinges: a problem has
as many degrees of freedom as samples, times classes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._native import linear
from ..._threads import VALUES_PER_CHECK, ThreadTeam
from ..._types import Matrix, Vector
from ...data import RowAccess
from .crammer_singer import MulticlassHingeLoss


class MulticlassDual:
    """The dual of a machine with Crammer and Singer's hinge, raised until the duality gap is small.

    Parameters
    ----------
    X : RowAccess
        n samples of d features.
    constant : float
        The value of a further feature of all samples; 0 for none.
    loss : MulticlassHingeLoss
    squared_norms : ndarray of shape (n,)
        |x_i|^2 of the samples, without the constant.
    tol : float
        Largest relative gap at the end.
    team : ThreadTeam
        Once it is stopped, epochs raise `Stopped`.
    go_on : callable
        Returns False when time is up; called after every epoch.
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
