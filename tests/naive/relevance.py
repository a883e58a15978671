"""Learned relevance of the columns, by plain formulas: every pair of rows, every row's gradient."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def mean_differences(X: Matrix, weights: Vector, power: int) -> Vector:
    """The weighted mean over all pairs of rows of |x_j - z_j| ** power, of each column."""
    pairs = np.outer(weights, weights) / weights.sum() ** 2
    return np.array([(pairs * np.abs(x[:, None] - x) ** power).sum() for x in X.T])


def learn(
    X: Matrix, weights: Vector, gradients: Callable[[Matrix], NDArray[np.float64]], n_iter: int, power: int
) -> tuple[Vector, Vector]:
    """Relevance and factors after n_iter turns; `gradients` of scaled rows returns (n, n_functions, d)."""
    share, factors, relevance = mean_differences(X, weights, power), np.ones(X.shape[1]), np.ones(X.shape[1])
    for _ in range(n_iter):
        G = gradients(X * factors)
        mean_squares = [np.average((G[:, :, j] ** 2).mean(axis=1), weights=weights) for j in range(X.shape[1])]
        relevance = factors * np.sqrt(mean_squares)
        relevance /= relevance.max()
        factors = np.maximum(relevance, 1e-6)
        factors *= (share.sum() / (share * factors**power).sum()) ** (1 / power)
    return relevance, factors
