"""Exact search for the zero of a monotone derivative, one part of the rows after another."""

from __future__ import annotations

import math
from typing import Protocol

_PRECISION = 1e-11  # what may be left to gain, as a part of curvature k^2: the step gains at least half of that
_LEAST = 1e-12  # a step that moves nothing


class Line(Protocol):
    """A convex function of one variable that is a sum over rows."""

    def slope(self, k: float) -> float:
        """Its derivative at k (between the left and the right one)."""

    def settle(self, lo: float, hi: float) -> None:
        """From now on k lies between lo and hi: rows that are linear there need not be looked at again."""


def find_step(line: Line, curvature: float, slope: float, lo: float, hi: float) -> float:
    """The k >= 0 that minimises ``curvature k^2 / 2 + slope k + line(k)``.

    Parameters
    ----------
    line : Line
    curvature, slope : float
        curvature > 0.
    lo, hi : float
        Where the minimum probably is, 0 <= lo < hi.

    Returns
    -------
    float
        Exact once the bracket lies within one linear piece of the derivative.

    Notes
    -----
    Regula falsi; the end that stays twice pulls half as hard (Illinois). Settled rows make it O(n) for rows whose
    breakpoints are spread out.
    """

    def derivative(k: float) -> float:
        return curvature * k + slope + line.slope(k)

    at_lo = derivative(lo)
    if at_lo >= 0.0:
        lo, hi, at_lo, at_hi = 0.0, lo, derivative(0.0), at_lo
        if at_lo >= 0.0:
            return 0.0
    else:
        at_hi = derivative(hi)
    while at_hi < 0.0:
        lo, at_lo, hi = hi, at_hi, 2.0 * hi
        at_hi = derivative(hi)
    pull_lo, pull_hi, last, settled = at_lo, at_hi, 0, math.inf
    while at_hi * (hi - lo) > _PRECISION * curvature * hi * hi and hi > _LEAST:
        if hi - lo <= 0.5 * settled:
            line.settle(lo, hi)
            settled = hi - lo
        k = (lo * pull_hi - hi * pull_lo) / (pull_hi - pull_lo)
        if not lo < k < hi:
            return min(max(k, lo), hi)  # the zero is an end, to rounding
        at_k = derivative(k)
        side = -1 if at_k < 0.0 else 1
        if side < 0:
            lo, pull_lo = k, at_k
            pull_hi *= 0.5 if last == side else 1.0
        else:
            hi, pull_hi, at_hi = k, at_k, at_k
            pull_lo *= 0.5 if last == side else 1.0
        last = side
    return hi
