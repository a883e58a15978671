"""Dense rows in memory, in C or Fortran order.

Blocks depend on the data alone and their sums are added in their order, so that results do not depend on `n_jobs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._native import dense
from .._threads import ThreadTeam, count_blocks, row_blocks

Array = NDArray[np.floating]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_BLOCK_BYTES = 2**21  # at least, for a product of matrices
_BLOCKS = 64  # of these at most: enough to share out


class DenseRows:
    """`Rows` of an array that is never copied; sums and single products are float64, products with several vectors X's.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
        Its rows, or its columns, should be contiguous.
    team : ThreadTeam
    """

    is_local = True

    def __init__(self, X: Array, team: ThreadTeam) -> None:
        self._is_by_rows = _has_contiguous_rows(X)
        if not self._is_by_rows and not _has_contiguous_rows(X.T):
            X, self._is_by_rows = np.ascontiguousarray(X), True
        self._X = np.asarray(X)
        self._team = team
        self.shape: tuple[int, int] = X.shape
        self.row_bytes = max(1, int(X.shape[1] * X.itemsize))

    @property
    def arrays(self) -> Array | None:
        """The array, if it is in C order."""
        return self._X if self._X.flags.c_contiguous else None

    @property
    def block_rows(self) -> int:
        """How many rows are multiplied at a time."""
        return max(self._least_rows, count_blocks(self.shape[0], _BLOCKS))

    def outputs(self, W: Matrix) -> Matrix:
        """Of one vector in a compiled pass, of several as products of matrices."""
        out = np.empty((len(W), self.shape[0]))
        if len(W) == 1:
            outputs = dense.matvec if self._is_by_rows else dense.matvec_transposed
            outputs(self._team.native, self._values, np.ascontiguousarray(W[0]), out[0])
        else:
            V = W.astype(self._X.dtype, copy=False)

            def multiply(rows: slice) -> None:
                out[:, rows] = V @ self._X[rows].T

            self._team.map(multiply, row_blocks(self.shape[0], self.block_rows))
        return out

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """One compiled pass over the rows that count."""
        total = np.empty((len(coef), self.shape[1]))
        before = None if since is None else np.ascontiguousarray(since)
        sums = dense.rmatvec if self._is_by_rows else dense.rmatvec_transposed
        sums(self._team.native, self._values, np.ascontiguousarray(coef), before, total)
        return total

    def dense(self, chosen: Indices) -> tuple[Array, Indices]:
        """The array itself, in C order; in Fortran's a copy."""
        return (self._X, chosen) if self._is_by_rows else (self.copy(chosen), np.arange(len(chosen)))

    def take(self, chosen: Indices) -> DenseRows:
        """A copy, in C order."""
        return DenseRows(self.copy(chosen), self._team)

    def copy(self, chosen: Indices) -> Array:
        """Some rows, in C order."""
        taken = np.empty((len(chosen), self.shape[1]), self._X.dtype)
        take = dense.take_rows if self._is_by_rows else dense.take_columns
        take(self._team.native, self._values, np.ascontiguousarray(chosen), taken)
        return taken

    @property
    def _least_rows(self) -> int:
        """Of a block."""
        return max(256, _BLOCK_BYTES // self.row_bytes)

    @property
    def _values(self) -> Array:
        """With contiguous rows: the array or its transpose."""
        return self._X if self._is_by_rows else self._X.T


def _has_contiguous_rows(X: Array) -> bool:
    return bool(X.flags.c_contiguous or (X.strides[1] == X.itemsize and X.strides[0] >= X.shape[1] * X.itemsize))


def read_only(X: Any) -> Any:
    """A view that cannot be written to."""
    view = X.view()
    view.flags.writeable = False
    return view


def has_finite_values(X: Array, team: ThreadTeam) -> bool:
    """Whether no entry of an array in C order is NaN or infinite."""
    return bool(dense.are_finite(team.native, np.asarray(X).reshape(-1)))
