"""Rows in blocks on all cores. A solver sees `Rows`: two passes."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._native import csr
from .._threads import ThreadTeam
from .csr import CSRRows
from .dense import DenseRows
from .mapped import MappedRows, mapped_pages

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]
RowArrays: TypeAlias = "NDArray[np.floating] | csr.CSRMatrix"  # in C order


class Rows(Protocol):
    """The data as the solver sees them: n rows of d features."""

    @property
    def shape(self) -> tuple[int, int]:
        """n and d."""

    @property
    def arrays(self) -> RowArrays | None:
        """The rows as compiled code can visit them one by one, in any order; None where that is dear."""

    @property
    def is_local(self) -> bool:
        """Whether this process can read the rows itself."""

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory, in the mean."""

    def outputs(self, W: Matrix) -> Matrix:
        """Products of k vectors (k, d) with every row: (k, n)."""

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """Sums of the rows, weighted by each row of coef (k, n), less those of `since` (k, n): (k, d).

        Most rows of weight 0 are not read.
        """

    def dense(self, chosen: Indices) -> tuple[NDArray[np.floating], Indices]:
        """An array in C order that has some rows among its own, and where; if they are local."""

    def take(self, chosen: Indices) -> Rows:
        """A copy of some rows, in ascending order, if they are local."""


def make_rows(X: Any, team: ThreadTeam, memory_budget: int = 2**30) -> Rows:
    """Wrap validated data of shape (n, d): an array in C or Fortran order, a memory map, or CSR.

    Parameters
    ----------
    X : ndarray, memmap or CSR array, float32 or float64
        Not copied.
    team : ThreadTeam
    memory_budget : int
        Bytes. Of a read-only memory map that is larger, in C order, no more than some blocks are held at a time.
    """
    if sp.issparse(X):
        return CSRRows(X, team)
    pages = mapped_pages(X, memory_budget)
    return DenseRows(X, team) if pages is None else MappedRows(X, pages, team)
