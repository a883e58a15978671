"""Which columns of numbers float32 would round away: times in milliseconds, coordinates in metres."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_ROUNDED = 1e-5  # rounding error in float32 / standard deviation of a column


def is_rounded(values: NDArray[np.float64]) -> bool:
    """Whether float32 moves a value of a column (n_samples,) by more than 1e-5 of its standard deviation."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.nanmax(np.abs(values), initial=0)
        if largest < 2**23 and (values == np.rint(values))[~np.isnan(values)].all():
            return False  # whole numbers up to here are float32 numbers
        moved = np.nanmax(np.abs(values - values.astype(np.float32)), initial=0)
        start = values[0] if len(values) and np.isfinite(values[0]) else 0.0
        spread = float(np.sqrt(np.nanmean((values - start) ** 2) - np.nanmean(values - start) ** 2)) if moved else 0.0
    return bool(moved == np.inf or (spread > 0 and moved > _MOST_ROUNDED * spread))


def rounded_columns(X: Any) -> NDArray[np.intp]:
    """Columns of a CSR matrix of float64 of which `is_rounded` is true: all zeros count in their spread."""
    from scipy.sparse import csr_array

    n_samples, (columns, own) = X.shape[0], np.unique(X.indices, return_inverse=True)  # there may be 2**31 columns
    with np.errstate(over="ignore", invalid="ignore"):
        sums, squares = (np.bincount(own, X.data**p, len(columns)) / n_samples for p in (1, 2))
        largest = np.zeros(len(columns))
        np.maximum.at(largest, own, np.abs(X.data))
        spread = np.sqrt(np.maximum(squares - sums**2, 0))
        suspect = 2.0**-24 * largest > 0.1 * _MOST_ROUNDED * spread  # 2**-24: rounding error / number
        suspect |= largest > np.finfo(np.float32).max
    suspect &= np.bincount(own, (X.data != np.rint(X.data)) | (np.abs(X.data) >= 2**23), len(columns)) > 0
    if not suspect.any():
        return np.empty(0, np.intp)
    compact = csr_array((X.data, own, X.indptr), (n_samples, len(columns))).tocsc()
    return np.array(
        [columns[k] for k in np.flatnonzero(suspect) if is_rounded(compact[:, [k]].toarray().ravel())], np.intp
    )
