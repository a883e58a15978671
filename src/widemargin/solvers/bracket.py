"""Exact search for the zero of a monotone derivative, one part of the rows after another."""

from __future__ import annotations

from typing import Protocol

_PRECISION = 1e-13
_LEAST = 1e-16  # a step that moves nothing


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
        To 13 digits; exact once the bracket lies within one linear piece of the derivative.

    Notes
    -----
    Secants and bisections in turn. Settled rows make it O(n) for rows whose breakpoints are spread out.
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
    bisect = False
    while hi - lo > _PRECISION * hi + _LEAST and at_hi > 0.0:
        line.settle(lo, hi)
        k = 0.5 * (lo + hi) if bisect else (lo * at_hi - hi * at_lo) / (at_hi - at_lo)
        if not lo < k < hi:
            return min(max(k, lo), hi)  # the secant's zero is an end, to rounding
        at_k = derivative(k)
        if at_k < 0.0:
            lo, at_lo = k, at_k
        else:
            hi, at_hi = k, at_k
        bisect = not bisect
    return hi
