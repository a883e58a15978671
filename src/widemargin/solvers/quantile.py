"""Weighted quantiles as optimal intercepts: where the optimum is an interval, its midpoint."""

from __future__ import annotations

import numpy as np

from .._native import hinge
from .._types import Vector

_ROUNDING = 1e-12  # of all weights: sums of weights that differ by less are equal


def midpoint_quantile(values: Vector, weights: Vector, level: float) -> float:
    """The midpoint of the interval of all b with sum(weights[values < b]) <= level <= sum(weights[values <= b]).

    It is a single value, unless the weights of the values up to some value sum to `level`. LIBSVM, too, takes the
    midpoint. O(n) expected.
    """
    if not len(values):
        return 0.0
    b: float = hinge.weighted_quantile(values, weights, level)
    slack = _ROUNDING * float(weights.sum())
    lo = hi = b
    if weights[values <= b].sum() <= level + slack:
        hi = float(np.min(values, where=(values > b) & (weights > 0.0), initial=np.inf))
    if weights[values < b].sum() >= level - slack:
        lo = float(np.max(values, where=(values < b) & (weights > 0.0), initial=-np.inf))
    lo, hi = (lo if np.isfinite(lo) else b), (hi if np.isfinite(hi) else b)
    return 0.5 * (lo + hi)
