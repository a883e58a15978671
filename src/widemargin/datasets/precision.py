"""The dtype of samples that come as text: float32, unless it would round away what distinguishes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.datasets.files import FloatType

_MOST_ROUNDED = 1e-5  # rounding error in float32 / standard deviation of a column


def read_as_needed(read: Callable[[FloatType], Any]) -> tuple[Any, NDArray[np.intp]]:
    """Samples as float32, read once more as float64 where a column needs it.

    A column needs float64 if rounding to float32 moves one of its values by more than 1e-5 of its standard deviation:
    times in milliseconds, coordinates in metres.

    Parameters
    ----------
    read : function
        From a dtype to the samples (n_samples, n_features), dense or CSR, in that dtype.

    Returns
    -------
    X : ndarray or csr_array
    columns : ndarray of int
        That need float64; empty where X is float32.
    """
    X = read(np.float32)
    from widemargin.data.columns import occupied_columns  # imports SciPy: only after the file was read

    occupied, numbers = occupied_columns(X)
    largest, spread, is_whole = _scales(occupied)
    is_exact = is_whole & (
        largest < 2**23
    )  # whole numbers up to here differ from float32 neighbours by more than a half
    may_be_rounded = (2.0**-24 * largest > _MOST_ROUNDED * spread) & ~is_exact  # 2**-24: rounding error / number
    if not may_be_rounded.any():
        return X, np.flatnonzero(may_be_rounded)
    wide = read(np.float64)
    occupied, _ = occupied_columns(wide)
    _, spread, _ = _scales(occupied)
    columns = np.flatnonzero((_largest_rounding(occupied) > _MOST_ROUNDED * spread) & (spread > 0))
    return (wide if len(columns) else X), (columns if numbers is None else numbers[columns])


def _blocks(X: Any) -> Iterator[NDArray[np.float64]]:
    """Rows of a dense matrix as float64, without NaN: the column's first row in its place."""
    for start in range(0, len(X), 4096):
        block = X[start : start + 4096].astype(np.float64)
        yield np.where(np.isnan(block), np.nan_to_num(X[0].astype(np.float64)), block)


def _scales(X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Each column's largest magnitude and standard deviation, and whether all its values are whole numbers."""
    n_samples, n_features = X.shape
    largest, sums, squares = np.zeros((3, n_features))
    is_whole = np.ones(n_features, dtype=bool)
    if not isinstance(X, np.ndarray):
        return _sparse_scales(X)
    shift = np.nan_to_num(X[0].astype(np.float64)) if n_samples else sums
    with np.errstate(invalid="ignore", over="ignore"):
        for block in _blocks(X):
            largest = np.maximum(largest, np.abs(block).max(axis=0))
            is_whole &= (block == np.rint(block)).all(axis=0)
            sums += (block - shift).sum(axis=0)
            squares += ((block - shift) ** 2).sum(axis=0)
        return largest, _deviation(sums, squares, n_samples), is_whole


def _sparse_scales(X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    n_samples, n_features = X.shape
    values, columns = X.data.astype(np.float64), X.indices
    largest, shift = np.zeros((2, n_features))
    shift[columns] = values
    with np.errstate(invalid="ignore", over="ignore"):
        np.maximum.at(largest, columns, np.abs(values))
        n_zeros = n_samples - np.bincount(columns, minlength=n_features)
        moved = values - shift[columns]
        sums = np.bincount(columns, moved, n_features) - n_zeros * shift
        squares = np.bincount(columns, moved**2, n_features) + n_zeros * shift**2
        is_whole = np.bincount(columns, values != np.rint(values), n_features) == 0
        return largest, _deviation(sums, squares, n_samples), is_whole


def _deviation(sums: NDArray[np.float64], squares: NDArray[np.float64], n_samples: int) -> NDArray[np.float64]:
    variance = squares / max(n_samples, 1) - (sums / max(n_samples, 1)) ** 2
    return np.sqrt(np.maximum(np.nan_to_num(variance), 0))


def _largest_rounding(X: Any) -> NDArray[np.float64]:
    """The largest change of a value by rounding to float32, of each column."""
    errors = np.zeros(X.shape[1])
    with np.errstate(over="ignore"):
        if isinstance(X, np.ndarray):
            for block in _blocks(X):
                np.maximum(errors, np.abs(block - block.astype(np.float32)).max(axis=0), out=errors)
        else:
            np.maximum.at(errors, X.indices, np.abs(X.data - X.data.astype(np.float32)))
    return errors
