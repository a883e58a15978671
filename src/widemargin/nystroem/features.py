"""Features C of rows: kernel values with landmarks, estimates of those with pseudo-landmarks, products of two values;
and the factor F of the approximation K ≈ C F F' C'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, svd

from .._native import nystroem
from .._threads import cached_property, row_blocks
from .._types import Array, Matrix, Rows
from ..data.csr import row_arrays
from ..data.origin import FAR, origin_distance
from ..kernels.functions import ArgumentKernel

_Columns = NDArray[np.integer]


@dataclass
class LandmarkFeatures:
    """Features of k leaves: kernel values with m landmarks in each, and what one of two rules adds to them.

    Attributes
    ----------
    kernel : ArgumentKernel
    landmarks : ndarray of shape (k, m, d)
    pseudo_distances : ndarray of shape (k, m, p)
        Triangle rule, p estimated kernel values: distances |v - u| of pseudo-landmarks v from landmarks u; p = 0
        without it.
    bounds : ndarray of shape (k,), int
        Triangle rule: LOWER or UPPER, which bound of the triangle inequality is the estimate of a distance.
    pairs : ndarray of shape (k, 2, n_products), int32
        Polynomial rule, products of two landmarks' kernel values: the numbers of the two; n_products = 0 without it.
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
    def are_far(self) -> bool:
        """Whether landmarks are far from the origin, so that distances of CSR rows, by their norms, lose digits."""
        return origin_distance(self.landmarks.reshape(-1, self.landmarks.shape[2])) > FAR

    @cached_property
    def compiled(self) -> nystroem.Landmarks:
        """A copy for compiled code; ValueError if the arrays do not fit one another."""
        arrays: Any = map(np.ascontiguousarray, (self.landmarks, self.pseudo_distances, self.bounds))
        return nystroem.Landmarks(compiled_kernel(self.kernel), *arrays)

    def distances(self, X: Rows) -> Array:
        """Distances of the rows of X to the landmarks of the only leaf: (n, m)."""
        D = np.empty((X.shape[0], self.landmarks.shape[1]), self.landmarks.dtype)
        self.compiled.pairwise(row_arrays(X), D)
        return np.asarray(np.sqrt(D)) if self.kernel.argument == "squared_distance" else D

    def evaluate(self, X: Rows) -> Array:
        """Features of the rows of X in the only leaf: (n, n_features)."""
        values = np.empty((X.shape[0], self.n_kernel_values), self.landmarks.dtype)
        self.compiled.evaluate(row_arrays(X), values)
        return self.append_products(values)

    def append_products(self, values: Array) -> Array:
        """Features (n, n_features) of the only leaf: kernel values (n, m + p), and their products (polynomial rule)."""
        first, second = self.pairs[0]
        return np.hstack([values, values[:, first] * values[:, second]]) if len(first) else values

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("compiled", "are_far")}


def compiled_kernel(kernel: ArgumentKernel) -> nystroem.Kernel:
    """The kernel for compiled code."""
    parameters = {name: getattr(kernel, name) for name in ("gamma", "coef0", "degree") if hasattr(kernel, name)}
    return nystroem.Kernel(kernel.name, **parameters)


def stack_leaves(
    leaves: list[LandmarkFeatures],
) -> tuple[LandmarkFeatures, list[_Columns], list[tuple[_Columns, _Columns]]]:
    """Stack the features of single leaves, padded to the most landmarks and pseudo-landmarks of a leaf.

    Returns
    -------
    LandmarkFeatures
        Without pairs.
    list of ndarray of int
        For each leaf, the columns of the stack's kernel values that are its own.
    list of pairs of ndarrays of int
        For each leaf, the numbers of the two landmarks of each product, the larger number first.
    """
    m, p = (max(widths) for widths in zip(*(leaf.pseudo_distances.shape[1:] for leaf in leaves), strict=True))
    k, d, dtype = len(leaves), leaves[0].landmarks.shape[2], leaves[0].landmarks.dtype
    bounds = np.array([leaf.bounds[0] for leaf in leaves])
    no_pairs = np.empty((k, 2, 0), np.int32)
    stack = LandmarkFeatures(leaves[0].kernel, np.zeros((k, m, d), dtype), np.zeros((k, m, p), dtype), bounds, no_pairs)
    columns = []
    for c, leaf in enumerate(leaves):
        _, own_m, own_p = leaf.pseudo_distances.shape
        # missing landmarks repeat the first one, which leaves the bounds of all as they are
        stack.landmarks[c] = leaf.landmarks[0, :1]
        stack.landmarks[c, :own_m] = leaf.landmarks[0]
        if own_p:
            stack.pseudo_distances[c, :, :own_p] = leaf.pseudo_distances[0, :1]
            stack.pseudo_distances[c, :own_m, :own_p] = leaf.pseudo_distances[0]
        columns.append(np.r_[:own_m, m : m + own_p])
    return stack, columns, [(leaf.pairs[0, 1], leaf.pairs[0, 0]) for leaf in leaves]


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
