"""Coordinates c(x) F of a sample with features c(x), whose inner products approximate a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .._config import ALLOWED_BYTES
from .._memory import DEFAULT_PLAN, MemoryPlan
from .._threads import BLOCK_ROWS, ThreadTeam, blas_limit, cached_property, row_blocks
from .._types import Array, DType, Rows
from ..data.samples import Samples, make_samples, row_products
from ..kernels.entry_precision import ensure_precision
from ..nystroem.features import LandmarkFeatures

_LEAST_ROWS = 64  # of a block
_ROW_COPIES = 3  # of a row and its features that a thread holds at most


@dataclass
class NystroemCoordinates:
    """Coordinates C F of rows: features C (n, n_features), times a factor F with W = F F'.

    Attributes
    ----------
    features : LandmarkFeatures
        Of one leaf.
    factor : ndarray of shape (n_features, rank)
        Of the data's dtype.
    """

    features: LandmarkFeatures
    factor: Array

    def transform(self, X: Rows, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN) -> Array:
        """Coordinates of shape (n, rank), of X's dtype, which do not depend on `n_jobs`.

        Parameters
        ----------
        X : ndarray or CSR array of shape (n, d)
            Of the landmarks' dtype.
        n_jobs : int or None
        memory : MemoryPlan
            Of blocks of rows, which are copied, and their features.

        Notes
        -----
        n m d multiply-adds for the kernel values, n n_features rank for the coordinates.
        """
        out = np.empty((X.shape[0], self.factor.shape[1]), self.factor.dtype)
        with blas_limit(1), ThreadTeam(n_jobs) as team:
            self._points  # noqa: B018 - made once, before the threads share them
            blocks = self.blocks(X, memory["features"] // team.n_threads, BLOCK_ROWS)

            columns = np.ascontiguousarray(self.factor.T)

            def block(rows: slice) -> None:
                out[rows] = row_products(self.evaluate(X[rows]), columns)

            team.map(block, blocks)
        return out

    def blocks(self, X: Rows, n_bytes: int, most: int | None = None) -> list[slice]:
        """Blocks of the rows of X, of at most `most` rows, that can be dense in so many bytes.

        At least 64 rows, where these fit into what is allowed beyond the budget.
        """
        n, d = X.shape
        row_bytes = _ROW_COPIES * (d + self.features.n_features) * self.factor.itemsize
        size, allowed = n_bytes // row_bytes, ALLOWED_BYTES // row_bytes
        return row_blocks(n, int(np.clip(size, min(_LEAST_ROWS, size + allowed + 1), most or max(1, n))))

    def evaluate(self, X: Rows) -> Array:
        """Features of the rows of X, (n, n_features), with distances from inner products but for the triangle rule.

        For a precomputed kernel, X holds the kernel values with the m landmarks.
        """
        if self.features.kernel.sample_form == "entries":
            return self.features.append_products(X)
        if self.features.pseudo_distances.shape[2]:
            # bounds need distances without cancellation
            return self.features.evaluate(X.toarray() if sp.issparse(X) and self.features.are_far else X)
        points, rows = self._points.pair_with(X)
        values = np.empty((len(rows), len(points)), points.dtype)
        self.features.kernel.fill(rows, points, values)
        return self.features.append_products(values)

    @property
    def precision(self) -> DType:
        """Of kernel values by inner products: float64 where float32 distances are too inexact."""
        return np.dtype(self._points.precision)

    @cached_property
    def _points(self) -> Samples:
        kernel = self.features.kernel
        return ensure_precision(kernel, make_samples(self.features.landmarks[0], kernel.sample_form))
