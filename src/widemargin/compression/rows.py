"""Rows of a dense or CSR array that `compress` learns from: in float32 if possible, their bytes, and equal rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._types import RowIndices, Rows
from ..data.rows import occupied_columns

MAX_ROUNDING, _MAX_VALUE = 1e-4, 1e18  # largest rounding error / spread, and value, of a feature in float32


def as_float32(X: Rows) -> Rows:
    """Rows in float32, in half the bytes and time, unless a feature's spread would be lost in rounding."""
    if sp.issparse(X):
        occupied = occupied_columns(X)[0]
        lowest, highest = (values.toarray().ravel() for values in (occupied.min(axis=0), occupied.max(axis=0)))
        spread = np.sqrt(np.maximum(mean_variance_axis(occupied, axis=0)[1], 0.0))
    else:
        lowest, highest, spread = X.min(axis=0), X.max(axis=0), X.std(axis=0)
    largest = np.maximum(-lowest, highest)
    is_kept = (largest * np.finfo(np.float32).eps < MAX_ROUNDING * spread) | (lowest == highest)
    is_safe = np.all((largest < _MAX_VALUE) & is_kept)
    return X.astype(np.float32) if is_safe else X


def stored_bytes(X: Rows) -> int:
    """Bytes of a dense or a CSR array."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes)


def sample_of(rows: RowIndices, most: int, rng: np.random.Generator) -> RowIndices:
    """A random sample of rows, in their order, or all of them where these are not too many."""
    return rows if len(rows) <= most else rows[np.sort(rng.choice(len(rows), most, replace=False))]


def find_rows(points: Rows, X: Rows) -> RowIndices:
    """For each of the points the number of the last row of X that equals it, or -1: (n_points,)."""
    where = {key: i for i, key in enumerate(_keys(X))}
    return np.fromiter((where.get(key, -1) for key in _keys(points)), np.intp, points.shape[0])


def _keys(X: Rows) -> Iterator[bytes]:
    """A key for each row, equal for equal rows: the bytes of its entries, and of a CSR row's indices."""
    if not sp.issparse(X):
        yield from ((row + 0.0).tobytes() for row in np.ascontiguousarray(X))  # -0.0 and 0.0 are equal
        return
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[a:b].astype(np.int64).tobytes() + (X.data[a:b] + 0.0).tobytes()
