"""Rows of a CSR array."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._jit import sparse
from .._jit.workspace import Rows as RowArrays
from .._parallel import ThreadTeam

Matrix = NDArray[np.float64]

_BLOCK_NONZEROS = 2**17
_SUM_BLOCKS = 64
_SUM_NONZEROS = 2**16  # of a block of sums at least: below, starting it takes longer
_MANY_SUMS = 8


class CSRBlocks:
    """A CSR array with 32- or 64-bit indices that is never copied, its columns in any order, repeated or not."""

    def __init__(self, X: sp.csr_array) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape

    @property
    def arrays(self) -> RowArrays:
        """The CSR arrays."""
        return RowArrays(self.X.data, self.X.indices, self.X.indptr.astype(np.int64, copy=False))

    @property
    def row_bytes(self) -> int:
        """Of its values and their columns."""
        return 1 + int(self.X.nnz * (self.X.data.itemsize + self.X.indices.itemsize) // max(1, self.shape[0]))

    @property
    def block_rows(self) -> int:
        """So many rows that a block has about 128 Ki non-zeros."""
        return max(1, int(self.shape[0] * _BLOCK_NONZEROS // max(1, self.X.nnz)))

    def sum_shape(self, k: int) -> tuple[int, int]:
        """Many sums are a task each; of few, a block has four times as many non-zeros as a sum has entries."""
        if k >= _MANY_SUMS:
            return max(1, self.shape[0]), 1
        blocks = np.clip(self.X.nnz // max(4 * self.shape[1], _SUM_NONZEROS), 2, _SUM_BLOCKS)
        return max(1, -(-self.shape[0] // int(blocks))), k

    def outputs(self, rows: slice, W: Matrix, out: Matrix) -> None:
        """One compiled pass for all vectors."""
        values = np.empty_like(out, order="C")  # the kernel is compiled for one layout
        sparse.csr_outputs(*self._parts(rows), np.ascontiguousarray(W), values)
        out[...] = values

    def add(self, rows: slice, coef: Matrix, out: Matrix) -> None:
        """Only the rows that count are read."""
        sparse.csr_row_sum(*self._parts(rows), coef, out)

    def take(self, chosen: NDArray[np.int64], team: ThreadTeam) -> CSRBlocks:
        """By SciPy."""
        return CSRBlocks(self.X[chosen])

    def copy(self, chosen: NDArray[np.int64]) -> NDArray[np.floating]:
        """With their zeros."""
        dense: NDArray[np.floating] = self.X[chosen].toarray()
        return dense

    def _parts(self, rows: slice) -> tuple[NDArray[np.floating], NDArray[np.integer], NDArray[np.integer]]:
        return self.X.data, self.X.indices, self.X.indptr[rows.start : rows.stop + 1]
