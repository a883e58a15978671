"""Training data at an estimator's door: in memory, or partitioned over a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, column_or_1d, validate_data

from ..rows import is_partitioned


def check_training_data(estimator: Any, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Check X and y as scikit-learn does; of a dask collection only what is known without its rows.

    Returns
    -------
    X : ndarray, CSR array, or the collection itself
    labels : ndarray of shape (n_samples,)
    """
    if not is_partitioned(X):
        X, labels = validate_data(estimator, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        return X, labels
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    _check_feature_names(estimator, getattr(X, "_meta", X), reset=True)  # an empty frame with X's columns
    estimator.n_features_in_ = X.shape[1]
    return X, column_or_1d(to_memory(y), warn=True)


def to_memory(values: Any) -> Any:
    """The values of a dask collection with one number a row; anything else as it is."""
    return values.compute() if is_partitioned(values) else values
