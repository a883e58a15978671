"""Trees of local Nystroem machines: routing and prediction."""

import numpy as np
from numpy.typing import NDArray

from . import Team, csr

LOWER: int = 0
UPPER: int = 1

class Kernel:
    """A kernel function of an inner product or a distance."""

    def __init__(self, name: str, gamma: float = 1.0, coef0: float = 0.0, degree: int = 1) -> None:
        """name: as in kernels/functions.py."""

class Tree:
    """
    A tree of cluster centres, which routes a row to a leaf: at each node to the child of the nearest centre.
    """

    def __init__(self, centres: NDArray[np.floating], sizes: NDArray[np.int32], children: NDArray[np.int32]) -> None:
        """
        centres (n_nodes, b, d), copied; sizes (n_nodes,) int32, a node's number of centres; children (n_nodes, b) int32, a later node or -1 - leaf.
        """

    def route(self, X: NDArray[np.floating] | csr.CSRMatrix, rows: NDArray[np.int64], out: NDArray[np.int32]) -> None:
        """Write the leaves of the rows X[rows], X (n, d): out (m,) int32."""

    @property
    def n_leaves(self) -> int: ...
    @property
    def depth(self) -> int:
        """The number of nodes on the longest path to a leaf."""

    @property
    def n_distances(self) -> int:
        """The largest number of distances on a path to a leaf."""

class Landmarks:
    """k leaves, each with m landmarks and p pseudo-landmarks."""

    def __init__(
        self,
        kernel: Kernel,
        landmarks: NDArray[np.floating],
        pseudo_distances: NDArray[np.floating],
        bounds: NDArray[np.int64],
    ) -> None:
        """
        landmarks (k, m, d); pseudo_distances (k, m, p), of pseudo-landmarks from landmarks; bounds (k,) int64, LOWER or UPPER. All are copied.
        """

    def pairwise(self, X: NDArray[np.floating] | csr.CSRMatrix, out: NDArray[np.floating]) -> None:
        """
        Write the kernel arguments, <x, u>, |x - u|^2 or |x - u|_1, of the rows of X (n, d) and the landmarks of the
        first leaf: out (n, m).
        """

    def evaluate(self, X: NDArray[np.floating] | csr.CSRMatrix, out: NDArray[np.floating]) -> None:
        """
        Write the kernel values of the rows of X (n, d) with the landmarks and pseudo-landmarks of the first leaf:
        out (n, m + p).
        """

class Machine:
    """
    q decision functions <coef, f> + <f, P f> + <slope, x> + intercept in each leaf of a tree; f are the kernel values
    with its landmarks and pseudo-landmarks.
    """

    def __init__(
        self,
        tree: Tree,
        landmarks: Landmarks,
        coef: NDArray[np.float64],
        products: NDArray[np.floating],
        slopes: NDArray[np.floating],
        intercept: NDArray[np.float64],
    ) -> None:
        """
        coef (k, q, m + p) float64; products P (k, q, m, m), only lower triangles are read, or (k, q, 0, 0); slopes (k, q, d) or (k, 0, d); intercept (k, q) float64. All are copied.
        """

    def decision_values(self, team: Team, X: NDArray[np.floating] | csr.CSRMatrix, out: NDArray[np.float64]) -> None:
        """
        Write the q decision values of each row of X (n, d), by the machines of its leaf: out (n, q) float64.
        """
