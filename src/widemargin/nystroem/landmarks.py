"""Landmarks: centroids of weighted k-means, or random rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._threads import value_blocks
from .._types import Array, RowIndices, Rows, Vector
from ..data.rows import occupied_columns, restore_columns
from ..partition.kmeans import MAX_VALUES, centroids, feature_distances, kernel_kmeans, kmeans, sample_rows


def select_landmarks(
    X: Rows,
    m: int,
    rng: np.random.Generator,
    *,
    weights: Vector | None = None,
    method: str = "kmeans",
    max_values: int = MAX_VALUES,
) -> Array:
    """Choose landmark points among, or between, the rows of X.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    m : int
        Number of landmarks. If at most m rows have positive weight, they are the landmarks.
    rng : numpy.random.Generator
    weights : ndarray of shape (n,), optional
        Weights of k-means or probabilities of the draw up to a factor, >= 0; all alike by default.
    method : {"kmeans", "uniform"}
        Centroids of weighted k-means, or rows drawn without replacement with probabilities proportional to `weights`.
    max_values : int
        Largest number of values of X in the rows that are clustered.

    Returns
    -------
    ndarray of shape (at most m, d)
        Of X's dtype.

    Notes
    -----
    The error of a Nystroem machine is bounded by the k-means objective weighted by the squared dual variables of the
    exact one (Hsieh, Si, Dhillon 2014, theorems 1 to 3): pass alpha^2 as `weights`. About 20 iterations of n m d
    multiply-adds, n the number of rows that `sample_rows` draws.
    """
    rows = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    if len(rows) > m and method == "uniform":
        probabilities = None if weights is None else weights[rows] / weights[rows].sum()
        rows = np.sort(rng.choice(rows, m, replace=False, p=probabilities))
    if len(rows) <= m:
        return dense_rows(X[rows])
    rows = sample_rows(X, rows, m, rng, max_values)
    weight = np.ones(len(rows)) if weights is None else weights[rows]
    labels = kmeans(X[rows], m, rng, weight)
    return centroids(X[rows], labels, weight)


def select_medoids(
    K: Array, m: int, rng: np.random.Generator, *, weights: Vector, n_sample: int, method: str = "kmeans"
) -> RowIndices:
    """Choose landmarks among n rows of which only the kernel matrix is known.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    m : int
        Number of landmarks; with n <= m, all rows.
    rng : numpy.random.Generator
    weights : ndarray of shape (n,)
        > 0.
    n_sample : int
        Number of rows that are clustered; m of them if it is less than m. An iteration is m n_sample^2 multiply-adds.
    method : {"kmeans", "uniform"}
        The row nearest to each centre of kernel k-means, or rows drawn in proportion to their weights.

    Returns
    -------
    ndarray of shape (at most m,), int
        Row numbers, ascending.
    """
    n = len(K)
    if n <= m:
        return np.arange(n)
    if method == "uniform":
        return np.sort(rng.choice(n, m, replace=False, p=weights / weights.sum()))
    rows = np.sort(rng.choice(n, min(n, max(n_sample, m)), replace=False))
    G = K[np.ix_(rows, rows)]
    labels = kernel_kmeans(G, m, rng, weights[rows])
    distances = feature_distances(G, labels, m, weights[rows]) + G.diagonal()[:, None]
    distances[labels[:, None] != np.arange(m)] = np.inf
    return np.sort(rows[distances.argmin(axis=0)])


def distinct_rows(X: Rows, most: int) -> Array:
    """The distinct rows of X (n, d), ascending; of more than `most` those of the first blocks with more."""
    d, (X, columns) = X.shape[1], occupied_columns(X)
    found = dense_rows(X[:0])
    for block in value_blocks(*X.shape):
        found = np.unique(np.concatenate([found, dense_rows(X[block])]), axis=0)
        if len(found) > most:
            break
    return np.asarray(restore_columns(found, columns, d))


def dense_rows(X: Rows) -> Array:
    """The rows of X (n, d), dense or CSR, as a C-contiguous array."""
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X)
