"""Rows as CSR: when dense ones are better held so, and how they get there."""

from __future__ import annotations

from typing import Any

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


def parts(X: sp.csr_array) -> tuple[Array, NDArray[np.int32], NDArray[np.int64]]:
    """Values, columns in SciPy's usual width, and row starts: one type each, so that the kernel is compiled once."""
    return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)


def prefers_csr(X: Array) -> bool:
    """Whether most entries are zero and no column is a large constant that only centring would tame."""
    probe = X[:: max(1, len(X) // 512)].astype(np.float64)
    if not len(X) or X.shape[1] < _SPARSE_COLUMNS or np.count_nonzero(probe) > _SPARSE_DENSITY * probe.size:
        return False
    mean = probe.mean(axis=0)
    return bool(mean @ mean < 0.9 * np.einsum("ij,ij->", probe, probe) / len(probe))
