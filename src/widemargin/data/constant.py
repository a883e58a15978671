"""Rows with a constant feature, without a copy: an intercept that is a weight like the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .design_matrix import Rows

Matrix = NDArray[np.float64]


class RowsWithConstant:
    """`Rows` whose last feature is 1."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.shape = rows.shape[0], rows.shape[1] + 1
        self.is_local, self.row_bytes = rows.is_local, rows.row_bytes

    @property
    def arrays(self) -> None:
        """None: the constant is not among them."""

    def outputs(self, W: Matrix) -> Matrix:
        """As the rows', plus the last weight."""
        return self._rows.outputs(np.ascontiguousarray(W[:, :-1])) + W[:, -1:]

    def weighted_sums(self, coef: Matrix, since: Matrix | None = None) -> Matrix:
        """As the rows', and the sum of the weights."""
        coef = coef if since is None else coef - since
        return np.column_stack([self._rows.weighted_sums(coef), coef.sum(axis=1)])

    def dense(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
        """A copy, with a column of ones."""
        X, places = self._rows.dense(chosen)
        return np.column_stack([X[places], np.ones(len(chosen), X.dtype)]), np.arange(len(chosen))

    def take(self, chosen: NDArray[np.int64]) -> RowsWithConstant:
        """As the rows'."""
        return RowsWithConstant(self._rows.take(chosen))
