"""Principal directions of curvature of a kernel expansion; features for a nearly quadratic one: squares along them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._threads import row_blocks
from .._types import Array, Matrix, Vector
from ..kernels.functions import Linear
from ..nystroem.features import LandmarkFeatures
from ..nystroem.pseudo_landmarks import landmark_features


def principal_directions(points: Any, coef: Vector, gamma: float, centre: Vector, m: int) -> Matrix:
    """The m eigenvectors (m, d) of largest absolute eigenvalue of the Hessian of f at the centre c (d,).

    f(x) = sum_i coef_i exp(-gamma |x_i - x|^2) has there the Hessian

        sum_i h_i (4 gamma^2 (x_i - c)(x_i - c)' - 2 gamma I),    h_i = coef_i exp(-gamma |x_i - c|^2).

    Parameters
    ----------
    points : ndarray or CSR array of shape (n, d)
    coef : ndarray of shape (n,)
    gamma : float
    centre : ndarray of shape (d,)
    m : int
        At most d.

    Notes
    -----
    O(n d^2 + d^3) and 8 (2 d^2 + 1024 d) bytes.
    """
    d = len(centre)
    total, outer = 0.0, np.zeros((d, d))
    for block in row_blocks(points.shape[0]):
        Z = (points[block].toarray() if sp.issparse(points) else points[block]) - centre
        h = coef[block] * np.exp(-gamma * np.einsum("ij,ij->i", Z, Z))
        total += float(h.sum())
        outer += (h[:, None] * Z).T @ Z
    values, vectors = np.linalg.eigh(2.0 * gamma * outer - total * np.eye(d))
    return np.asarray(vectors[:, np.argsort(-np.abs(values), kind="stable")[:m]].T)


def squares_along(directions: Array) -> LandmarkFeatures:
    """Features <u_j, x> and <u_j, x>^2 of one leaf for m directions u_j (m, d), by a linear kernel."""
    features, numbers = landmark_features(Linear(), directions), np.arange(len(directions), dtype=np.int32)
    features.pairs = np.stack([numbers, numbers])[None]
    return features
