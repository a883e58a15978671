"""Features of a row: its kernel values with landmarks, and estimates of those with pseudo-landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._native import nystroem
from .._types import Array
from ..data.csr import row_arrays
from ..kernels.functions import RBF, ArgumentKernel, Laplacian, Linear, Polynomial, Sigmoid

_Columns = NDArray[np.integer]

_NAMES = {RBF: "rbf", Laplacian: "laplacian", Polynomial: "poly", Sigmoid: "sigmoid", Linear: "linear"}


@dataclass
class LandmarkFeatures:
    """Features of k leaves, each with m landmarks, and p pseudo-landmarks (triangle rule) or products of landmarks'.

    Attributes
    ----------
    kernel : ArgumentKernel
    landmarks : ndarray of shape (k, m, d)
    pseudo_distances : ndarray of shape (k, m, p)
        Triangle rule: distances |v - u| of pseudo-landmarks v from landmarks u. Empty without it.
    bounds : ndarray of shape (k,), int
        Triangle rule: LOWER or UPPER, which bound of the triangle inequality is the estimate of a distance.
    pairs : ndarray of shape (k, 2, n_products), int32
        Polynomial rule: which two landmarks' values are multiplied. Empty without it.
    """

    kernel: ArgumentKernel
    landmarks: Array
    pseudo_distances: Array
    bounds: NDArray[np.int64]
    pairs: NDArray[np.int32]

    @property
    def n_leaves(self) -> int:
        """Number of leaves k."""
        return len(self.landmarks)

    @property
    def n_kernel_values(self) -> int:
        """Number m + p of kernel values, computed and estimated."""
        return int(self.landmarks.shape[1] + self.pseudo_distances.shape[2])

    @property
    def n_features(self) -> int:
        """Number of kernel values and of products of the polynomial rule."""
        return int(self.n_kernel_values + self.pairs.shape[2])

    @cached_property
    def compiled(self) -> nystroem.Landmarks:
        """A copy for compiled code; ValueError if the arrays do not fit one another."""
        arrays: Any = map(np.ascontiguousarray, (self.landmarks, self.pseudo_distances, self.bounds))
        return nystroem.Landmarks(compiled_kernel(self.kernel), *arrays)

    def distances(self, X: Any) -> Array:
        """Distances of the rows of X to the landmarks of the only leaf: (n, m)."""
        D = np.empty((X.shape[0], self.landmarks.shape[1]), self.landmarks.dtype)
        self.compiled.pairwise(row_arrays(X), D)
        return np.asarray(np.sqrt(D)) if self.kernel.argument == "squared_distance" else D

    def evaluate(self, X: Any) -> Array:
        """Features of the rows of X in the only leaf: (n, n_features)."""
        F = np.empty((X.shape[0], self.n_kernel_values), self.landmarks.dtype)
        self.compiled.evaluate(row_arrays(X), F)
        return self.with_products(F)

    def with_products(self, F: Array) -> Array:
        """Append the products of the polynomial rule to the kernel values F (n, m + p) of the only leaf."""
        first, second = self.pairs[0]
        return np.hstack([F, F[:, first] * F[:, second]]) if len(first) else F

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "compiled"}


def compiled_kernel(kernel: ArgumentKernel) -> nystroem.Kernel:
    """The kernel for compiled code."""
    parameters = {name: getattr(kernel, name) for name in ("gamma", "coef0", "degree") if hasattr(kernel, name)}
    return nystroem.Kernel(_NAMES[type(kernel)], **parameters)


def stack_leaves(
    leaves: list[LandmarkFeatures],
) -> tuple[LandmarkFeatures, list[_Columns], list[tuple[_Columns, _Columns]]]:
    """Stack the features of single leaves, padded to the most landmarks and pseudo-landmarks of a leaf.

    Returns
    -------
    LandmarkFeatures
        Without pairs.
    list of ndarray of int
        For each leaf, the columns of the kernel values that its landmarks and pseudo-landmarks became.
    list of pairs of ndarrays of int
        For each leaf, the two landmarks of its products, the larger number first.
    """
    m, p = (max(widths) for widths in zip(*(leaf.pseudo_distances.shape[1:] for leaf in leaves), strict=True))
    k, d, dtype = len(leaves), leaves[0].landmarks.shape[2], leaves[0].landmarks.dtype
    bounds = np.array([leaf.bounds[0] for leaf in leaves])
    no_pairs = np.empty((k, 2, 0), np.int32)
    table = LandmarkFeatures(leaves[0].kernel, np.zeros((k, m, d), dtype), np.zeros((k, m, p), dtype), bounds, no_pairs)
    places = []
    for c, leaf in enumerate(leaves):
        _, own_m, own_p = leaf.pseudo_distances.shape
        # a missing landmark is the first one again: its bounds are the first one's too
        table.landmarks[c] = leaf.landmarks[0, :1]
        table.landmarks[c, :own_m] = leaf.landmarks[0]
        if own_p:
            table.pseudo_distances[c, :, :own_p] = leaf.pseudo_distances[0, :1]
            table.pseudo_distances[c, :own_m, :own_p] = leaf.pseudo_distances[0]
        places.append(np.r_[:own_m, m : m + own_p])
    return table, places, [(leaf.pairs[0, 1], leaf.pairs[0, 0]) for leaf in leaves]
