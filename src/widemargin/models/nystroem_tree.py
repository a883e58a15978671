"""Nyström machines in the leaves of a tree: a row is routed to a leaf and compared with the landmarks there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .._memory import DEFAULT_PLAN, MemoryPlan
from .._native import nystroem
from .._threads import ONE_THREAD, SMALL_WORK, ThreadTeam, cached_property, row_blocks
from .._types import AnyArray, Array, DType, Matrix, Rows, Vector
from ..data.csr import row_arrays
from ..data.samples import row_products
from ..kernels.functions import ArgumentKernel
from ..nystroem.features import LandmarkFeatures
from ..partition.hierarchy import Hierarchy


@dataclass
class NystroemTree:
    """Decision functions of q machines in each of k leaves.

    Attributes
    ----------
    tree : Hierarchy
        Of k leaves over d features.
    features : LandmarkFeatures
        m landmarks and p pseudo-landmarks by the triangle rule in each leaf.
    coef : ndarray of shape (k, q, m + p), float64
    products : ndarray of shape (k, q, m, m), of the data's dtype
        Lower triangles: coefficients of products of two landmarks' values; of shape (k, q, 0, 0) without.
    slopes : ndarray of shape (k, q, d), of the data's dtype
        The linear term of each machine; of shape (k, 0, d) without.
    intercept : ndarray of shape (k, q), float64
    """

    tree: Hierarchy
    features: LandmarkFeatures
    coef: NDArray[np.float64]
    products: Array
    slopes: Array
    intercept: Matrix

    @cached_property
    def compiled(self) -> nystroem.Machine:
        """A copy for compiled code; ValueError if the arrays do not fit one another."""
        arrays: Any = map(np.ascontiguousarray, (self.coef, self.products, self.slopes, self.intercept))
        return nystroem.Machine(self.tree.compiled, self.features.compiled, *arrays)

    @cached_property
    def n_operations(self) -> float:
        """Prediction cost of a dense row: routing + m + q + (m p + q (m + p) + coefficients of products) / d."""
        _, m, d = self.features.landmarks.shape
        k, q, n_values = self.coef.shape
        products = np.count_nonzero(self.products) / k
        operations = m * (n_values - m) + q * n_values + products
        return float(self.tree.n_distances + m + self.slopes.shape[1] + operations / d)

    @classmethod
    def from_arrays(cls, kernel: ArgumentKernel, arrays: dict[str, AnyArray]) -> Self:
        """The tree whose `arrays` these are; ValueError where these do not fit one another."""
        try:
            tree = cls._from_arrays(kernel, arrays)
            tree.compiled  # noqa: B018 - checks them
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the arrays of a tree of Nystroem machines do not fit one another: {error}") from error
        return tree

    @classmethod
    def _from_arrays(cls, kernel: ArgumentKernel, arrays: dict[str, AnyArray]) -> Self:
        k, m, _ = arrays["pseudo_distances"].shape
        return cls(
            Hierarchy(arrays["centres"], arrays["sizes"], arrays["children"]),
            LandmarkFeatures(
                kernel, arrays["landmarks"], arrays["pseudo_distances"], arrays["bounds"], np.empty((k, 2, 0), np.int32)
            ),
            arrays["coef"],
            _unpack(arrays["products"], m),
            arrays["slopes"],
            arrays["intercept"],
        )

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """The arrays that define the tree, by name."""
        features, tree = self.features, self.tree
        return {
            "centres": tree.centres,
            "sizes": tree.sizes,
            "children": tree.children,
            "landmarks": features.landmarks,
            "pseudo_distances": features.pseudo_distances,
            "bounds": features.bounds,
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


@dataclass
class NystroemForest:
    """The mean of several trees' decision values; mostly there is one.

    Attributes
    ----------
    trees : list of NystroemTree
    projection : ndarray of shape (d, rank) or None
        Rows are multiplied by it first; the trees are those of `rank` columns.
    """

    trees: list[NystroemTree]
    projection: Array | None = None

    @property
    def n_operations(self) -> float:
        """Prediction cost of a dense row, in inner products of d features."""
        within = sum(tree.n_operations for tree in self.trees)
        if self.projection is None:
            return within
        d, rank = self.projection.shape
        return float(rank + within * rank / d)

    @property
    def _dtype(self) -> DType:
        return self.trees[0].features.landmarks.dtype

    @property
    def n_outputs(self) -> int:
        """Number of decision functions q."""
        return int(self.trees[0].intercept.shape[1])

    def decision_values(self, X: Rows, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN) -> Matrix:
        """Decision values of shape (n, q), float64: to the last bit, whatever the other rows and `n_jobs`.

        Parameters
        ----------
        X : ndarray or CSR array of shape (n, d)
            Of the landmarks' dtype; dense rows C-contiguous.
        n_jobs : int or None
        memory : MemoryPlan
            Not used: a thread holds the kernel values of some rows, less than a megabyte.

        Notes
        -----
        In each tree, a row costs some distances for the routing, m kernel values in its leaf, and O(m) multiply-adds a
        pseudo-landmark. X is not copied, unless it is projected.
        """
        out = np.empty((X.shape[0], self.n_outputs))
        if self._is_small(*X.shape):
            self._write(X, out, ONE_THREAD)
        else:
            with ThreadTeam(n_jobs) as team:
                self._write(X, out, team)
        return out

    def _is_small(self, n: int, d: int) -> bool:
        """Whether rows (n, d) are evaluated in the calling thread alone."""
        return n * self.n_operations * d < SMALL_WORK

    def _write(self, X: Rows, out: Matrix, team: ThreadTeam) -> None:
        projection = self.projection
        if projection is None and sp.issparse(X) and self.trees[0].features.are_far:
            for rows in row_blocks(len(out)):
                self._write_mean(np.ascontiguousarray(X[rows].toarray()), out[rows], team)
        elif projection is None:
            self._write_mean(row_arrays(X), out, team)
        else:
            axes, blocks = np.ascontiguousarray(projection.T), row_blocks(len(out))
            team.map(lambda rows: self._write_mean(row_products(X[rows], axes), out[rows], team), blocks)

    def _write_mean(self, rows: Rows, out: Matrix, team: ThreadTeam) -> None:
        self.trees[0].compiled.decision_values(team.native, rows, out)
        if len(self.trees) > 1:
            values = np.empty_like(out)
            for tree in self.trees[1:]:
                tree.compiled.decision_values(team.native, rows, values)
                out += values
            out /= len(self.trees)

    def as_function(self, *, memory: MemoryPlan = DEFAULT_PLAN) -> Callable[[ArrayLike], Vector]:
        """A function of one dense row, of shape (d,), that gives its q decision values: a microsecond or two a tree.

        The row's values are not checked.
        """
        dtype = self._dtype

        def decision_values(x: ArrayLike) -> Vector:
            row = np.ascontiguousarray(x, dtype)[None]
            if self.projection is not None:
                return np.asarray(self.decision_values(row)[0])
            values = np.empty((1, self.n_outputs))
            self._write_mean(row, values, ONE_THREAD)
            return np.asarray(values[0])

        return decision_values
