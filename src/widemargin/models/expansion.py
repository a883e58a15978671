"""Kernel expansions f(x) = sum_i c_i k(x_i, x) + b: one decision function or several on the same points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from .._memory import DEFAULT_PLAN, MemoryPlan
from .._threads import BLOCK_ROWS, ONE_THREAD, SMALL_WORK, ThreadTeam, blas_limit, cached_property, row_blocks
from .._types import Array, Gradients, Matrix, Rows, Vector
from ..data import make_design_matrix
from ..data.samples import GramSamples, Samples, make_samples
from ..kernels.boxed_rows import BoxedRows, box_rows
from ..kernels.entry_precision import ensure_precision
from ..kernels.functions import ArgumentKernel, Kernel, Linear
from ..kernels.gradients import add_kernel_gradients
from ..kernels.tiles import SMALL_ENTRY_WORK, KernelProduct, add_kernel_product
from .linear import LinearModel

ROW_COPIES = 4  # of a block's rows: their centred or CSR copy takes twice their bytes at most


@dataclass
class KernelExpansion:
    """The decision functions of a kernel machine.

    Attributes
    ----------
    kernel : Kernel
    points : ndarray or CSR array of shape (n_points, n_features)
        Support vectors; for a precomputed kernel their indices among the training rows, of shape (n_points,).
    coef : ndarray or CSC array of shape (n_functions, n_points), float64
    intercept : ndarray of shape (n_functions,), float64
    """

    kernel: Kernel
    points: Rows
    coef: Any
    intercept: Vector

    def decision_values(self, X: Rows, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN) -> Matrix:
        """Decision values coef K(points, X) + intercept, by tiles of K on `n_jobs` threads.

        Parameters
        ----------
        X : ndarray or CSR array of shape (n, n_features)
            Of the points' dtype. For a precomputed kernel: K(X, training rows), of shape (n, n_train).
        n_jobs : int or None
        memory : MemoryPlan
            Of the bytes beyond X, the points and the result.

        Returns
        -------
        ndarray of shape (n, n_functions), float64
            The values do not depend on `n_jobs`.

        Notes
        -----
        n n_points kernel entries, each computed once and used for all functions. With a linear kernel none, but the
        products with the functions' weights in float64, where the memory budget has room for these.
        """
        if isinstance(self.kernel, Linear) and self._weights_bytes <= memory["weights"]:
            return self.linear_model.decision_values(X, n_jobs=n_jobs, memory=memory)
        out = np.tile(self.intercept[:, None], X.shape[0])
        points = self._points
        if X.shape[0] * len(points) * (X.shape[1] + SMALL_ENTRY_WORK) < SMALL_WORK:
            self._add_product(X, out, ONE_THREAD)
            return out.T
        with blas_limit(1), ThreadTeam(n_jobs) as team:
            for rows in _blocks_within(memory["copied rows"], X):
                self._add_product(X[rows], out[:, rows], team)
        return out.T

    def _add_product(self, X: Rows, out: Matrix, team: ThreadTeam) -> None:
        """out += coef K(points, X)."""
        points, batch = self._points.pair_with(X)
        if self._boxed is None:
            add_kernel_product(self.kernel, points, self.coef, batch, out, team)
        else:
            self._boxed.add_product(batch, out, team)

    def as_function(self, *, memory: MemoryPlan = DEFAULT_PLAN) -> Callable[[Array], Vector]:
        """A function of one row (d,), of the points' dtype, that gives its decision values (n_functions,)."""
        if isinstance(self.kernel, Linear) and self._weights_bytes <= memory["weights"]:
            return self.linear_model.as_function(memory=memory)
        if self.kernel.sample_form == "entries" or self._boxed is not None:
            return lambda x: np.asarray(self.decision_values(x[None], n_jobs=1)[0])
        product = KernelProduct(self.kernel, self._points, self.coef)

        def decision_values(x: Array) -> Vector:
            values = self.intercept[:, None].copy()
            product.add_to(self._points.pair_with(x[None])[1], values, ONE_THREAD)
            return values[:, 0]

        return decision_values

    def decision_gradients(self, X: Rows, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN) -> Gradients:
        """Gradients of the decision values by the rows: (n, n_functions, d), float64, on `n_jobs` threads.

        Parameters are those of `decision_values`. The kernel is an `ArgumentKernel`.

        Notes
        -----
        n n_points kernel slopes, and n n_points d multiply-adds for each function, less where coefficients are zero.
        """
        out = np.zeros((X.shape[0], self.coef.shape[0], X.shape[1]))
        kernel = cast(ArgumentKernel, self.kernel)
        with blas_limit(1), ThreadTeam(n_jobs) as team:
            for rows in _blocks_within(memory["copied rows"], X):
                points, batch = self._points.pair_with(X[rows])
                add_kernel_gradients(kernel, batch, points, self.coef, out[rows], team)
        return out

    def pair_with(self, X: Rows) -> tuple[Samples, Samples]:
        """The points and the rows of X as samples of the same form and precision."""
        return self._points.pair_with(X)

    @property
    def _weights_bytes(self) -> int:
        return 8 * len(self.intercept) * int(self.points.shape[1])

    @cached_property
    def linear_model(self) -> LinearModel:
        """The same decision functions by their weights; of a linear kernel alone."""
        weights = self.weights
        return LinearModel(weights.toarray() if sp.issparse(weights) else weights, self.intercept)

    @cached_property
    def weights(self) -> Any:
        """Of a linear kernel coef @ points (n_functions, n_features), float64: read-only, or CSR if the points are."""
        return weights_of(self.coef, self.points)

    @cached_property
    def _boxed(self) -> BoxedRows | None:
        return None if sp.issparse(self.coef) else box_rows(self.kernel, self._points, self.coef)

    @cached_property
    def _points(self) -> Samples:
        return make_point_samples(self.kernel, self.points)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _blocks_within(n_bytes: int, X: Rows) -> list[slice]:
    """Blocks of rows of X whose copies take so many bytes at most, but for blocks of 1024 rows."""
    row_bytes = ROW_COPIES * max(1, X.shape[1]) * X.dtype.itemsize
    return row_blocks(X.shape[0], max(BLOCK_ROWS, n_bytes // row_bytes))


def weights_of(coef: Any, points: Rows) -> Any:
    """coef @ points (q, d) in float64, of coefficients (q, n) and points (n, d): CSR if the points are."""
    if sp.issparse(points):
        return type(points)(coef) @ points
    weights = coef @ points if sp.issparse(coef) else make_design_matrix(points, ONE_THREAD).rmatvec(coef)
    weights.flags.writeable = False
    return weights


def make_point_samples(kernel: Kernel, points: Rows) -> Samples:
    """The points of a machine as samples; of a precomputed kernel, as columns of the matrices of new rows."""
    if kernel.sample_form == "entries":
        return GramSamples(np.empty((0, 0)), points)
    return ensure_precision(kernel, make_samples(points, kernel.sample_form))
