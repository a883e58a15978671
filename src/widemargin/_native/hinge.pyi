"""
Hinge risks of a linear machine's outputs. Vectors are (n,) float64; signed = s y: weights, labels.
"""

import numpy as np
from numpy.typing import NDArray

from . import Team

def scan_breakpoints(
    team: Team,
    f: NDArray[np.float64],
    target: NDArray[np.float64],
    shift: float,
    target_shift: float,
    signed_weights: NDArray[np.float64],
    lo: float,
    hi: float,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """
    The derivative, just after lo, of the risk of f + shift + k (target + target_shift - f - shift); and for
    lo < k < hi, where it jumps and by how much. hi must be finite.
    """

def find_root(
    keys: NDArray[np.float64], jumps: NDArray[np.float64], curvature: float, slope: float, lo: float
) -> float:
    """
    The k >= lo where curvature k + slope + sum of jumps[keys < k] crosses zero; all keys > lo.
    """

def advance(
    team: Team,
    f: NDArray[np.float64],
    target: NDArray[np.float64],
    signed_weights: NDArray[np.float64],
    step: float,
    mu: float,
    coef: NDArray[np.float64],
) -> tuple[float, float]:
    """
    Replace f by f + step (target - f); write into coef the plane's weight of each row at f + mu (target - f).
    Returns the risk at the new f and the plane's offset. f may be target where step is 0.
    """

def smoothed_hinges(
    team: Team,
    f: NDArray[np.float64],
    shift: float,
    signed_weights: NDArray[np.float64],
    width: float,
    positive_factor: float,
    negative_factor: float,
    coef: NDArray[np.float64],
) -> tuple[float, float, float, float]:
    """
    Smoothed hinges at f + shift: their sum, their plane's offset and loss against the hinges, the hinges' sum;
    writes coef. The slopes of positive and of negative rows are multiplied by on_positive and on_negative.
    """

def smoothed_slopes(
    team: Team, f: NDArray[np.float64], shift: float, signed_weights: NDArray[np.float64], width: float
) -> tuple[float, float, float]:
    """
    The slopes of smoothed hinges, summed over positive and over negative rows, and how their difference falls.
    """

def rows_near_kink(
    team: Team, f: NDArray[np.float64], shift: float, signed_weights: NDArray[np.float64], distance: float
) -> NDArray[np.int64]:
    """
    The rows with weight where |1 - y (f + shift)| <= distance, in ascending order.
    """

def weighted_quantile(values: NDArray[np.float64], weights: NDArray[np.float64], level: float) -> float:
    """
    The smallest of the values up to which the weights sum to `level`; NaN if there are none.
    """

def collect_residuals(
    team: Team,
    f: NDArray[np.float64],
    target: NDArray[np.float64],
    k: float,
    signed_weights: NDArray[np.float64],
    lo: float,
    hi: float,
    values: NDArray[np.float64],
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """
    Write values = y - f at f + k (target - f). Returns the weight of those below lo, and of those up to hi; the
    values in [lo, hi], and their weights.
    """

def advance_with_intercept(
    team: Team,
    f: NDArray[np.float64],
    target: NDArray[np.float64],
    signed_weights: NDArray[np.float64],
    step: float,
    intercept: float,
    values: NDArray[np.float64],
    plane_intercept: float,
    coef_sum: float,
    coef: NDArray[np.float64],
) -> tuple[float, float]:
    """
    As advance, at the intercept `best`. values: y - f where the plane is, near: their optimal intercept.
    Rows on the border, values == near, count in part, so that coef sums to `pull`.
    """

def one_vs_rest_signs(team: Team, classes: NDArray[np.integer], positive: int, out: NDArray[np.float64]) -> None:
    """Write 1.0 where a row's class has this number, else -1.0."""

def absolute_sum(team: Team, values: NDArray[np.float64]) -> float:
    """The sum of absolute values."""

def gather(team: Team, values: NDArray[np.float64], chosen: NDArray[np.int64], out: NDArray[np.float64]) -> None:
    """Write values[chosen]."""
