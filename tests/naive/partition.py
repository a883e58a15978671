"""Clusters and what lies between them, by their definitions in float64."""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Labels = NDArray[np.intp]


def centre_distances(K: Matrix, labels: Labels, k: int) -> Matrix:
    """Return the squared feature-space distances of m points to the means of their k clusters; infinite if empty."""
    distances = np.full((len(labels), k), np.inf)
    for c in set(labels):
        mine = labels == c
        distances[:, c] = K.diagonal() - 2.0 * K[:, mine].mean(axis=1) + K[np.ix_(mine, mine)].mean()
    return distances


def clustering_objective(K: Matrix, labels: Labels) -> float:
    """Return the sum of squared feature-space distances of the points to the means of their own clusters."""
    distances = centre_distances(K, labels, int(labels.max()) + 1)
    return float(distances[np.arange(len(labels)), labels].sum())


def kernel_kmeans(K: Matrix, seeds: NDArray[np.intp], n_iter: int = 20) -> Labels:
    """Return the clusters of Lloyd's iterations from given seeds; an empty one gets the point that fits worst."""
    k = len(seeds)
    labels = np.array([np.argmin([K[s, s] - 2.0 * K[x, s] for s in seeds]) for x in range(len(K))])
    labels[seeds] = np.arange(k)
    for _ in range(n_iter):
        distances = centre_distances(K, labels, k)
        new = distances.argmin(axis=1)
        for c in range(k):
            if c not in new:
                fits = [distances[x, new[x]] if np.sum(new == new[x]) > 1 else -np.inf for x in range(len(K))]
                new[int(np.argmax(fits))] = c
        if np.array_equal(new, labels):
            break
        labels = new
    return labels


def seeds_objective(K: Matrix, seeds: NDArray[np.intp]) -> float:
    """Return the sum of squared distances of the points to the nearest seed."""
    return float(sum(min(K[x, x] - 2.0 * K[x, s] + K[s, s] for s in seeds) for x in range(len(K))))


def between_cluster_mass(K: Matrix, labels: Labels, upper: Vector) -> float:
    """Return the sum of u_i u_j |K_ij| over the ordered pairs in different clusters."""
    return float(upper @ (np.abs(K) * (labels[:, None] != labels)) @ upper)


def within_clusters(K: Matrix, labels: Labels) -> Matrix:
    """Return the kernel of Lemma 1: k(x_i, x_j) [same cluster]."""
    return K * (labels[:, None] == labels)
