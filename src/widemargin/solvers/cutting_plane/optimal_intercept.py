"""The hinge risk of outputs at the intercept that is best for them, which is not regularised."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._native import hinge
from ..._threads import ThreadTeam
from .losses import FEW, Cut, HingeRisk, Rounded

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_CHORDS = 8
_BALANCE_ROUNDS, _BALANCE_TOL = 60, 1e-9  # of the weights: the rest is shared out


class ProfileRisk(HingeRisk):
    """Sum of weighted hinges at the intercept that is best for them, min_b sum_i s_i max(0, 1 - y_i (f_i + b)).

    Parameters
    ----------
    signed : ndarray of shape (n,)
        s_i y_i.
    team : ThreadTeam
    pull : float
        Beside the hinges, a part -pull b of what is minimised over b.
    near : float
        A guess of the best intercept.
    """

    has_intercept = True

    def __init__(self, signed: Vector, team: ThreadTeam, pull: float = 0.0, near: float = 0.0) -> None:
        super().__init__(signed, team)
        self._pull = pull
        self._level = 0.5 * (self._total + float(signed.sum())) + pull  # of positive rows, and the pull
        self._values = np.empty(self.n_rows)
        self._reach = 1.0
        self._rounded_intercept = near
        self._known: tuple[Matrix | None, float] = None, 0.0  # outputs last advanced, and their best intercept

    def intercept(self, f: Matrix) -> Vector:
        """A weighted quantile of y - f."""
        return np.array([self._known[1] if self._known[0] is f else self._quantile(f[0], f[0], 0.0)])

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """Exact on a chord: the intercept goes straight from its best value here to its best value at about the step.

        Each further chord ends where the step on the last one did, and so its step is at least as good.
        """
        here = float(self.intercept(f)[0])
        reach = self._reach
        for _ in range(_CHORDS):
            tilt = (self._quantile(f[0], target[0], reach) - here) / reach
            step = self._search((f[0], target[0], (here, here + tilt)), curvature, slope - self._pull * tilt)
            if 0.25 * reach <= step <= 4.0 * reach:
                break
            reach = step or 0.125 * reach
        self._reach = step or 1.0
        return step

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """The plane's weights sum to zero, so that it holds for every intercept."""
        coef = np.empty_like(f)
        best = self._quantile(f[0], target[0], step)
        near = self._quantile(f[0], target[0], step + mu * (1.0 - step))
        rows = self.team.native, f[0], target[0], self.signed
        risk, offset = hinge.advance_with_intercept(*rows, step, best, self._values, near, self._pull, coef[0])
        self._known = f, best
        return Cut(risk - self._pull * best, coef, offset)

    def rounded(self, f: Matrix, width: float) -> Rounded | None:
        """At its best intercept; the plane's weights sum to what the pull asks for."""
        shift, (plus, minus) = self._balance(f, width)
        shares = min(1.0, (minus - self._pull) / (plus or 1.0)), min(1.0, (plus + self._pull) / (minus or 1.0))
        if not min(shares) >= 0.0:
            return None
        rounded = self._rounded(f, width, shift, shares)
        beside = self._pull * shift
        return rounded._replace(value=rounded.value - beside, risk=rounded.risk - beside)

    def distance(self, f: Matrix, other: Matrix) -> float:
        """But for what the intercept takes up."""
        return float(np.std(other[0, self._sample] - f[0, self._sample]))

    def part(self, chosen: Indices, factor: float = 1.0, pull: float = 0.0) -> ProfileRisk:
        """The same kind of risk, beside other rows' lines."""
        return ProfileRisk(self._some(chosen, factor), self.team, pull, self._known[1])

    def _balance(self, f: Matrix, width: float) -> tuple[float, tuple[float, float]]:
        """The best intercept of the rounded hinges, and the slopes of positive and of negative rows there.

        Newton's method, and bisection where that leaves the bracket.
        """
        lo, hi, stride = -math.inf, math.inf, width
        b = self._rounded_intercept
        for _ in range(_BALANCE_ROUNDS):
            plus, minus, rate = hinge.smoothed_slopes(self.team.native, f[0], b, self.signed, width)
            excess = plus - minus + self._pull
            if abs(excess) <= _BALANCE_TOL * self._total:
                break
            lo, hi = (b, hi) if excess > 0.0 else (lo, b)
            ahead = b + excess / rate if rate > 0.0 else math.inf
            if not lo < ahead < hi:
                ahead = lo + stride if hi == math.inf else hi - stride if lo == -math.inf else 0.5 * (lo + hi)
                stride *= 2.0
            b = ahead
        else:
            plus, minus, _ = hinge.smoothed_slopes(self.team.native, f[0], b, self.signed, width)
        self._rounded_intercept = b
        return b, (plus, minus)

    def _quantile(self, f: Vector, target: Vector, k: float) -> float:
        """The best intercept at f + k (target - f): a value of y - f, which are left behind for the plane."""
        for lo, hi in (self._enclose(f, target, k), (-math.inf, math.inf)):
            rows = self.team.native, f, target, k, self.signed
            below, upto, kept, weights = hinge.collect_residuals(*rows, lo, hi, self._values)
            if below < self._level <= upto and len(kept):
                break
        best: float = hinge.weighted_quantile(kept, weights, self._level - below)
        return best

    def _enclose(self, f: Vector, target: Vector, k: float) -> tuple[float, float]:
        """Where a sample has its best intercept, and four standard errors to either side."""
        if self.n_rows < FEW:
            return -math.inf, math.inf
        signed, f, target = (values[self._sample] for values in (self.signed, f, target))
        values, weights = np.sign(signed) - (f + k * (target - f)), np.abs(signed)
        pull = self._pull * float(weights.sum()) / self._total
        level, margin = np.maximum(signed, 0.0).sum() + pull, 4.0 * 0.5 * float(np.linalg.norm(signed))
        lo: float = hinge.weighted_quantile(values, weights, level - margin) if level > margin else -math.inf
        hi: float = (
            hinge.weighted_quantile(values, weights, level + margin) if level + margin < weights.sum() else math.inf
        )
        return lo, hi
