"""Trees of local Nystroem machines, row by row in float64."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


def route(X: Matrix, centres: NDArray, sizes: NDArray, children: NDArray) -> NDArray[np.intp]:
    """Return the leaf of every row: down to the nearest centre, the first of equally near ones."""
    leaves = []
    for x in X:
        node = 0
        while node >= 0:
            distances = [np.sum((x - u) ** 2) for u in centres[node, : sizes[node]].astype(float)]
            node = int(children[node, int(np.argmin(distances))])
        leaves.append(-1 - node)
    return np.array(leaves)


def pairwise(X: Matrix, U: Matrix, kind: str) -> Matrix:
    """Return inner products, squared distances or L1 distances of all pairs."""
    if kind == "inner_product":
        return X @ U.T
    return cdist(X, U, {"squared_distance": "sqeuclidean", "l1_distance": "cityblock"}[kind])


def bound_distances(D: Matrix, pseudo_distances: Matrix, lower: bool) -> Matrix:
    """Return the closest bounds of distances to pseudo-landmarks, from D (n, m) and pseudo_distances (m, p)."""
    differences = np.abs(D[:, :, None] - pseudo_distances[None])
    return differences.max(axis=1) if lower else (D[:, :, None] + pseudo_distances[None]).min(axis=1)


def decision_value(leaf: dict[str, Any], x: Vector, gamma: float) -> Vector:
    """Return <coef, f> + <f, P f> + <slope, x> + intercept (q,) of a leaf's RBF machines; P is a lower triangle."""
    D2 = cdist(x[None], leaf["landmarks"], "sqeuclidean")
    far = bound_distances(np.sqrt(D2), leaf["pseudo_distances"], leaf["bounds"] == 0)[0]
    f = np.exp(-gamma * D2)[0]
    value: Vector = leaf["intercept"] + leaf["coef"] @ np.append(f, np.exp(-gamma * far**2))
    if len(leaf["slopes"]):
        value = value + leaf["slopes"] @ x
    if leaf["products"].size:
        value = value + np.tril(leaf["products"]) @ f @ f
    return value


def decision_values(arrays: dict[str, NDArray[Any]], X: Matrix, gamma: float) -> Matrix:
    """Return the values (n, q) of a tree's machines."""
    nodes = {name: arrays[name] for name in ("centres", "sizes", "children")}
    leaves = route(X, **nodes) if len(nodes["sizes"]) else np.zeros(len(X), int)
    parts = {name: array.astype(float) for name, array in arrays.items() if name not in nodes}
    values = [decision_value({k: a[c] for k, a in parts.items()}, x, gamma) for x, c in zip(X, leaves, strict=True)]
    return np.array(values)
