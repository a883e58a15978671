"""Kernel values for rivals, by one matrix product and one elementwise pass in the dtype of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def kernel_values(X: NDArray[Any], Z: NDArray[Any], gamma: float, kernel: str = "rbf") -> NDArray[Any]:
    """K(X, Z) of shape (len(X), len(Z)): exp(-gamma |x - z|^2), or (gamma x'z)^3 for "poly"."""
    K = X @ Z.T.astype(X.dtype)
    if kernel == "poly":
        K *= gamma
        return np.asarray(K**3)
    K *= -2
    K += np.einsum("ij,ij->i", X, X)[:, None]
    K += np.einsum("ij,ij->i", Z, Z)
    np.maximum(K, 0, out=K)
    K *= -gamma
    return np.asarray(np.exp(K, out=K))
