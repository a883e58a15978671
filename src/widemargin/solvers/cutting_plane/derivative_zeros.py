"""Zeros of increasing derivatives: steps on a line, optimal intercepts, and both together along a chord."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from ..._types import ROUNDING, Vector

INFINITE_STEP = 1e300  # stands for infinity: beyond every breakpoint
ZERO_TOL = 1e-9  # magnitude of an increasing function / that at the start, or of all its terms: rounding is left


ARMIJO = 0.1  # gain / promised gain that a step must have, at least: else it is halved,
SHORTEST_STEP = 1e-3  # but not below this part of it

Derivative = Callable[[float], tuple[float, float]]


class Line(Protocol):
    """A convex function of the step k, a sum over samples."""

    def slope(self, k: float) -> float:
        """Right derivative at k."""

    def drop_linear_rows(self, lo: float, hi: float) -> None:
        """Replace samples that are linear between lo and hi by their slope: later steps lie between these."""


def find_zero(
    derivative: Derivative, start: float, stride: float, tol: float, lo: float = -math.inf, *, is_limited: bool = False
) -> float:
    """The x > lo where an increasing function is at most `tol` in magnitude.

    `derivative` gives the function's value and its slope. Newton's method, and bisection where a step leaves the
    bracket; `stride`, doubled each time, where there is none, and where the slope is 0. With `is_limited` no step
    is longer than `stride` until there is a bracket. Exact where the function is made of linear pieces.
    """
    hi, x = math.inf, start
    for _ in range(60):  # bisection reaches rounding sooner
        value, slope = derivative(x)
        if abs(value) <= tol:
            break
        lo, hi = (x, hi) if value < 0.0 else (lo, x)
        step = -value / slope if slope > 0.0 and abs(value) < INFINITE_STEP * slope else math.inf
        is_long = is_limited and math.isinf(hi if value < 0.0 else lo) and abs(step) > stride
        x = x + step
        if is_long or not lo < x < hi:
            x = lo + stride if hi == math.inf else hi - stride if lo == -math.inf else 0.5 * (lo + hi)
            stride *= 2.0
    return x


def least_step(f: Vector, f_end: Vector) -> float:
    """The step that moves decision values f (n,) by 1e-12 of their range; shorter ones are rounding."""
    change = f_end - f
    return ROUNDING * (1.0 + float(f.max() - f.min())) / max(float(change.max() - change.min()), 1e-300)


class ChordSearch:
    """Line searches over the step k and an unregularised intercept b, along chords: b is linear in k.

    A chord joins the optimal b at k = 0 and at k = `end`. On it the objective is an upper bound of that at the optimal
    b, equal at both ends, so that its minimiser is no worse than k = 0. Repeated with `end` = the step found until both
    agree within a factor of 4.
    """

    def __init__(self) -> None:
        self._end = 1.0

    def find_step(
        self, here: float, optimum_at: Callable[[float], float], step_on: Callable[[float], float], least: float
    ) -> float:
        """The step of the last chord; `here` is the optimal intercept at k = 0, `optimum_at` that at another k.

        `step_on` gives, of the change of b with k, the best step on this chord; steps shorter than `least` are
        rounding.
        """
        end = self._end
        for _ in range(8):  # chords, at most
            step = step_on((optimum_at(end) - here) / end)
            if 0.25 * end <= step <= 4.0 * end:
                break
            end = step if step > least else 0.125 * end
        self._end = step if step > least else 1.0
        return step


def minimise_on_line(
    line: Line, curvature: float, slope: float, lo: float, hi: float, *, precision: float = 10 * ROUNDING
) -> float:
    """The k >= 0 that minimises ``curvature k^2 / 2 + slope k + line(k)``, curvature > 0, probably in [lo, hi].

    Regula falsi with the Illinois rule: the derivative at an end that stays twice is halved. Exact once the bracket
    lies within one linear piece of the derivative. With dropped samples O(n) where breakpoints are spread out.
    `precision` is the gain left / curvature k^2, at most: the step has gained at least half of that square.
    """

    def derivative(k: float) -> float:
        return curvature * k + slope + line.slope(k)

    (lo, at_lo), (hi, at_hi) = _bracket(derivative, lo, hi)
    weighted_lo, weighted_hi, last_side, dropped_width = at_lo, at_hi, 0, math.inf
    while at_hi * (hi - lo) > precision * curvature * hi * hi and hi > ROUNDING:
        if hi - lo <= 0.5 * dropped_width:
            line.drop_linear_rows(lo, hi)
            dropped_width = hi - lo
        k = (lo * weighted_hi - hi * weighted_lo) / (weighted_hi - weighted_lo)
        if not lo < k < hi:
            return min(max(k, lo), hi)  # the zero is an end, to rounding
        at_k = derivative(k)
        side = -1 if at_k < 0.0 else 1
        if side < 0:
            lo, weighted_lo = k, at_k
            weighted_hi *= 0.5 if last_side == side else 1.0
        else:
            hi, weighted_hi, at_hi = k, at_k, at_k
            weighted_lo *= 0.5 if last_side == side else 1.0
        last_side = side
    return hi


def _bracket(
    derivative: Callable[[float], float], lo: float, hi: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """A step (k, derivative(k)) on either side of the zero of an increasing derivative, k >= 0.

    These are lo and hi, if the zero is between them; 0 and lo, if it is below lo, or 0 twice where derivative(0) >= 0.
    If it is above hi, hi is doubled until it is not.
    """
    at_lo = derivative(lo)
    if at_lo >= 0.0:
        at_zero = derivative(0.0)
        return (0.0, at_zero), ((0.0, at_zero) if at_zero >= 0.0 else (lo, at_lo))
    at_hi = derivative(hi)
    while at_hi < 0.0:
        lo, at_lo, hi = hi, at_hi, 2.0 * hi
        at_hi = derivative(hi)
    return (lo, at_lo), (hi, at_hi)
