"""DC-SVM of rows on the workers of a dask cluster: exact machines and early ones. Callers: `dc_svm_fit`.

This process has the labels and the coefficients, the workers have the rows. Clusters are found on a sample, and one
shuffle brings the rows of each cluster to one worker. An early machine is a machine for each cluster; the exact one is
found by parallel block minimisation, where the rows of a worker's clusters are its block.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._native import Stopped
from .._progress import AnyProgress, Progress, SilentProgress, share_time
from .._threads import ThreadTeam, blas_limit, row_blocks
from .._types import Labels, Matrix, RowIndices, Vector
from ..data.remote.client import GRACE
from ..data.remote.remote_rows import RemoteRows
from ..data.rows import positions
from ..data.samples import Samples, converted, make_samples, view_samples
from ..kernels.functions import Kernel
from ..kernels.kernel_operator import KernelOperator
from ..kernels.precision import ensure_precision
from ..partition.divide import ClusteringSettings, Division, divide
from ..partition.routing import ROUTED_ROWS, Router
from ..solvers.dual.certificate import join_results
from ..solvers.dual.in_memory import result_at_start
from ..solvers.dual.problem import DualProblem
from ..solvers.dual.variable_block import Block, BlockSettings
from ..solvers.results import DualResult
from . import dc_svm
from .block_minimization import BlockMinimizer, RoundSettings
from .dc_svm import DCSVMSettings, KernelProblem, LazyProblem
from .trained_machines import TrainedMachine, TrainedMachines, describe_level

_CLUSTERS_PER_BLOCK = 8  # make so many of an exact machine, so that blocks have about the same size
_WORKER_PART = 4  # a solver gets at most one part in so many of its worker's memory


def train_on_workers(
    kernel: Kernel,
    rows: RemoteRows,
    problems: Sequence[LazyProblem],
    settings: DCSVMSettings,
    progress: Progress,
    rng: np.random.Generator,
    *,
    before: TrainedMachines | None = None,
) -> list[TrainedMachine]:
    """Train machines on parts of `rows`: early ones with a `stop_level`, else exact ones, which go on from `before`."""
    given = [None] * len(problems) if before is None else list(before)
    return _RemoteTraining(kernel, rows, settings, progress).run(problems, rng, given)


class _WorkerTask(NamedTuple):
    """What workers are sent beside rows and duals: `token` names the fit; `dtypes` of inner products and of tiles."""

    kernel: Kernel
    settings: DCSVMSettings
    token: str
    dtypes: tuple[np.dtype[Any], np.dtype[Any]]


class _Layout(NamedTuple):
    """The rows' clusters, several of which are a block; what the workers are sent; and the mean bytes of a row."""

    division: Division
    task: _WorkerTask
    row_bytes: int


class _RemoteTraining:
    """Machines on parts of `rows`, trained one after the other on one division of all rows."""

    def __init__(self, kernel: Kernel, rows: RemoteRows, settings: DCSVMSettings, progress: Progress) -> None:
        self.kernel = kernel
        self.rows = rows
        self.settings = settings
        self.progress = progress

    def run(
        self, problems: Sequence[LazyProblem], rng: np.random.Generator, given: Sequence[TrainedMachine | None]
    ) -> list[TrainedMachine]:
        """The machine of each problem, from the one `given`; beta = 0 if it is stopped before it begins."""
        layout = None
        with suppress(Stopped):
            layout = self._lay_out(rng)
        parts = list(zip(problems, given, strict=True))
        if len(parts) == 1:
            (make, machine), *_ = parts
            return [self._go_on(layout, make, machine, self.progress)]

        def train(
            part: tuple[LazyProblem, TrainedMachine | None], before: TrainedMachine | None, share: AnyProgress
        ) -> TrainedMachine:
            make, first = part
            self.progress.advance(before is None)
            return self._go_on(layout, make, before or first, share)

        def is_done(machine: TrainedMachine) -> bool:  # an early machine has no start
            return machine.result.converged or self.settings.stop_level > 0

        work = [len(make()[0]) ** 2 for make in problems]
        return share_time(train, parts, work, self.progress, is_done)

    def _go_on(
        self, layout: _Layout | None, make: LazyProblem, before: TrainedMachine | None, progress: AnyProgress
    ) -> TrainedMachine:
        """The machine of a problem, from the one `before`, or this one if that is better."""
        start = None if before is None or before.division is not None else before.start
        return self._train_one(layout, *make(), progress, start).following(before)

    def _train_one(
        self,
        layout: _Layout | None,
        rows: RowIndices,
        problem: DualProblem,
        progress: AnyProgress,
        start: Vector | None,
    ) -> TrainedMachine:
        if layout is not None:
            with suppress(Stopped):
                if self.settings.stop_level:
                    return self._train_early(layout, rows, problem, progress)
                return self._train_exactly(layout, rows, problem, progress, start)
        return self._machine_at_start(layout, rows, problem, progress)

    def _lay_out(self, rng: np.random.Generator) -> _Layout:
        """Cluster a sample, then all rows by its centres, and bring each cluster's rows to one worker."""
        kernel, rows, settings = self.kernel, self.rows, self.settings
        n_blocks = max(1, rows.n_workers)
        self.progress.stage("clusters")
        k = settings.branching**settings.stop_level if settings.stop_level else _CLUSTERS_PER_BLOCK * n_blocks
        chosen, values = rows.sample
        samples = ensure_precision(kernel, make_samples(values, kernel.sample_form))
        clustering = ClusteringSettings(min(k, len(chosen)), settings.partition, settings.n_sample)
        silent = SilentProgress(self.progress)
        with blas_limit(1), ThreadTeam(settings.n_jobs) as team:
            sampled = divide(KernelOperator(kernel, samples, team), clustering, rng, go_on=silent.go_on)
        labels = rows.assign_labels(partial(_route, sampled.router))
        self.progress.stage("shuffle")
        owner = _assign_to_blocks(np.bincount(labels, minlength=sampled.router.n_clusters), n_blocks)
        rows.shuffle(owner[labels], int(owner.max()) + 1)
        division = Division(sampled.router, labels, chosen[sampled.sample_indices])
        dtypes = samples.precision, samples.dtype
        return _Layout(division, _WorkerTask(kernel, settings, rows.token, dtypes), samples.row_bytes)

    def _machine_at_start(
        self, layout: _Layout | None, rows: RowIndices, problem: DualProblem, progress: AnyProgress
    ) -> TrainedMachine:
        """The `result_at_start`; as an early machine with a `stop_level` and a layout, as the other machines are."""
        progress.go_on()  # sets `stopped_by`
        result = result_at_start(problem, problem.uniform_point(), progress.elapsed)
        if layout is not None and self.settings.stop_level:
            intercepts = np.full(layout.division.router.n_clusters, result.intercept)
            return self._early_machine(layout, rows, result, intercepts, progress)
        result.history.record(bytes=0)
        return TrainedMachine.exact(result, rows=rows)

    def _train_exactly(
        self,
        layout: _Layout,
        rows: RowIndices,
        problem: DualProblem,
        progress: AnyProgress,
        start: Vector | None,
    ) -> TrainedMachine:
        settings = self.settings
        progress.stage(f"whole problem, {len(self.rows.rows_of_blocks)} blocks")
        places, index = self._places(rows)
        arguments = [
            (number, place, problem.take(coordinates), layout.task)
            for number, (place, coordinates) in enumerate(zip(places, index, strict=True))
        ]
        round_settings = RoundSettings(settings.limits, settings.memory, layout.row_bytes)
        blocks = self.rows.make_objects(_make_block, arguments)
        minimizer = BlockMinimizer(blocks, problem, index, round_settings, progress)
        result = minimizer.solve(problem.sparse_point() if start is None else start)
        return TrainedMachine.exact(result, rows=rows)

    def _places(self, rows: RowIndices) -> tuple[list[RowIndices], list[RowIndices]]:
        """For each block, the machine's rows in it: their places in the block, and their coordinates in the problem."""
        coordinates = positions(rows, len(self.rows))
        of_blocks = [coordinates[block_rows] for block_rows in self.rows.rows_of_blocks]
        return [np.flatnonzero(part >= 0) for part in of_blocks], [part[part >= 0] for part in of_blocks]

    def _train_early(
        self, layout: _Layout, rows: RowIndices, problem: DualProblem, progress: AnyProgress
    ) -> TrainedMachine:
        """A machine for each cluster, by the worker that has its rows; together the early machine (Lemma 1)."""
        level, k = self.settings.stop_level, layout.division.router.n_clusters
        progress.stage(f"level {level}: {k} clusters")
        solved = self._solve_clusters(layout, rows, problem, progress)
        intercepts = np.zeros(k)
        for part in solved:
            intercepts[part.cluster] = part.result.intercept
        coordinates, results = [part.coordinates for part in solved], [part.result for part in solved]
        joined = join_results(coordinates, results, len(rows), progress.elapsed)
        return self._early_machine(layout, rows, joined, intercepts, progress)

    def _early_machine(
        self, layout: _Layout, rows: RowIndices, result: DualResult, intercepts: Vector, progress: AnyProgress
    ) -> TrainedMachine:
        result.history.record(bytes=0)
        level, k = self.settings.stop_level, len(intercepts)
        record = describe_level(level, k, result, clustering_seconds=0.0, seconds=progress.elapsed)
        return TrainedMachine(result, layout.division, intercepts, [record], rows)

    def _solve_clusters(
        self, layout: _Layout, rows: RowIndices, problem: DualProblem, progress: AnyProgress
    ) -> list[_Solved]:
        row_values = np.zeros((6, len(self.rows)))  # as `_train_clusters` takes them
        curvature = 0.0 if problem.curvature is None else problem.curvature
        row_values[:4, rows] = np.broadcast_arrays(problem.target, problem.lo, problem.hi, curvature)
        row_values[4:] = layout.division.labels, positions(rows, len(self.rows))
        left = progress.deadline - perf_counter()
        max_time = max(left, 0.0) if isfinite(left) else None
        shared = problem.take(np.empty(0, np.intp))  # the workers have their own coordinates
        parts = self.rows.map(partial(_train_clusters, layout.task, shared, max_time), row_values, GRACE)
        progress.go_on()  # sets `stopped_by`, if the workers were stopped
        return list(chain(*parts))


def _assign_to_blocks(sizes: NDArray[np.intp], n_blocks: int) -> NDArray[np.intp]:
    """The block (k,) of each cluster: the largest clusters first, each to the smallest block; none is empty."""
    owner = np.zeros(len(sizes), np.intp)
    load = np.zeros(min(n_blocks, int(np.count_nonzero(sizes))))
    for cluster in np.argsort(-sizes, kind="stable"):
        owner[cluster] = load.argmin()
        load[owner[cluster]] += sizes[cluster]
    return owner


# --------------------------------------------------------------------------------------------------- on the workers


class _Solved(NamedTuple):
    """The machine of a cluster, and the coordinates (m,) of its rows in the whole problem."""

    cluster: int
    coordinates: RowIndices
    result: DualResult


def _route(router: Router, X: Any) -> Labels:
    from ..data.remote.block_store import worker_resources

    with blas_limit(1), ThreadTeam(worker_resources()[0]) as team:
        parts = [router.route(X[rows], team) for rows in row_blocks(X.shape[0], ROUTED_ROWS)]
    return np.concatenate([np.empty(0, np.intp), *parts])


def _make_block(X: Any, number: int, places: RowIndices, problem: DualProblem, task: _WorkerTask) -> Block:
    from ..data.remote.block_store import ended_test

    own = _worker_settings(task.settings)
    start, has_ended = partial(_approximate, own), ended_test(task.token)
    settings = BlockSettings(own.memory["block"], own.n_jobs, has_ended, start, task.dtypes)
    return Block(number, X if len(places) == X.shape[0] else X[places], task.kernel, problem, settings)


def _approximate(
    settings: DCSVMSettings, kernel: Kernel, samples: Samples, problem: DualProblem, progress: Progress
) -> Vector:
    return dc_svm.approximate_solution(KernelProblem(kernel, samples, problem), settings, progress)


def _train_clusters(
    task: _WorkerTask, problem: DualProblem, max_time: float | None, X: Any, row_values: Matrix
) -> list[_Solved]:
    """The machines of a block's clusters.

    `row_values` (6, m): of each row of the block the target, lo, hi, the diagonal of D, its cluster, and its coordinate
    in the whole problem, -1 if it has none.
    """
    from ..data.remote.block_store import ended_test

    target, lo, hi, curvature, clusters, coordinates = row_values
    chosen = np.flatnonzero(coordinates >= 0)
    has_curvature = problem.curvature is not None
    own = problem._replace(target=target, lo=lo, hi=hi, curvature=curvature if has_curvature else None)
    problem = own.take(chosen)
    samples = view_samples(X if len(chosen) == len(target) else X[chosen], task.kernel.sample_form)
    data = KernelProblem(task.kernel, converted(samples, *task.dtypes), problem)
    numbers = np.unique(clusters[chosen])
    rows = [np.flatnonzero(clusters[chosen] == cluster) for cluster in numbers]
    has_ended = ended_test(task.token)
    with Progress(max_time=max_time, callback=lambda state: has_ended()) as progress:
        results = dc_svm.solve_clusters(data, rows, _worker_settings(task.settings), progress)
    return [
        _Solved(int(cluster), coordinates[chosen[part]].astype(np.intp), result)
        for cluster, part, result in zip(numbers, rows, results, strict=True)
    ]


def _worker_settings(settings: DCSVMSettings) -> DCSVMSettings:
    """The settings with the threads of this worker, and a quarter of its memory at most."""
    from ..data.remote.block_store import worker_resources

    n_threads, limit = worker_resources()
    memory = replace(settings.memory, budget=min(settings.memory.budget, limit // _WORKER_PART))
    return replace(settings, n_jobs=n_threads, memory=memory)
