"""k-means in input space, by scikit-learn, and in a kernel's feature space."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._native import kernels
from .._threads import after_fork_in_child, openmp_limit, openmp_threads
from .._types import Array, Labels, Matrix, RowIndices, Rows, Vector
from ..data.rows import occupied_columns, restore_columns

_MAX_ITER = 20  # of k-means, in input or feature space
_MAX_ROWS, MAX_VALUES = 20_000, 10**7  # of a sample to cluster: centroids of a larger one hardly differ
_LEAST_VALUES = 10**5  # of a sample, however little memory there is
_COPIES = 4  # of a sample while it is clustered
_ROWS_PER_CLUSTER = 20  # of a sample, at least
_FEW_CLUSTERS = "Number of distinct clusters"  # begins scikit-learn's warning
_SINGLE_THREAD_ROWS = 5000  # of k-means below which starting a second thread takes longer than it saves


def kmeans(X: Rows, k: int, rng: np.random.Generator, sample_weight: Vector | None = None) -> Labels:
    """Cluster the rows of X by scikit-learn's `KMeans`.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    k : int
        At most n.
    rng : numpy.random.Generator
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (n,), int
        Cluster numbers below k; a number may be missing where rows are equal.
    """
    from sklearn.cluster import KMeans

    seed = int(rng.integers(2**31))
    model = KMeans(k, n_init=1, max_iter=_MAX_ITER, random_state=seed)
    with _few_clusters_silenced(), openmp_limit(1 if X.shape[0] <= _SINGLE_THREAD_ROWS else openmp_threads()):
        model.fit(_compact(X), sample_weight=sample_weight)
    return np.asarray(model.labels_, np.intp)


# Whether each context has warning filters of its own, as in a Python without the GIL from 3.14 on.
_HAS_CONTEXT_FILTERS = bool(getattr(sys.flags, "context_aware_warnings", False))


@contextmanager
def _few_clusters_silenced() -> Iterator[None]:
    """No warning in this thread that equal rows give fewer clusters than k."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings() if _HAS_CONTEXT_FILTERS else _silence:
        if _HAS_CONTEXT_FILTERS:
            warnings.filterwarnings("ignore", message=_FEW_CLUSTERS, category=ConvergenceWarning)
        yield


class _Silence:
    """While any thread is in a ``with`` block: no warning that equal rows give fewer clusters than k.

    `warnings.catch_warnings` restores all filters as they were, also those that other threads have changed meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_threads = 0
        self._filter: Any = None
        after_fork_in_child(self._forget_threads)

    def __enter__(self) -> None:
        from sklearn.exceptions import ConvergenceWarning

        with self._lock:
            self._n_threads += 1
            if self._n_threads == 1:
                warnings.filterwarnings("ignore", message=_FEW_CLUSTERS, category=ConvergenceWarning)
                self._filter = warnings.filters[0]

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_threads -= 1
            if self._n_threads == 0:
                self._remove_filter()

    def _remove_filter(self) -> None:
        with suppress(ValueError):  # where another thread has restored filters of before
            warnings.filters.remove(self._filter)  # type: ignore[attr-defined]

    def _forget_threads(self) -> None:
        """In a forked child, which does not have them: none forks within its block."""
        self._lock = threading.Lock()
        self._n_threads = 0
        self._remove_filter()


_silence = _Silence()


def kmeans_work(n_values: int, k: int) -> float:
    """Multiply-adds of `kmeans` of rows with `n_values` stored values in all, at most."""
    return float(_MAX_ITER * k * n_values)


def sample_rows(
    X: Rows, rows: RowIndices, k: int, rng: np.random.Generator, max_values: int = MAX_VALUES
) -> RowIndices:
    """A sample of `rows` to cluster into k: at most 20,000 rows, and `max_values` values of X or 20 rows a cluster."""
    row_values = X.size / X.shape[0]  # of a sparse row those that are stored
    most = min(_MAX_ROWS, max(int(max_values / max(row_values, 1.0)), _ROWS_PER_CLUSTER * k))
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def max_sample_values(n_bytes: int, itemsize: int) -> int:
    """The most values of a sample to cluster within so many bytes."""
    return min(MAX_VALUES, max(_LEAST_VALUES, n_bytes // (_COPIES * itemsize)))


def needed_sample_bytes(n_values: int, itemsize: int) -> int:
    """The least memory for clustering a sample of n_values."""
    return _COPIES * itemsize * min(n_values, _LEAST_VALUES)


def _compact(X: Rows) -> Rows:
    """Sparse rows with 32-bit indices if they suffice, as scikit-learn's k-means needs; only the columns with values.

    Centres are dense, but no label depends on columns of zeros.
    """
    X = occupied_columns(X)[0]
    if not sp.issparse(X) or max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    indices, indptr = (index.astype(np.int32, copy=False) for index in (X.indices, X.indptr))
    return sp.csr_array((X.data, indices, indptr), X.shape)


def centroids(X: Rows, labels: Labels, weights: Vector | None = None) -> Array:
    """Weighted means of the clusters that have rows: dense, in the order of their labels, (k, d), of X's dtype."""
    present, cluster = np.unique(labels, return_inverse=True)
    weights = np.ones(X.shape[0]) if weights is None else weights
    members = sp.csr_array((weights, (cluster, np.arange(X.shape[0]))), (len(present), X.shape[0]))
    d, (X, columns) = X.shape[1], occupied_columns(X)
    sums = members @ X
    means = (sums.toarray() if sp.issparse(sums) else sums) / np.asarray(members.sum(axis=1))[:, None]
    return np.asarray(restore_columns(np.ascontiguousarray(means, X.dtype), columns, d))


def kernel_kmeans(
    K: Array,
    k: int,
    rng: np.random.Generator,
    weights: Vector | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> Labels:
    """Kernel k-means: Lloyd's iterations in the feature space of the points' kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (m, m)
    k : int
        At most m.
    rng : numpy.random.Generator
        For the k first centres, chosen as in k-means++ (the paper draws them at random).
    weights : ndarray of shape (m,), optional
        Of the points, > 0; ones by default. A weight of 2 is the same as a point twice, and so are the first centres.
    go_on : callable
        Called after each iteration; False ends them.

    Returns
    -------
    ndarray of shape (m,), int
        Cluster numbers below k. An empty cluster gets the point farthest from its centre.

    Notes
    -----
    O(m^2 + m k) an iteration, at most 20 iterations.
    Source: Hsieh et al. 2014, section 3; Ghitta et al. 2011.
    """
    weights = np.ones(len(K)) if weights is None else weights
    diagonal = K.diagonal().astype(np.float64)
    seeds = _kmeans_plus_plus(K, diagonal, weights, k, rng)
    labels = (diagonal[seeds] - 2.0 * K[:, seeds]).argmin(axis=1)
    labels[seeds] = np.arange(k)
    for _ in range(_MAX_ITER):
        distances = feature_distances(K, labels, k, weights)
        new = _fill_empty(distances.argmin(axis=1), distances + diagonal[:, None], k)
        if np.array_equal(new, labels):
            break
        labels = new
        if not go_on():
            break
    return np.asarray(labels, np.intp)


def _kmeans_plus_plus(
    K: Array,
    diagonal: Vector,
    weights: Vector,
    k: int,
    rng: np.random.Generator,
) -> RowIndices:
    """k first centres, drawn one by one with probability proportional to weight x squared distance from the nearest.

    Points are drawn in the order of their weighted mean kernel value, not of their numbers: the same points in another
    order give the same seeds.
    """
    order = np.argsort(cluster_products(K, weights[:, None])[0], kind="stable")
    seeds = [_draw(weights, order, rng)]
    nearest = np.full(len(K), np.inf)
    for _ in range(k - 1):
        last = seeds[-1]
        nearest = np.minimum(nearest, np.maximum(diagonal + diagonal[last] - 2.0 * K[last], 0.0))
        nearest[seeds] = 0.0
        chances = weights * nearest
        if not chances.any():
            chances = np.ones(len(K))
            chances[seeds] = 0.0
        seeds.append(_draw(chances, order, rng))
    return np.array(seeds)


def _draw(chances: Vector, order: RowIndices, rng: np.random.Generator) -> int:
    """A point with probability proportional to `chances` (m,), by inversion of their cumulative sums in this order."""
    possible = order[chances[order] > 0]
    sums = np.cumsum(chances[possible])
    return int(possible[min(np.searchsorted(sums, rng.random() * sums[-1], side="right"), len(possible) - 1)])


def feature_distances(K: Array, labels: Labels, k: int, weights: Vector | None = None) -> Matrix:
    """Squared distances of m points to the centres of their k clusters, less k(x, x): shape (m, k)."""
    members = membership(labels, k, weights)
    products = cluster_products(K, members)
    return np.asarray(np.einsum("jc,cj->c", members, products) - 2.0 * products.T)


def cluster_products(K: Array, members: Matrix) -> Matrix:
    """members' K (k, m), for a kernel matrix K (m, m) and `members` (m, k) as of `membership`: O(m^2 + m k)."""
    products = np.zeros(members.T.shape)
    kernels.add_product(K, np.ascontiguousarray(members.T), products)  # skips zeros
    return products


def membership(labels: Labels, k: int, weights: Vector | None = None) -> Matrix:
    """The (m, k) matrix whose column c averages over cluster c, by the points' weights (m,) if these are given."""
    weights = np.ones(len(labels)) if weights is None else weights
    sizes = np.bincount(labels, weights, minlength=k)
    members: Matrix = np.zeros((len(labels), k))
    members[np.arange(len(labels)), labels] = weights / sizes[labels]
    return members


def _fill_empty(labels: Labels, distances: Matrix, k: int) -> Labels:
    """Move the points farthest from their centres into the empty clusters."""
    sizes = np.bincount(labels, minlength=k)
    farthest_first = np.argsort(-distances[np.arange(len(labels)), labels], kind="stable")
    for c in np.flatnonzero(sizes == 0):
        movable = farthest_first[sizes[labels[farthest_first]] > 1]
        if not len(movable):
            break
        sizes[labels[movable[0]]] -= 1
        sizes[c] += 1
        labels[movable[0]] = c
    return np.asarray(labels, np.intp)
