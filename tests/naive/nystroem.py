"""Trees of local Nystroem machines, row by row in float64."""

import numpy as np
from numpy.typing import NDArray

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
    functions = {
        "inner_product": lambda x, u: np.sum(x * u),
        "squared_distance": lambda x, u: np.sum((x - u) ** 2),
        "l1_distance": lambda x, u: np.sum(np.abs(x - u)),
    }
    return np.array([[functions[kind](x, u) for u in U] for x in X])


def bound_distances(D: Matrix, pseudo_distances: Matrix, lower: bool) -> Matrix:
    """Return the closest bounds of distances to pseudo-landmarks, from D (n, m) and pseudo_distances (m, p)."""
    differences = np.abs(D[:, :, None] - pseudo_distances[None])
    return differences.max(axis=1) if lower else (D[:, :, None] + pseudo_distances[None]).min(axis=1)


def decision_value(f: Vector, coef: Vector, products: Matrix, slope: Vector, x: Vector, intercept: float) -> float:
    """Return <coef, f> + <f, P f> + <slope, x> + intercept for one row; P is a lower triangle."""
    total = float(coef @ f) + intercept + float(slope @ x)
    m = len(products)
    return total + sum(products[a, b] * f[a] * f[b] for a in range(m) for b in range(a + 1))


def pivoted_residual(K: Matrix, pivots: NDArray[np.intp]) -> Matrix:
    """Return K - K[:, S] K[S, S]^-1 K[S, :], by one elimination for each of the rows S."""
    R = K.astype(float)
    for s in pivots:
        R = R - np.outer(R[:, s], R[s]) / R[s, s]
    return R
