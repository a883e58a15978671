"""Dense rows, in C or Fortran order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit import dense
from .._jit.workspace import Rows as RowArrays
from .._jit.workspace import make_rows
from .._parallel import row_blocks
from .mapped import MappedPages

Array = NDArray[np.floating]
Matrix = NDArray[np.float64]

_BLOCK_BYTES = 2**20
_SUM_BLOCKS = 64  # at most: each holds a sum of its own


class DenseBlocks:
    """An array that is never copied; sums and single products are float64, products with several vectors are X's."""

    def __init__(self, X: Array, pages: MappedPages | None = None) -> None:
        self.X = X
        self._pages = pages
        self.shape: tuple[int, int] = X.shape
        self._by_rows = X.flags.c_contiguous
        self._row_bytes = max(1, int(X.shape[1] * X.itemsize))

    @property
    def arrays(self) -> RowArrays | None:
        """All values, if they are in memory row by row."""
        if not self._by_rows or self._pages is not None:
            return None
        return make_rows(self.X)

    @property
    def block_rows(self) -> int:
        """A block of one mebibyte."""
        return max(256, _BLOCK_BYTES // self._row_bytes)

    def sum_shape(self, k: int) -> tuple[int, int]:
        """As `block_rows`, but few blocks."""
        return max(self.block_rows, -(-self.shape[0] // _SUM_BLOCKS)), k

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
        scratch = np.empty(coef.shape[1], np.int64)
        add = dense.row_sum if self._by_rows else dense.column_sum
        for part in row_blocks(rows.stop - rows.start, self.block_rows):
            here = slice(rows.start + part.start, rows.start + part.stop)
            add(self.X[here], np.ascontiguousarray(coef[:, part]), scratch, out)
            self._release(here)

    def _release(self, rows: slice) -> None:
        if self._pages is not None:
            self._pages.release(rows)
