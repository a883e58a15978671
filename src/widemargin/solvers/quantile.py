"""Weighted quantiles as optimal intercepts: where the optimum is an interval, its midpoint."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._native import hinge
from .._types import ROUNDING, Mask, RowIndices, Vector


def midpoint_quantile(values: Vector, weights: Vector, level: float) -> float:
    """The midpoint of the interval of all b with sum(weights[values < b]) <= level <= sum(weights[values <= b]).

    It is a single value, unless the weights of the values up to some value sum to `level`. LIBSVM, too, takes the
    midpoint. O(n) expected.
    """
    if not len(values):
        return 0.0
    b: float = hinge.weighted_quantile(values, weights, level)
    slack = ROUNDING * float(weights.sum())
    lo = hi = b
    if weights[values <= b].sum() <= level + slack:
        hi = float(np.min(values, where=(values > b) & (weights > 0.0), initial=np.inf))
    if weights[values < b].sum() >= level - slack:
        lo = float(np.max(values, where=(values < b) & (weights > 0.0), initial=-np.inf))
    if np.isinf(lo) and np.isinf(hi):
        return b
    return hi if np.isinf(lo) else lo if np.isinf(hi) else 0.5 * (lo + hi)


def midpoint_quantiles(values: Vector, weights: Vector, levels: Vector, starts: RowIndices) -> Vector:
    """`midpoint_quantile` of many problems (P,) in common passes: of problem p from entry starts[p] on.

    `starts` (P,) are ascending, and every problem has an entry. O(n log n).
    """
    last = np.append(starts[1:], len(values)) - 1
    problem = np.repeat(np.arange(len(starts)), last + 1 - starts)
    order = np.lexsort((values, problem))
    values, weights = values[order], weights[order]
    below = np.cumsum(weights)
    slack = ROUNDING * below[-1]
    below -= (below - weights)[starts][problem]  # without the problems before
    level, is_weighted = levels[problem], weights > 0.0
    lo, hi = (_first_places(is_weighted & beyond, starts) for beyond in (below >= level - slack, below > level + slack))
    lo = np.minimum(lo, last)
    return np.asarray(0.5 * (values[lo] + values[np.where(hi > last, lo, hi)]))


def _first_places(mask: Mask, starts: RowIndices) -> RowIndices:
    """The first entry of each problem where the mask (n,) is true; n if there is none."""
    return np.asarray(np.minimum.reduceat(np.where(mask, np.arange(len(mask)), len(mask)), starts))


def pinball_loss(y: Vector, values: Vector, sample_weight: Vector | None = None, *, quantile: Any) -> float:
    """The mean pinball loss of values (n,), or of values (n, n_quantiles) over all quantiles."""
    q, residuals = np.asarray(quantile), np.reshape(y, (len(y), -1)) - np.reshape(values, (len(y), -1))
    losses = np.maximum(q * residuals, (q - 1.0) * residuals).mean(axis=1)
    return float(np.average(losses, weights=sample_weight))
