"""The design matrix X (n, d) of a linear machine: products with weight vectors, wherever the samples are stored.

Every kind of storage is a `DesignMatrix`, with two products; it is a `LocalMatrix` if this process can read the
samples, and a `RowAccess` if compiled code can visit them one by one.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._threads import ThreadTeam
from .._types import Array, Matrix, RowIndices, Rows
from .abstract_matrix import DesignMatrix, LocalMatrix
from .csr import CSRArray, SparseMatrix
from .dense import ColumnMajorMatrix, DenseMatrix, RowMajorMatrix, has_contiguous_rows
from .memory_map import MappedMatrix, mapped_pages


def make_design_matrix(X: Rows, team: ThreadTeam, max_bytes: int = 2**30) -> LocalMatrix:
    """Wrap validated data of shape (n, d) in this process, without a copy.

    Parameters
    ----------
    X : ndarray, memmap or CSR array, float32 or float64
        A dense array in neither C nor Fortran order, nor with contiguous rows, is copied.
    team : ThreadTeam
    max_bytes : int
        Bytes. A read-only memory map in C order that is larger is read in blocks, whose pages are given back.
    """
    if sp.issparse(X):
        return SparseMatrix(CSRArray.of(X), team)
    if (pages := mapped_pages(X, max_bytes)) is not None:
        return MappedMatrix(X, pages, team)
    if X.flags.c_contiguous:
        return RowMajorMatrix(X, team)
    if has_contiguous_rows(X):
        return DenseMatrix(X, team)
    return ColumnMajorMatrix(X, team) if has_contiguous_rows(X.T) else RowMajorMatrix(np.ascontiguousarray(X), team)


class AugmentedMatrix(DesignMatrix):
    """[X, 1] (n, d + 1): a constant last feature, whose weight is a regularised intercept. X is not copied."""

    def __init__(self, X: DesignMatrix) -> None:
        self._X = X
        self.shape = X.shape[0], X.shape[1] + 1
        self.row_bytes = X.row_bytes

    def matvec(self, W: Matrix) -> Matrix:
        """[X, 1] times k weight vectors: (k, n)."""
        return self._X.matvec(np.ascontiguousarray(W[:, :-1])) + W[:, -1:]

    def rmatvec(self, coef: Matrix, base: Matrix | None = None) -> Matrix:
        """(coef - base) [X, 1]: (k, d + 1)."""
        coef = coef if base is None else coef - base
        return np.column_stack([self._X.rmatvec(coef), coef.sum(axis=1)])


class LocalAugmentedMatrix(AugmentedMatrix, LocalMatrix):
    """[X, 1] of samples that this process can read."""

    _X: LocalMatrix

    @property
    def without_constant(self) -> LocalMatrix:
        """X itself."""
        return self._X

    def take(self, chosen: RowIndices) -> LocalAugmentedMatrix:
        """[X, 1] of a copy of the samples `chosen`."""
        return LocalAugmentedMatrix(self._X.take(chosen))

    def gather(self, chosen: RowIndices) -> tuple[Array, RowIndices]:
        """A dense copy of the samples `chosen`, with the constant."""
        X, places = self._X.gather(chosen)
        return np.column_stack([X[places], np.ones(len(chosen), X.dtype)]), np.arange(len(chosen))


class IdentityMatrix(DesignMatrix):
    """The identity (d, d): decision values of w are w."""

    def __init__(self, d: int) -> None:
        self.shape = d, d
        self.row_bytes = 8 * d

    def matvec(self, W: Matrix) -> Matrix:
        """A copy of W."""
        return W.copy()

    def rmatvec(self, coef: Matrix, base: Matrix | None = None) -> Matrix:
        """A copy of coef, less base."""
        return coef.copy() if base is None else coef - base


def split_constant(X: DesignMatrix) -> tuple[DesignMatrix, float]:
    """The samples without a constant last feature, and its value: 1, or 0 where there is none."""
    return (X.without_constant, 1.0) if isinstance(X, LocalAugmentedMatrix) else (X, 0.0)


def with_constant(X: DesignMatrix) -> DesignMatrix:
    """[X, 1], a `LocalMatrix` if X is one."""
    return LocalAugmentedMatrix(X) if isinstance(X, LocalMatrix) else AugmentedMatrix(X)
