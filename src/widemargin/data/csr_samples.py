"""Rows as CSR: when dense ones are better held so, and how they get there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._native import csr
from .checked_csr import check_sparse, make_csr

Array = NDArray[np.floating]

_SPARSE_DENSITY = 0.25  # below it, touching non-zeros only beats the matrix product (docs/decisions/0003)
_SPARSE_COLUMNS = 32  # narrower than this, the product is cheap anyhow


def canonical(X: Any) -> sp.csr_array:
    """CSR without repeated entries; the caller's sparse arrays are shared, never changed."""
    if not sp.issparse(X):
        return _nonzeros(np.ascontiguousarray(X))
    check_sparse(X)
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _nonzeros(X: Array) -> sp.csr_array:
    """CSR of a dense array, in a fifth of SciPy's time."""
    indptr = np.empty(len(X) + 1, np.int64)
    csr.count_nonzeros(X, indptr)
    n = int(indptr[-1])
    width = np.int32 if max(n, X.shape[1]) <= np.iinfo(np.int32).max else np.int64
    data = np.empty(n, X.dtype)
    indices: NDArray[np.integer] = np.empty(n, width)
    csr.copy_nonzeros(X, data, indices)
    return sp.csr_array((data, indices, indptr.astype(width)), X.shape)


@dataclass(frozen=True)
class CsrRows:
    """Consecutive rows of a SciPy array, and the view of them that compiled loops take.

    Attributes
    ----------
    array : csr_array
        SciPy's, with all its rows.
    first : int
        Which of them is the first one here.
    view : CSRMatrix
        Of these rows.
    """

    array: sp.csr_array
    first: int
    view: csr.CSRMatrix

    @classmethod
    def of(cls, X: sp.csr_array) -> Self:
        """All rows of an array."""
        return cls(X, 0, make_csr(X))

    def __len__(self) -> int:
        return len(self.view)

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> CsrRows:
        """A view for a slice without a step, a copy for indices. SciPy's slice is a copy, and takes 0.1 ms at least."""
        if not isinstance(rows, slice):
            return CsrRows.of(self.array[self.first + rows])
        start, stop, _ = rows.indices(len(self))
        return CsrRows(self.array, self.first + start, self.view.rows(start, max(start, stop)))

    def __reduce__(self) -> Any:
        return CsrRows.of, (self.to_scipy(),)

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the values."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def nonzero_bytes(self) -> int:
        """Of a value and its column."""
        return int(self.array.data.itemsize + self.array.indices.itemsize)

    @property
    def nnz(self) -> int:
        """Entries of these rows."""
        return int(self.view.nnz)

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
