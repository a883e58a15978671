"""DC-SVM as the paper has it (Hsieh, Si, Dhillon, ICML 2014), on a kernel matrix in float64."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .dual import signed, solve_qp

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]


class Level(NamedTuple):
    """What Algorithm 1 does at one level: the set S that is sampled, the number of clusters, and alpha after it."""

    candidates: Rows
    n_clusters: int
    alpha: Vector


def nearest_cluster(kernel: Callable[[Vector, Vector], float], x: Vector, sample: Matrix, labels: Rows) -> int:
    """Return pi(x): the cluster whose centre, the mean of its sample points in feature space, is nearest to x."""
    distances = []
    for c in range(labels.max() + 1):
        V = sample[labels == c]
        to_points = sum(kernel(x, v) for v in V) / len(V)
        between_points = sum(kernel(v, u) for v in V for u in V) / len(V) ** 2
        distances.append(kernel(x, x) - 2.0 * to_points + between_points)
    return int(np.argmin(distances))


def early_decision_value(
    kernel: Callable[[Vector, Vector], float],
    x: Vector,
    cluster: int,
    support_vectors: Matrix,
    coef: Vector,
    support_labels: Rows,
    intercepts: Vector,
) -> float:
    """Return sum_i y_i alpha_i k(x, x_i) over the support vectors of x's own cluster alone (section 4, equation 6)."""
    total = float(intercepts[cluster])
    for x_i, beta_i, label in zip(support_vectors, coef, support_labels, strict=True):
        if label == cluster:
            total += beta_i * kernel(x, x_i)
    return total


def train(
    K: Matrix, y: Vector, C: float, n_levels: int, branching: int, divide: Callable[[Rows, int], Rows], tol: float
) -> tuple[list[Level], Vector, Vector]:
    """Algorithm 1.

    Parameters
    ----------
    divide : callable
        Maps a set S of rows and a number of clusters to the labels (n,) of all rows, by two-step kernel k-means on a
        sample of S.

    Returns
    -------
    (list of Level, ndarray of shape (n,), ndarray of shape (n,))
        The levels, alpha after the refine step, and alpha at the end.
    """
    n = len(y)
    Q, p, upper = signed(K, y), -np.ones(n), np.full(n, C)
    alpha, levels = np.zeros(n), []
    for level in range(n_levels, 0, -1):
        n_clusters = branching**level  # "set number of clusters in the current level k_l = k^l"
        # "if l = l_max then sample m points from the whole training set, else from {x_i | alpha_i^(l+1) > 0}"
        candidates = np.arange(n) if level == n_levels else np.flatnonzero(alpha > 0)
        labels = divide(candidates, n_clusters)
        for c in range(labels.max() + 1):  # "obtain alpha^(l) by solving SVM for the data in the c-th cluster V_c^(l)"
            V = np.flatnonzero(labels == c)
            alpha[V] = solve_qp(Q[np.ix_(V, V)], p[V], upper[V], alpha=alpha[V], tol=tol)
        levels.append(Level(candidates, n_clusters, alpha.copy()))
    S = np.flatnonzero(alpha > 0)  # "refine: solve SVM on {x_i | alpha_i^(1) != 0}"
    alpha[S] = solve_qp(Q[np.ix_(S, S)], p[S], upper[S], alpha=alpha[S], tol=tol)
    refined = alpha.copy()
    return levels, refined, solve_qp(Q, p, upper, alpha=alpha, tol=tol)  # "using alpha^(0) as the initial point"
