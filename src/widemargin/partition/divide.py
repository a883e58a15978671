"""Making clusters that are neither starved nor swallow the rest, by rules that routing can repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._threads import ThreadTeam
from ..data.samples import Samples
from ..kernels.functions import Kernel
from .kmeans import Labels, kernel_kmeans
from .routing import InputRouter, KernelRouter, RandomRouter, Router, cluster_rows

_POINTS_PER_CENTRE = 10
_MOST_POINTS = 5000  # their kernel matrix is held: 100 MB, and k is at most a tenth of them
_LARGEST = 3.0  # times the mean size: a larger cluster is split
_SMALLEST = 0.125  # times the mean size: a smaller one joins its neighbours
_ROUNDS = 4


class Division(NamedTuple):
    """Clusters of a sample set.

    Attributes
    ----------
    router : Router
    labels : ndarray of shape (n,), int
        The cluster of each sample, below ``router.n_clusters``.
    sample_indices : ndarray of shape (m,), int
        Which samples are the router' sample points.
    """

    router: Router
    labels: Labels
    sample_indices: NDArray[np.intp]


def divide(
    kernel: Kernel,
    samples: Samples,
    k: int,
    *,
    method: str = "kernel",
    candidates: NDArray[np.intp] | None = None,
    n_sample: int = 1000,
    rng: np.random.Generator,
    team: ThreadTeam,
    go_on: Callable[[], bool] = lambda: True,
) -> Division:
    """Divide samples into about k clusters in two steps: cluster a sample of them, assign the others.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    k : int
        At most n.
    method : {"kernel", "input", "random"}
        Kernel k-means, k-means of the rows, or by chance.
    candidates : ndarray of int, optional
        Where to take the sample from: support vectors make the clustering adaptive. All by default.
    n_sample : int
        Size m of the sample; at least 10 k are taken, as far as there are so many, and at most 5,000: k is at most 500.
    rng : numpy.random.Generator
    team : ThreadTeam
    go_on : callable
        Asked before each round of balancing; once it returns False, the clusters stay as they are.

    Returns
    -------
    Division

    Notes
    -----
    Balance, as far as four rounds get: a cluster of more than 3 n / k samples has its sample points clustered again,
    one of less than n / (8 k) gives its sample points to their next nearest centres, and everything is assigned anew.
    Only the centres change, never single samples, so that new samples are routed by the rule that divided the training
    set. There may be fewer than k clusters afterwards, and more where they were split.

    Kernel k-means costs m kernel entries a sample, k-means k distances.
    Source: two-step kernel k-means, Hsieh et al. 2014, section 3, after Ghitta et al. 2011.
    """
    n = len(samples)
    pool = np.arange(n) if candidates is None or len(candidates) < _POINTS_PER_CENTRE * k else candidates
    k = min(k, max(1, _MOST_POINTS // _POINTS_PER_CENTRE))
    m = min(len(pool), _MOST_POINTS, max(n_sample, _POINTS_PER_CENTRE * k))
    index = np.sort(rng.choice(pool, m, replace=False))
    router = _cluster(kernel, samples.take(index), k, method, rng)
    labels = router.assign(samples, team)
    for _ in range(_ROUNDS):
        better = _balance(router, np.bincount(labels, minlength=router.n_clusters), n / k, rng)
        if better is None or not go_on():
            break
        router = router.with_labels(better)
        labels = router.assign(samples, team)
    return Division(router, labels, index)


def _cluster(kernel: Kernel, points: Samples, k: int, method: str, rng: np.random.Generator) -> Router:
    if method == "random":
        return RandomRouter(points, rng.permutation(len(points)) % k)
    if method == "input":
        return InputRouter(points, _dense_labels(cluster_rows(points, k, rng)))
    router = KernelRouter(kernel, points, np.zeros(len(points), np.intp))
    return router.with_labels(_dense_labels(kernel_kmeans(router.gram, k, rng)))


def _balance(router: Router, sizes: NDArray[np.intp], mean: float, rng: np.random.Generator) -> Labels | None:
    """Labels of the sample points with large clusters split and small ones dissolved; None if all is well."""
    labels = router.labels.copy()
    k = len(sizes)
    for c in np.flatnonzero(sizes > _LARGEST * mean):
        points = np.flatnonzero(labels == c)
        parts = min(len(points), int(np.ceil(sizes[c] / mean)))
        if parts > 1:
            new = _dense_labels(router.split(points, parts, rng))
            labels[points] = np.where(new == 0, c, k + new - 1)
            k += int(new.max())
    small = np.flatnonzero(sizes < _SMALLEST * mean)
    if len(small) and len(small) < len(sizes):
        distances = router.distances()
        distances[:, small] = np.inf
        lost = np.isin(labels, small)
        labels[lost] = distances.argmin(axis=1)[lost]
    labels = _dense_labels(labels)
    return None if np.array_equal(labels, router.labels) else labels


def _dense_labels(labels: Labels) -> Labels:
    """The same clusters, numbered without gaps."""
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)
