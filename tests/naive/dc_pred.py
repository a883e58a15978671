"""DC-Pred++ as Hsieh, Si and Dhillon (2014) publish it, Algorithms 1 and 2 line by line, dense and in float64.

What the paper draws at random is given: the clusters, each cluster's landmarks, and its pseudo-landmarks by the
polynomial rule, as the pairs of landmarks whose kernel values are multiplied.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Kernel = Callable[[Matrix, Matrix], Matrix]


class Cluster(NamedTuple):
    landmarks: Matrix  # (m, d)
    pairs: NDArray[np.integer]  # (2, p)


def features(X: Matrix, cluster: Cluster, kernel: Kernel) -> Matrix:
    """Return C of equation (7): kernel values of the landmarks, and the products of pairs of them."""
    C = kernel(X, cluster.landmarks)
    return np.hstack([C, C[:, cluster.pairs[0]] * C[:, cluster.pairs[1]]])


def train(
    X: Matrix,
    y: Vector,
    label: NDArray[np.integer],
    clusters: list[Cluster],
    kernel: Kernel,
    solve: Callable[[Matrix, Vector], Vector],
) -> list[Vector]:
    """Return beta of each cluster; `solve` gives the signed alpha of equation (1) or (2) for a kernel matrix."""
    betas = []
    for i, cluster in enumerate(clusters):  # Algorithm 2: for each cluster
        rows = label == i
        G = kernel(X[rows], X[rows])
        C = features(X[rows], cluster, kernel)  # Algorithm 1: compute C, expand it by the pseudo-landmarks
        inverse = np.linalg.pinv(C)
        W = inverse @ G @ inverse.T  # equation (5)
        alpha = solve(C @ W @ C.T, y[rows])  # train on the approximate kernel
        betas.append(W @ C.T @ alpha)  # precompute beta
    return betas


def decision_values(
    X: Matrix, label: NDArray[np.integer], clusters: list[Cluster], betas: list[Vector], kernel: Kernel
) -> Vector:
    """Return <c, beta> of each sample, with the features and beta of its cluster."""
    return np.array([features(x[None], clusters[i], kernel)[0] @ betas[i] for x, i in zip(X, label, strict=True)])


def weighted_centroids(X: Matrix, landmarks: Matrix, alpha: Vector) -> Matrix:
    """Return the means, weighted by alpha^2, of the samples nearest to each landmark: a step of weighted k-means."""
    nearest = np.argmin([np.square(X - u).sum(axis=1) for u in landmarks], axis=0)
    members = [nearest == j for j in range(len(landmarks))]
    return np.array([np.average(X[rows], axis=0, weights=alpha[rows] ** 2) for rows in members])
