"""Row indices: a sample spread over all rows, the inverse of a list, and those of each label."""

from __future__ import annotations

import numpy as np

from .._types import Labels, RowIndices


def spread_rows(n: int, least: int) -> RowIndices:
    """Numbers of one row out of each run of n // least consecutive rows, drawn with a fixed seed, in ascending order.

    Between `least` and twice as many; all n rows if there are fewer than 2 `least`. At random, because data come in
    periods and runs.
    """
    run = max(1, n // least)
    first = np.arange(0, n - run + 1, run)
    return first if run == 1 else first + np.random.default_rng(0).integers(run, size=len(first))


def positions(rows: RowIndices, n: int) -> RowIndices:
    """The position in `rows` (m,) of each of n rows: (n,), -1 for those that are not among them.

    Examples
    --------
    >>> positions(np.array([3, 0]), 4)
    array([ 1, -1, -1,  0])
    """
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    return place


def group_by_label(labels: Labels, k: int) -> list[RowIndices]:
    """The rows of each label 0, ..., k - 1, in ascending order; labels (n,)."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=k))[:-1])
