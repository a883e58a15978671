"""
Hinge risks of decision values f. Vectors are (n,) float64; signed_weights = s y: sample weight times label.
"""

import numpy as np
from numpy.typing import NDArray

from . import Team

def scan_breakpoints(
    team: Team,
    f: NDArray[np.float64],
    f_end: NDArray[np.float64],
    intercept: float,
    intercept_end: float,
    signed_weights: NDArray[np.float64],
    lo: float,
    hi: float,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """
    Of the risk on the segment from f + intercept, k = 0, to f_end + intercept_end, k = 1: the right derivative at
    k = lo; the breakpoints k in (lo, hi), and the jumps of the derivative there. hi must be finite.
    """

def find_root(
    breakpoints: NDArray[np.float64], jumps: NDArray[np.float64], curvature: float, slope: float, lo: float
) -> float:
    """
    The k >= lo where the derivative curvature k + slope + sum(jumps[breakpoints < k]) crosses zero; all breakpoints > lo.
    """

def advance(
    team: Team,
    f: NDArray[np.float64],
    f_end: NDArray[np.float64],
    signed_weights: NDArray[np.float64],
    step: float,
    mu: float,
    coef: NDArray[np.float64],
) -> tuple[float, float]:
    """
    Replace f by f + step (f_end - f); write the row weights coef of the cutting plane at f + mu (f_end - f).
    Returns the risk at the new f and the plane's offset. f may be f_end where step is 0.
    """

def smoothed_hinges(
    team: Team,
    f: NDArray[np.float64],
    intercept: float,
    signed_weights: NDArray[np.float64],
    width: float,
    positive_factor: float,
    negative_factor: float,
    coef: NDArray[np.float64],
) -> tuple[float, float, float, float]:
    """
    Smoothed hinges of half width `width` at f + intercept: their sum; the offset of the plane whose row weights are
    written to coef; how far that plane is below the hinges; the sum of the hinges. The plane's slopes of rows
    with positive and negative labels are multiplied by positive_factor and negative_factor.
    """

def smoothed_slopes(
    team: Team, f: NDArray[np.float64], intercept: float, signed_weights: NDArray[np.float64], width: float
) -> tuple[float, float, float]:
    """
    Absolute slopes of the smoothed hinges at f + intercept, summed over rows with positive and with negative labels,
    and the second derivative of the smoothed hinges in the intercept.
    """

def rows_near_kink(
    team: Team, f: NDArray[np.float64], intercept: float, signed_weights: NDArray[np.float64], distance: float
) -> NDArray[np.int64]:
    """
    The rows of non-zero weight with |1 - y (f + intercept)| <= distance, in ascending order.
    """

def weighted_quantile(values: NDArray[np.float64], weights: NDArray[np.float64], level: float) -> float:
    """
    The smallest v of the values (m,) with sum(weights[values <= v]) >= level; NaN if m = 0.
    """

def collect_residuals(
    team: Team,
    f: NDArray[np.float64],
    f_end: NDArray[np.float64],
    k: float,
    signed_weights: NDArray[np.float64],
    lo: float,
    hi: float,
    residuals: NDArray[np.float64],
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """
    Write the residuals y - (f + k (f_end - f)). Returns sum(s[residuals < lo]), sum(s[residuals <= hi]), the
    residuals in [lo, hi], and their weights s.
    """

def advance_with_intercept(
    team: Team,
    f: NDArray[np.float64],
    f_end: NDArray[np.float64],
    signed_weights: NDArray[np.float64],
    step: float,
    intercept: float,
    residuals: NDArray[np.float64],
    plane_intercept: float,
    plane_balance: float,
    coef: NDArray[np.float64],
) -> tuple[float, float]:
    """
    As advance: the risk at f + intercept, and the plane at the decision values whose residuals y - f are given, with
    their optimal intercept plane_intercept. Rows at the kink, residuals == plane_intercept, get slopes in [0, 1] for
    which coef sums to plane_balance.
    """

def one_vs_rest_signs(team: Team, classes: NDArray[np.integer], positive: int, out: NDArray[np.float64]) -> None:
    """Write 1.0 where classes == positive, else -1.0."""

def absolute_sum(team: Team, values: NDArray[np.float64]) -> float:
    """sum(|values|)"""

def gather(team: Team, values: NDArray[np.float64], chosen: NDArray[np.int64], out: NDArray[np.float64]) -> None:
    """Write values[chosen]."""
