"""Hinges with an unregularised intercept: the risk of decision values at the intercept that is optimal for them."""

from __future__ import annotations

import math

import numpy as np

from ..._native import hinge as compiled
from ..._threads import ThreadTeam
from ..._types import Matrix, RowIndices, Vector
from ...data import DesignMatrix, RepeatedMatrix, repeat_rows
from ..quantile import midpoint_quantile
from .derivative_zeros import ZERO_TOL, ChordSearch, find_zero, least_step
from .losses import SAMPLE_ROWS, HingeLoss, RiskAndPlane, Smoothed


class InterceptHingeLoss(HingeLoss):
    """Weighted hinges at their optimal intercept, R(f) = min_b sum_i s_i max(0, 1 - y_i (f_i + b)) - plane_balance b.

    `plane_balance` is what the coefficients c_i of a plane sum to. The plane is below the sum above for every b, as it
    contains b as (sum_i c_i - plane_balance) b = 0. It is 0 for all samples; for active rows minus the sum of the
    coefficients of the linear remainder, which has the term -plane_balance b. `intercept_guess` is where the search for
    the smoothed hinges' intercept begins.
    """

    has_intercept = True

    def __init__(
        self,
        signed_weights: Vector,
        team: ThreadTeam,
        plane_balance: float = 0.0,
        intercept_guess: float = 0.0,
        *,
        shift: Vector | None = None,
    ) -> None:
        super().__init__(signed_weights, team, shift=shift)
        self._plane_balance = plane_balance
        # the weight of the residuals y - f below the optimal b, where the derivative in b is zero: a sample with y = 1
        # adds -s to it while its residual is above b, one with y = -1 adds s while below; and there is -plane_balance
        self._quantile_level = 0.5 * (self._total + float(signed_weights.sum())) + plane_balance
        self._residuals = np.empty(self.n_rows)
        self._latest_quantile, self._reach = 0.0, 0.0  # few rows: the next one is looked for so far around it
        self._chords = ChordSearch()
        self._smoothed_intercept = intercept_guess
        self._latest: tuple[Matrix | None, float] = None, 0.0  # f of the latest `advance`, and its optimal intercept

    def intercept(self, f: Matrix) -> Vector:
        """A weighted quantile of y - f: the midpoint of all optimal intercepts."""
        signed, level = self.signed_weights, self._quantile_level
        return np.array([midpoint_quantile(np.where(signed > 0.0, 1.0, -1.0) - f[0], np.abs(signed), level)])

    def least_intercept(self, f: Matrix) -> float:
        """The least weighted quantile of y - f."""
        return self._latest[1] if self._latest[0] is f else self._quantile(f[0], f[0], 0.0)

    def find_step(self, f: Matrix, f_end: Matrix, curvature: float, slope: float) -> float:
        """The minimiser along a chord of the intercept."""
        here = self.least_intercept(f)

        def step_on(b_rate: float) -> float:
            segment = f[0], f_end[0], (here, here + b_rate)
            return self._find_step(segment, curvature, slope - self._plane_balance * b_rate)

        # a sample on the margin has a kink at a step of 1e-16, say
        least = least_step(f[0, self._sampled_rows], f_end[0, self._sampled_rows])
        return self._chords.find_step(here, lambda k: self._quantile(f[0], f_end[0], k), step_on, least)

    def advance(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> RiskAndPlane:
        """As without an intercept; samples exactly on the margin count in part, so that coef sums to the balance."""
        coef = np.empty_like(f)
        best = self._quantile(f[0], f_end[0], step)
        at_plane = self._quantile(f[0], f_end[0], step + mu * (1.0 - step))
        hinges = self.team.native, f[0], f_end[0], self.signed_weights
        risk, offset = compiled.advance_with_intercept(
            *hinges, step, best, self._residuals, at_plane, self._plane_balance, coef[0]
        )
        self._latest = f, best
        return RiskAndPlane(risk - self._plane_balance * best, coef, offset + self._shift_of(coef))

    def smoothed(self, f: Matrix, width: float) -> Smoothed | None:
        """The Huberised hinges at their optimal intercept; coef sums to `plane_balance`.

        None where numbers are too large for slopes in [0, 1] with that sum.
        """
        b, (plus, minus) = self._smoothed_intercept_at(f, width)
        factors = (
            min(1.0, (minus - self._plane_balance) / (plus or 1.0)),
            min(1.0, (plus + self._plane_balance) / (minus or 1.0)),
        )
        if not min(factors) >= 0.0:
            return None
        smoothed = self._smoothed(f, width, b, factors)
        linear_term = self._plane_balance * b
        return smoothed._replace(value=smoothed.value - linear_term, risk=smoothed.risk - linear_term)

    def rms_change(self, f: Matrix, other: Matrix) -> float:
        """Root mean square of other - f less its mean, which the intercept makes up for; over the sampled rows."""
        return float(np.std(other[0, self._sampled_rows] - f[0, self._sampled_rows]))

    def restrict(self, chosen: RowIndices, factor: float = 1.0, plane_balance: float = 0.0) -> InterceptHingeLoss:
        """The hinges of some samples, beside a linear remainder with the term -plane_balance b."""
        weights, shift = self._restricted_weights(chosen, factor), self._restricted_shift(chosen)
        return InterceptHingeLoss(weights, self.team, plane_balance, self._latest[1], shift=shift)

    def _smoothed_intercept_at(self, f: Matrix, width: float) -> tuple[float, tuple[float, float]]:
        """The smoothed hinges' optimal intercept, and the sums of slopes of positive and negative samples there."""
        known: dict[float, tuple[float, float]] = {}

        def derivative(b: float) -> tuple[float, float]:
            plus, minus, rate = compiled.smoothed_slopes(self.team.native, f[0], b, self.signed_weights, width)
            known[b] = plus, minus
            return -(plus - minus + self._plane_balance), rate

        b = find_zero(derivative, self._smoothed_intercept, width, ZERO_TOL * self._total)
        if b not in known:
            derivative(b)
        self._smoothed_intercept = b
        return b, known[b]

    def _quantile(self, f: Vector, f_end: Vector, k: float) -> float:
        """The optimal intercept at f + k (f_end - f): a weighted quantile of the residuals y - f."""
        for lo, hi in (self._enclose(f, f_end, k), (-math.inf, math.inf)):
            hinges = self.team.native, f, f_end, k, self.signed_weights
            below, upto, kept, weights = compiled.collect_residuals(*hinges, lo, hi, self._residuals)
            if below < self._quantile_level <= upto and len(kept):
                break
        best: float = compiled.weighted_quantile(kept, weights, self._quantile_level - below)
        self._reach = max(4.0 * abs(best - self._latest_quantile), 0.5 * self._reach)
        self._latest_quantile = best
        return best

    def _enclose(self, f: Vector, f_end: Vector, k: float) -> tuple[float, float]:
        """An interval about the optimal intercept of the sampled rows, of four standard errors to either side.

        Of few rows, `_reach` to either side of the latest intercept.
        """
        if self.n_rows < 4 * SAMPLE_ROWS or self._total == 0.0:
            return self._latest_quantile - self._reach, self._latest_quantile + self._reach
        signed, f, f_end = (values[self._sampled_rows] for values in (self.signed_weights, f, f_end))
        values, weights = np.sign(signed) - (f + k * (f_end - f)), np.abs(signed)
        plane_balance = self._plane_balance * float(weights.sum()) / self._total
        level, margin = np.maximum(signed, 0.0).sum() + plane_balance, 4.0 * 0.5 * float(np.linalg.norm(signed))
        lo = compiled.weighted_quantile(values, weights, level - margin) if level > margin else -math.inf
        hi = compiled.weighted_quantile(values, weights, level + margin) if level + margin < weights.sum() else math.inf
        return lo, hi


# Piecewise linear losses of targets are two hinges each, on rows that occur twice:
#
#     below max(0, lower - f) + above max(0, f - upper)
#         = below max(0, 1 - (f + 1 - lower)) + above max(0, 1 + (f - 1 - upper))
#
# So whatever is written for hinges works for epsilon-insensitive, absolute and quantile losses: exact line searches,
# optimal intercepts, active rows, Newton's method on smoothed hinges.


def double_rows(X: DesignMatrix, lower: Vector, upper: Vector) -> RepeatedMatrix:
    """The rows of X (n, d) twice, shifted so that hinges of labels 1, then -1, are about lower and upper (n,)."""
    n = len(lower)
    return repeat_rows(X, np.tile(np.arange(n), 2), np.concatenate([1.0 - lower, -1.0 - upper]))


def two_hinges(below: Vector, above: Vector, shift: Vector, team: ThreadTeam, *, has_intercept: bool) -> HingeLoss:
    """The hinges of weights `below` and `above` (n,) on the rows of `double_rows`, whose shift (2 n,) this is."""
    weights = np.concatenate([below, -above])
    return InterceptHingeLoss(weights, team, shift=shift) if has_intercept else HingeLoss(weights, team, shift=shift)
