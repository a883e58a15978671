"""Kernel functions of a tile, entry by entry."""

import numpy as np
from numpy.typing import NDArray

from . import Team

def rbf(G: NDArray[np.float32], squares: NDArray[np.float32], other_squares: NDArray[np.float32], gamma: float) -> None:
    """
    Replace inner products by exp(-gamma |x - z|^2); squares are gamma |x|^2.
    """

def rbf_exponent(
    G: NDArray[np.float64],
    squares: NDArray[np.float64],
    other_squares: NDArray[np.float64],
    gamma: float,
    out: NDArray[np.floating],
) -> None:
    """
    Write -gamma |x - z|^2 <= 0, from inner products G and gamma times squared norms.
    """

def polynomial(G: NDArray[np.floating], gamma: float, coef0: float, degree: int) -> None:
    """Replace inner products by (gamma <x, z> + coef0)^degree."""

def l1_distances(X: NDArray[np.floating], Z: NDArray[np.floating], out: NDArray[np.floating]) -> None:
    """Write the L1 distances of all rows of X and Z."""

def add_rows(
    team: Team, K: NDArray[np.floating], rows: NDArray[np.int64], coef: NDArray[np.float64], f: NDArray[np.float64]
) -> None:
    """
    f += coef K[rows] for f of shape (m,) and K (r, >= m), in float64. Stopped leaves f half done.
    """

def add_product(K: NDArray[np.floating], coef: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """
    out += coef K in float64; rows of K are skipped where their coefficient is zero.
    """
