"""Abstract base classes of design matrices X (n, d): products, samples in this process, and compiled access to rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np

from .._native import csr
from .._types import Array, Matrix, RowIndices, Vector

RowArrays: TypeAlias = "Array | csr.CSRMatrix"  # dense ones in C order


class DesignMatrix(ABC):
    """n samples of d features, wherever they are.

    Attributes
    ----------
    shape : tuple of int
        n and d.
    row_bytes : int
        Mean number of bytes of a sample.
    shift : ndarray of shape (n,), or None
        Constants that decision values have beside the product.
    """

    shape: tuple[int, int]
    row_bytes: int
    shift: Vector | None = None

    @abstractmethod
    def matvec(self, W: Matrix) -> Matrix:
        """W Xᵀ (k, n): products of k weight vectors (k, d) with every sample."""

    @abstractmethod
    def rmatvec(self, coef: Matrix, base: Matrix | None = None) -> Matrix:
        """(coef - base) X (k, d): sums of the samples, weighted by the rows of coef and of base (k, n).

        Most samples whose weights are all zero are not read.
        """

    def decision_values(self, W: Matrix) -> Matrix:
        """W Xᵀ + shift (k, n)."""
        f = self.matvec(W)
        if self.shift is not None:
            f += self.shift
        return f

    def decision_values_at_zero(self, k: int) -> Matrix:
        """Those of k weight vectors of zeros, without a pass over the samples."""
        f = np.zeros((k, self.shape[0]))
        if self.shift is not None:
            f += self.shift
        return f


class LocalMatrix(DesignMatrix):
    """Samples that this process can read."""

    @abstractmethod
    def take(self, chosen: RowIndices) -> LocalMatrix:
        """A copy of the samples `chosen`, in ascending order."""

    @abstractmethod
    def gather(self, chosen: RowIndices) -> tuple[Array, RowIndices]:
        """An array A with contiguous rows, and indices i: A[i] are the samples `chosen`. A is X itself if it can be."""


class RowAccess(LocalMatrix):
    """Samples that compiled code can visit one by one, in any order: `row_arrays` is what it takes."""

    row_arrays: RowArrays

    @property
    @abstractmethod
    def origin_distance(self) -> float:
        """How far the samples are from the origin, as of `origin.origin_distance`."""
