"""Samples that occur several times, each with a constant in its decision value: two hinges for every target."""

from __future__ import annotations

import numpy as np

from .._types import Array, Matrix, RowIndices, Vector
from .abstract_matrix import DesignMatrix, LocalMatrix


class RepeatedMatrix(DesignMatrix):
    """The rows `places` (n,) of X, of decision values X[places] w + shift. X is not copied.

    Parameters
    ----------
    X : DesignMatrix
    places : ndarray of shape (n,), int
    shift : ndarray of shape (n,)
    """

    shift: Vector

    def __init__(self, X: DesignMatrix, places: RowIndices, shift: Vector) -> None:
        self._X = X
        self._places = places
        self.shift = shift
        self.shape = len(places), X.shape[1]
        self.row_bytes = X.row_bytes

    def matvec(self, W: Matrix) -> Matrix:
        """W X[places]ᵀ: (k, n)."""
        return np.take(self._X.matvec(W), self._places, axis=1)

    def rmatvec(self, coef: Matrix, base: Matrix | None = None) -> Matrix:
        """(coef - base) X[places]: (k, d)."""
        changes = coef if base is None else coef - base
        return self._X.rmatvec(np.array([np.bincount(self._places, row, self._X.shape[0]) for row in changes]))


class LocalRepeatedMatrix(RepeatedMatrix, LocalMatrix):
    """The same of samples that this process can read."""

    _X: LocalMatrix

    def take(self, chosen: RowIndices) -> LocalRepeatedMatrix:
        """The samples `chosen`; X has a copy of each row once."""
        rows, places = np.unique(self._places[chosen], return_inverse=True)
        return LocalRepeatedMatrix(self._X.take(rows), places, self.shift[chosen])

    def gather(self, chosen: RowIndices) -> tuple[Array, RowIndices]:
        """Rows of X, and the indices of the samples `chosen` among them."""
        rows, places = np.unique(self._places[chosen], return_inverse=True)
        array, numbers = self._X.gather(rows)
        return array, numbers[places]


def repeat_rows(X: DesignMatrix, places: RowIndices, shift: Vector) -> RepeatedMatrix:
    """The rows `places` of X with these shifts, a `LocalMatrix` if X is one."""
    kind = LocalRepeatedMatrix if isinstance(X, LocalMatrix) else RepeatedMatrix
    return kind(X, places, shift)
