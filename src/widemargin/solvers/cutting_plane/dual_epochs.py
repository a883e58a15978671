"""Dual coordinate ascent beside cutting planes: a dual point is a plane too.

    max_alpha  sum_i alpha_i - 1/2 |w|^2,  w = sum_i alpha_i y_i x_i   s.t.  0 <= alpha_i <= C s_i   [and y'alpha = 0]

with y'alpha = 0 for an intercept. (`solvers/dual` minimises the negative of this objective, in beta = y alpha.) As

    s_i max(0, 1 - y_i f_i) >= alpha_i / C (1 - y_i f_i),

the plane with coefficients -alpha_i y_i / C lies below the risk. In the master problem this plane alone gives the dual
objective as a lower bound; together with other planes, a larger one.

Source: Hsieh, Chang, Lin, Keerthi, Sundararajan, A Dual Coordinate Descent Method for Large-scale Linear SVM, ICML
2008.
"""

from __future__ import annotations

import math

import numpy as np

from ..._native import linear
from ..._types import Matrix, RowIndices, Vector
from ...data import RowAccess
from .losses import HingeLoss
from .smooth_losses import SquaredHingeLoss

# Work is counted in operations, so that the same data give the same machine. Experiments: decision 0006.
_EPOCH_WORK_PER_VALUE, _EPOCH_WORK_PER_ROW = 5.0, 8.0  # one thread, no order in memory
_ROUND_WORK, _ROUND_WORK_PER_ROW, _ROUND_WORK_PER_COLUMN = 2e5, 8.0, 60.0  # beside 1 for each value
_PLANE_WORK = 2.0  # work of a round / values of all planes' normals: on text, much of the work
_ROUNDS_PER_COLUMN = 2.0  # rounds alone that should end a fit / columns, at most
_TURN_EPOCHS, _TURN_SHARE = 4.0, 0.1  # epochs, and work / work expected of rounds alone: the less
_MAX_EPOCHS = 8.0  # in a round, at most

_SIGMA = 0.03  # penalty of y'alpha = 0 in the method of multipliers / mean |x_i|^2; 0.01 and 0.1 are about as good
RUN_LENGTH = 16  # samples that stay together in an order: neighbours in memory


class DualPoint:
    """A dual point of a machine with hinges or squared hinges, and epochs of coordinate ascent on it.

    Epochs raise `Stopped` once the team of the loss is stopped; the dual point is then that after the samples visited
    so far. An unregularised intercept is updated before each epoch by the method of multipliers.
    """

    def __init__(self, X: RowAccess, loss: HingeLoss | SquaredHingeLoss, squared_norms: Vector) -> None:
        self._team = loss.team
        self._arrays = X.row_arrays
        self._squared_norms = squared_norms
        self._signed_weights = loss.signed_weights
        self._is_squared = isinstance(loss, SquaredHingeLoss)
        self._C = 1.0
        n, d = X.shape
        self._sigma = _SIGMA * _mean_square(squared_norms) if loss.has_intercept else 0.0
        self._has_intercept = self._sigma > 0.0
        self._alpha, self._w = np.zeros(n), np.zeros(d + 1)  # w, and the intercept as its last value
        if self._has_intercept:  # near 1 or -1 where one class outweighs the other, as at a small C
            self._w[-1] = loss.signed_weights.sum() / max(float(np.abs(loss.signed_weights).sum()), 1e-300)
        self._rng = np.random.default_rng(0)
        self._visit_all()

    def _visit_all(self) -> None:
        """Forget what has been shrunk."""
        # shrink a sample at its lower bound whose gradient is above the first, at its upper bound below the second
        self._shrink_limits = math.inf, -math.inf
        self._unshrunk = np.arange(len(self._alpha))  # samples that epochs visit

    def _scale(self, factor: float) -> None:
        """Multiply the dual point by a factor, which must leave it within its bounds but for rounding."""
        self._alpha *= factor
        np.minimum(self._alpha, self._upper, out=self._alpha)
        self._w[:-1] *= factor
        self._visit_all()

    def _run_epoch(self) -> tuple[float, float]:
        """Visit the samples that are not shrunk; return their share of all, and the duality gap.

        The gap is a sum over these samples, each term as it was when its sample was visited.
        """
        order = _shuffled_runs(self._unshrunk, self._rng)
        self._w[-1] += self._sigma * self._imbalance()
        n_unshrunk, above, below, gap = linear.ascent_epoch(
            self._team.native,
            self._arrays,
            self._signed_weights,
            self._squared_norms,
            self._C,
            self._sigma,
            self._alpha,
            self._w,
            order,
            *self._shrink_limits,
            self._is_squared,
        )
        self._shrink_limits, self._unshrunk = (above, below), order[:n_unshrunk]
        return len(order) / len(self._alpha), gap

    def update_shrinking(self, f: Vector) -> None:
        """Shrink samples by the decision values f (n,) of the dual's point; none, if that would be all."""
        grad = np.sign(self._signed_weights) * (f + self._w[-1]) - 1.0 + self._damping * self._alpha
        is_shrunk = (self._alpha == 0.0) & (grad > self._shrink_limits[0])
        is_shrunk |= (self._alpha == self._upper) & (grad < self._shrink_limits[1])
        self._unshrunk = np.arange(len(f)) if is_shrunk.all() else np.flatnonzero(~is_shrunk)

    def plane(self) -> tuple[Matrix, float, Vector]:
        """The dual point as a plane: its coefficients (1, n), its offset, and the point w.

        With an intercept, coefficients of the heavier side are reduced until both sides are equal: then the plane holds
        for every intercept.
        """
        weights = self._alpha / self._C
        if self._has_intercept:
            excess, heavy = self._imbalance() / self._C, self._signed_weights > 0
            heavy = heavy if excess > 0 else ~heavy
            weights[heavy] *= max(0.0, 1.0 - abs(excess) / max(float(weights[heavy].sum()), 1e-300))
        offset = float(weights.sum()) - self._quadratic_part(self._C * weights) / self._C
        return -(weights * np.sign(self._signed_weights))[None], offset, self._w[:-1].copy()

    @property
    def _upper(self) -> Vector:
        """Upper bounds (n,) of the dual variables."""
        if self._is_squared:
            return np.full(len(self._alpha), np.inf)
        upper: Vector = self._C * np.abs(self._signed_weights)
        return upper

    @property
    def _damping(self) -> Vector | float:
        """d (n,), where the dual of squared hinges has the terms -d_i alpha_i^2 / 2: 1 / (2 C s_i)."""
        return (
            0.5 / np.maximum(self._C * np.abs(self._signed_weights), np.finfo(float).tiny) if self._is_squared else 0.0
        )

    def _quadratic_part(self, alpha: Vector) -> float:
        """sum_i d_i alpha_i^2 / 2, of squared hinges."""
        return 0.5 * float(alpha @ (self._damping * alpha)) if self._is_squared else 0.0

    @property
    def normal(self) -> Vector | None:
        """The plane's normal, which is -w / C; None with an intercept, whose plane takes a pass over the samples."""
        return None if self._has_intercept else -self._w[:-1] / self._C

    def _imbalance(self) -> float:
        """y'alpha; 0 without an intercept."""
        return float(np.vdot(self._alpha, np.sign(self._signed_weights))) if self._has_intercept else 0.0


class DualEpochs(DualPoint):
    """A dual point raised by epochs at the beginning of the first rounds for a C, while the gap is large.

    They have the work of four epochs, or a tenth of what is expected of rounds alone.
    """

    def __init__(self, X: RowAccess, loss: HingeLoss, squared_norms: Vector) -> None:
        super().__init__(X, loss, squared_norms)
        self._X = X
        (n, d), size = X.shape, linear.count_values(X.row_arrays)
        self._epoch_work = _EPOCH_WORK_PER_VALUE * size + _EPOCH_WORK_PER_ROW * n
        self._round_work = _ROUND_WORK + size + _ROUND_WORK_PER_ROW * n + _ROUND_WORK_PER_COLUMN * d
        self._n_epochs = 0.0  # of this round; a part of one where samples are shrunk
        self._begin_turn()

    def _begin_turn(self) -> None:
        expected = _ROUNDS_PER_COLUMN * len(self._w) * self._round_work
        # rounds are counted when their bounds are known, and so is the start, which has no epochs
        self._work_left = self._round_work + min(_TURN_EPOCHS * self._epoch_work, _TURN_SHARE * expected)

    @property
    def have_turn(self) -> bool:
        """Whether the next round begins with epochs."""
        return self._work_left > 0.0

    def set_risk_weight(self, C: float) -> None:
        """Change the weight of the risk: the plane stays, and epochs get another turn."""
        factor, self._C = C / self._C, C
        self._scale(factor)
        self._begin_turn()

    def run_epochs(self) -> None:
        """This round's epochs, and an extrapolation of the change that they made."""
        alpha, w = self._alpha.copy(), self._w.copy()
        most = min(self._work_left / self._epoch_work, _MAX_EPOCHS)
        while len(self._unshrunk) > 0 and (self._n_epochs == 0.0 or self._n_epochs < most):
            self._n_epochs += self._run_epoch()[0]
        if not self._has_intercept and alpha.any():
            self._extrapolate(self._alpha - alpha, self._w - w)

    def record_round(self, n_planes: int) -> None:
        """Count the work of a round."""
        self._work_left -= self._round_work + _PLANE_WORK * n_planes * len(self._w) + self._epoch_work * self._n_epochs
        self._n_epochs = 0.0

    def _extrapolate(self, change: Vector, w_change: Vector) -> None:
        """Go on in the direction of the latest change, as far as the dual rises, and project into the box."""
        rise, curvature = change.sum() - float(self._w @ w_change), float(w_change @ w_change)
        if not rise > curvature:  # less than as far again is not worth a pass
            return
        upper = self._C * np.abs(self._signed_weights)
        alpha = np.clip(self._alpha + rise / max(curvature, 1e-300) * change, 0.0, upper)
        w = self._w.copy()
        w[:-1] += self._X.rmatvec(((alpha - self._alpha) * np.sign(self._signed_weights))[None])[0]
        gain = (alpha - self._alpha).sum() - 0.5 * float((w - self._w) @ (w + self._w))
        if gain > 0.0:
            self._alpha, self._w = alpha, w


def squared_norms(X: RowAccess) -> Vector:
    """|x_i|^2 (n,) of the samples."""
    out = np.empty(X.shape[0])
    linear.squared_norms(X.row_arrays, out)
    return out


def _mean_square(squared_norms: Vector) -> float:
    """Mean of |x_i|^2; 1 if that is zero or beyond float64."""
    mean = float(squared_norms.sum()) / max(len(squared_norms), 1)
    return mean if 0.0 < mean < math.inf else 1.0


def _shuffled_runs(rows: RowIndices, rng: np.random.Generator) -> RowIndices:
    """The same rows, in short runs whose order is random; what is left over comes last."""
    runs, order = rows[: len(rows) // RUN_LENGTH * RUN_LENGTH].reshape(-1, RUN_LENGTH), rows.copy()
    np.take(
        runs, rng.permutation(len(runs)), 0, order[: runs.size].reshape(-1, RUN_LENGTH), "clip"
    )  # straight into place
    return order
