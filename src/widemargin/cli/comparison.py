"""Timing and scoring of models side by side, and one dual objective for all of them."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin._threads import row_blocks
from widemargin.estimators._dual_attributes import pair_coefficients


class Measurement(NamedTuple):
    """Seconds to fit and to predict, accuracy, number of support vectors and dual objective of one model."""

    name: str
    fit_seconds: float
    predict_seconds: float
    accuracy: float
    n_support: int
    dual_objective: float


def measure(name: str, model: Any, train: tuple[Any, Any], test: tuple[Any, Any], *, gamma: float) -> Measurement:
    """Fit a `DCSVMClassifier` or SVC of kernel exp(-gamma ||x - z||^2) on `train` (X, y), and predict on `test`."""
    start = time.perf_counter()
    model.fit(*train)
    fitted = time.perf_counter()
    predicted = model.predict(test[0])
    done = time.perf_counter()
    return Measurement(
        name,
        fitted - start,
        done - fitted,
        float(np.mean(predicted == test[1])),
        len(model.support_),
        dual_objective(model.dual_coef_, model.support_vectors_, model.n_support_, gamma=gamma),
    )


def dual_objective(
    dual_coef: NDArray[Any], support_vectors: NDArray[Any], n_support: NDArray[Any], *, gamma: float
) -> float:
    """Compute sum(alpha) - 1/2 alpha' Q alpha of an RBF machine in float64, summed over its pairs of classes.

    It is larger nearer to the optimum. Computed here for every solver, so that values compare.

    Parameters
    ----------
    dual_coef : ndarray of shape (n_classes - 1, n_support_vectors)
        y * alpha in the layout of scikit-learn's SVC.
    support_vectors : ndarray of shape (n_support_vectors, n_features)
        Sorted by class.
    n_support : ndarray of shape (n_classes,)
        Support vectors of each class.
    gamma : float
        Of the kernel exp(-gamma ||x - z||^2).

    Returns
    -------
    float

    Notes
    -----
    Takes 1024 rows of the kernel matrix at a time: O(n_support_vectors^2 (n_features + n_pairs)).

    Examples
    --------
    Two points at distance 1, both with alpha = 1/2:

    >>> dual = dual_objective(np.array([[-0.5, 0.5]]), np.array([[0.0], [1.0]]), np.array([1, 1]), gamma=1.0)
    >>> round(dual, 6)  # 1 - (1 - exp(-1)) / 4
    0.84197
    """
    from sklearn.metrics.pairwise import rbf_kernel

    pairs = pair_coefficients(np.asarray(dual_coef, dtype=np.float64), np.asarray(n_support)).T
    points = np.asarray(support_vectors, dtype=np.float64)
    quadratic = 0.0
    for rows in row_blocks(len(points)):
        quadratic += float(np.sum(pairs[rows] * (rbf_kernel(points[rows], points, gamma=gamma) @ pairs)))
    return float(np.abs(pairs).sum()) - 0.5 * quadratic
