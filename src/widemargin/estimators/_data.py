"""Validation of a linear estimator's training data: in memory, in a file, or partitioned over a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.validation import _check_feature_names, column_or_1d

from .._threads import ThreadTeam
from ..data import has_finite_rows, has_finite_values, is_partitioned, mapped_pages
from ._validation import FLOATS, check_labels, validate_rows

_LARGE = 2**24  # bytes from which on all threads look for NaN


def check_training_data(estimator: Any, X: Any, y: Any, memory_budget: int) -> tuple[Any, NDArray[Any]]:
    """Validate X and y as scikit-learn does: a large file block by block, a dask collection without its rows.

    Returns
    -------
    X : ndarray, CSR array, or the collection itself
    labels : ndarray of shape (n_samples,)
    """
    check = _check_collection if is_partitioned(X) else _check_array
    X, labels = check(estimator, X, y, memory_budget)
    check_labels(labels)
    return X, labels


def _check_array(estimator: Any, X: Any, y: Any, memory_budget: int) -> tuple[Any, NDArray[Any]]:
    pages = mapped_pages(X, memory_budget)
    X, labels = validate_rows(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=FLOATS,
        ensure_all_finite=pages is None and not _is_known_to_be_finite(X, estimator.n_jobs),
    )
    if pages is not None and not has_finite_rows(X, pages):
        raise ValueError("Input X contains NaN or infinity.")
    return X, labels


def _is_known_to_be_finite(X: Any, n_jobs: int | None) -> bool:
    """Whether X is a large array in C order without NaN and infinity, found by all threads."""
    is_large = isinstance(X, np.ndarray) and X.dtype in FLOATS and X.ndim == 2 and X.nbytes >= _LARGE
    if not is_large or not X.flags.c_contiguous or get_config()["assume_finite"]:
        return False
    with ThreadTeam(n_jobs) as team:
        return has_finite_values(X, team)


def _check_collection(estimator: Any, X: Any, y: Any, memory_budget: int) -> tuple[Any, NDArray[Any]]:
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    check_collection(estimator, X)
    return X, column_or_1d(to_memory(y), warn=True)


def check_collection(estimator: Any, X: Any) -> None:
    """Check that a dask collection has two dimensions, and keep the number and the names of its features."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    _check_feature_names(estimator, getattr(X, "_meta", X), reset=True)  # an empty frame with X's columns
    estimator.n_features_in_ = X.shape[1]


def to_memory(values: Any) -> Any:
    """A dask collection with one number a row as an array; other values as they are."""
    return values.compute() if is_partitioned(values) else values
