"""Design matrices of dense arrays in memory, in C or Fortran order.

Blocks depend on the data alone and their sums are added in order, so that results do not depend on `n_jobs`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from .._native import dense
from .._threads import MAX_BLOCKS, ThreadTeam, count_blocks, row_blocks
from .._types import Array, Matrix, RowIndices
from .abstract_matrix import LocalMatrix, RowAccess
from .origin import origin_distance

_BLOCK_BYTES = 2**21  # least size of a block of a matrix product: enough to be fast
_MAX_DISTANCE = 100.0  # `origin_distance` above which products are in float64


class DenseMatrix(LocalMatrix):
    """An array with contiguous rows, at any distance from one another, which is never copied.

    Sums, and products with a single vector, are float64; products with several vectors have X's dtype, or are float64
    where rows are so far from the origin that float32 would lose three of the digits that tell them apart.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    team : ThreadTeam
    """

    _matvec: Callable[..., None] = staticmethod(dense.matvec)
    _rmatvec: Callable[..., None] = staticmethod(dense.rmatvec)
    _take: Callable[..., None] = staticmethod(dense.take_rows)

    def __init__(self, X: Array, team: ThreadTeam) -> None:
        self._X = self._lines = np.asarray(X)  # `_lines` are what is contiguous: rows, or columns
        self._team = team
        self.shape = X.shape
        self.row_bytes = max(1, int(X.shape[1] * X.itemsize))

    @property
    def block_rows(self) -> int:
        """Samples of a block of a matrix product."""
        return max(self._least_rows, count_blocks(self.shape[0], MAX_BLOCKS))

    def matvec(self, W: Matrix) -> Matrix:
        """W Xᵀ (k, n): a compiled pass for one vector, matrix products for several."""
        out = np.empty((len(W), self.shape[0]))
        if len(W) == 1:
            self._matvec(self._team.native, self._lines, np.ascontiguousarray(W[0]), out[0])
        else:
            V = W.astype(self._product_dtype, copy=False)

            def multiply(rows: slice) -> None:
                out[:, rows] = V @ self._X[rows].T

            self._team.map(multiply, row_blocks(self.shape[0], self.block_rows))
        return out

    @cached_property
    def _product_dtype(self) -> np.dtype[Any]:
        """Of products with several vectors."""
        is_far = self._X.dtype == np.float32 and origin_distance(self._X) > _MAX_DISTANCE
        return np.dtype(np.float64) if is_far else self._X.dtype

    def rmatvec(self, coef: Matrix, base: Matrix | None = None) -> Matrix:
        """(coef - base) X (k, d)."""
        total = np.empty((len(coef), self.shape[1]))
        before = None if base is None else np.ascontiguousarray(base)
        self._rmatvec(self._team.native, self._lines, np.ascontiguousarray(coef), before, total)
        return total

    def gather(self, chosen: RowIndices) -> tuple[Array, RowIndices]:
        """The array itself, and the indices."""
        return self._X, chosen

    def take(self, chosen: RowIndices) -> RowMajorMatrix:
        """A copy of the samples `chosen`."""
        return RowMajorMatrix(self.copy(chosen), self._team)

    def copy(self, chosen: RowIndices) -> Array:
        """The samples `chosen` as an array in C order."""
        taken = np.empty((len(chosen), self.shape[1]), self._X.dtype)
        self._take(self._team.native, self._lines, np.ascontiguousarray(chosen), taken)
        return taken

    @property
    def _least_rows(self) -> int:
        return max(256, _BLOCK_BYTES // self.row_bytes)


class RowMajorMatrix(DenseMatrix, RowAccess):
    """An array in C order."""

    def __init__(self, X: Array, team: ThreadTeam) -> None:
        super().__init__(X, team)
        self.row_arrays = self._X

    @property
    def origin_distance(self) -> float:
        """How far the samples are from the origin."""
        return origin_distance(self._X)


class ColumnMajorMatrix(DenseMatrix):
    """An array with contiguous columns."""

    _matvec = staticmethod(dense.matvec_transposed)
    _rmatvec = staticmethod(dense.rmatvec_transposed)
    _take = staticmethod(dense.take_columns)

    def __init__(self, X: Array, team: ThreadTeam) -> None:
        super().__init__(X, team)
        self._lines = self._X.T

    def gather(self, chosen: RowIndices) -> tuple[Array, RowIndices]:
        """A copy of the samples `chosen` in C order."""
        return self.copy(chosen), np.arange(len(chosen))


def has_contiguous_rows(X: Array) -> bool:
    """Whether the values of each row of X (n, d) are neighbours in memory, and rows are whole values apart."""
    distance = X.strides[0]
    is_apart = distance >= X.shape[1] * X.itemsize and distance % X.itemsize == 0
    return bool(X.flags.c_contiguous or (X.strides[1] == X.itemsize and is_apart))


def read_only(X: Any) -> Any:
    """A view that cannot be written to."""
    view = X.view()
    view.flags.writeable = False
    return view


def has_finite_values(X: Array, team: ThreadTeam) -> bool:
    """Whether no entry of an array in C order is NaN or infinite."""
    return bool(dense.are_finite(team.native, np.asarray(X).reshape(-1)))
