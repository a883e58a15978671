"""Weighted sums of the gradients of distances."""

import numpy as np
from numpy.typing import NDArray

def add_signed_sums(
    X: NDArray[np.floating], Zt: NDArray[np.floating], weights: NDArray[np.floating], out: NDArray[np.float64]
) -> None:
    """
    out_ik += sum_j weights_ij sign(X_ik - Z_jk) in float64, X (c, d), Zt (d, r) = Z', weights (c, r), out (c, d).
    """
