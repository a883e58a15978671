"""Small Nystroem machines in the leaves of a tree: a row walks down and is compared with a few landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._native import nystroem
from .._parallel import ThreadTeam, count_blocks, row_blocks
from ..kernels.functions import Transform
from ..kernels.scratch import Scratch
from ..landmarks.features import LandmarkFeatures
from ..partition.hierarchy import Hierarchy, row_arrays

Vector = NDArray[np.float64]
Array = NDArray[np.floating]

_TILE_BYTES = 2**18  # of a block's kernel values: they stay in the second-level cache
_TILE_ROWS = 64, 1024
_FEW_ROWS = 64  # are decided in the calling thread
_ROW_OPERATIONS = 100  # that finding a row's place takes as long as
_LEAST_OPERATIONS = 4e6  # with fewer, waking the other threads takes longer than they save
_FLAT = 16, 32  # rows and landmarks of a single leaf, from which on matrix products are faster
_PROJECTED_ROWS = 4096  # of a block
_ALONE = ThreadTeam(1)


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

    @cached_property
    def compiled(self) -> nystroem.Machine:
        """A copy for compiled code; ValueError if the arrays do not fit one another."""
        arrays = map(np.ascontiguousarray, (self.coef, self.products, self.slopes, self.intercept))
        return nystroem.Machine(self.tree.compiled, self.features.compiled, *arrays)

    def decision_values(self, X: Any, out: Vector, team: ThreadTeam) -> None:
        """Write the q decision values of each row.

        Parameters
        ----------
        X : ndarray or CSR array of shape (n, d)
            Of the landmarks' dtype; dense rows C-contiguous.
        out : ndarray of shape (n, q)
        team : ThreadTeam
        """
        if self.is_flat and len(out) >= _FLAT[0] and not hasattr(X, "indptr"):
            size = int(np.clip(_TILE_BYTES // self._tile_bytes(1), *_TILE_ROWS))
            team.map(lambda rows: self._write_flat(X[rows], out[rows]), _even_blocks(len(out), size))
        else:
            self.compiled.decision_values(team.native, row_arrays(X), out)

    @property
    def is_flat(self) -> bool:
        """Whether all rows meet the same landmarks, many enough for matrix products."""
        k, m, p = self.features.anchors.shape
        return k == 1 and m >= _FLAT[1] and p == 0 and not self.products.size

    def _tile_bytes(self, n_rows: int) -> int:
        return n_rows * self.width * self.features.landmarks.itemsize

    def _write_flat(self, X: Array, out: Vector) -> None:
        """One matrix product for the kernel values, one for the decision values."""
        n, m, n_bytes = len(X), self.features.n_values, self._tile_bytes(len(X))
        with Scratch(n_bytes) as buffer:
            tile = buffer[:n_bytes].view(self.features.landmarks.dtype)
            F, linear = tile[: n * m].reshape(n, m), tile[n * m :].reshape(n, self.slopes.shape[1])
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
    def n_operations(self) -> float:
        """What a dense row costs, in inner products: (routing + md + qd + mp + q (m + p + products)) / d."""
        _, m, d = self.features.landmarks.shape
        k, q, r = self.coef.shape
        products = np.count_nonzero(self.products) / k
        return float(self.tree.n_distances + m + self.slopes.shape[1] + (m * (r - m) + q * r + products) / d)

    @classmethod
    def from_arrays(cls, kernel: Transform, arrays: dict[str, NDArray[Any]]) -> Self:
        """The tree whose `arrays` these are; ValueError where these do not fit one another."""
        try:
            tree = cls._from_arrays(kernel, arrays)
            tree.compiled  # noqa: B018 - checks them
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the arrays of a tree of Nystroem machines do not fit one another: {error}") from error
        return tree

    @classmethod
    def _from_arrays(cls, kernel: Transform, arrays: dict[str, NDArray[Any]]) -> Self:
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
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _pack(products: Array) -> Array:
    """Lower triangles as rows: (k, q, m, m) to (k, q, m (m + 1) / 2)."""
    a, b = np.tril_indices(products.shape[2])
    return products[:, :, a, b]


def _unpack(packed: Array, m: int) -> Array:
    """The inverse of `_pack`."""
    if packed.shape[2] not in (0, m * (m + 1) // 2):
        raise ValueError(f"products has {packed.shape[2]} numbers for each machine of {m} landmarks")
    m = m if packed.shape[2] else 0
    products = np.zeros((*packed.shape[:2], m, m), packed.dtype)
    a, b = np.tril_indices(m)
    products[:, :, a, b] = packed
    return products


def _even_blocks(n: int, most: int) -> list[slice]:
    """An even number of blocks of like size, so that threads end together; a single one of at most `most` rows."""
    n_blocks = count_blocks(n, most)
    return row_blocks(n, count_blocks(n, n_blocks + n_blocks % 2) if n_blocks > 1 else most)


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
        out = np.empty((X.shape[0], self.n_outputs))
        if self._is_short(*X.shape):
            self._write(X, out, _ALONE)
        else:
            with ThreadTeam(n_jobs) as team:
                self._write(X, out, team)
        return out

    def _is_short(self, n: int, d: int) -> bool:
        return n <= _FEW_ROWS or n * (self.n_operations * d + _ROW_OPERATIONS) < _LEAST_OPERATIONS

    def _write(self, X: Any, out: Vector, team: ThreadTeam) -> None:
        projection = self.projection
        if projection is None:
            self._write_mean(X, out, team)
        else:
            blocks = _even_blocks(len(out), _PROJECTED_ROWS)
            team.map(lambda rows: self._write_mean(X[rows] @ projection, out[rows], team), blocks)

    def _write_mean(self, X: Any, out: Vector, team: ThreadTeam) -> None:
        self.trees[0].decision_values(X, out, team)
        if len(self.trees) > 1:
            part = np.empty_like(out)
            for tree in self.trees[1:]:
                tree.decision_values(X, part, team)
                out += part
            out /= len(self.trees)

    def as_function(self) -> Callable[[Array], Vector]:
        """A function of one dense row, of shape (d,), that gives its q decision values: a microsecond or two a tree.

        The row's values are not checked.
        """
        dtype, projection, q, n_trees, alone = self._dtype, self.projection, self.n_outputs, len(self.trees), _ALONE.native
        first, *others = (tree.compiled.decision_values for tree in self.trees)

        def decide(x: Array) -> Vector:
            row = np.ascontiguousarray(x if projection is None else x @ projection, dtype)[None]
            out = np.empty((1, q))
            first(alone, row, out)
            if others:
                part = np.empty((1, q))
                for other in others:
                    other(alone, row, part)
                    out += part
                out /= n_trees
            return out[0]

        return decide
