"""Rows of a CSR array."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._jit import sparse
from .._native import csr
from .._parallel import ThreadTeam, count_blocks
from .dense import read_only
from .scratch import SumScratch

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_BLOCK_NONZEROS = 2**15  # a thread takes another block every 20 microseconds or so
_SUM_BLOCKS, _SUM_NONZEROS = 64, 2**14  # at most; of each at least
_SUM_SHARE = 4  # of a block's non-zeros its sum may have entries
_MANY_SUMS = 8  # are shared out themselves


class CSRRows:
    """`Rows` of a CSR array with 32- or 64-bit indices that is never copied, its columns in any order, repeated or not.

    Parameters
    ----------
    X : csr_array
    team : ThreadTeam
    """

    is_local = True

    def __init__(self, X: sp.csr_array, team: ThreadTeam) -> None:
        self._X = X
        self._arrays = read_only(X.data), read_only(X.indices), read_only(X.indptr)
        self._team = team
        self._scratch = SumScratch()
        self.shape: tuple[int, int] = X.shape

    @property
    def arrays(self) -> csr.CSRMatrix:
        """The CSR arrays."""
        return csr.CSRMatrix(*self._arrays, self.shape[1])

    @property
    def row_bytes(self) -> int:
        """Of its values and their columns."""
        X = self._X
        return 1 + int(X.nnz * (X.data.itemsize + X.indices.itemsize) // max(1, self.shape[0]))

    def outputs(self, W: Matrix) -> Matrix:
        """One pass over all rows."""
        out, W = np.empty((len(W), self.shape[0])), np.ascontiguousarray(W)
        size = max(1, int(self.shape[0] * _BLOCK_NONZEROS // max(1, self._X.nnz)))
        self._team.together(
            count_blocks(self.shape[0], size),
            lambda turn: sparse.csr_outputs(*self._arrays, W, size, turn, out),
        )
        return out

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """One pass over the rows that count: few blocks, as each has sums of its own, or each sum for itself."""
        n, d = self.shape
        size, group = max(1, n), 1
        if len(coef) < _MANY_SUMS:
            blocks = np.clip(self._X.nnz // max(_SUM_SHARE * d, _SUM_NONZEROS), 1, _SUM_BLOCKS)
            size, group = max(1, count_blocks(n, int(blocks))), max(1, len(coef))
        sums = self._scratch.sums((count_blocks(n, size), len(coef), d))
        coef = np.ascontiguousarray(coef)  # the kernel is compiled for one layout
        before = coef[:, :0] if since is None else np.ascontiguousarray(since)
        self._team.together(
            len(sums) * count_blocks(len(coef), group),
            lambda turn: sparse.csr_row_sums(*self._arrays, coef, before, size, group, turn, sums),
        )
        total: Matrix = sums.sum(axis=0)
        return total

    def dense(self, chosen: Indices) -> tuple[NDArray[np.floating], Indices]:
        """A copy, with their zeros."""
        return read_only(self._X[chosen].toarray()), np.arange(len(chosen))

    def take(self, chosen: Indices) -> CSRRows:
        """By SciPy."""
        return CSRRows(self._X[chosen], self._team)
