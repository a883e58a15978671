"""Rows that stand for all: evenly spread, but at random, because data come in periods and runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spread_rows(n: int, least: int) -> NDArray[np.int64]:
    """Indices of one row out of each run of n // least consecutive rows, drawn with a fixed seed, in ascending order.

    Between `least` and twice as many; all n rows if there are fewer than 2 `least`.
    """
    run = max(1, n // least)
    first = np.arange(0, n - run + 1, run)
    return first if run == 1 else first + np.random.default_rng(0).integers(run, size=len(first))
