"""Dense rows, in C or Fortran order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit import dense
from .._jit.workspace import Rows as RowArrays
from .._jit.workspace import make_rows
from .._parallel import ThreadTeam, count_blocks, row_blocks
from .mapped import MappedPages

Array = NDArray[np.floating]
Matrix = NDArray[np.float64]

_BLOCK_BYTES = 2**21  # at least
_PICKED = 1024  # rows that are looked at together: their numbers fit a first-level cache
_BLOCKS = 64  # at most, but for maps: enough to share out, and each holds a sum of its own


class DenseBlocks:
    """An array that is never copied; sums and single products are float64, products with several vectors are X's."""

    def __init__(self, X: Array, pages: MappedPages | None = None) -> None:
        self.X = read_only(X)
        self._pages = pages
        self.shape: tuple[int, int] = X.shape
        self._by_rows = X.flags.c_contiguous
        self.row_bytes = max(1, int(X.shape[1] * X.itemsize))

    @property
    def is_in_order(self) -> bool:
        """Whether all values are in memory, or may be, row by row."""
        return self._by_rows and self._pages is None

    @property
    def arrays(self) -> RowArrays | None:
        """All values, if they are in order."""
        return make_rows(self.X) if self.is_in_order else None

    @property
    def block_rows(self) -> int:
        """A block of two mebibytes or more; of a map, that is what is held of it."""
        least = max(256, _BLOCK_BYTES // self.row_bytes)
        return least if self._pages is not None else max(least, count_blocks(self.shape[0], _BLOCKS))

    @property
    def sum_rows(self) -> int:
        """Of a block of sums: these are few."""
        return max(self.block_rows, count_blocks(self.shape[0], _BLOCKS))

    def outputs(self, rows: slice, W: Matrix, out: Matrix) -> None:
        """One compiled pass for a single vector, a matrix product for several."""
        X = self.X[rows]
        if len(W) > 1:
            out[...] = W.astype(X.dtype, copy=False) @ X.T
        elif self._by_rows:
            dense.row_outputs(X, W[0], out[0])
        else:
            dense.column_outputs(X, W[0], out[0])
        self._release(rows)

    def add(self, rows: slice, coef: Matrix, out: Matrix) -> None:
        """Only the rows that count are read."""
        scratch = np.empty(_PICKED, np.int64)
        add = dense.row_sum if self._by_rows else dense.column_sum
        for part in row_blocks(rows.stop - rows.start, self.block_rows):
            here = slice(rows.start + part.start, rows.start + part.stop)
            add(self.X[here], np.ascontiguousarray(coef[:, part]), scratch, out)
            self._release(here)

    def take(self, chosen: NDArray[np.int64], team: ThreadTeam) -> DenseBlocks:
        """Row by row, in C order."""
        taken = np.empty((len(chosen), self.shape[1]), self.X.dtype)

        def copy(rows: slice) -> None:
            first, end = np.searchsorted(chosen, (rows.start, rows.stop))
            self._copy_into(taken[first:end], chosen[first:end])
            self._release(rows)

        team.map(copy, row_blocks(self.shape[0], self.block_rows))
        return DenseBlocks(taken)

    def copy(self, chosen: NDArray[np.int64]) -> Array:
        """In C order."""
        taken = np.empty((len(chosen), self.shape[1]), self.X.dtype)
        self._copy_into(taken, chosen)
        return taken

    def _copy_into(self, out: Array, chosen: NDArray[np.int64]) -> None:
        if self._by_rows:
            dense.take_rows(self.X, chosen, out)
        else:
            out[...] = self.X[chosen]  # np.take would copy all of X first

    def _release(self, rows: slice) -> None:
        if self._pages is not None:
            self._pages.release(rows)


def read_only(X: Array) -> Array:
    """A view, so that passes are compiled for one kind: files are often mapped for reading alone."""
    view = X.view()
    view.flags.writeable = False
    return view


def has_finite_values(X: Array, team: ThreadTeam) -> bool:
    """Whether no entry of an array in C order is NaN or infinite."""
    numbers, size = read_only(np.asarray(X)).reshape(-1), _BLOCK_BYTES // X.itemsize
    n_blocks = count_blocks(len(numbers), size)
    return all(team.together(n_blocks, lambda turn: dense.are_finite(numbers, X.dtype.type(0), size, turn)))
