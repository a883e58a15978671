"""Held-out values of early machines by plain loops: a machine for every cluster, fold, C and pair of classes."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .dual import solve_qp
from .kernels import rbf

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]


def pairs_of(y: Indices) -> list[tuple[int, int]]:
    """(negative, positive) class of each machine: of two classes the second is positive, of several a pair's first."""
    n_classes = int(y.max()) + 1
    return [(0, 1)] if n_classes == 2 else [(b, a) for a, b in combinations(range(n_classes), 2)]


def classifier_values(
    machine: Any,
    X: Any,
    y: Indices,
    weights: Vector,
    clusters: Sequence[Indices],
    train: Indices,
    test: Indices,
    C: Any,
) -> tuple[Indices, Vector]:
    """Held-out rows, cluster by cluster, and their decision values (n_test, n_pairs).

    A pair of which a cluster's training rows have one class alone has the value of that class, +-1; without an
    intercept it has a machine all the same.
    """
    rows, values = [], []
    for cluster in clusters:
        own, held_out = cluster[np.isin(cluster, train)], cluster[np.isin(cluster, test)]
        table = np.zeros((len(held_out), len(pairs_of(y))))
        for p, (negative, positive) in enumerate(pairs_of(y)):
            mine = own[np.isin(y[own], (negative, positive)) & (weights[own] > 0)]
            signs = np.where(y[mine] == positive, 1, -1)
            both = np.isin((negative, positive), y[train]).all()
            if both and len(np.unique(signs)) == 1:
                table[:, p] = signs[0]
                if not machine.fit_intercept:
                    K = rbf(X[mine], X[mine], machine.gamma)
                    alpha = solve_qp(K, -np.ones(len(mine)), C * weights[mine], tol=1e-8)
                    table[:, p] *= rbf(X[held_out], X[mine], machine.gamma) @ alpha
            elif both and len(signs) and len(held_out):
                model = clone(machine).set_params(C=C).fit(X[mine], signs, weights[mine])
                table[:, p] = model.decision_function(X[held_out])
        rows.append(held_out)
        values.append(table)
    return np.concatenate(rows), np.concatenate(values)


def regressor_values(
    machine: Any,
    X: Any,
    Y: Vector,
    weights: Vector,
    clusters: Sequence[Indices],
    train: Indices,
    test: Indices,
    C: float,
) -> tuple[Indices, Vector]:
    """Held-out rows, cluster by cluster, and their values (n_test, n_targets)."""
    rows, values = [], []
    for cluster in clusters:
        own, held_out = cluster[np.isin(cluster, train)], cluster[np.isin(cluster, test)]
        models = [clone(machine).set_params(C=C).fit(X[own], target[own], weights[own]) for target in Y.T]
        rows.append(held_out)
        values.append(np.stack([model.predict(X[held_out]) for model in models], axis=1))
    return np.concatenate(rows), np.concatenate(values)
