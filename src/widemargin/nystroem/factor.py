"""The Nyström approximation K ≈ C W C' of least Frobenius error, for any features C of the rows."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, svd

from .._threads import row_blocks
from .._types import Array, Matrix


def nystroem_factor(C: Array, K: Array, damping: float = 0.0) -> Matrix:
    """The factor F of W = F F' for which C W C' is nearest to a kernel matrix.

    Parameters
    ----------
    C : ndarray of shape (r, n_features)
        Features of r rows.
    K : ndarray of shape (r, r)
        Their kernel matrix.
    damping : float, default 0.0
        Relative to the largest singular value of C. It bounds the coordinates of new rows along directions of small
        singular values, which these r rows hardly show.

    Returns
    -------
    ndarray of shape (n_features, rank), float64
        ``C @ F`` are coordinates whose inner products approximate the kernel.

    Notes
    -----
    W = C+ K (C+)' minimises |K - C W C'|_F (Hsieh et al. 2014, equation 5; Wang and Zhang 2013); damped, C+ is
    (C'C + (damping s)^2 I)^-1 C', with the largest singular value s. Directions of C below the rounding noise of its
    entries are left out, and what is left of W is positive semidefinite whether K was or not. O(r^2 n_features).
    """
    U, s, Vt = svd(C.astype(np.float64), full_matrices=False)
    noise = np.sqrt(max(C.shape)) * np.finfo(C.dtype).eps  # of a matrix of independent rounding errors
    kept = s > s.max(initial=0.0) * noise
    U, s, Vt = U[:, kept], s[kept], Vt[kept]
    scaled = Vt.T * (s / (s**2 + (damping * s.max(initial=0.0)) ** 2))
    projected = np.empty_like(U)
    for block in row_blocks(len(K)):  # K may be float32: a block at a time becomes float64
        projected[block] = K[block] @ U
    values, vectors = eigh(U.T @ projected)
    positive = values > len(U) * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0)
    return np.asarray(scaled @ (vectors[:, positive] * np.sqrt(values[positive])))
