"""Two-step clustering with balanced sizes: a sample is clustered, then all rows go to the nearest centre."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._threads import run_interruptibly
from .._types import Labels, RowIndices, Rows, Vector
from ..kernels.kernel_operator import KernelOperator
from ..kernels.tiles import fill_gram
from .kmeans import kernel_kmeans, kmeans_work
from .routing import InputRouter, KernelRouter, Router, cluster_rows

_POINTS_PER_CENTRE = 10  # of the sample, at least: a centre is their mean
_MAX_POINTS = 5000  # of the sample, whose kernel matrix is in memory: 100 MB
_MAX_CLUSTERS = _MAX_POINTS // _POINTS_PER_CENTRE
CLUSTER_ROWS = 2000  # choose an automatic level with clusters of at most so many rows in the mean
_SIZES = 0.125, 3.0  # size / mean size below which a cluster is dissolved, and above which it is split


class Division(NamedTuple):
    """Clusters of a sample set.

    Attributes
    ----------
    router : Router
    labels : ndarray of shape (n,), int
        The cluster of each sample, below ``router.n_clusters``.
    sample_indices : ndarray of shape (m,), int
        Which samples are the router's sample points.
    points : optional
        Instead, these points themselves, as a fitted model has them, where it made the division.
    """

    router: Router
    labels: Labels
    sample_indices: RowIndices
    points: Rows = None


class ClusteringSettings(NamedTuple):
    """How many clusters, and how they are found.

    Attributes
    ----------
    k : int
        Number of clusters, about; at most 500, and the number of samples.
    method : {"kernel", "input"}
        Kernel k-means, or k-means of the rows.
    n_sample : int
        Sample size m, increased to 10 k and at most 5,000 and the number of rows that are sampled.
    """

    k: int
    method: str = "kernel"
    n_sample: int = 1000


def clustering_level(n: int, branching: int) -> int:
    """The level of fewest clusters of n rows that have at most 2,000 rows in the mean; 0 for one cluster.

    Or the first level of as many clusters as there can be: of more rows in the mean, where n is above a million.
    """
    n_clusters = min(max(n, 1) / CLUSTER_ROWS, _MAX_CLUSTERS)
    return max(0, int(np.ceil(np.log(n_clusters) / np.log(branching))))


def divide(
    operator: KernelOperator, clustering: ClusteringSettings, rng: np.random.Generator, **options: Any
) -> Division:
    """Divide samples into clusters of balanced sizes: the last of `divisions`, which takes the same arguments."""
    *_, balanced = divisions(operator, clustering, rng, **options)
    return balanced


def divisions(
    operator: KernelOperator,
    clustering: ClusteringSettings,
    rng: np.random.Generator,
    *,
    candidates: RowIndices | None = None,
    weights: Vector | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[Division]:
    """Cluster m samples, then assign every sample to its nearest centre: this division, and each that balances it more.

    Parameters
    ----------
    operator : KernelOperator
        Kernel and samples, n of them; `Stopped` is raised once their team is stopped.
    clustering : ClusteringSettings
    rng : numpy.random.Generator
    candidates : ndarray of int, optional
        The rows that are sampled; support vectors for adaptive clustering. All rows by default, and if there are fewer
        than 10 candidates per cluster.
    weights : ndarray of shape (n,), optional
        Of the samples in centres and sizes of kernel k-means, >= 0; ones by default. None of weight 0 is sampled.
    go_on : callable
        Whether to go on. If it returns False, kernel k-means ends with the centres that it has, k-means raises
        `Stopped`, and balancing ends with its last complete round.

    Yields
    ------
    Division

    Notes
    -----
    Balancing, in at most four rounds: the sample points of a cluster of more than 3 n / k samples are clustered again,
    those of one of less than n / (8 k) join the clusters with the next nearest centres, and all samples are assigned
    anew. Only centres change, so that the rule that divides the training set also routes new samples. There may be
    fewer or more than k clusters at the end.

    Kernel k-means costs m kernel entries a sample, k-means k distances.
    Source: two-step kernel k-means, Hsieh et al. 2014, section 3, after Ghitta et al. 2011.
    """
    kernel, samples, team = operator.kernel, operator.samples, operator.team
    weighted = np.arange(len(samples)) if weights is None else np.flatnonzero(weights)
    pool = weighted if candidates is None or len(candidates) < _POINTS_PER_CENTRE * clustering.k else candidates
    k = min(clustering.k, _MAX_CLUSTERS)
    m = min(len(pool), _MAX_POINTS, max(clustering.n_sample, _POINTS_PER_CENTRE * k))
    index = pool if m == len(pool) else np.sort(rng.choice(pool, m, replace=False))
    point_weights = None if weights is None else weights[index]
    points = KernelOperator(kernel, samples.take(index), team)
    router = _cluster(points, clustering._replace(k=k), rng, point_weights, go_on)
    mean = (len(samples) if weights is None else float(weights.sum())) / k
    labels = router.assign(samples, team)
    yield Division(router, labels, index)
    for _ in range(4):  # rounds, at most
        balanced = _balance(router, np.bincount(labels, weights, router.n_clusters), mean, rng)
        if balanced is None or not go_on():
            return
        router, labels = balanced, balanced.assign(samples, team)
        yield Division(router, labels, index)


def _cluster(
    operator: KernelOperator,
    clustering: ClusteringSettings,
    rng: np.random.Generator,
    weights: Vector | None,
    go_on: Callable[[], bool],
) -> Router:
    kernel, points, team, k = operator.kernel, operator.samples, operator.team, clustering.k
    if clustering.method == "input":
        work = kmeans_work(points.stored().size, k)
        task = partial(cluster_rows, points, k, rng)
        labels = run_interruptibly(task, lambda: go_on() and not team.native.is_stopped, work)
        return InputRouter(points, _renumbered(labels))
    K = np.empty((len(points), len(points)), points.dtype)
    fill_gram(kernel, points, K, team)
    labels = _renumbered(kernel_kmeans(K, k, rng, weights, go_on))
    return KernelRouter(kernel, points, labels, known_gram=K, weights=weights)


def _balance(router: Router, sizes: NDArray[np.number[Any]], mean: float, rng: np.random.Generator) -> Router | None:
    """The router with large clusters split and small ones dissolved; None if no sample point changes its cluster."""
    labels = router.labels.copy()
    k = len(sizes)
    for c in np.flatnonzero(sizes > _SIZES[1] * mean):
        points = np.flatnonzero(labels == c)
        parts = min(len(points), int(np.ceil(sizes[c] / mean)))
        if parts > 1:
            new = _renumbered(router.split(points, parts, rng))
            labels[points] = np.where(new == 0, c, k + new - 1)
            k += int(new.max())
    small = np.flatnonzero(sizes < _SIZES[0] * mean)
    if len(small) and len(small) < len(sizes):
        distances = router.distances()
        distances[:, small] = np.inf
        is_dissolved = np.isin(labels, small)
        labels[is_dissolved] = distances.argmin(axis=1)[is_dissolved]
    labels = _renumbered(labels)
    return None if np.array_equal(labels, router.labels) else router.with_labels(labels)


def _renumbered(labels: Labels) -> Labels:
    """The same clusters, numbered without gaps."""
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)
