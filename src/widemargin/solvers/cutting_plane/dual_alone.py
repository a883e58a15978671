"""Dual coordinate ascent to the end, for wide samples: epochs, and conjugate gradients on a face of the box.

Solve    max_alpha  sum_i alpha_i - 1/2 |w|^2,  w = sum_i alpha_i y_i x_i   s.t.  0 <= alpha_i <= C s_i
         of squared hinges less 1/2 sum_i d_i alpha_i^2, d_i = 1 / (2 C s_i), without upper bounds
Given    X (n, d) whose samples can be visited one by one; signed weights s_i y_i (n,); C
Method   Epochs of coordinate ascent with shrinking find which variables are at their bounds. Where an epoch hardly
         reduces the gap, the others, the free ones, go on as an unconstrained quadratic problem, by conjugate gradients
         that are preconditioned with the samples' squared lengths; their step is projected into the box
Returns  w, where the primal's best point is searched next, and the dual objective, a lower bound of the primal
Cost     an epoch: two passes over the samples not shrunk; a step of conjugate gradients: two over the free ones
Sources  Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008; Moré, Toraldo, On the Solution of Large Quadratic
         Programming Problems with Bound Constraints, SIAM Journal on Optimization 1, 1991; Steihaug, The Conjugate
         Gradient Method and Trust Regions in Large Scale Optimization, SIAM Journal on Numerical Analysis 20, 1983
Twin     tests/naive/cutting_plane.py::face_maximum

With about as many columns as samples, cutting planes have little to add: each is as long as w, and a problem has as
many degrees of freedom as samples. Experiments: decision 0006.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._native import linear
from ..._threads import VALUES_PER_CHECK
from ..._types import Matrix, RowIndices, Vector
from ...data import LocalMatrix, RowAccess
from .derivative_zeros import ARMIJO, SHORTEST_STEP
from .dual_epochs import DualPoint
from .losses import HingeLoss
from .smooth_losses import SquaredHingeLoss

_SLOW = 0.9  # gap after an epoch / gap before it: where it is larger, conjugate gradients follow
_GAIN_RATIO = 0.25  # a step's gain / the largest where conjugate gradients end, at first
_GAIN_RATIO_FACTOR = 0.25  # multiply that ratio by it where bounds hardly matter; divide where they matter most
_FREE_RISE, _HELD_RISE = 0.75, 0.25  # rise in the box / rise without bounds: more, or less, where that is so
_FEW_FREE = 0.1  # free variables / all, at most, where the optimal intercept is that of the dual too


class Face(NamedTuple):
    """The dual on its free variables, all others held: samples (m, d), and vectors (m,)."""

    X: LocalMatrix
    y: Vector
    curvatures: Vector  # of each variable alone
    gradient: Vector  # y (X w + b) - 1 + d alpha
    sigma: float  # penalty of the intercept's term, sigma / 2 (y'alpha)^2
    upper: Vector  # bounds of the variables
    damping: Vector | float = 0.0  # d


def face_step(face: Face, gain_ratio: float, go_on: Callable[[], bool]) -> Vector:
    """The change (m,) of the free variables to about the maximum, their bounds ignored: conjugate gradients.

    They end at the first step whose gain is at most `gain_ratio` times the largest, or once the change is longer than
    the box's diagonal: where more variables than columns are free, the maximum without bounds is often at infinity.
    """
    step, residual, largest, diagonal = np.zeros(len(face.y)), -face.gradient, 0.0, float(face.upper @ face.upper)
    scaled = residual / face.curvatures
    direction, square = scaled.copy(), float(residual @ scaled)
    while square > 0.0 and go_on():
        signed = face.y * direction
        w, b, damped = face.X.rmatvec(signed[None]), face.sigma * signed.sum(), face.damping * direction
        length = square / (float(np.vdot(w, w)) + b * signed.sum() + float(direction @ damped) or np.inf)
        step += length * direction
        gain = 0.5 * length * square
        if not gain > gain_ratio * largest or float(step @ step) > diagonal:
            break
        largest = max(gain, largest)
        residual -= length * (face.y * (face.X.matvec(w)[0] + b) + damped)
        scaled = residual / face.curvatures
        square, previous = float(residual @ scaled), square
        direction = scaled + square / previous * direction
    return step


class DualAlone(DualPoint):
    """The dual of a machine with hinges, raised to a relative gap of `tol`; the copy of the free samples has `n_bytes`.

    `go_on` is called after every epoch and every step of conjugate gradients, and returns False when time is up.
    """

    def __init__(
        self,
        X: RowAccess,
        loss: HingeLoss | SquaredHingeLoss,
        squared_norms: Vector,
        tol: float,
        n_bytes: int,
        go_on: Callable[[], bool],
    ) -> None:
        super().__init__(X, loss, squared_norms)
        self._X = X
        self._loss = loss
        self._y = np.sign(loss.signed_weights)
        self._tol = tol
        self._max_free = n_bytes // X.row_bytes
        self._go_on = go_on
        self._most_epochs = VALUES_PER_CHECK / max(1, linear.count_values(X.row_arrays))
        self._reset()

    @property
    def point(self) -> Matrix:
        """w (1, d)."""
        return self._w[None, :-1].copy()

    def set_risk_weight(self, C: float) -> None:
        """Change the weight of the risk: the dual point is scaled as far as its objective rises."""
        longest = C / self._C
        self._C = C
        square = float(self._w[:-1] @ self._w[:-1]) + 2.0 * self._quadratic_part(self._alpha)
        self._scale(min(longest, float(self._alpha.sum()) / square) if square > 0.0 else longest)
        self._reset()

    def _reset(self) -> None:
        """Give everything that adapts during a fit its first value, for a new C."""
        self._f: Vector | None = None  # decision values of w, from `take_decision_values`
        self._is_first = True  # whether they will be the first for this C
        self._gain_ratio = _GAIN_RATIO
        self._is_slow, self._gap = False, np.inf  # of the latest epoch since the last conjugate gradients

    def ascend(self) -> None:
        """Conjugate gradients, if the last epoch was slow; then epochs until one is, or the gap is small.

        On large data they end sooner, to be continued at the next call: after 1e8 values.
        """
        if self._is_slow and self._f is not None:
            self._maximise_on_face(self._f)
            self._gap = np.inf
        self._f, self._is_slow, n_epochs = None, False, 0.0
        while len(self._unshrunk) and not self._is_slow and n_epochs < self._most_epochs and self._go_on():
            share, gap = self._run_epoch()
            if gap <= self._tol * (self._value(self._alpha, self._w) + gap):
                break
            self._is_slow = not gap <= _SLOW**share * self._gap
            self._gap, n_epochs = gap, n_epochs + share

    def take_decision_values(self, f: Vector) -> None:
        """Shrink by the decision values f (n,) of `point`, and keep them for the next conjugate gradients.

        The first of a C set the intercept to its optimum where nearly all variables are at their bounds, as at a small
        C: w hardly changes any more.
        """
        if self._is_first and self._has_intercept:
            is_free = (self._alpha > 0.0) & (self._alpha < self._upper)
            if np.count_nonzero(is_free) < _FEW_FREE * len(f):
                self._w[-1] = self._loss.intercept(f[None])[0]
        self._is_first = False
        self.update_shrinking(f)
        self._f = f

    def bound(self) -> float:
        """The dual objective; with an intercept that of a point near this one, with y'alpha = 0."""
        w, total = self._w[:-1], float(self._alpha.sum()) - self._quadratic_part(self._alpha)
        if self._has_intercept:
            coef, offset, _ = self.plane()
            w, total = self._C * self._X.rmatvec(coef)[0], self._C * offset
        return total - 0.5 * float(w @ w)

    def _maximise_on_face(self, f: Vector) -> None:
        """Move the free variables towards the maximum on their face, given the decision values f (n,) of w."""
        upper, damping = self._upper, self._damping
        free = np.flatnonzero((self._alpha > 0.0) & (self._alpha < upper) & (self._squared_norms > 0.0))
        if not 0 < len(free) <= self._max_free:
            return
        y, sigma = self._y[free], self._sigma
        damping = damping[free] if isinstance(damping, np.ndarray) else damping
        gradient = y * (f[free] + self._w[-1]) - 1.0 + damping * self._alpha[free]
        curvatures = self._squared_norms[free] + sigma + damping
        face = Face(self._X.take(free), y, curvatures, gradient, sigma, upper[free], damping)
        self._move(free, face_step(face, self._gain_ratio, self._go_on), gradient, upper[free])

    def _move(self, free: RowIndices, step: Vector, gradient: Vector, upper: Vector) -> None:
        """Take the step, projected into the box, and halved until the dual rises enough; w is summed anew.

        Where the dual rises nearly as it would without bounds, the next conjugate gradients are continued for longer,
        as in trust-region methods; where bounds take most of the rise, they end sooner.
        """
        value, imbalance = self._value(self._alpha, self._w), self._imbalance()
        unbounded_rise = -0.5 * float(gradient @ step)  # at any iterate of conjugate gradients
        length = 1.0
        while length >= SHORTEST_STEP:
            alpha, w = self._alpha.copy(), np.empty_like(self._w)
            alpha[free] = np.clip(alpha[free] + length * step, 0.0, upper)
            w[:-1] = self._X.rmatvec((self._y * alpha)[None])[0]
            w[-1] = self._w[-1] + self._sigma * (float(self._y @ alpha) - imbalance)
            promised = -float(gradient @ (alpha[free] - self._alpha[free]))
            rise = self._value(alpha, w) - value
            if rise > ARMIJO * max(promised, 0.0):
                self._alpha, self._w = alpha, w
                self._adapt_gain_ratio(rise, unbounded_rise)
                return
            length *= 0.5

    def _adapt_gain_ratio(self, rise: float, unbounded_rise: float) -> None:
        if rise > _FREE_RISE * unbounded_rise:
            self._gain_ratio *= _GAIN_RATIO_FACTOR
        elif rise < _HELD_RISE * unbounded_rise:
            self._gain_ratio = min(self._gain_ratio / _GAIN_RATIO_FACTOR, 1.0)

    def _value(self, alpha: Vector, w: Vector) -> float:
        """The dual objective at this intercept, less sigma / 2 (y'alpha)^2."""
        value = float(alpha.sum()) - 0.5 * float(w[:-1] @ w[:-1]) - self._quadratic_part(alpha)
        if self._has_intercept:
            imbalance = float(self._y @ alpha)
            value -= imbalance * (float(w[-1]) - 0.5 * self._sigma * imbalance)
        return value
