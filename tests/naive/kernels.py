"""Kernel matrices in float64, of SciPy's distances: nothing here is shared with the package."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

Matrix = NDArray[np.float64]


def linear(X: ArrayLike, Z: ArrayLike) -> Matrix:
    """Return k(x, z) = <x, z>."""
    return _dense(X) @ _dense(Z).T


def rbf(X: ArrayLike, Z: ArrayLike, gamma: float) -> Matrix:
    """Return k(x, z) = exp(-gamma * ||x - z||^2)."""
    return np.exp(-gamma * cdist(_dense(X), _dense(Z), "sqeuclidean"))


def laplacian(X: ArrayLike, Z: ArrayLike, gamma: float) -> Matrix:
    """Return k(x, z) = exp(-gamma * ||x - z||_1)."""
    return np.exp(-gamma * cdist(_dense(X), _dense(Z), "cityblock"))


def polynomial(X: ArrayLike, Z: ArrayLike, gamma: float, degree: float = 3, coef0: float = 0.0) -> Matrix:
    """Return k(x, z) = (gamma <x, z> + coef0)^degree."""
    return (gamma * linear(X, Z) + coef0) ** degree


def gradient(
    name: str, x: Any, Z: Any, coef: ArrayLike, *, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0
) -> NDArray[np.float64]:
    """Return the gradient (d,) by x of sum_j coef_j k(x, z_j), with sign(0) = 0 for the Laplacian kernel."""
    x, rows, total = _dense(x).ravel(), _dense(Z), np.zeros(_dense(x).size)
    for z, c in zip(rows, np.asarray(coef), strict=True):
        product = float(np.dot(x, z))
        parts: dict[str, Callable[[], Any]] = {
            "linear": lambda z=z: z,
            "rbf": lambda z=z: -2 * gamma * math.exp(-gamma * float(np.sum((x - z) ** 2))) * (x - z),
            "laplacian": lambda z=z: -gamma * math.exp(-gamma * float(np.sum(np.abs(x - z)))) * np.sign(x - z),
            "poly": lambda z=z, g=product: (
                degree * gamma * (gamma * g + coef0) ** (degree - 1) * z if degree else np.zeros(len(z))
            ),
            "sigmoid": lambda z=z, g=product: gamma * (1 - math.tanh(gamma * g + coef0) ** 2) * z,
        }
        total = total + c * parts[name]()
    return total


def _dense(X: Any) -> Matrix:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def near_product(
    X: Matrix,
    starts: NDArray[np.int64],
    lows: Matrix,
    highs: Matrix,
    limit: float,
    coef: Matrix,
    Z: Matrix,
    kernel: Any,
) -> tuple[Matrix, int]:
    """Return coef @ K(X, Z) without the entries of batches whose box is farther than `limit`, and the number of others.

    The distance is the sum over the features of gaps to the box [lows[:, b], highs[:, b]]: of their squares for RBF.
    """
    squared = type(kernel).__name__ == "RBF"
    K, n_near = (rbf if squared else laplacian)(X, Z, kernel.gamma), 0
    for b in range(len(starts) - 1):
        for j, z in enumerate(Z):
            gaps = [max(low - x, x - high, 0.0) for x, low, high in zip(z, lows[:, b], highs[:, b], strict=True)]
            if sum(g * g if squared else g for g in gaps) > limit:
                K[starts[b] : starts[b + 1], j] = 0.0
            else:
                n_near += int(starts[b + 1] - starts[b])
    return coef @ K, n_near
