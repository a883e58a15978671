"""One small Nystroem machine for each leaf of a tree: a row walks down, meets a few landmarks, and is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

_TILE_BYTES = 2**18  # of a block's features: they stay in the second-level cache
_BLOCK_ROWS = 64, 1024
_CACHED_BYTES = 2**20  # landmarks that stay in the second-level cache, in whatever order rows ask for them


@dataclass
class LocalNystrom:
    """Decision functions of q machines in each of k leaves.

    Attributes
    ----------
    tree : Hierarchy
        Of k leaves over d features.
    features : LandmarkFeatures
    coef : ndarray of shape (k, q, n_features), float64
    intercept : ndarray of shape (k, q), float64
    """

    tree: Hierarchy
    features: LandmarkFeatures
    coef: Vector
    intercept: Vector

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
        A row costs depth times branching distances on its way down, m distances, and m p cheap operations for the
        triangle rule. Nothing of X is copied.
        """
        rows, n = make_rows(X), X.shape[0]
        out = np.empty((n, self.intercept.shape[1]))
        row_bytes = max(1, self.features.n_values) * self.features.landmarks.itemsize
        blocks = row_blocks(n, int(np.clip(_TILE_BYTES // row_bytes, *_BLOCK_ROWS)))
        if len(blocks) < 2:
            for block in blocks:
                self._answer(rows, block, out)
            return out
        with ThreadTeam(n_jobs) as team:
            team.map(lambda block: self._answer(rows, block, out), blocks)
        return out

    def _answer(self, rows: Rows, block: slice, out: Vector) -> None:
        order = np.arange(block.start, block.stop)
        leaf = np.empty(len(order), np.int32)
        self.tree.route(rows, order, leaf)
        if len(order) > 1 and self.features.landmarks.nbytes > _CACHED_BYTES:
            by_leaf = np.argsort(leaf, kind="stable")
            order, leaf = order[by_leaf], leaf[by_leaf]
        dtype, shape = self.features.landmarks.dtype, (len(order), self.features.n_values)
        n_bytes = shape[0] * shape[1] * dtype.itemsize
        with Scratch(n_bytes) as buffer:
            F = buffer[:n_bytes].view(dtype).reshape(shape)
            self.features.measure(rows, order, leaf, F)
            compiled.answer(F, order, leaf, self.features.pairs, self.coef, self.intercept, out)

    def as_function(self) -> Callable[[NDArray[np.floating]], Vector]:
        """A function of one dense row, of shape (d,), that gives its q decision values: a few microseconds.

        The row is not checked; the result is overwritten by the next call, and calls must not overlap in time.
        """
        dtype = self.features.landmarks.dtype
        order, leaf = np.zeros(1, np.int64), np.zeros(1, np.int32)
        F, out = np.empty((1, self.features.n_values), dtype), np.empty((1, self.intercept.shape[1]))
        no_columns, no_starts = np.empty(0, np.int32), np.empty(0, np.int64)
        route, measure, answer = self.tree.route, self.features.measure, compiled.answer
        pairs, coef, intercept, values = self.features.pairs, self.coef, self.intercept, out[0]

        def decide(x: NDArray[np.floating]) -> Vector:
            rows = Rows(np.ascontiguousarray(x, dtype), no_columns, no_starts)
            route(rows, order, leaf)
            measure(rows, order, leaf, F)
            answer(F, order, leaf, pairs, coef, intercept, out)
            return values

        return decide

    @property
    def n_operations(self) -> float:
        """Multiply-adds and the like that a dense row costs, in multiples of an inner product: (md + ps + routing) / d."""
        d = self.features.landmarks.shape[2]
        _, m, p = self.features.anchors.shape
        return self.tree.n_distances + m + (m * p + self.features.n_features * self.coef.shape[1]) / d
