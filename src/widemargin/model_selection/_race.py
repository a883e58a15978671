"""A race eliminates the cells of a grid whose mean scores are below the best cell's with a confidence of 95 %."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, t

from .._types import Mask, Vector

CONFIDENCE = 0.95  # one-sided, that an eliminated cell is not the best


class Race:
    """The cells of a grid that are not eliminated yet.

    A cell's differences from the best cell are paired by fold: its mean difference has the standard error
    s / sqrt(folds), where s is the cell's standard deviation or the median of all cells', whichever is larger: few
    folds may agree by chance. A cell is eliminated if the upper confidence limit of its difference is below zero. The
    direct neighbours of the best cell are kept: on more rows one of them may be the best.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, *shape of the grid)
        Of all cells, on a sample of the rows.
    spread_ratio : float
        Standard deviation of the scores of a fold of all rows / that of a fold of the sample.
    """

    def __init__(self, scores: Vector, spread_ratio: float) -> None:
        n_folds, best = len(scores), best_cell(scores)
        of_best = np.array([fold[best] for fold in scores])
        differences = scores - of_best.reshape(-1, *[1] * (scores.ndim - 1))
        spread = differences.std(axis=0, ddof=1)
        spread = np.maximum(spread, np.median(spread))
        limit = differences.mean(axis=0) + t.ppf(CONFIDENCE, n_folds - 1) * spread / np.sqrt(n_folds)
        self.remaining: Mask = (limit >= 0) | _neighbours(best, scores.shape[1:])
        self.spread: Vector = spread_ratio * spread

    def update(self, scores: Vector) -> Mask:
        """Eliminate cells by the scores on all rows so far, (n_folds, *shape); return the mask of those that remain."""
        means = scores.mean(axis=0)
        best = np.nanmax(means)
        with np.errstate(invalid="ignore"):
            limit = means + norm.ppf(CONFIDENCE) * self.spread / np.sqrt(len(scores))
        self.remaining = self.remaining & (limit >= best)
        return self.remaining


def best_cell(scores: Vector) -> tuple[int, ...]:
    """The cell of the largest mean of scores (n_folds, *shape); of equal ones that of least C, then of least gamma."""
    means = scores.mean(axis=0)
    cells = np.argwhere(means == np.nanmax(means))
    return tuple(int(k) for k in min(cells, key=lambda cell: tuple(cell[::-1])))


def _neighbours(cell: tuple[int, ...], shape: tuple[int, ...]) -> Mask:
    """Mask of the cells at most one step from `cell` along every axis."""
    steps = [np.abs(np.arange(size) - k) <= 1 for size, k in zip(shape, cell, strict=True)]
    mask = np.ones(shape, np.bool_)
    for axis, near in enumerate(steps):
        mask &= np.expand_dims(near, tuple(k for k in range(len(shape)) if k != axis))
    return mask
