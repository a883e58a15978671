"""One kernel expansion for each cluster, and three ways to ask them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._threads import ThreadTeam, blas_limit, row_blocks
from ..data.samples import GramSamples, Samples
from ..kernels.functions import Kernel
from ..kernels.tiles import add_kernel_product
from ..partition.routing import Router
from .expansion import KernelExpansion

_ROWS = 1024, 65_536  # of a block, which is converted once for all clusters: at least and at most
_SHARED_WORK = 4_000_000  # multiply-adds a cluster: with less, threads wait for each other's turn with the interpreter
_LEAST_COST = 16  # multiply-adds of a kernel entry, beside its inner product
_DOUBT = 0.35  # of the margin: a row whose decision value is smaller is in doubt
_NEAR = 0.7  # of the squared distance to the second centre: a row that is farther from its own lies between the two
_MADE = ("_whole", "_parts", "_routed_points")  # by prediction


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
    coef : ndarray of shape (n_functions, n_points), float64
    intercept : ndarray of shape (n_functions, k), float64
    router : Router
        Routes a row to its cluster.
    combine : {"early", "naive", "bcm"}
        Ask the row's own cluster, and the next one where that is in doubt; add up all of them; or combine their
        probabilities as independent opinions.
    sigmoids : ndarray of shape (n_functions, k, 2), float64
        For "bcm": cluster c's probability of the positive class is 1 / (1 + exp(a f + b)).
    log_prior : ndarray of shape (n_functions,), float64
        For "bcm": log odds of the positive class.
    """

    kernel: Kernel
    points: Any
    starts: NDArray[np.intp]
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    router: Router
    combine: str
    sigmoids: NDArray[np.float64]
    log_prior: NDArray[np.float64]

    def decision_values(self, X: Any, *, n_jobs: int | None = None, memory_budget: int = 2**30) -> NDArray[np.float64]:
        """Decision values of shape (n, n_functions), float64.

        Notes
        -----
        "early" costs the routing and the kernel entries of one cluster a row, of two for rows in doubt; the others
        those of all support vectors.
        """
        if self.combine == "naive":
            return self._whole.decision_values(X, n_jobs=n_jobs, memory_budget=memory_budget)
        ask = self._ask_own if self.combine == "early" else self._ask_all
        out = np.empty((X.shape[0], len(self.coef)))
        row_bytes = 4 * max(1, X.shape[1]) * X.dtype.itemsize  # converted, gathered, and both again to be routed
        with blas_limit(1), ThreadTeam(n_jobs) as team:
            for rows in row_blocks(X.shape[0], int(np.clip(memory_budget // row_bytes, *_ROWS))):
                out[rows] = ask(X[rows], team, memory_budget)
        return out

    @cached_property
    def _whole(self) -> KernelExpansion:
        return KernelExpansion(self.kernel, self.points, self.coef, self.intercept.mean(axis=1))

    @cached_property
    def _parts(self) -> list[KernelExpansion]:
        return [self._make_part(c) for c in range(self.intercept.shape[1])]

    def _make_part(self, c: int) -> KernelExpansion:
        mine = slice(self.starts[c], self.starts[c + 1])
        return KernelExpansion(self.kernel, self.points[mine], self.coef[:, mine], self.intercept[:, c])

    def _ask_own(self, X: Any, team: ThreadTeam, memory_budget: int) -> NDArray[np.float64]:
        """Early prediction: a row's own cluster is asked; where it is in doubt, the one next to it as well."""
        labels, batch = self.router.route_with_samples(X, team)
        points = self._points_against(X)
        out = self._ask_each(batch, labels, points, team)
        doubtful = np.flatnonzero((np.abs(out) < _DOUBT).any(axis=1))
        if not len(doubtful):  # most single rows
            return out
        second, ratio = self.router.next_cluster(batch.take(doubtful), labels[doubtful], team)
        is_between = ratio > _NEAR
        between = doubtful[is_between]
        out[between] += self._ask_each(batch.take(between), second[is_between], points, team)
        out[between] *= 0.5
        return out

    def _ask_each(
        self, batch: Samples, labels: NDArray[np.intp], points: Samples, team: ThreadTeam
    ) -> NDArray[np.float64]:
        """Group the rows by cluster and evaluate each group on that cluster's points."""
        order = np.argsort(labels, kind="stable")
        grouped, bounds = batch.take(order), np.searchsorted(labels[order], np.arange(self.intercept.shape[1] + 1))
        groups = [(c, slice(bounds[c], bounds[c + 1])) for c in np.flatnonzero(np.diff(bounds))]
        out = np.empty((len(labels), len(self.coef)))

        def ask(group: tuple[Any, slice]) -> None:
            c, rows = group
            mine = slice(self.starts[c], self.starts[c + 1])
            values = np.tile(self.intercept[:, c, None], rows.stop - rows.start)
            add_kernel_product(self.kernel, points.take(mine), self.coef[:, mine], grouped.take(rows), values, team)
            out[order[rows]] = values.T

        sizes = np.diff(self.starts)
        work = sum(int(sizes[c]) * int(rows.stop - rows.start) for c, rows in groups)
        is_shared = work * max(batch.row_cost, _LEAST_COST) >= _SHARED_WORK * len(groups)
        workers = team if is_shared else ThreadTeam(1)
        workers.map(ask, sorted(groups, key=lambda group: group[1].start - group[1].stop))
        return out

    def _points_against(self, X: Any) -> Samples:
        """The support vectors in the form that the router' points have, and that rows get to be routed."""
        return GramSamples(X.T, self.points) if self.kernel.sample_form == "entries" else self._routed_points

    @cached_property
    def _routed_points(self) -> Samples:
        return self.router.points.against(self.points)[1]

    def _ask_all(self, X: Any, team: ThreadTeam, memory_budget: int) -> NDArray[np.float64]:
        """Bayesian committee machine (Tresp 2000): p(y|x) ~ prod_c p_c(y|x) / p(y)^(k-1), as log odds."""
        k = self.intercept.shape[1]

        def log_odds(c: int) -> NDArray[np.float64]:
            f = self._parts[c].decision_values(X, n_jobs=1, memory_budget=memory_budget // team.n_threads)
            return np.asarray(-(self.sigmoids[:, c, 0] * f + self.sigmoids[:, c, 1]))

        self._parts  # noqa: B018 - made once, before the threads share them
        return np.asarray(sum(team.map(log_odds, range(k))) - (k - 1) * self.log_prior)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _MADE}
