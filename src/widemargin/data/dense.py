"""Design matrices of dense arrays in memory, in C or Fortran order.

Blocks depend on the data alone and their sums are added in order, so that results do not depend on `n_jobs`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._native import dense
from .._threads import ThreadTeam
from .._types import Array, Matrix, RowIndices, Rows
from .abstract_matrix import LocalMatrix, RowAccess
from .origin import origin_distance


class DenseMatrix(LocalMatrix):
    """An array with contiguous rows, at any distance from one another, which is never copied.

    Products and sums are float64.

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

    def matvec(self, W: Matrix) -> Matrix:
        """W Xᵀ (k, n): a row's values depend neither on its place nor on the number of rows."""
        out = np.empty((len(W), self.shape[0]))
        self._matvec(self._team.native, self._lines, np.ascontiguousarray(W), out)
        return out

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


def read_only(X: Rows) -> Rows:
    """A view that cannot be written to."""
    view = X.view()
    view.flags.writeable = False
    return view


def has_finite_values(X: Array, team: ThreadTeam) -> bool:
    """Whether no entry of an array in C order is NaN or infinite."""
    return bool(dense.are_finite(team.native, np.asarray(X).reshape(-1)))
