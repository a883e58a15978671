"""Small Nystroem machines in the leaves of a tree: a row walks down, meets a few landmarks, and is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._jit import nystrom as compiled
from .._jit.workspace import Rows, make_rows
from .._parallel import ThreadTeam, row_blocks
from ..kernels.functions import Transform
from ..kernels.scratch import Scratch
from ..landmarks.features import LandmarkFeatures
from ..partition.hierarchy import Hierarchy

Vector = NDArray[np.float64]
Array = NDArray[np.floating]
Order = NDArray[np.int64]
Leaf = NDArray[np.int32]

_TILE_BYTES = 2**18  # of a block's features: they stay in the second-level cache
_BLOCK_ROWS = 64, 1024
_MANY = 32  # landmarks of a single leaf, from which on matrix products are faster
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
        if self.is_flat and not rows.starts.size:
            self._answer_flat(
                rows.data.reshape(-1, self.features.landmarks.shape[2])[order[0] : order[-1] + 1],
                tile,
                out[order[0] : order[-1] + 1],
            )
            return
        border, end = len(order) * self.features.n_values, len(order) * self.width
        F, linear = tile[:border].reshape(len(order), -1), tile[border:end].reshape(len(order), -1)
        self._finish(rows, order, leaf, F, linear, out)

    def _finish(self, rows: Rows, order: Order, leaf: Leaf, F: Array, linear: Array, out: Vector) -> None:
        self.features.measure(rows, order, leaf, F)
        if self.slopes.shape[1]:
            compiled.measure(rows, order, leaf, self.slopes, self._nothing, compiled.PRODUCTS, linear)
        compiled.answer(F, linear, order, leaf, self.coef, self.products, self.intercept, out)

    def for_one_row(self) -> Callable[[Rows], Vector]:
        """A function that writes the decision values of a single row into an array of its own, of shape (1, q)."""
        dtype, m, s = self.features.landmarks.dtype, self.features.n_values, self.slopes.shape[1]
        order, leaf, F, linear = (
            np.zeros(1, np.int64),
            np.zeros(1, np.int32),
            np.empty((1, m), dtype),
            np.empty((1, s), dtype),
        )
        out = np.empty((1, self.intercept.shape[1]))

        def decide(row: Rows) -> Vector:
            self.tree.route(row, order, leaf)
            self._finish(row, order, leaf, F, linear, out)
            return out

        return decide

    @property
    def is_flat(self) -> bool:
        """Whether all rows meet the same landmarks, many enough for matrix products."""
        k, m, p = self.features.anchors.shape
        return k == 1 and m >= _MANY and p == 0 and not self.products.size

    def _answer_flat(self, X: Array, tile: Array, out: Vector) -> None:
        """One matrix product for the kernel values, one for the decision values."""
        border, end = len(X) * self.features.n_values, len(X) * self.width
        F, linear = tile[:border].reshape(len(X), -1), tile[border:end].reshape(len(X), -1)
        self.features.fill(X, F)
        np.matmul(F, self._flat_coef, out=out)
        if self.slopes.shape[1]:
            np.matmul(X, self.slopes[0].T, out=linear)
            out += linear
        out += self.intercept[0]

    @cached_property
    def _flat_coef(self) -> Array:
        """Coefficients of the only leaf, of the features' dtype where there are many: sums of products in BLAS."""
        return np.ascontiguousarray(self.coef[0].T.astype(self.features.landmarks.dtype))

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

    @classmethod
    def from_arrays(cls, kernel: Transform, arrays: dict[str, NDArray[Any]]) -> Self:
        """The tree whose `arrays` these are."""
        k, m, _ = arrays["anchors"].shape
        return cls(
            Hierarchy(arrays["centres"], arrays["sizes"], arrays["children"]),
            LandmarkFeatures(
                kernel, arrays["landmarks"], arrays["anchors"], arrays["rules"], np.empty((k, 2, 0), np.int32)
            ),
            arrays["coef"],
            _unpack(arrays["products"], m),
            arrays["slopes"],
            arrays["intercept"],
        )

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
            "products": _pack(self.products),
            "slopes": self.slopes,
            "intercept": self.intercept,
        }

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_nothing", "_flat_coef")}


def _pack(products: Array) -> Array:
    """Lower triangles as rows: (k, q, m, m) to (k, q, m (m + 1) / 2)."""
    a, b = np.tril_indices(products.shape[2])
    return products[:, :, a, b]


def _unpack(packed: Array, m: int) -> Array:
    """The inverse of `_pack`."""
    m = m if packed.shape[2] else 0
    products = np.zeros((*packed.shape[:2], m, m), packed.dtype)
    a, b = np.tril_indices(m)
    products[:, :, a, b] = packed
    return products


@dataclass
class NystromForest:
    """The mean of several trees' decision values; mostly there is one.

    Attributes
    ----------
    trees : list of NystromTree
    projection : ndarray of shape (d, r) or None
        What rows are multiplied by before they meet the trees, whose rows then have r features.
    """

    trees: list[NystromTree]
    projection: Array | None = None

    @property
    def n_operations(self) -> float:
        """What a dense row costs, in inner products."""
        within = sum(tree.n_operations for tree in self.trees)
        if self.projection is None:
            return within
        d, r = self.projection.shape
        return float(r + within * r / d)

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        trees = sum(array.nbytes for tree in self.trees for array in tree.arrays.values())
        return trees + (0 if self.projection is None else int(self.projection.nbytes))

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
        n = X.shape[0]
        out = np.empty((n, self.n_outputs))
        row_bytes = self._dtype.itemsize * max(1, max(tree.width for tree in self.trees))
        blocks = row_blocks(n, int(np.clip(_TILE_BYTES // row_bytes, *_BLOCK_ROWS)))

        def answer(block: slice) -> None:
            n_bytes = row_bytes * (block.stop - block.start)
            with Scratch(n_bytes) as buffer:
                self._answer(X[block], buffer[:n_bytes].view(self._dtype), out[block])

        if len(blocks) < 2:  # waking threads takes longer
            for block in blocks:
                answer(block)
        else:
            with ThreadTeam(n_jobs) as team:
                team.map(answer, blocks)
        return out

    def _answer(self, X: Any, tile: Array, out: Vector) -> None:
        rows, order = make_rows(X if self.projection is None else X @ self.projection), np.arange(len(out))
        self.trees[0].answer(rows, order, tile, out)
        if len(self.trees) > 1:
            total = out.copy()
            for tree in self.trees[1:]:
                tree.answer(rows, order, tile, out)
                total += out
            out[:] = total / len(self.trees)

    def as_function(self) -> Callable[[Array], Vector]:
        """A function of one dense row, of shape (d,), that gives its q decision values: some microseconds a tree.

        The row's values are not checked.
        """
        dtype, projection, n_trees = self._dtype, self.projection, len(self.trees)
        trees = [tree.for_one_row() for tree in self.trees]
        no_columns, no_starts = np.empty(0, np.int32), np.empty(0, np.int64)

        def decide(x: Array) -> Vector:
            row = np.ascontiguousarray(x if projection is None else x @ projection, dtype)
            values = [tree(Rows(row, no_columns, no_starts))[0] for tree in trees]
            return values[0].copy() if n_trees == 1 else np.asarray(np.mean(values, axis=0))

        return decide
