"""Trees of local Nystroem machines, row by row in float64."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Matrix = NDArray[np.float64]


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


def decision_values(arrays: dict[str, NDArray[Any]], X: Matrix, gamma: float) -> Matrix:
    """Return <coef, f> + <f, P f> + <slope, x> + intercept (n, q), with the RBF kernel; P is a lower triangle."""
    a = {name: array if array.dtype.kind == "i" else array.astype(float) for name, array in arrays.items()}
    nodes = a["centres"], a["sizes"], a["children"]
    leaves = route(X, *nodes) if len(a["centres"]) else np.zeros(len(X), int)
    out = np.empty((len(X), a["intercept"].shape[1]))
    for i, c in enumerate(leaves):
        D2 = cdist(X[i : i + 1], a["landmarks"][c], "sqeuclidean")
        far = bound_distances(np.sqrt(D2), a["pseudo_distances"][c], a["bounds"][c] == 0)[0]
        f = np.exp(-gamma * D2)[0]
        out[i] = a["intercept"][c] + a["coef"][c] @ np.append(f, np.exp(-gamma * far**2))
        if a["slopes"].shape[1]:
            out[i] += a["slopes"][c] @ X[i]
        if a["products"].shape[2]:
            out[i] += np.tril(a["products"][c]) @ f @ f
    return out


def pivoted_residual(K: Matrix, pivots: NDArray[np.intp]) -> Matrix:
    """Return K - K[:, S] K[S, S]^-1 K[S, :], by one elimination for each of the rows S."""
    R = K.astype(float)
    for s in pivots:
        R = R - np.outer(R[:, s], R[s]) / R[s, s]
    return R
