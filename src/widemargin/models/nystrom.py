"""Small Nystroem machines in the leaves of a tree: a row walks down, meets a few landmarks, and is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._jit import nystrom as compiled
from .._jit import panels
from .._jit.workspace import Points, Rows, make_rows
from .._parallel import ThreadTeam, row_blocks
from ..kernels.functions import Transform
from ..kernels.scratch import Scratch
from ..landmarks.features import LandmarkFeatures
from ..partition.hierarchy import Hierarchy, single_leaf

Vector = NDArray[np.float64]
Array = NDArray[np.floating]
Order = NDArray[np.int64]
Leaf = NDArray[np.int32]

_TILE_BYTES = 2**18  # of a block's features: they stay in the second-level cache
_BLOCK_ROWS = 64, 1024
_NARROW = 128  # features up to which rows are answered in panels
_NARROW_ROWS = 8192, 16384  # of a block of them: a block costs 50 microseconds of Python
_ROW_OPERATIONS = 100  # that finding a row's place takes as long as
_LEAST_OPERATIONS = 4e6  # with fewer, waking the other threads takes longer than they save
_LEAF_ROWS = 8  # a leaf must have on average, for its panels to pay
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

    def answer(self, X: Any, out: Vector) -> None:
        """Write the decision values of a batch.

        Parameters
        ----------
        X : ndarray or CSR array of shape (b, d)
            Of the landmarks' dtype; dense rows C-contiguous.
        out : ndarray of shape (b, q)
        """
        n_bytes = self.scratch_bytes(len(out))
        with Scratch(n_bytes) as buffer:
            tile = buffer[:n_bytes].view(self.features.landmarks.dtype)
            if hasattr(X, "indptr"):
                self._answer_rows(make_rows(X), tile, out)
            elif self.is_flat:
                self._answer_flat(X, tile, out)
            elif self.takes_panels(len(out)):
                self._answer_panels(X, tile, out)
            else:
                self._answer_rows(make_rows(X), tile, out)

    def scratch_bytes(self, n_rows: int) -> int:
        """What a batch of so many rows needs."""
        n_panels = n_rows // panels.LANES + self.tree.n_leaves if self.takes_panels(n_rows) else 0
        return self.width * max(n_rows, n_panels * panels.LANES) * self.features.landmarks.itemsize

    def takes_panels(self, n_rows: int) -> bool:
        """Whether so many dense rows side by side are faster than each by itself."""
        is_narrow = self.features.landmarks.shape[2] <= _NARROW
        return is_narrow and self.features.anchors.shape[2] == 0 and n_rows >= _LEAF_ROWS * self.tree.n_leaves

    def _answer_panels(self, X: Array, tile: Array, out: Vector) -> None:
        """Rows of one node, or of one leaf, are put together before they are compared."""
        k, m, _ = self.features.landmarks.shape
        nodes, q = self.tree.arrays, self.slopes.shape[1]
        most = len(X) // panels.LANES + max(k, len(nodes.sizes))
        space = np.empty((most, panels.LANES), np.int32), np.empty(most, np.int32)

        def gather(label: Leaf, n_groups: int) -> tuple[Leaf, Leaf]:
            n_panels = panels.gather(label, n_groups, *space)
            return space[0][:n_panels], space[1][:n_panels]

        label = np.full(len(X), 0 if self.tree.depth else -1, np.int32)
        for _ in range(self.tree.depth):
            panels.descend(X, *gather(label, len(nodes.sizes)), nodes, label)
        rows, leaf = gather(-1 - label, k)
        F = tile[: len(rows) * (m + q) * panels.LANES].reshape(-1, panels.LANES)
        panels.measure(X, rows, leaf, self.features.landmarks, self.features.kind, self.slopes, F)
        self.features.kernel.transform(F[: len(rows) * m])
        panels.answer(F, rows, leaf, self.coef, self.products, q, self.intercept, out)

    def _answer_rows(self, rows: Rows, tile: Array, out: Vector) -> None:
        """One row after the other."""
        n = len(out)
        leaf, order, tree = np.zeros(n, np.int32), np.arange(n), self.tree
        F, linear = self._split(tile, n)
        if n > 1 and self.features.landmarks.nbytes > _CACHED_BYTES:
            tree.route(rows, order, leaf)
            order = np.argsort(leaf, kind="stable")
            leaf, tree = leaf[order], single_leaf(self.slopes[0])
        self._meet(rows, order, tree, leaf, F, linear)
        compiled.answer(F, linear, order, leaf, self.coef, self.products, self.intercept, out)

    def _split(self, tile: Array, n: int) -> tuple[Array, Array]:
        """Room for the kernel values and for the linear parts of n rows."""
        r, s = self.features.n_values, self.slopes.shape[1]
        return tile[: n * r].reshape(n, r), tile[n * r : n * (r + s)].reshape(n, s)

    def _meet(self, rows: Rows, order: Order, tree: Hierarchy, leaf: Leaf, F: Array, linear: Array) -> None:
        """Find the leaves, unless the tree is empty; write kernel values and linear parts."""
        features = self.features
        compiled.meet(rows, order, tree.arrays, leaf, features.points, features.kind, F, self._lines, linear)
        features.finish(leaf, F)

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
            self._meet(row, order, self.tree, leaf, F, linear)
            compiled.answer(F, linear, order, leaf, self.coef, self.products, self.intercept, out)
            return out

        return decide

    @property
    def is_flat(self) -> bool:
        """Whether all rows meet the same landmarks, many enough for matrix products."""
        k, m, p = self.features.anchors.shape
        return k == 1 and m >= _MANY and p == 0 and not self.products.size

    def _answer_flat(self, X: Array, tile: Array, out: Vector) -> None:
        """One matrix product for the kernel values, one for the decision values."""
        F, linear = self._split(tile, len(X))
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
    def _lines(self) -> Points:
        """The linear parts, for compiled code."""
        return Points(self.slopes, np.zeros(self.slopes.shape[:2], self.slopes.dtype))

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
        return {name: value for name, value in self.__dict__.items() if name not in ("_lines", "_flat_coef")}


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
            Never reached: a thread holds a block's features, a megabyte or two.

        Notes
        -----
        A row costs some distances on its way down each tree, m distances in its leaf, and cheap operations for
        pseudo-landmarks. Nothing of X is copied.
        """
        n, d = X.shape
        out = np.empty((n, self.n_outputs))
        if n <= _BLOCK_ROWS[0]:
            self._answer(X, out)
            return out

        def answer(block: slice) -> None:
            self._answer(X[block], out[block])

        is_short = n * (self.n_operations * d + _ROW_OPERATIONS) < _LEAST_OPERATIONS
        with ThreadTeam(1 if is_short else n_jobs) as team:
            team.map(answer, row_blocks(n, self._block_rows(n, not hasattr(X, "indptr"))))
        return out

    def _block_rows(self, n: int, is_dense: bool) -> int:
        """Rows of a block: of like size, so that threads end together; enough of them to fill the panels of leaves."""
        if (is_dense or self.projection is not None) and all(tree.takes_panels(n) for tree in self.trees):
            wanted, (least, most) = panels.LANES * max(tree.tree.n_leaves for tree in self.trees), _NARROW_ROWS
        else:
            wanted, (least, most) = _TILE_BYTES // max(tree.scratch_bytes(1) for tree in self.trees), _BLOCK_ROWS
        n_blocks = -(-n // max(least, min(wanted, most)))
        return -(-n // (n_blocks + n_blocks % 2)) if n_blocks > 1 else n

    def _answer(self, X: Any, out: Vector) -> None:
        batch = X if self.projection is None else X @ self.projection
        self.trees[0].answer(batch, out)
        if len(self.trees) > 1:
            total = out.copy()
            for tree in self.trees[1:]:
                tree.answer(batch, out)
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
            return values[0].copy() if n_trees == 1 else np.asarray(sum(values) / n_trees)

        return decide
