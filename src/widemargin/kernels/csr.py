"""Rows as CSR: when dense ones are better held so, and how they get there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._jit import sparse

Array = NDArray[np.floating]

_SPARSE_DENSITY = 0.25  # below it, touching non-zeros only beats the matrix product (docs/decisions/0003)
_SPARSE_COLUMNS = 32  # narrower than this, the product is cheap anyhow


def canonical(X: Any) -> sp.csr_array:
    """CSR without repeated entries; the caller's sparse arrays are shared, never changed."""
    if not sp.issparse(X):
        return _nonzeros(np.ascontiguousarray(X))
    csr = sp.csr_array(X)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _nonzeros(X: Array) -> sp.csr_array:
    """CSR of a dense array, in a fifth of SciPy's time."""
    indptr = np.empty(len(X) + 1, np.int64)
    sparse.count_nonzeros(X, indptr)
    n = int(indptr[-1])
    width = np.int32 if max(n, X.shape[1]) <= np.iinfo(np.int32).max else np.int64
    data, indices = np.empty(n + 1, X.dtype), np.empty(n + 1, width)
    sparse.copy_nonzeros(X, data, indices)
    return sp.csr_array((data[:n], indices[:n], indptr.astype(width)), X.shape)


@dataclass(frozen=True)
class CsrRows:
    """Rows side by side in a CSR array, as compiled kernels take them: one type each, so that these compile once.

    Attributes
    ----------
    data : ndarray of shape (nnz of the array,)
    indices : ndarray of shape (nnz of the array,), int32
    indptr : ndarray of shape (number of rows + 1,), int64
        Where these rows start in the array.
    n_columns : int
    """

    data: Array
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    n_columns: int

    @classmethod
    def of(cls, X: sp.csr_array) -> Self:
        """All rows of an array."""
        indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
        return cls(X.data, indices, indptr, int(X.shape[1]))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        """Entries of these rows."""
        return int(self.indptr[-1] - self.indptr[0])

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> CsrRows:
        """A view for a slice, a copy for indices. SciPy would copy both, and take 0.1 ms to check what it made."""
        if not isinstance(rows, slice):
            return CsrRows.of(self.to_scipy()[rows])
        start, stop, _ = rows.indices(len(self))
        return CsrRows(self.data, self.indices, self.indptr[start : max(start, stop) + 1], self.n_columns)

    def to_scipy(self) -> sp.csr_array:
        """A SciPy array."""
        mine = slice(self.indptr[0], self.indptr[-1])
        indptr = self.indptr - self.indptr[0]
        if self.indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        return sp.csr_array((self.data[mine], self.indices[mine], indptr), (len(self), self.n_columns))


def prefers_csr(X: Array) -> bool:
    """Whether most entries are zero and no column is a large constant that only centring would tame."""
    probe = X[:: max(1, len(X) // 512)].astype(np.float64)
    if not len(X) or X.shape[1] < _SPARSE_COLUMNS or np.count_nonzero(probe) > _SPARSE_DENSITY * probe.size:
        return False
    mean = probe.mean(axis=0)
    return bool(mean @ mean < 0.9 * np.einsum("ij,ij->", probe, probe) / len(probe))
