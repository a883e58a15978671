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
    array : csr_array
        That of SciPy, with all its rows.
    first : int
        Which of them is the first one here.
    indices : ndarray of shape (nnz of the array,), int32
    indptr : ndarray of shape (number of rows + 1,), int64
        Where these rows start in the array.
    """

    array: sp.csr_array
    first: int
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]

    @classmethod
    def of(cls, X: sp.csr_array) -> Self:
        """All rows of an array."""
        return cls(X, 0, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> CsrRows:
        """A view for a slice without a step, a copy for indices. SciPy's slice is a copy, and takes 0.1 ms at least."""
        if not isinstance(rows, slice):
            return CsrRows.of(self.array[self.first + rows])
        start, stop, _ = rows.indices(len(self))
        return CsrRows(self.array, self.first + start, self.indices, self.indptr[start : max(start, stop) + 1])

    @property
    def data(self) -> Array:
        """Values, of shape (nnz of the array,)."""
        values: Array = self.array.data
        return values

    @property
    def n_columns(self) -> int:
        """Features."""
        return int(self.array.shape[1])

    @property
    def nnz(self) -> int:
        """Entries of these rows."""
        return int(self.indptr[-1] - self.indptr[0])

    @property
    def n_converted(self) -> int:
        """Bytes of the column numbers, where they are no longer the array's own."""
        return 0 if np.may_share_memory(self.indices, self.array.indices) else self.indices.nbytes

    def to_scipy(self) -> sp.csr_array:
        """A SciPy array of these rows."""
        is_all = len(self) == self.array.shape[0]
        return self.array if is_all else self.array[self.first : self.first + len(self)]


def prefers_csr(X: Array) -> bool:
    """Whether most entries are zero and no column is a large constant that only centring would tame."""
    probe = X[:: max(1, len(X) // 512)].astype(np.float64)
    if not len(X) or X.shape[1] < _SPARSE_COLUMNS or np.count_nonzero(probe) > _SPARSE_DENSITY * probe.size:
        return False
    mean = probe.mean(axis=0)
    return bool(mean @ mean < 0.9 * np.einsum("ij,ij->", probe, probe) / len(probe))
