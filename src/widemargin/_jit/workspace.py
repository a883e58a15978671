"""Named tuples of arrays that cross the border into compiled code."""

from typing import NamedTuple

import numpy as np


class Box(NamedTuple):
    """A signed dual problem on the rows of one kernel matrix: four float64 arrays of shape (m,)."""

    target: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    scale: np.ndarray  # 1 / sqrt(diagonal of K)


class Tile(NamedTuple):
    """Scratch for a working set of at most q rows, all of one dtype; `bits` views `gain` as integers."""

    Q: np.ndarray
    diagonal: np.ndarray
    grad: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    step: np.ndarray
    gain: np.ndarray
    bits: np.ndarray


class WorkingSet(NamedTuple):
    """Carry-over between calls: rows (q,) int64, newest last, `filled` (1,) of them; violation (m,) is scratch.

    The last call's outcome: the rows that `changed` (q,) int64, by what `change` (q,).
    """

    rows: np.ndarray
    filled: np.ndarray
    violation: np.ndarray
    changed: np.ndarray
    change: np.ndarray


def make_tile(size: int, dtype: np.dtype) -> Tile:
    """Allocate the scratch of a working set of `size` rows."""
    diagonal, grad, lo, hi, step, gain = (np.zeros(size, dtype) for _ in range(6))
    bits = gain.view(f"i{gain.itemsize}")
    return Tile(np.zeros((size, size), dtype), diagonal, grad, lo, hi, step, gain, bits)


def make_working_set(size: int, n_rows: int) -> WorkingSet:
    """An empty working set of at most `size` out of `n_rows` rows."""
    rows, changed = np.zeros((2, size), np.int64)
    return WorkingSet(rows, np.zeros(1, np.int64), np.zeros(n_rows), changed, np.zeros(size))
