"""How far rows lie from the origin: far beside their spread, inner products lose the digits of the spread.

Rounding errors of <x, z> are as large as |x| |z|, of a distance to rows' mean only as |x - mean| |z - mean|.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._threads import BLOCK_VALUES
from .._types import Array, DType, Rows
from .rows import occupied_columns

FAR = 3.0  # `origin_distance` from which rows are centred where they may be: nine tenths of their squares is the mean's


def origin_distance(X: Rows) -> float:
    """Norm of the mean row of X (n, d) / root mean square distance from it, on 64 to 127 rows spread over X.

    Examples
    --------
    >>> origin_distance(np.array([[2000.0], [2004.0]]))
    1001.0
    """
    if not X.shape[0]:
        return 0.0
    probe, _ = occupied_columns(X[:: max(1, X.shape[0] // 64)])
    width = probe.shape[1] if sp.issparse(probe) else BLOCK_VALUES // probe.shape[0]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        parts = [_squares(probe[:, first : first + width]) for first in range(0, probe.shape[1], max(1, width))]
        norm, square = np.sum(parts, axis=0) if parts else (0.0, 0.0)
        return float(np.sqrt(np.float64(norm) / square)) if norm else 0.0


def _squares(X: Rows) -> tuple[float, float]:
    """Squared norm of the mean row of X (n, d), and mean square distance from it."""
    rows = X.astype(np.float64)
    mean = np.asarray(rows.sum(axis=0)).ravel() / rows.shape[0]
    norm = float(mean @ mean)
    if sp.issparse(rows):
        return norm, max(float(np.einsum("i,i->", rows.data, rows.data)) / rows.shape[0] - norm, 0.0)
    rows -= mean
    return norm, float(np.einsum("ij,ij->", rows, rows)) / len(rows)  # BLAS would wake threads


def dense_if_far(X: Rows) -> Rows:
    """CSR rows (n, d) as a dense array where they are far from the origin and at least half of their entries stored.

    For code that centres dense rows, or takes the differences of their entries. The copy has no more bytes than X.
    """
    is_dense = sp.issparse(X) and X.nnz >= 0.5 * X.shape[0] * X.shape[1]
    return X.toarray() if is_dense and origin_distance(X) > FAR else X


def shifted(X: Array, row: Array, dtype: DType) -> Array:
    """X (n, d) minus `row` (d,) in C order: rounded to `dtype` only then."""
    out = np.empty(X.shape, dtype)
    return np.subtract(X, row, out=out, dtype=np.promote_types(X.dtype, dtype), casting="same_kind")


def subtract_row(X: sp.csr_array, row: Array) -> sp.csr_array:
    """X (n, d) minus `row` (d,) of few entries other than zero: entries at all of their columns are stored."""
    n, columns = X.shape[0], np.flatnonzero(row)
    indptr = np.arange(n + 1) * len(columns)
    return X - sp.csr_array((np.tile(row[columns], n), np.tile(columns, n), indptr), X.shape)
