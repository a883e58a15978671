"""Kernel expansions by tiles: every product with a kernel matrix that is too large to hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._config import get_config
from .._jit import dual
from .._parallel import ThreadTeam, row_blocks
from .functions import Kernel
from .samples import Samples
from .scratch import Scratch

Array = NDArray[np.floating]

TILE_ROWS = 256


def tile_columns(dtype: np.dtype[Any], n_bytes: int | None = None) -> int:
    """How many columns a tile of `TILE_ROWS` rows has."""
    n_bytes = n_bytes or get_config()["block_bytes"]
    return max(64, n_bytes // (TILE_ROWS * np.dtype(dtype).itemsize))


def accumulate(
    kernel: Kernel,
    A: Samples,
    coef: NDArray[np.float64],
    B: Samples,
    out: NDArray[np.float64],
    team: ThreadTeam,
    keep: tuple[Array, NDArray[np.integer]] | None = None,
) -> None:
    """out += coef @ K(A, B), tile by tile on all threads.

    Parameters
    ----------
    kernel : Kernel
    A : Samples of length r
        The expansion's points.
    coef : ndarray of shape (k, r), float64
    B : Samples of length c
        Where the expansion is evaluated.
    out : ndarray of shape (k, c), float64
        Changed in place.
    team : ThreadTeam
    keep : (ndarray of shape (m, c), ndarray of shape (r,)), optional
        Where the kernel entries are kept as well: an array, and which of its rows.

    Notes
    -----
    r c kernel entries are computed; extra memory is one tile a thread. Columns are split between threads and rows
    are summed in order, so that the result does not depend on their number.
    """
    batches = [(rows, A.take(rows)) for rows in row_blocks(len(A), TILE_ROWS)]
    width = tile_columns(A.dtype)

    def column_block(columns: slice) -> None:
        points = B.take(columns)
        with Scratch(TILE_ROWS * width * A.dtype.itemsize) as buffer:
            for rows, batch in batches:
                n_entries = len(batch) * len(points)
                K = buffer[: n_entries * A.dtype.itemsize].view(A.dtype).reshape(len(batch), len(points))
                kernel.fill(batch, points, K)
                _add_tile(K, coef[:, rows], out[:, columns])
                if keep is not None:
                    store, slots = keep
                    store[slots[rows], columns] = K

    team.map(column_block, row_blocks(len(B), width))


def _add_tile(K: Array, coef: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """out += coef @ K in float64, skipping zero coefficients: a class pair uses few of the rows."""
    for c, f in zip(coef, out, strict=True):
        rows = np.flatnonzero(c)
        dual.add_rows(K, rows, c[rows], f)


def fill_rows(kernel: Kernel, A: Samples, rows: NDArray[np.integer], out: Array, team: ThreadTeam) -> None:
    """Write K(A[rows], A) into out[rows], tile by tile on all threads."""
    width = tile_columns(A.dtype)
    batches = [(rows[block], A.take(rows[block])) for block in row_blocks(len(rows), TILE_ROWS)]

    def column_block(columns: slice) -> None:
        points = A.take(columns)
        with Scratch(TILE_ROWS * width * A.dtype.itemsize) as buffer:
            for block, batch in batches:
                n_entries = len(batch) * len(points)
                K = buffer[: n_entries * A.dtype.itemsize].view(A.dtype).reshape(len(batch), len(points))
                kernel.fill(batch, points, K)
                out[block, columns] = K

    team.map(column_block, row_blocks(len(A), width))
