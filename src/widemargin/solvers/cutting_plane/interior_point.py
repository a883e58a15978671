"""An interior-point method for hinges, squared or not, on few samples or features of any scales and weights.

Solve    min_(w, b)  1/2 |w|^2 + sum_i max(low_i r_i, high_i r_i),  r = t - (X w + b)      low <= 0 <= high
         a hinge has low = 0, high = C s, t = 1 where y = 1, and low = -C s, high = 0, t = -1 where y = -1; two hinges
         that meet, as of the absolute loss, are one term. Squared hinges: r^2 / (2 D), D = 1 / (2 C s), where y r > 0
Given    X (n, d), of which the smaller side is at most 1,024; a `HingeLoss` or `SquaredHingeLoss`; C
Method   Primal and dual together, with a centre mu > 0 that goes to 0 and positive slacks:

             r = D beta + above - below,  w = X' beta,  1' beta = 0,  (beta - low) below = (high - beta) above = mu

         D = 0 but for squared hinges, whose beta = r / D is bounded by 0 alone. Its other bound is twice the beta of a
         term as large as the objective at w = 0, which no term of the optimum exceeds

         An iteration has two Newton steps (predictor and corrector) by one decomposition: that of a `RidgeSystem` with
         curvatures 1 / (D + below / (beta - low) + above / (high - beta))
Returns  w, and the dual objective t' beta - 1/2 |X' beta|^2 - 1/2 beta' D beta, a lower bound of the primal
Cost     10 to 30 decompositions
Source   Mehrotra, On the Implementation of a Primal-Dual Interior Point Method, SIAM Journal on Optimization 2, 1992
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..._progress import AnyProgress, SilentProgress
from ..._types import LEAST_NORMAL, Array, Matrix, Vector
from ...data import LocalMatrix
from ..results import LinearResult
from .losses import HingeLoss, risk_and_plane
from .ridge_system import RidgeSystem
from .smooth_losses import SquaredHingeLoss

_MAX_STEPS = 80
_LEAST_GAP = 0.3  # of a centre / the gap that ends it: closer to the boundary, systems are worse conditioned
_NEAR = 10.0  # times the gap that ends it: only there is a bound worth computing
_TO_BOUNDARY = 0.995  # length of a step / that to the boundary


class _Point(NamedTuple):
    """A point of primal and dual, or the change of one."""

    w: Vector
    b: float
    sides: Array  # (2, 2, n): room, beta - low and high - beta, and slack, below and above; positive, but for a change

    def length_of(self, step: _Point) -> float:
        """The length of a step to the boundary, at most 1."""
        return min(1.0, float((self.sides / np.maximum(-step.sides, 1e-9 * self.sides)).min()))

    def plus(self, step: _Point, length: float) -> _Point:
        """This point, moved."""
        return _Point(self.w + length * step.w, self.b + length * step.b, self.sides + length * step.sides)

    def beta(self, low: Vector, high: Vector) -> Vector:
        """The dual point, from the nearer bound: from the other one it has the rounding errors of that."""
        room_below, room_above = self.sides[0]
        return np.asarray(np.where(room_below < room_above, low + room_below, high - room_above))

    @property
    def gap(self) -> float:
        """That of a point that is feasible."""
        return float(np.vdot(*self.sides))


def solve_interior_points(
    X: LocalMatrix, losses: Sequence[HingeLoss], C: float, tol: float, progress: AnyProgress
) -> list[LinearResult] | None:
    """Solve on X (n, d) for all losses, one by one; None where one does not reach a relative gap of `tol`.

    Those that a stop leaves unsolved are as good as there was time for.
    """
    results, silent = [], SilentProgress(progress)
    for loss in losses:
        sizes = C * np.abs(loss.signed_weights[loss.signed_weights != 0.0])
        if not len(sizes) or sizes.min() < LEAST_NORMAL:
            return None
        w, bound = InteriorPoint(X, loss).solve(C, tol, silent.go_on)
        f = X.decision_values(w)
        objective = 0.5 * float(np.vdot(w, w)) + C * risk_and_plane(loss, f).risk
        gap = max(objective - bound, 0.0)
        is_done = gap <= tol * objective
        if not is_done and silent.stopped_by is None:
            return None
        results.append(
            LinearResult(w, loss.intercept(f), objective, gap, is_done, w, None if is_done else silent.stopped_by)
        )
    return results


class InteriorPoint:
    """The problem of one machine."""

    def __init__(self, X: LocalMatrix, loss: HingeLoss | SquaredHingeLoss) -> None:
        signed, shift = loss.signed_weights, loss.shift if isinstance(loss, HingeLoss) else None
        used = np.flatnonzero(signed)
        weights = signed[used]
        targets = np.sign(weights) - (0.0 if shift is None else shift[used])
        places = np.arange(len(used))
        if shift is not None:  # of the samples that occur twice
            keys = np.column_stack([X.gather(used)[1], targets])
            _, first, places = np.unique(keys, axis=0, return_index=True, return_inverse=True)
            used, targets = used[first], targets[first]
        self._X = X.take(used) if shift is not None or len(used) < X.shape[0] else X
        self._low = np.bincount(places.ravel(), np.minimum(weights, 0.0), len(used))
        self._high = np.bincount(places.ravel(), np.maximum(weights, 0.0), len(used))
        self._targets = targets
        self._is_squared = isinstance(loss, SquaredHingeLoss)
        self._system = RidgeSystem(self._X, loss.team, has_intercept=loss.has_intercept)
        self._has_intercept = loss.has_intercept

    def solve(self, C: float, tol: float, go_on: Callable[[], bool]) -> tuple[Matrix, float]:
        """Go on to a relative gap of `tol`, or as far as float64 allows: w (1, d) and the largest dual objective."""
        low, high, damping = self._box(C)
        point = self._start(low, high)
        w, best, bound = point.w, np.inf, 0.0
        for _ in range(_MAX_STEPS):
            r, beta = self._targets - (self._X.matvec(point.w[None])[0] + point.b), point.beta(low, high)
            if self._is_squared:
                losses = np.where(self._targets * r > 0.0, 0.5 * r * r / damping, 0.0)
            else:
                losses = np.maximum(low * r, high * r)
            objective = 0.5 * float(point.w @ point.w) + float(losses.sum())
            if objective < best:
                w, best = point.w, objective
            is_last = not go_on()
            if is_last or point.gap <= _NEAR * tol * best:
                bound = max(bound, self._dual_value(beta, damping))
            if is_last or best - bound <= tol * best:
                break
            move = self._newton(point, beta, damping, r - damping * beta - point.sides[1, 1] + point.sides[1, 0])
            predicted = move(0.0, None)
            left = point.plus(predicted, point.length_of(predicted)).gap / point.gap
            step = move(max(left**3 * point.gap, _LEAST_GAP * tol * best) / (2 * len(r)), predicted)
            point = point.plus(step, _TO_BOUNDARY * point.length_of(step))
            if not np.isfinite(point.gap):
                break
        return w[None], bound

    def _box(self, C: float) -> tuple[Vector, Vector, Vector | float]:
        """The bounds of beta (n,), and D."""
        low, high = np.multiply(C, self._low), np.multiply(C, self._high)
        if not self._is_squared:
            return low, high, 0.0
        sizes = np.maximum(high - low, LEAST_NORMAL)
        bounds = 4.0 * np.sqrt(sizes) * np.sqrt(sizes.sum())
        return np.sign(low) * bounds, np.sign(high) * bounds, 0.5 / sizes

    def _start(self, low: Vector, high: Vector) -> _Point:
        """The centred point at w = 0 of about the gap there, were all losses hinges with these bounds.

        Of the equations of hinges, only w = X' beta fails there.
        """
        width, t = high - low, self._targets
        mu = float(np.maximum(low * t, high * t).sum()) / len(t)
        share = 0.5 * width * t / (np.hypot(width * t, 2.0 * mu) + 2.0 * mu)
        room = width * np.stack([0.5 + share, 0.5 - share])
        return _Point(np.zeros(self._X.shape[1]), 0.0, np.stack([room, mu / room]))

    def _dual_value(self, beta: Vector, damping: Vector | float) -> float:
        """The dual objective at beta; with an intercept its larger side is reduced until the sum is 0."""
        if self._has_intercept:
            plus, minus = float(np.maximum(beta, 0.0).sum()), -float(np.minimum(beta, 0.0).sum())
            least = min(plus, minus)
            beta = beta * np.where(beta > 0.0, least / (plus or 1.0), least / (minus or 1.0))
        w = self._X.rmatvec(beta[None])[0]
        return float(self._targets @ beta) - 0.5 * float(w @ w) - 0.5 * float(beta @ (damping * beta))

    def _newton(
        self, point: _Point, beta: Vector, damping: Vector | float, lack: Vector
    ) -> Callable[[float, _Point | None], _Point]:
        """The Newton step to a centre mu, with the products of another step as second-order terms.

        `lack` (n,) is r - (D beta + above - below).
        """
        w, (room, slack) = point.w, point.sides
        system = self._system.decompose(1.0 / (damping + (slack / room).sum(axis=0)))
        dual_lack = self._X.rmatvec(beta[None])[0] - w
        imbalance = -float(beta.sum()) if self._has_intercept else 0.0

        def move(mu: float, other: _Point | None) -> _Point:
            off_centre = mu - room * slack  # that of the products, in the end 0
            if other is not None:
                off_centre -= other.sides[0] * other.sides[1]
            g = lack + off_centre[0] / room[0] - off_centre[1] / room[1]
            dw, db, change = system.solve(g, dual_lack, imbalance)
            sides = np.empty_like(point.sides)
            sides[0] = change, -change
            sides[1] = (off_centre - slack * sides[0]) / room
            return _Point(dw, db, sides)

        return move
