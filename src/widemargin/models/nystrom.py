"""Small Nystroem machines in the leaves of a tree: a row walks down, meets a few landmarks, and is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._jit import nystrom as compiled
from .._jit.workspace import Rows, make_rows
from .._parallel import ThreadTeam, row_blocks
from ..kernels.scratch import Scratch
from ..landmarks.features import LandmarkFeatures
from ..partition.hierarchy import Hierarchy

Vector = NDArray[np.float64]
Array = NDArray[np.floating]
Order = NDArray[np.int64]

_TILE_BYTES = 2**18  # of a block's features: they stay in the second-level cache
_BLOCK_ROWS = 64, 1024
_CACHED_BYTES = 2**20  # landmarks that stay in the second-level cache, in whatever order rows ask for them


@dataclass
class NystromTree:
    """Decision functions of q machines in each of k leaves.

    Attributes
    ----------
    tree : Hierarchy
        Of k leaves over d features.
    features : LandmarkFeatures
        m landmarks and p pseudo-landmarks by the triangle rule in each leaf: r = m + p values.
    coef : ndarray of shape (k, q, r), float64
    products : ndarray of shape (k, q, m, m), of the data's dtype
        Lower triangles: coefficients of products of two landmarks' values; of shape (k, q, 0, 0) without.
    slopes : ndarray of shape (k, q, d), of the data's dtype
        A linear part for each machine; of shape (k, 0, d) without.
    intercept : ndarray of shape (k, q), float64
    """

    tree: Hierarchy
    features: LandmarkFeatures
    coef: Vector
    products: Array
    slopes: Array
    intercept: Vector

    @property
    def width(self) -> int:
        """Numbers that a row's features take."""
        return self.features.n_values + int(self.slopes.shape[1])

    def answer(self, rows: Rows, order: Order, tile: Array, out: Vector) -> None:
        """Write the decision values of some rows.

        Parameters
        ----------
        rows : Rows
        order : ndarray of shape (b,), int64
            Which of them.
        tile : ndarray of shape (at least b * width,)
            Scratch, of the data's dtype.
        out : ndarray of shape (n, q)
        """
        leaf = np.empty(len(order), np.int32)
        self.tree.route(rows, order, leaf)
        if len(order) > 1 and self.features.landmarks.nbytes > _CACHED_BYTES:
            by_leaf = np.argsort(leaf, kind="stable")
            order, leaf = order[by_leaf], leaf[by_leaf]
        border, end = len(order) * self.features.n_values, len(order) * self.width
        F, linear = tile[:border].reshape(len(order), -1), tile[border:end].reshape(len(order), -1)
        self.features.measure(rows, order, leaf, F)
        if self.slopes.shape[1]:
            compiled.measure(rows, order, leaf, self.slopes, self._nothing, compiled.PRODUCTS, linear)
        compiled.answer(F, linear, order, leaf, self.coef, self.products, self.intercept, out)

    @cached_property
    def _nothing(self) -> Array:
        """The linear parts of the zero row."""
        return np.zeros(self.slopes.shape[:2], self.slopes.dtype)

    @property
    def n_operations(self) -> float:
        """What a dense row costs, in inner products: (routing + md + qd + mp + q (m + p + products)) / d."""
        _, m, d = self.features.landmarks.shape
        k, q, r = self.coef.shape
        products = np.count_nonzero(self.products) / k
        return float(self.tree.n_distances + m + self.slopes.shape[1] + (m * (r - m) + q * r + products) / d)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that has to be saved, by name."""
        features, tree = self.features, self.tree
        return {
            "centres": tree.centres,
            "sizes": tree.sizes,
            "children": tree.children,
            "landmarks": features.landmarks,
            "anchors": features.anchors,
            "rules": features.rules,
            "coef": self.coef,
            "products": self.products,
            "slopes": self.slopes,
            "intercept": self.intercept,
        }

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_nothing"}


@dataclass
class NystromForest:
    """The mean of several trees' decision values; mostly there is one.

    Attributes
    ----------
    trees : list of NystromTree
    """

    trees: list[NystromTree]

    @property
    def n_operations(self) -> float:
        """What a dense row costs, in inner products."""
        return sum(tree.n_operations for tree in self.trees)

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        return sum(array.nbytes for tree in self.trees for array in tree.arrays.values())

    @property
    def _dtype(self) -> np.dtype[Any]:
        return self.trees[0].features.landmarks.dtype

    @property
    def n_outputs(self) -> int:
        """q."""
        return int(self.trees[0].intercept.shape[1])

    def decide(self, X: Any, *, n_jobs: int | None = None, memory_budget: int = 2**30) -> Vector:
        """Decision values of shape (n, q), float64, which do not depend on `n_jobs`.

        Parameters
        ----------
        X : ndarray or CSR array of shape (n, d)
            Of the landmarks' dtype; dense rows C-contiguous.
        n_jobs : int or None
        memory_budget : int
            Never reached: a thread holds a block's features, a quarter of a megabyte.

        Notes
        -----
        A row costs some distances on its way down each tree, m distances in its leaf, and cheap operations for
        pseudo-landmarks. Nothing of X is copied.
        """
        rows, n = make_rows(X), X.shape[0]
        out = np.empty((n, self.n_outputs))
        row_bytes = self._dtype.itemsize * max(1, max(tree.width for tree in self.trees))
        blocks = row_blocks(n, int(np.clip(_TILE_BYTES // row_bytes, *_BLOCK_ROWS)))

        def answer(block: slice) -> None:
            n_bytes = row_bytes * (block.stop - block.start)
            with Scratch(n_bytes) as buffer:
                self._answer(rows, block, buffer[:n_bytes].view(self._dtype), out)

        if len(blocks) < 2:  # waking threads takes longer
            for block in blocks:
                answer(block)
        else:
            with ThreadTeam(n_jobs) as team:
                team.map(answer, blocks)
        return out

    def _answer(self, rows: Rows, block: slice, tile: Array, out: Vector) -> None:
        order = np.arange(block.start, block.stop)
        self.trees[0].answer(rows, order, tile, out)
        if len(self.trees) > 1:
            total = out[block].copy()
            for tree in self.trees[1:]:
                tree.answer(rows, order, tile, out)
                total += out[block]
            out[block] = total / len(self.trees)

    def as_function(self) -> Callable[[Array], Vector]:
        """A function of one dense row, of shape (d,), that gives its q decision values: some microseconds a tree.

        The row's values are not checked.
        """
        dtype, q = self._dtype, self.n_outputs
        no_columns, no_starts, row = np.empty(0, np.int32), np.empty(0, np.int64), slice(0, 1)
        tile = np.empty(max(tree.width for tree in self.trees), dtype)

        def decide(x: Array) -> Vector:
            out = np.empty((1, q))
            self._answer(Rows(np.ascontiguousarray(x, dtype), no_columns, no_starts), row, tile, out)
            return np.asarray(out[0])

        return decide
