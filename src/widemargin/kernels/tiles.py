"""Products with kernel matrices, and kernel matrices themselves, tile by tile on all threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._config import get_config
from .._native import kernels
from .._threads import BLOCK_ROWS, ThreadTeam, row_blocks
from .._types import Array, DType, Matrix, Vector
from ..data.samples import Samples
from .functions import ExponentialKernel, Kernel
from .scratch import Scratch

_Batches = list[tuple[slice, Samples]]

TILE_ROWS = 256  # rows of a tile: that of 1 MiB, the default, has 1,008 columns in float32
SMALL_ENTRY_WORK = 16  # multiply-adds of a kernel entry beside its inner product, where there are few entries
_ENTRY_WORK = 200  # count so many multiply-adds for an entry beside its inner product
_LEAST_COLUMNS = 64  # give a tile at least so many, however small `block_bytes`


def tile_columns(dtype: DType) -> int:
    """Columns of a tile of `TILE_ROWS` rows and the configured `block_bytes`."""
    return int(max(_LEAST_COLUMNS, get_config()["block_bytes"] // (TILE_ROWS * np.dtype(dtype).itemsize) - 16))


def entry_work(n_entries: int, row_cost: int) -> int:
    """Cost of kernel entries in multiply-adds, where an inner product takes `row_cost` of them."""
    return n_entries * (_ENTRY_WORK + row_cost)


def add_kernel_product(
    kernel: Kernel,
    A: Samples,
    coef: Any,
    B: Samples,
    out: Matrix,
    team: ThreadTeam,
) -> None:
    """out (k, c) += coef @ K(A, B), tile by tile on all threads, for r points A of the expansion and c samples B.

    `coef` (k, r) is an ndarray or CSC array. r c kernel entries; extra memory is one tile a thread. Threads share out
    the columns and sum rows in order, so the result does not depend on their number.
    """
    KernelProduct(kernel, A, coef).add_to(B, out, team)


class KernelProduct:
    """coef @ K(A, .) of points A and coefficients, prepared for many batches B; as `add_kernel_product`."""

    def __init__(self, kernel: Kernel, A: Samples, coef: Any) -> None:
        is_sparse = sp.issparse(coef)
        self._kernel = kernel
        self._points = A
        self._columns_of = _SparseColumns(coef) if is_sparse else None
        self._coef = coef if is_sparse else np.ascontiguousarray(coef)
        self._has_tiles = is_sparse or coef.shape[0] > 1 or A.precision != A.dtype
        self._batches_of: dict[int, _Batches] = {}  # by their number of rows

    def add_to(self, B: Samples, out: Matrix, team: ThreadTeam) -> None:
        """out += coef @ K(A, B)."""
        kernel, coef, columns_of = self._kernel, self._coef, self._columns_of
        n_columns = _even_columns(len(B), self._points.dtype)
        if isinstance(kernel, ExponentialKernel) and not self._has_tiles:
            batches = self._batches(BLOCK_ROWS)

            def untiled_block(columns: slice) -> None:
                points = B.take(columns)
                for rows, batch in batches:
                    team.check()
                    kernel.add_product(batch, coef[:, rows], points, out[:, columns])

            team.map(untiled_block, row_blocks(len(B), n_columns))
            return
        n_rows = TILE_ROWS
        if kernel.sample_form != "rows" and columns_of is None:  # a Python function may copy its batches
            n_rows = TILE_ROWS * tile_columns(self._points.dtype) // n_columns
        batches = self._batches(n_rows)

        def column_block(columns: slice) -> None:
            for rows, K in _tiles(kernel, batches, B.take(columns), team):
                if columns_of is not None:
                    kernels.add_sparse_product(K, *columns_of.take(rows), out[:, columns])
                else:
                    kernels.add_product(K, coef[:, rows], out[:, columns])  # skips zeros: a pair uses few rows

        team.map(column_block, row_blocks(len(B), n_columns))

    def _batches(self, n_rows: int) -> _Batches:
        if n_rows not in self._batches_of:
            self._batches_of[n_rows] = _batches(self._points, n_rows)
        return self._batches_of[n_rows]


class _SparseColumns:
    """The columns of a CSC array as the arrays of `add_sparse_product`."""

    def __init__(self, coef: Any) -> None:
        self.starts = coef.indptr.astype(np.int64)
        self.functions = coef.indices.astype(np.int64)
        self.coef = coef.data

    def take(self, columns: slice) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector]:
        """Starts, rows and values of some columns."""
        starts = self.starts[columns.start : columns.stop + 1]
        part = slice(starts[0], starts[-1])
        return starts - starts[0], self.functions[part], self.coef[part]


def _even_columns(n: int, dtype: DType) -> int:
    """Columns of a tile, at most `tile_columns`, such that all tiles of n columns have about the same size."""
    most = tile_columns(dtype)
    return max(_LEAST_COLUMNS, -(-n // max(1, -(-n // most))))


def fill_with_transpose(kernel: Kernel, A: Samples, B: Samples, out: Array, mirror: Array, team: ThreadTeam) -> None:
    """out[...] = K(A, B) and mirror[...] = K(B, A), tile by tile on all threads."""
    batches = _batches(A)

    def column_block(columns: slice) -> None:
        for rows, K in _tiles(kernel, batches, B.take(columns), team):
            out[rows, columns] = K
            kernels.copy_transposed(K, mirror[columns, rows])

    team.map(column_block, row_blocks(len(B), tile_columns(A.dtype)))


def fill_gram(kernel: Kernel, A: Samples, out: Array, team: ThreadTeam) -> None:
    """out[...] = K(A, A), half of it as copies of transposed tiles, unless short rows make computing it faster."""
    team.check()  # before rows are gathered
    if len(A) <= TILE_ROWS:
        kernel.fill(A, A, out)
        return
    is_short = A.row_cost * A.precision.itemsize <= kernel.short_row
    batches = _batches(A)

    def column_block(columns: slice) -> None:
        above = batches if is_short else [batch for batch in batches if batch[0].start < columns.stop]
        for rows, K in _tiles(kernel, above, A.take(columns), team):
            out[rows, columns] = K
            if not is_short:
                kernels.copy_transposed(K, out[columns, rows])

    # longest columns first, so that the threads end at about the same time
    n_columns = _even_columns(len(A), A.dtype) if is_short else TILE_ROWS
    team.map(column_block, row_blocks(len(A), n_columns)[::-1])


def _batches(A: Samples, n_rows: int = TILE_ROWS) -> _Batches:
    return [(rows, A.take(rows)) for rows in row_blocks(len(A), n_rows)]


def _tiles(kernel: Kernel, batches: _Batches, points: Samples, team: ThreadTeam) -> Iterator[tuple[slice, Array]]:
    """Yield the rows of each batch and K(batch, points), in one buffer; raises `Stopped` once the team is stopped."""
    c, dtype = len(points), points.dtype
    n_rows = max((len(batch) for _, batch in batches), default=0)
    with Scratch(n_rows * c * dtype.itemsize) as buffer:
        for rows, batch in batches:
            team.check()
            n_bytes = len(batch) * c * dtype.itemsize
            K = buffer[:n_bytes].view(dtype).reshape(len(batch), c)
            kernel.fill(batch, points, K)
            yield rows, K
