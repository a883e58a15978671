"""Pseudo-landmarks: features computed from kernel values with the m landmarks, in O(m) or O(1) each.

Source: Hsieh, Si, Dhillon, Fast Prediction for Large-Scale Kernel Machines, NIPS 2014, section 4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._native import nystroem
from .._types import Array, Rows, Vector
from ..kernels.functions import ArgumentKernel
from .features import LandmarkFeatures
from .landmarks import select_landmarks


def landmark_features(kernel: ArgumentKernel, landmarks: Array) -> LandmarkFeatures:
    """Features of one leaf: kernel values with landmarks (m, d), without pseudo-landmarks."""
    m = len(landmarks)
    return LandmarkFeatures(
        kernel,
        np.ascontiguousarray(landmarks)[None],
        np.empty((1, m, 0), landmarks.dtype),
        np.array([nystroem.LOWER], np.int64),
        np.empty((1, 2, 0), np.int32),
    )


def add_pseudo_landmarks(
    features: LandmarkFeatures,
    X: Rows,
    pseudo: str | None,
    n_pseudo_landmarks: int,
    rng: np.random.Generator,
    *,
    weights: Vector | None = None,
) -> LandmarkFeatures:
    """Add pseudo-landmarks by one of the rules.

    Parameters
    ----------
    features : LandmarkFeatures
        Of one leaf, without pseudo-landmarks.
    X : ndarray or CSR array of shape (n, d)
        The leaf's rows. Where all of them are landmarks, there is nothing left to estimate.
    pseudo : {"triangle", "polynomial"} or None
    n_pseudo_landmarks : int
    rng : numpy.random.Generator
    weights : ndarray of shape (n,), optional
        Rows are drawn in proportion to them ("triangle").
    """
    if pseudo is None or n_pseudo_landmarks == 0 or features.landmarks.shape[1] == X.shape[0]:
        return features
    if pseudo == "polynomial":
        return add_products(features, n_pseudo_landmarks, rng)
    points = select_landmarks(X, n_pseudo_landmarks, rng, weights=weights, method="uniform")
    return add_by_triangle_rule(features, points, X)


def add_by_triangle_rule(features: LandmarkFeatures, points: Array, probe: Array) -> LandmarkFeatures:
    """Add pseudo-landmarks whose distance is estimated by the triangle inequality.

    Parameters
    ----------
    features : LandmarkFeatures
        Of one leaf, without pseudo-landmarks, with a kernel of distances.
    points : ndarray of shape (p, d)
        The pseudo-landmarks.
    probe : ndarray or CSR array of shape (r, d)
        Rows on which the lower and the upper bound are compared: the one that comes closer to the kernel is used.

    Notes
    -----
    Equation 6: max_j | |x - u_j| - |v - u_j| | <= |x - v| <= min_j (|x - u_j| + |v - u_j|). O(m) a pseudo-landmark.
    """
    if features.kernel.argument == "inner_product":
        raise ValueError("pseudo='triangle' is for kernels of distances, rbf and laplacian; use 'polynomial' or None")
    pseudo_distances = np.ascontiguousarray(features.distances(points).T)[None]
    exact = landmark_features(features.kernel, points).evaluate(probe)
    candidates = [
        replace(features, pseudo_distances=pseudo_distances, bounds=np.array([bound], np.int64))
        for bound in (nystroem.LOWER, nystroem.UPPER)
    ]
    m = features.landmarks.shape[1]
    return min(candidates, key=lambda candidate: float(np.square(candidate.evaluate(probe)[:, m:] - exact).sum()))


def add_products(features: LandmarkFeatures, n_products: int, rng: np.random.Generator) -> LandmarkFeatures:
    """Add products of two landmarks' kernel values: `n_products` of all m (m + 1) / 2, drawn at random.

    Notes
    -----
    The paper regresses pseudo-landmarks' values on these (equation 7, degree 2); here they are features themselves.
    With all products and the whole kernel matrix the approximation is at least as good (lemma 1).
    """
    first, second = np.triu_indices(features.landmarks.shape[1])
    chosen = np.sort(rng.permutation(len(first))[:n_products])
    pairs = np.stack([first[chosen], second[chosen]]).astype(np.int32)
    return replace(features, pairs=pairs[None])
