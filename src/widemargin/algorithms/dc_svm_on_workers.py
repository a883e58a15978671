"""Early DC-SVM machines of rows on the workers of a dask cluster. Caller: `pairs_and_targets`.

This process has the labels and the coefficients, the workers have the rows. Clusters are found on a sample, one shuffle
brings the rows of each cluster to one worker, and this worker trains the cluster's machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from math import isfinite
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._native import Stopped
from .._progress import AnyProgress, Progress, SilentProgress, share_time
from .._threads import ThreadTeam, blas_limit, row_blocks
from .._types import DType, Labels, RowIndices, Rows, Vector
from ..data.remote.remote_rows import RemoteRows, ended_test, worker_resources
from ..data.rows import positions
from ..data.samples import converted, make_samples, view_samples
from ..kernels.entry_precision import ensure_precision
from ..kernels.functions import Kernel
from ..kernels.kernel_operator import KernelOperator
from ..partition.divide import ClusteringSettings, Division, divide
from ..partition.routing import ROUTED_ROWS, Router
from ..solvers.dual.certificate import join_results
from ..solvers.dual.in_memory import result_at_start
from ..solvers.dual.problem import DualProblem
from ..solvers.results import DualResult
from . import dc_svm_levels
from .dc_svm_levels import DCSVMSettings, KernelProblem, LazyProblem
from .trained_machines import TrainedMachine, TrainedMachines, describe_level

_WORKER_PART = 4  # a solver gets at most one part in so many of its worker's memory


class _WorkerTask(NamedTuple):
    """What workers are sent beside rows and duals: `token` names the fit; `dtypes` of inner products and of tiles."""

    kernel: Kernel
    settings: DCSVMSettings
    token: str
    dtypes: tuple[DType, DType]


class _Solved(NamedTuple):
    """The machine of a cluster, and the coordinates (m,) of its rows in the whole problem."""

    cluster: int
    coordinates: RowIndices
    result: DualResult


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
    """Train early machines on parts of `rows`, one after the other on one division; the better of these and `before`.

    A machine that is stopped before it begins is the `result_at_start`.
    """
    division: Division | None = None
    with suppress(Stopped):
        # cluster a sample, then all rows by its centres; a cluster's rows go to one worker
        n_blocks, (chosen, values) = max(1, rows.n_workers), rows.sample
        progress.stage("clusters")
        samples = ensure_precision(kernel, make_samples(values, kernel.sample_form))
        k = min(settings.branching**settings.stop_level, len(chosen))
        clustering = ClusteringSettings(k, settings.partition, settings.n_sample)
        with blas_limit(1), ThreadTeam(settings.n_jobs) as team:
            operator, go_on = KernelOperator(kernel, samples, team), SilentProgress(progress).go_on
            sampled = divide(operator, clustering, rng, go_on=go_on)
        labels = rows.assign_labels(partial(_route, sampled.router))
        progress.stage("shuffle")
        owner = _assign_to_blocks(np.bincount(labels, minlength=sampled.router.n_clusters), n_blocks)
        rows.shuffle(owner[labels], int(owner.max()) + 1)
        division = Division(sampled.router, labels, chosen[sampled.sample_indices])
        task = _WorkerTask(kernel, settings, rows.token, (samples.precision, samples.dtype))

    def train(p: int, _: TrainedMachine | None, share: AnyProgress) -> TrainedMachine:
        own, problem = problems[p]()
        machine = None
        if division is not None:
            with suppress(Stopped):
                machine = _train_clusters(task, division, rows, own, problem, share)
        machine = machine or _machine_at_start(division, settings.stop_level, own, problem, share)
        progress.advance()
        return machine.following(None if before is None else before[p])

    if len(problems) == 1:
        return [train(0, None, progress)]
    work = [float(len(make()[0])) ** 2 for make in problems]
    return share_time(train, range(len(problems)), work, progress, lambda _: True)


def _assign_to_blocks(sizes: NDArray[np.intp], n_blocks: int) -> NDArray[np.intp]:
    """The block (k,) of each cluster: the largest clusters first, each to the smallest block; none is empty."""
    owner = np.zeros(len(sizes), np.intp)
    load = np.zeros(min(n_blocks, int(np.count_nonzero(sizes))))
    for cluster in np.argsort(-sizes, kind="stable"):
        owner[cluster] = load.argmin()
        load[owner[cluster]] += sizes[cluster]
    return owner


def _train_clusters(
    task: _WorkerTask,
    division: Division,
    rows: RemoteRows,
    own: RowIndices,
    problem: DualProblem,
    progress: AnyProgress,
) -> TrainedMachine:
    """A machine for each cluster, by the worker that has its rows; together the early machine (Lemma 1)."""
    level, k = task.settings.stop_level, division.router.n_clusters
    progress.stage(f"level {level}: {k} clusters")
    duals = np.zeros((4, len(rows)))
    curvature = 0.0 if problem.curvature is None else problem.curvature
    duals[:, own] = np.broadcast_arrays(problem.target, problem.lo, problem.hi, curvature)
    left = progress.deadline - perf_counter()
    max_time = max(left, 0.0) if isfinite(left) else None
    shared = problem.take(np.empty(0, np.intp))  # the workers have their own coordinates
    train = partial(_train_block, task, shared, max_time)
    solved = list(chain(*rows.map_blocks(train, *duals, division.labels, positions(own, len(rows)))))
    progress.go_on()  # sets `stopped_by`, if the workers were stopped
    intercepts = np.zeros(k)
    for part in solved:
        intercepts[part.cluster] = part.result.intercept
    coordinates, results = [part.coordinates for part in solved], [part.result for part in solved]
    joined = join_results(coordinates, results, len(own), progress.elapsed)
    return _early_machine(division, level, own, joined, intercepts)


def _early_machine(
    division: Division, level: int, own: RowIndices, result: DualResult, intercepts: Vector
) -> TrainedMachine:
    seconds = result.history.columns["time"][-1]
    record = describe_level(level, len(intercepts), result, clustering_seconds=0.0, seconds=seconds)
    return TrainedMachine(result, division, intercepts, [record], own)


def _machine_at_start(
    division: Division | None, level: int, own: RowIndices, problem: DualProblem, progress: AnyProgress
) -> TrainedMachine:
    """The `result_at_start`; as an early machine, as the other machines are, where there is a division."""
    progress.go_on()  # sets `stopped_by`
    result = result_at_start(problem, problem.uniform_point(), progress.elapsed)
    if division is None:
        return TrainedMachine.exact(result, rows=own)
    return _early_machine(division, level, own, result, np.full(division.router.n_clusters, result.intercept))


# --------------------------------------------------------------------------------------------------- on the workers


def _route(router: Router, X: Rows) -> Labels:
    with blas_limit(1), ThreadTeam(worker_resources()[0]) as team:
        parts = [router.route(X[rows], team) for rows in row_blocks(X.shape[0], ROUTED_ROWS)]
    return np.concatenate([np.empty(0, np.intp), *parts])


def _train_block(
    task: _WorkerTask,
    shared: DualProblem,
    max_time: float | None,
    X: Rows,
    target: Vector,
    lo: Vector,
    hi: Vector,
    curvature: Vector,
    clusters: Labels,
    coordinates: RowIndices,
) -> list[_Solved]:
    """The machines of a block's clusters.

    The vectors have a value for each of its rows: the dual problem, the cluster, and the coordinate in the whole
    problem, -1 for rows that this machine does not learn.
    """
    chosen = np.flatnonzero(coordinates >= 0)
    own_curvature = None if shared.curvature is None else curvature
    problem = shared._replace(target=target, lo=lo, hi=hi, curvature=own_curvature).take(chosen)
    samples = view_samples(X if len(chosen) == len(target) else X[chosen], task.kernel.sample_form)
    data = KernelProblem(task.kernel, converted(samples, *task.dtypes), problem)
    numbers = np.unique(clusters[chosen])
    order = np.argsort(coordinates[chosen])  # the same order wherever dask had the partitions
    own_clusters = clusters[chosen[order]]
    rows = [order[own_clusters == cluster] for cluster in numbers]
    n_threads, limit = worker_resources()
    budget = min(task.settings.memory.budget, limit // _WORKER_PART)
    settings = replace(task.settings, n_jobs=n_threads, memory=replace(task.settings.memory, budget=budget))
    has_ended = ended_test(task.token)
    with Progress(max_time=max_time, callback=lambda state: has_ended()) as progress:
        results = dc_svm_levels.solve_clusters(data, rows, settings, progress)
    return [
        _Solved(int(cluster), coordinates[chosen[part]], result)
        for cluster, part, result in zip(numbers, rows, results, strict=True)
    ]
