"""Kernel matrices entry by entry, in float64.

Each function is the textbook formula in two plain loops. Nothing here is shared with the package, so an agreement
between the two is evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


def rbf(X: ArrayLike, Z: ArrayLike, gamma: float) -> Matrix:
    """Return k(x, z) = exp(-gamma * ||x - z||^2)."""
    return _fill(X, Z, lambda x, z: math.exp(-gamma * float(np.sum((x - z) ** 2))))


def laplacian(X: ArrayLike, Z: ArrayLike, gamma: float) -> Matrix:
    """Return k(x, z) = exp(-gamma * ||x - z||_1)."""
    return _fill(X, Z, lambda x, z: math.exp(-gamma * float(np.sum(np.abs(x - z)))))


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


def _fill(X: ArrayLike, Z: ArrayLike, k: Callable[[Matrix, Matrix], float]) -> Matrix:
    rows, columns = _dense(X), _dense(Z)
    K = np.empty((len(rows), len(columns)))
    for i, x in enumerate(rows):
        for j, z in enumerate(columns):
            K[i, j] = k(x, z)
    return K


def _dense(X: Any) -> Matrix:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
