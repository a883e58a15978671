"""Exact kernel machines and early ones of rows on the workers of a cluster; of rows in this process as ever.

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
from .._progress import PartProgress, Progress, SilentProgress
from .._threads import ThreadTeam, blas_limit, row_blocks
from .._types import Labels, RowIndices, Vector
from ..algorithms import dc_svm, several_machines
from ..algorithms.block_minimization import BlockMinimizer, RoundSettings
from ..algorithms.dc_svm import KernelProblem, Problem, Settings
from ..data.remote_rows import RemoteRows
from ..data.rows import positions
from ..data.samples import Samples, SampleSubset, converted, make_samples, view_samples
from ..kernels.functions import Kernel
from ..kernels.precision import ensure_precision
from ..partition.divide import Division, divide
from ..partition.routing import Router
from ..solvers.dual.block import Block, BlockSettings
from ..solvers.dual.certificate import DualProblem
from ..solvers.dual.in_memory import zero_result
from ..solvers.results import DualResult, StoppedAtStartError, TrainedMachine, join_results

_CLUSTERS_PER_BLOCK = 8  # of an exact machine, so that blocks have about the same size
_GRACE = 5.0  # seconds that workers have for handing in their clusters once a fit is stopped
_ROUTED_ROWS = 4096  # at a time, as they are copied
_MEMORY_SHARE = 4  # a worker's limit of memory / that of the solver on it, at least


def train(
    data: KernelProblem,
    settings: Settings,
    progress: Progress,
    rng: np.random.Generator,
    *,
    start: Vector | None = None,
) -> TrainedMachine:
    """`dc_svm.train`, also of `RemoteRows` as samples: an early machine with a `stop_level`, else the exact one."""
    rows = data.samples
    if not isinstance(rows, RemoteRows):
        return dc_svm.train(data, settings, progress, rng, start=start)
    whole = np.arange(len(rows))
    (machine,) = _train_remotely(data.kernel, rows, [lambda: (whole, data.problem)], settings, progress, rng, start)
    return replace(machine, rows=None)


def train_several(
    kernel: Kernel,
    samples: Samples | RemoteRows,
    problems: Sequence[Problem],
    settings: Settings,
    progress: Progress,
    rng: np.random.Generator,
    *,
    class_sizes: Sequence[int] | None = None,
) -> list[TrainedMachine]:
    """`several_machines.train_several`, also of `RemoteRows`: then one after the other, on one division of the rows."""
    if not isinstance(samples, RemoteRows):
        return several_machines.train_several(
            kernel, samples, problems, settings, progress, rng, class_sizes=class_sizes
        )
    progress.stage(f"{len(problems)} machines", len(problems))
    return _train_remotely(kernel, samples, problems, settings, progress, rng, None)


def take_samples(kernel: Kernel, samples: Samples | RemoteRows, rows: RowIndices) -> Samples:
    """Some of the samples; those of `RemoteRows` are brought here."""
    if not isinstance(samples, RemoteRows):
        return SampleSubset(samples, rows)
    return ensure_precision(kernel, make_samples(samples[rows], kernel.sample_form))


class _Layout(NamedTuple):
    """Clusters of the rows, which are in blocks of whole clusters; mean bytes of a row, precision of inner products."""

    division: Division
    rows: RemoteRows
    row_bytes: int
    precision: np.dtype[Any]


def _train_remotely(
    kernel: Kernel,
    rows: RemoteRows,
    problems: Sequence[Problem],
    settings: Settings,
    progress: Progress,
    rng: np.random.Generator,
    start: Vector | None,
) -> list[TrainedMachine]:
    layout = None
    with suppress(Stopped):
        layout = _lay_out(kernel, rows, settings, progress, rng)
    machines = []
    for make in problems:
        mine, problem = make()
        share = progress.part(1) if len(problems) > 1 else progress
        machines.append(_train_one(kernel, layout, mine, problem, settings, share, start))
        progress.advance()
    return machines


def _lay_out(
    kernel: Kernel, rows: RemoteRows, settings: Settings, progress: Progress, rng: np.random.Generator
) -> _Layout:
    """Cluster a sample, then all rows by its centres, and bring each cluster's rows to one worker."""
    n_blocks = max(1, rows.n_workers)
    progress.stage("clusters")
    k = settings.branching**settings.stop_level if settings.stop_level else _CLUSTERS_PER_BLOCK * n_blocks
    chosen, values = rows.sample
    samples, silent = ensure_precision(kernel, make_samples(values, kernel.sample_form)), SilentProgress(progress)
    with blas_limit(1), ThreadTeam(settings.n_jobs) as team:
        sampled = divide(
            kernel,
            samples,
            min(k, len(chosen)),
            method=settings.partition,
            n_sample=settings.n_sample,
            rng=rng,
            team=team,
            go_on=silent.go_on,
        )
    labels = rows.label(partial(_route, sampled.router))
    division = Division(sampled.router, labels, chosen[sampled.sample_indices])
    progress.stage("shuffle")
    owner = _spread(np.bincount(labels, minlength=sampled.router.n_clusters), n_blocks)
    rows.shuffle(owner[labels], int(owner.max()) + 1)
    return _Layout(division, rows, samples.row_bytes, samples.precision)


def _spread(sizes: NDArray[np.intp], n_blocks: int) -> NDArray[np.intp]:
    """The block (k,) of each cluster: the largest clusters first, each to the smallest block; none is empty."""
    owner = np.zeros(len(sizes), np.intp)
    load = np.zeros(min(n_blocks, int(np.count_nonzero(sizes))))
    for cluster in np.argsort(-sizes, kind="stable"):
        owner[cluster] = load.argmin()
        load[owner[cluster]] += sizes[cluster]
    return owner


def _train_one(
    kernel: Kernel,
    layout: _Layout | None,
    rows: RowIndices,
    problem: DualProblem,
    settings: Settings,
    progress: Progress | PartProgress,
    start: Vector | None,
) -> TrainedMachine:
    """The machine of a problem on some rows. One that is stopped before it begins is constant."""
    if layout is not None and not settings.stop_level:
        with suppress(Stopped, StoppedAtStartError):
            return _train_exactly(kernel, layout, rows, problem, settings, progress, start)
    elif layout is not None:
        with suppress(Stopped, StoppedAtStartError):
            return _train_early(kernel, layout, rows, problem, settings, progress)
    progress.go_on()  # keeps the reason
    if problem.nu:  # zero is not feasible
        raise StoppedAtStartError
    result = zero_result(problem, has_intercept=settings.fit_intercept, elapsed=progress.elapsed)
    result.history.record(bytes=0)
    return TrainedMachine(result, None, np.array([result.intercept]), [], rows)


def _train_exactly(
    kernel: Kernel,
    layout: _Layout,
    rows: RowIndices,
    problem: DualProblem,
    settings: Settings,
    progress: Progress | PartProgress,
    start: Vector | None,
) -> TrainedMachine:
    progress.stage(f"whole problem, {len(layout.rows.index)} blocks")
    places, index = _places(layout.rows, rows)
    arguments = [
        (number, mine, kernel, problem.take(coordinates), settings, layout.rows.token, layout.precision)
        for number, (mine, coordinates) in enumerate(zip(places, index, strict=True))
    ]
    round_settings = RoundSettings(
        has_intercept=settings.fit_intercept,
        tol=settings.tol,
        max_relative_gap=settings.max_relative_gap,
        max_iter=settings.max_iter,
        memory_budget=settings.memory_budget,
        row_bytes=layout.row_bytes,
    )
    minimizer = BlockMinimizer(layout.rows.hold(_make_block, arguments), problem, index, round_settings, progress)
    result = minimizer.solve(problem.sparse_point() if start is None else start)
    return TrainedMachine(result, None, np.array([result.intercept]), [], rows)


def _train_early(
    kernel: Kernel,
    layout: _Layout,
    rows: RowIndices,
    problem: DualProblem,
    settings: Settings,
    progress: Progress | PartProgress,
) -> TrainedMachine:
    """A machine for each cluster, by the worker that has its rows. Lemma 1: together the optimum of a kernel."""
    all_rows, labels = layout.rows, layout.division.labels
    k = layout.division.router.n_clusters
    progress.stage(f"level {settings.stop_level}: {k} clusters")
    numbers = positions(rows, len(all_rows))
    padded = np.zeros((3, len(all_rows)))
    padded[:, rows] = problem.target, problem.lo, problem.hi
    left = progress.deadline - perf_counter()
    max_time = max(left, 0.0) if isfinite(left) else None
    shared = problem.take(np.empty(0, np.intp))  # the workers have their own coordinates
    solve = partial(_train_clusters, kernel, shared, settings, max_time, all_rows.token, layout.precision)
    parts = all_rows.map(solve, np.vstack([padded, labels, numbers]), _GRACE)
    progress.go_on()  # keeps the reason for which workers may have stopped
    if any(part is None for part in parts):
        raise StoppedAtStartError
    solved = list(chain(*parts))
    intercepts = np.zeros(k)
    for part in solved:
        intercepts[part.cluster] = part.result.intercept
    joined = join_results(
        [part.coordinates for part in solved], [part.result for part in solved], len(rows), progress.elapsed
    )
    joined.history.record(bytes=0)
    level = {
        "level": settings.stop_level,
        "n_clusters": k,
        "n_support": int(np.count_nonzero(joined.beta)),
        "clustering_seconds": 0.0,
        "seconds": progress.elapsed,
        "objective": joined.objective - joined.gap,
    }
    return TrainedMachine(joined, layout.division, intercepts, [level], rows)


def _places(all_rows: RemoteRows, rows: RowIndices) -> tuple[list[RowIndices], list[RowIndices]]:
    """Of a machine's rows those in each block: their places in the block, and their coordinates in the problem."""
    coordinates = positions(rows, len(all_rows))
    of_blocks = [coordinates[mine] for mine in all_rows.index]
    return [np.flatnonzero(part >= 0) for part in of_blocks], [part[part >= 0] for part in of_blocks]


# --------------------------------------------------------------------------------------------------- on the workers


class _Solved(NamedTuple):
    """The machine of a cluster, and the coordinates (m,) of its rows in the whole problem."""

    cluster: int
    coordinates: RowIndices
    result: DualResult


def _route(router: Router, X: Any) -> Labels:
    from ..data.block_store import worker_resources

    with blas_limit(1), ThreadTeam(worker_resources()[0]) as team:
        parts = [router.route(X[rows], team) for rows in row_blocks(X.shape[0], _ROUTED_ROWS)]
    return np.concatenate([np.empty(0, np.intp), *parts])


def _make_block(
    X: Any,
    number: int,
    places: RowIndices,
    kernel: Kernel,
    problem: DualProblem,
    settings: Settings,
    token: str,
    precision: np.dtype[Any],
) -> Block:
    from ..data.block_store import ended_test

    own = _worker_settings(settings)
    block_settings = BlockSettings(
        own.fit_intercept, own.memory_budget, own.n_jobs, ended_test(token), partial(_approximate, own), precision
    )
    return Block(number, X if len(places) == X.shape[0] else X[places], kernel, problem, block_settings)


def _approximate(
    settings: Settings, kernel: Kernel, samples: Samples, problem: DualProblem, progress: Progress
) -> Vector:
    return dc_svm.approximate(KernelProblem(kernel, samples, problem), settings, progress)


def _train_clusters(
    kernel: Kernel,
    problem: DualProblem,
    settings: Settings,
    max_time: float | None,
    token: str,
    precision: np.dtype[Any],
    X: Any,
    of_rows: Vector,
) -> list[_Solved] | None:
    """The machines of the clusters of a block; None if it is stopped where zero is not feasible.

    `of_rows` (5, m) has targets, bounds, clusters and coordinates.
    """
    from ..data.block_store import ended_test

    target, lo, hi, clusters, coordinates = of_rows
    mine = np.flatnonzero(coordinates >= 0)
    problem = problem._replace(target=target[mine], lo=lo[mine], hi=hi[mine])
    samples = view_samples(X if len(mine) == len(target) else X[mine], kernel.sample_form)
    samples = converted(samples, precision, samples.dtype)
    numbers = np.unique(clusters[mine])
    rows = [np.flatnonzero(clusters[mine] == cluster) for cluster in numbers]
    has_ended = ended_test(token)
    with Progress(max_time=max_time, callback=lambda state: has_ended()) as progress:
        try:
            results = dc_svm.solve_clusters(
                KernelProblem(kernel, samples, problem), rows, _worker_settings(settings), progress
            )
        except Stopped:
            return None
    return [
        _Solved(int(cluster), coordinates[mine[part]].astype(np.intp), result)
        for cluster, part, result in zip(numbers, rows, results, strict=True)
    ]


def _worker_settings(settings: Settings) -> Settings:
    """The settings with the threads of this worker, and its share of its memory."""
    from ..data.block_store import worker_resources

    n_threads, limit = worker_resources()
    return replace(settings, n_jobs=n_threads, memory_budget=min(settings.memory_budget, limit // _MEMORY_SHARE))
