"""One kernel expansion for each cluster: the model of early prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .._memory import DEFAULT_PLAN, MemoryPlan
from .._threads import BLOCK_ROWS, ONE_THREAD, SMALL_WORK, ThreadTeam, blas_limit, cached_property, row_blocks
from .._types import Array, Gradients, Labels, Matrix, RowIndices, Rows, Vector
from ..data.samples import GramSamples, Samples
from ..kernels.functions import ArgumentKernel, Kernel, Linear
from ..kernels.gradients import add_kernel_gradients
from ..kernels.tiles import SMALL_ENTRY_WORK, KernelProduct
from ..partition.routing import Router
from .expansion import ROW_COPIES, KernelExpansion

_MOST_ROWS = 65_536  # of a block, which is converted once for all clusters
UNCERTAIN = 0.35  # |decision value| below which a row is uncertain
BETWEEN = 0.7  # squared distance to the own centre / to the next centre above which a row is between the two


@dataclass
class ClusteredExpansion:
    """Machines of k clusters, each on its own support vectors.

    Attributes
    ----------
    kernel : Kernel
    points : ndarray or CSR array of shape (n_points, n_features)
        Grouped by cluster; row numbers for a precomputed kernel.
    starts : ndarray of shape (k + 1,), int
        Points ``starts[c]`` to ``starts[c + 1]`` belong to cluster c.
    coef : ndarray or CSC array of shape (n_functions, n_points), float64
    intercept : ndarray of shape (n_functions, k), float64
    router : Router
        pi(x), the cluster of a row.
    averages : bool
        Whether an uncertain row between two clusters gets the mean of both machines' decision values, as in classifiers
        (docs/decisions/0010). Otherwise the machine of the row's own cluster decides alone, as in the paper.
    """

    kernel: Kernel
    points: Rows
    starts: NDArray[np.intp]
    coef: Any
    intercept: Matrix
    router: Router
    averages: bool

    def decision_values(self, X: Rows, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN) -> Matrix:
        """Decision values of the rows of X (n, d): shape (n, n_functions), float64.

        f(x) = sum_{i: pi(x_i) = pi(x)} beta_i k(x, x_i) + b_pi(x): Hsieh et al. 2014, section 4. It costs the routing
        and the kernel entries of one cluster for each row, and those of a second cluster for some rows if `averages`.
        """
        out = np.empty((X.shape[0], self.coef.shape[0]))
        with blas_limit(1), ThreadTeam(n_jobs) as team:
            for rows in self._blocks_within(memory["copied rows"], X):
                out[rows] = self._values_of_rows(X[rows], team)
        return out

    def as_function(self, *, memory: MemoryPlan = DEFAULT_PLAN) -> Callable[[Array], Vector]:
        """A function of one row (d,), of the points' dtype, that gives its decision values (n_functions,)."""
        scores = self.router.score_function()
        if scores is None or self.kernel.sample_form == "entries":
            return lambda x: np.asarray(self.decision_values(x[None], n_jobs=1, memory=memory)[0])
        products = self._cluster_products

        def decision_values(x: Array) -> Vector:
            row = self.router.points.pair_with(x[None])[1]
            c = int(scores(row, ONE_THREAD).argmin())
            values = self._values_of(c, row, products[c], ONE_THREAD)
            if self.averages and bool((np.abs(values) < UNCERTAIN).any()):
                (other,), (ratio,) = self.router.next_cluster(row, np.array([c]), ONE_THREAD, scores)
                if ratio > BETWEEN:
                    values += self._values_of(int(other), row, products[other], ONE_THREAD)
                    values *= 0.5
            return values[:, 0]

        return decision_values

    def decision_gradients(self, X: Rows, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN) -> Gradients:
        """Gradients of the decision values by the rows: (n, n_functions, d), float64.

        They are those of the formula by which a row's decision values are computed: which cluster it is routed to, and
        whether two machines are averaged, counts as constant. Parameters are those of `decision_values`.
        """
        out = np.zeros((X.shape[0], self.coef.shape[0], X.shape[1]))
        with blas_limit(1), ThreadTeam(n_jobs) as team:
            for rows in self._blocks_within(memory["copied rows"], X, copied=2 * self.coef.shape[0] * X.shape[1]):
                self._add_early_gradients(X[rows], out[rows], team)
        return out

    def _blocks_within(self, n_bytes: int, X: Rows, copied: int = 0) -> list[slice]:
        """Blocks of rows of X whose copies, and `copied` values of each row in float64, take so many bytes."""
        row_bytes = ROW_COPIES * max(1, X.shape[1]) * X.dtype.itemsize + 8 * copied
        return row_blocks(X.shape[0], int(np.clip(n_bytes // row_bytes, BLOCK_ROWS, _MOST_ROWS)))

    @cached_property
    def machines(self) -> list[KernelExpansion]:
        """The machine of each cluster."""
        return [
            KernelExpansion(self.kernel, self.points[first:end], self.coef[:, first:end], self.intercept[:, c])
            for c, (first, end) in enumerate(pairwise(self.starts))
        ]

    @cached_property
    def _weights(self) -> list[Matrix]:
        """Of a linear kernel the weights (n_functions, d) of each cluster's machine."""
        return [machine.linear_model.coef for machine in self.machines]

    @property
    def _shift(self) -> Array | None:
        """What the router subtracts from rows."""
        return self.router.points.shift

    def _values_of_rows(self, X: Rows, team: ThreadTeam) -> Matrix:
        """Decision values of one block of rows: (n, n_functions)."""
        labels, batch = self.router.route_with_samples(X, team)
        points = self._point_samples(X)
        out = self._values_of_clusters(batch, labels, points, team)
        if self.averages:
            between, next_labels = self._between_clusters(out, batch, labels, team)
            if len(between):
                out[between] += self._values_of_clusters(batch.take(between), next_labels, points, team)
                out[between] *= 0.5
        return out

    def clusters_of(self, X: Rows, team: ThreadTeam) -> tuple[Labels, Labels, Samples]:
        """The two clusters (n,) whose mean is each row's decision value, mostly the same; and the rows as samples."""
        labels, batch = self.router.route_with_samples(X, team)
        others = labels.copy()
        if self.averages:
            values = self._values_of_clusters(batch, labels, self._point_samples(X), team)
            between, next_labels = self._between_clusters(values, batch, labels, team)
            others[between] = next_labels
        return labels, others, batch

    def _between_clusters(
        self, values: Matrix, batch: Samples, labels: Labels, team: ThreadTeam
    ) -> tuple[RowIndices, Labels]:
        """The uncertain rows between two clusters, by their early decision values; and their next nearest clusters."""
        uncertain = np.flatnonzero((np.abs(values) < UNCERTAIN).any(axis=1))
        if not len(uncertain):  # most single rows
            return uncertain, uncertain
        next_labels, ratio = self.router.next_cluster(batch.take(uncertain), labels[uncertain], team)
        is_between = ratio > BETWEEN
        return uncertain[is_between], next_labels[is_between]

    def _add_early_gradients(self, X: Rows, out: Gradients, team: ThreadTeam) -> None:
        """Add the gradients (n, n_functions, d) of the decision values."""
        (labels, others, batch), points = self.clusters_of(X, team), self._point_samples(X)
        self._add_gradients_of_clusters(batch, labels, points, out, team)
        (between,) = np.nonzero(others != labels)
        if len(between):
            both = out[between]
            self._add_gradients_of_clusters(batch.take(between), others[between], points, both, team)
            out[between] = 0.5 * both

    def _values_of_clusters(self, batch: Samples, labels: Labels, points: Samples, team: ThreadTeam) -> Matrix:
        """Decision values (n, n_functions) of each row by the machine of cluster labels[row], clusters in parallel."""
        out = np.empty((len(labels), self.coef.shape[0]))

        def evaluate(c: int, own: slice, rows: RowIndices, near: Samples) -> None:
            product = KernelProduct(self.kernel, points.take(own), self.coef[:, own])
            out[rows] = self._values_of(c, near, product, team).T

        self._for_each_cluster(batch, labels, evaluate, team)
        return out

    def _values_of(self, c: int, near: Samples, product: KernelProduct, team: ThreadTeam) -> Matrix:
        """Decision values (n_functions, n) of samples by the machine of cluster c, whose kernel sums are `product`."""
        values = np.tile(self.intercept[:, c, None], len(near))
        if isinstance(self.kernel, Linear):
            W = self._weights[c]
            values += (near.stored() @ W.T).T
            values += 0.0 if self._shift is None else (W @ self._shift)[:, None]
        else:
            product.add_to(near, values, team)
        return values

    @property
    def _cluster_products(self) -> list[KernelProduct]:
        """The kernel sums of each cluster's machine, for many rows one at a time."""
        points, bounds = self._routed_points, [slice(*pair) for pair in pairwise(self.starts.tolist())]
        return [KernelProduct(self.kernel, points.take(own), self.coef[:, own]) for own in bounds]

    def _add_gradients_of_clusters(
        self, batch: Samples, labels: Labels, points: Samples, out: Gradients, team: ThreadTeam
    ) -> None:
        """Add the gradients (n, n_functions, d) of each row's decision values by the machine of cluster labels[row]."""
        kernel = cast(ArgumentKernel, self.kernel)

        def add(c: int, own: slice, rows: RowIndices, near: Samples) -> None:
            gradients = np.zeros((len(rows), *out.shape[1:]))
            add_kernel_gradients(kernel, near, points.take(own), self.coef[:, own], gradients, team)
            out[rows] += gradients

        self._for_each_cluster(batch, labels, add, team)

    def _for_each_cluster(
        self,
        batch: Samples,
        labels: Labels,
        task: Callable[[int, slice, RowIndices, Samples], None],
        team: ThreadTeam,
    ) -> None:
        """Call task(c, points of cluster c, its rows among the n of the batch, these as samples), in parallel."""
        order = np.argsort(labels, kind="stable")
        grouped, bounds = batch.take(order), np.searchsorted(labels[order], np.arange(self.intercept.shape[1] + 1))
        groups = [(int(c), slice(bounds[c], bounds[c + 1])) for c in np.flatnonzero(np.diff(bounds))]

        def evaluate(group: tuple[int, slice]) -> None:
            c, rows = group
            task(c, slice(self.starts[c], self.starts[c + 1]), order[rows], grouped.take(rows))

        sizes = np.diff(self.starts)
        work = sum(int(sizes[c]) * int(rows.stop - rows.start) for c, rows in groups)
        is_shared = work * (batch.row_cost + SMALL_ENTRY_WORK) >= SMALL_WORK * len(groups)
        workers = team if is_shared else ThreadTeam(1)
        workers.map(evaluate, sorted(groups, key=lambda group: group[1].start - group[1].stop))

    def _point_samples(self, X: Rows) -> Samples:
        """The support vectors as samples of the router's form; of a precomputed kernel, as columns of X."""
        return GramSamples(X.T, self.points) if self.kernel.sample_form == "entries" else self._routed_points

    @cached_property
    def _routed_points(self) -> Samples:
        return self.router.points.pair_with(self.points)[1]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
