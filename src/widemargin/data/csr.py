"""Rows of a CSR array."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._native import csr
from .._threads import ThreadTeam
from .checked_csr import make_csr
from .dense import read_only

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]


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
        self._view = make_csr(X)
        self._team = team
        self.shape: tuple[int, int] = X.shape

    @property
    def arrays(self) -> csr.CSRMatrix:
        """The rows as compiled code visits them, in any order."""
        return self._view

    @property
    def row_bytes(self) -> int:
        """Of its values and their columns."""
        X = self._X
        return 1 + int(X.nnz * (X.data.itemsize + X.indices.itemsize) // max(1, self.shape[0]))

    def outputs(self, W: Matrix) -> Matrix:
        """One pass over all rows."""
        out = np.empty((len(W), self.shape[0]))
        csr.matvec(self._team.native, self._view, np.ascontiguousarray(W), out)
        return out

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """One pass over the rows that count."""
        out = np.empty((len(coef), self.shape[1]))
        before = None if since is None else np.ascontiguousarray(since)
        csr.rmatvec(self._team.native, self._view, np.ascontiguousarray(coef), before, out)
        return out

    def dense(self, chosen: Indices) -> tuple[NDArray[np.floating], Indices]:
        """A copy, with their zeros."""
        return read_only(self._X[chosen].toarray()), np.arange(len(chosen))

    def take(self, chosen: Indices) -> CSRRows:
        """By SciPy."""
        return CSRRows(self._X[chosen], self._team)
