"""Gradients by the rows of kernel expansions, tile by tile on all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._threads import BLOCK_VALUES, ThreadTeam, row_blocks
from .._types import AnyArray, DType
from ..data.samples import Samples
from .functions import ArgumentKernel
from .scratch import Scratch
from .tiles import TILE_ROWS, tile_columns


def add_kernel_gradients(
    kernel: ArgumentKernel, X: Samples, Z: Samples, coef: Any, out: NDArray[np.float64], team: ThreadTeam
) -> None:
    """out[i, f] += the gradient of sum_j coef[f, j] k(x, z_j) at x = x_i, for n rows X and r points Z; out (n, k, d).

    `coef` (k, r) is an ndarray or CSC array. n r kernel slopes, each computed once, and for each function n r d
    multiply-adds. Extra memory a thread: two tiles and batches of at most 2^20 values. Threads share out the rows and
    sum over the points in order, so the result does not depend on their number.
    """
    most = max(1, BLOCK_VALUES // max(1, out.shape[2]))
    batches = [(points, Z.take(points)) for points in row_blocks(len(Z), min(TILE_ROWS, most))]

    def row_block(rows: slice) -> None:
        batch = X.take(rows)
        n_bytes = len(batch) * TILE_ROWS * X.dtype.itemsize
        with Scratch(n_bytes) as slope_buffer, Scratch(n_bytes) as weight_buffer:
            for points, near in batches:
                team.check()
                shape = len(batch), len(near)
                slopes, weights = (_tile(buffer, shape, X.dtype) for buffer in (slope_buffer, weight_buffer))
                kernel.fill_slopes(batch, near, slopes)
                for f, row in _nonzero_rows(coef[:, points]):
                    np.multiply(slopes, row.astype(X.dtype), out=weights)
                    kernel.add_gradients(batch, near, weights, out[rows, f])

    team.map(row_block, row_blocks(len(X), min(tile_columns(X.dtype), most)))


def _tile(buffer: NDArray[np.uint8], shape: tuple[int, int], dtype: DType) -> AnyArray:
    """An array of this shape at the start of the buffer."""
    return buffer[: shape[0] * shape[1] * dtype.itemsize].view(dtype).reshape(shape)


def _nonzero_rows(coef: Any) -> list[tuple[int, NDArray[np.float64]]]:
    """The functions that have coefficients here, and these: a pair of classes has them in few tiles."""
    dense = coef.toarray() if sp.issparse(coef) else coef
    return [(int(f), dense[f]) for f in np.flatnonzero(dense.any(axis=1))]
