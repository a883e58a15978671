"""An interior-point method for hinges on few samples, or few features: it does not mind the scales of data and weights.

Solve    min_(w, b)  1/2 |w|^2 + sum_i max(low_i r_i, high_i r_i),  r = t - (X w + b)      low <= 0 <= high
         a hinge has low = 0, high = C s, t = 1 where y = 1, and low = -C s, high = 0, t = -1 where y = -1; two hinges
         that meet, as of the absolute loss, are one term
Given    X (n, d), of which the smaller side is at most 1,024; a `HingeLoss`; C
Method   Primal and dual together, with a centre mu > 0 that goes to 0 and positive slacks:

             r = above - below,  w = X' beta,  1' beta = 0,  (beta - low) below = mu,  (high - beta) above = mu

         An iteration has two Newton steps (predictor and corrector) by one decomposition: that of a `RidgeSystem` with
         curvatures 1 / (below / (beta - low) + above / (high - beta))
Returns  w, and the dual objective t' beta - 1/2 |X' beta|^2, a lower bound of the primal
Cost     10 to 30 decompositions
Source   Mehrotra, On the Implementation of a Primal-Dual Interior Point Method, SIAM Journal on Optimization 2, 1992
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._types import Matrix, Vector
from ...data import LocalMatrix
from .losses import HingeLoss
from .ridge_system import RidgeSystem

_MAX_STEPS = 80
_LEAST_GAP = 0.3  # of a centre / the gap that ends it: closer to the boundary, systems are worse conditioned
_TO_BOUNDARY = 0.995  # length of a step / that to the boundary


class _Point(NamedTuple):
    """A point of primal and dual, or the change of one; of a point, the last four are positive."""

    w: Vector
    b: float
    beta: Vector
    room_below: Vector  # beta - low
    room_above: Vector  # high - beta
    below: Vector
    above: Vector

    def length_of(self, step: _Point) -> float:
        """The length of a step to the boundary, at most 1."""
        sides = zip(self[3:], step[3:], strict=True)
        return min(1.0, *(float((v / np.maximum(-dv, 1e-9 * v)).min()) for v, dv in sides))

    def plus(self, step: _Point, length: float) -> _Point:
        """This point, moved."""
        arrays = (v + length * dv for v, dv in zip(self[2:], step[2:], strict=True))
        return _Point(self.w + length * step.w, self.b + length * step.b, *arrays)

    @property
    def gap(self) -> float:
        """That of a point that is feasible."""
        return float(self.room_below @ self.below + self.room_above @ self.above)


class InteriorPoint:
    """The problem of one machine."""

    def __init__(self, X: LocalMatrix, loss: HingeLoss) -> None:
        signed, shift = loss.signed_weights, loss.shift
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
        self._system = RidgeSystem(self._X, loss.team, has_intercept=loss.has_intercept)
        self._has_intercept = loss.has_intercept

    def solve(self, C: float, tol: float, go_on: Callable[[], bool]) -> tuple[Matrix, float]:
        """Go on to a relative gap of `tol`, or as far as float64 allows: w (1, d) and the largest dual objective."""
        low, high = np.multiply(C, self._low), np.multiply(C, self._high)
        point = self._start(low, high)
        w, best, bound = point.w, np.inf, -np.inf
        for _ in range(_MAX_STEPS):
            r = self._targets - (self._X.matvec(point.w[None])[0] + point.b)
            objective = 0.5 * float(point.w @ point.w) + float(np.maximum(low * r, high * r).sum())
            bound = max(bound, self._dual_value(point.beta))
            if objective < best:
                w, best = point.w, objective
            if best - bound <= tol * best or not go_on():
                break
            move = self._newton(point, r - point.above + point.below)
            predicted = move(0.0, None)
            left = point.plus(predicted, point.length_of(predicted)).gap / point.gap
            step = move(max(left**3 * point.gap, _LEAST_GAP * tol * best) / (2 * len(r)), predicted)
            point = point.plus(step, _TO_BOUNDARY * point.length_of(step))
            if not np.isfinite(point.gap):
                break
        return w[None], bound

    def _start(self, low: Vector, high: Vector) -> _Point:
        """The centred point at w = 0 of about the gap there; of its equations only w = X' beta fails."""
        width, t = high - low, self._targets
        mu = float(np.maximum(low * t, high * t).sum()) / len(t)
        share = 0.5 * width * t / (np.hypot(width * t, 2.0 * mu) + 2.0 * mu)
        beta = low + width * (0.5 + share)
        room_below, room_above = width * (0.5 + share), width * (0.5 - share)
        w = np.zeros(self._X.shape[1])
        return _Point(w, 0.0, beta, room_below, room_above, mu / room_below, mu / room_above)

    def _dual_value(self, beta: Vector) -> float:
        """The dual objective at beta; with an intercept its larger side is reduced until the sum is 0."""
        if self._has_intercept:
            plus, minus = float(np.maximum(beta, 0.0).sum()), -float(np.minimum(beta, 0.0).sum())
            least = min(plus, minus)
            beta = beta * np.where(beta > 0.0, least / (plus or 1.0), least / (minus or 1.0))
        w = self._X.rmatvec(beta[None])[0]
        return float(self._targets @ beta) - 0.5 * float(w @ w)

    def _newton(self, point: _Point, lack: Vector) -> Callable[[float, _Point | None], _Point]:
        """The Newton step to a centre mu, with the products of another step as second-order terms.

        `lack` (n,) is r - (above - below).
        """
        X, (w, _, beta, room_below, room_above, below, above) = self._X, point
        curvatures = 1.0 / (below / room_below + above / room_above)
        system = self._system.decompose(curvatures)
        dual_lack = X.rmatvec(beta[None])[0] - w
        imbalance = -float(beta.sum()) if self._has_intercept else 0.0

        def move(mu: float, other: _Point | None) -> _Point:
            at_low, at_high = mu - room_below * below, mu - room_above * above
            if other is not None:
                at_low = at_low - other.room_below * other.below
                at_high = at_high - other.room_above * other.above
            g = lack + at_low / room_below - at_high / room_above
            dw, db, change = system.solve(g, dual_lack, imbalance)
            d_below, d_above = (at_low - below * change) / room_below, (at_high + above * change) / room_above
            return _Point(dw, db, change, change, -change, d_below, d_above)

        return move
