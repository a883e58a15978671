"""Piecewise linear losses of targets as two hinges each, on rows that occur twice.

    below max(0, lower - f) + above max(0, f - upper)
        = below max(0, 1 - (f + 1 - lower)) + above max(0, 1 + (f - 1 - upper))

So whatever is written for hinges works for epsilon-insensitive, absolute and quantile losses: exact line searches,
optimal intercepts, active rows, Newton's method on smoothed hinges.
"""

from __future__ import annotations

import numpy as np

from ..._threads import ThreadTeam
from ..._types import Vector
from ...data import DesignMatrix, RepeatedMatrix, repeat_rows
from .losses import HingeLoss
from .optimal_intercept import InterceptHingeLoss


def double_rows(X: DesignMatrix, lower: Vector, upper: Vector) -> RepeatedMatrix:
    """The rows of X (n, d) twice, shifted so that hinges of labels 1, then -1, are about lower and upper (n,)."""
    n = len(lower)
    return repeat_rows(X, np.tile(np.arange(n), 2), np.concatenate([1.0 - lower, -1.0 - upper]))


def two_hinges(below: Vector, above: Vector, shift: Vector, team: ThreadTeam, *, has_intercept: bool) -> HingeLoss:
    """The hinges of weights `below` and `above` (n,) on the rows of `double_rows`, whose shift (2 n,) this is."""
    weights = np.concatenate([below, -above])
    return InterceptHingeLoss(weights, team, shift=shift) if has_intercept else HingeLoss(weights, team, shift=shift)
