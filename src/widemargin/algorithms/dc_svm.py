"""DC-SVM: divide the data, solve the parts, glue their solutions together, solve the whole from there.

Source: Hsieh, Si, Dhillon, A Divide-and-Conquer Solver for Kernel Support Vector Machines, ICML 2014, Algorithm 1:

    for l = l_max, ..., 1:
        cluster the data into k^l parts, by a sample of the support vectors of the level below
        solve every part, from the dual variables of the level below
    refine: solve on the support vectors of level 1
    solve on the whole data

By Lemma 1 the glued solution is optimal for k(x, z) [same cluster]: asked with it, a level's machine predicts *early*.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._native import Stopped
from .._progress import Part, Progress
from .._threads import ThreadTeam, blas_limit, effective_n_jobs, run
from ..data.samples import Samples, SampleSubset
from ..kernels.functions import Kernel
from ..kernels.precision import entry_noise
from ..kernels.scratch import Scratch, closing_scratch, release
from ..kernels.tiles import fill_gram
from ..partition.divide import Division, divide
from ..solvers.dual.certificate import MAX_RELATIVE_GAP, DualProblem, svm_problem
from ..solvers.dual.in_memory import solve_in_memory, zero_result
from ..solvers.dual.solver import SINGLE_SET_ROWS, DualSolver, hides_violation, split_memory
from ..solvers.dual.subproblems import Subproblem, solve_on_whole_matrix
from ..solvers.results import DualResult, StoppedAtStartError, join_results

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

_LARGEST_SQUARE = 6000  # rows of a cluster that is solved on its whole kernel matrix
_START_TOL = 0.1  # of a level that is only a start: its last digits would be lost in the next
_COPY_SHARE = 64  # a copy of the rows in another order may take as much of the memory
_CLUSTER_ROWS = 2000
_FEW_ENTRIES, _MANY_PROBLEMS, _SQUARES = 2**20, 8, 4  # of a kernel matrix for one problem; for several; of the memory
_LEAST_ROWS = 5000  # with fewer, the whole is solved before the clusters are found


@dataclass(frozen=True)
class Settings:
    """How to solve: what does not depend on the data.

    Attributes
    ----------
    fit_intercept : bool
    tol : float
    max_relative_gap : float
        Largest share of the objective that the gap of a machine that has converged may be; infinite where the kernel
        is not positive semidefinite, and so the gap no bound.
    max_iter : int
        Working sets for the whole of each binary problem; -1 for no limit.
    memory_budget : int
        Bytes beyond the caller's data.
    n_jobs : int or None
    n_levels : int or "auto"
        Level l has ``branching ** l`` clusters; levels n_levels, ..., 1 are solved before the whole. "auto": only the
        one that has clusters of 500 to 2,000 rows; none below 5,000 rows or where few support vectors are expected.
    stop_level : int
        0, or the last level to solve: its machine is the result.
    branching : int
    n_sample : int
        Points that are clustered at each level.
    partition : {"kernel", "input", "random"}
    """

    fit_intercept: bool = False
    tol: float = 1e-3
    max_relative_gap: float = MAX_RELATIVE_GAP
    max_iter: int = -1
    memory_budget: int = 2**30
    n_jobs: int | None = None
    n_levels: int | str = 0
    stop_level: int = 0
    branching: int = 4
    n_sample: int = 1000
    partition: str = "input"

    def levels(self, n: int) -> range:
        """The levels to solve for n rows, the lowest, with most clusters, first."""
        if not isinstance(self.n_levels, str):
            deepest = max(self.stop_level, int(np.ceil(np.log(max(n, 2)) / np.log(self.branching))))  # single rows
            return range(min(self.n_levels, deepest), max(self.stop_level, 1) - 1, -1)
        if self.stop_level:
            return range(self.stop_level, self.stop_level - 1, -1)
        level = int(np.ceil(np.log(n / _CLUSTER_ROWS) / np.log(self.branching))) if n >= _LEAST_ROWS else 0
        return range(level, max(level, 1) - 1, -1)


class Data(NamedTuple):
    """Samples of length n, their kernel, and the dual problem of n coordinates."""

    kernel: Kernel
    samples: Samples
    problem: DualProblem


@dataclass
class Machine:
    """What training gives.

    Attributes
    ----------
    result : DualResult
        For an early machine, of the problem with the kernel k(x, z) [same cluster] (Lemma 1).
    division : Division or None
        The clusters of an early machine; None for the exact one.
    intercepts : ndarray of shape (n_clusters,) or (1,)
    levels : list of dict
        For each level: its number, clusters, support vectors, seconds for clustering and for training, and the dual
        value of its parts.
    rows : ndarray of int or None
        Of a pair of classes: which of all rows the result's coordinates are. None: all.
    """

    result: DualResult
    division: Division | None
    intercepts: Vector
    levels: list[dict[str, float]]
    rows: Rows | None = None


def train(
    data: Data,
    settings: Settings,
    progress: Progress | Part,
    rng: np.random.Generator,
    *,
    start: Vector | None = None,
    division: Division | None = None,
    always_whole: bool = False,
) -> Machine:
    """Train one machine by Algorithm 1.

    Parameters
    ----------
    start : ndarray of shape (n,), optional
        A feasible point in signed form to go on from, in place of the levels.
    division : Division, optional
        Clusters to use at `stop_level`, in place of new ones.
    always_whole : bool
        Whether a fit that is stopped at a level must make a machine of the kernel itself all the same.

    Raises
    ------
    StoppedAtStartError
        With nu > 0, if the fit is stopped before the decision values of a feasible point are known.

    Notes
    -----
    With an intercept every cluster's solution has the sum of the start on it, so the concatenated one is feasible.

    Tiles are float32 for float32 data, where an entry is off by about 1e-7. Decision values sum as many of them as
    there are support vectors, times alpha: where that noise comes near `tol`, the solution is polished in float64.
    """
    with blas_limit(1), ThreadTeam(settings.n_jobs) as team, closing_scratch():
        if _is_small(len(data.samples), 1, settings, progress):
            start = data.problem.sparse_point() if start is None else start
            whole = Subproblem(np.arange(len(data.samples)), data.problem, start)
            return _train_small(data.kernel, data.samples, [whole], settings, progress, team)[0]
        fit = _Fit(data, settings, progress, rng, team)
        levels = fit.choose_levels() if start is None else range(0)
        if start is None:
            start = data.problem.uniform_point() if levels else data.problem.sparse_point()
        beta = start
        for level in levels:
            try:
                beta = fit.solve_level(level, beta, division)
            except Stopped:  # before the clusters of this level were known: those of `stop_level` may be given
                continue
            if level == settings.stop_level or (progress.stopped_by and not always_whole):
                return fit.early_machine()
        return fit.solve_whole(beta, always_whole)


class _Fit:
    """The steps of Algorithm 1, and what they leave behind."""

    def __init__(
        self, data: Data, settings: Settings, progress: Progress | Part, rng: np.random.Generator, team: ThreadTeam
    ) -> None:
        self.data = data
        self.settings = settings
        self.progress = progress
        self.rng = rng
        self.team = team
        self.levels: list[dict[str, float]] = []
        self.early: Machine | None = None
        self.sampled: Vector | None = None  # the solution on a sample of the rows
        self.entry_noise = entry_noise(data.kernel, data.samples)

    def choose_levels(self) -> range:
        """The levels to solve. One that was not asked for must spare more than it costs, in kernel entries a row.

        It costs as many as a cluster has rows, and spares about as many as there will be support vectors: if these grow
        as the root of the rows, a sample of a cluster's size tells.
        """
        n = len(self.data.samples)
        levels = self.settings.levels(n)
        if not isinstance(self.settings.n_levels, str) or self.settings.stop_level or not levels:
            return levels
        if self.data.problem.nu:  # that share of the rows are support vectors
            return levels
        m = n // self.settings.branching ** levels[0]
        rows = np.sort(self.rng.choice(n, m, replace=False))
        self.sampled = np.zeros(n)
        self.sampled[rows] = self._solve_cluster(rows, self.sampled, _START_TOL, np.inf).beta
        says_few = np.ptp(self.data.problem.target[rows]) > 0.0 and np.count_nonzero(self.sampled) * np.sqrt(n / m) <= m
        return range(0) if says_few else levels

    def solve_level(self, level: int, beta: Vector, division: Division | None) -> Vector:
        """Divide, and solve every cluster on its own, side by side."""
        begin = time.perf_counter()
        if division is None or level != self.settings.stop_level:
            kernel, samples, _ = self.data
            division = _divide(kernel, samples, level, beta, self.settings, self.progress, self.rng, self.team)
        clustered = time.perf_counter()
        n_clusters = division.router.n_clusters
        self.progress.stage(f"level {level}: {n_clusters} clusters", n_clusters)
        bounds = np.cumsum(np.bincount(division.labels, minlength=n_clusters))[:-1]
        clusters = np.split(np.argsort(division.labels, kind="stable"), bounds)
        largest_first = sorted(range(n_clusters), key=lambda c: -len(clusters[c]))
        tol, max_relative_gap = max(self.settings.tol, _START_TOL), np.inf
        if level == self.settings.stop_level:
            tol, max_relative_gap = self.settings.tol, self.settings.max_relative_gap
        solve = partial(self._solve_cluster, beta=beta, tol=tol, max_relative_gap=max_relative_gap)
        solved = self.team.map(solve, [clusters[c] for c in largest_first])
        release()
        parts = [solved[largest_first.index(c)] for c in range(n_clusters)]
        # Lemma 1: together the optimum for the kernel between cluster mates alone
        glued = join_results(clusters, parts, len(beta), self.progress.elapsed)
        self.early = Machine(glued, division, np.array([part.intercept for part in parts]), [])
        self.levels.append(
            {
                "level": level,
                "n_clusters": n_clusters,
                "n_support": int(np.count_nonzero(self.early.result.beta)),
                "clustering_seconds": clustered - begin,
                "seconds": time.perf_counter() - begin,
                "objective": self.early.result.objective - self.early.result.gap,
            }
        )
        return self.early.result.beta

    def _solve_cluster(self, rows: Rows, beta: Vector, tol: float, max_relative_gap: float) -> DualResult:
        """One GEMM and one compiled solve for a cluster whose kernel matrix is small; else as the whole is solved."""
        m = len(rows)
        if not self.progress.go_on():
            if self.data.problem.nu:  # zero is not feasible
                raise Stopped
            return zero_result(self.data.problem.take(rows), equality=self.settings.fit_intercept)
        itemsize = self.data.samples.dtype.itemsize
        share = max(1, self.settings.memory_budget - self.data.samples.nbytes) // (2 * self.team.n_threads)
        part = self._take(self.data, rows)
        with ThreadTeam(self.settings.n_jobs) as team:  # of one thread where clusters are solved side by side
            if m > _LARGEST_SQUARE or m * m * itemsize > share:
                result = self._solver(
                    part, team, tol=tol, max_relative_gap=max_relative_gap, memory_budget=share
                ).solve(beta[rows])
            else:
                result = self._solve_in_memory(part, team, beta[rows], tol, max_relative_gap)
        self.progress.advance()
        return result

    def _solve_in_memory(
        self, part: Data, team: ThreadTeam, beta: Vector, tol: float, max_relative_gap: float
    ) -> DualResult:
        m, dtype = len(part.samples), part.samples.dtype
        with Scratch(m * m * dtype.itemsize) as buffer:
            K = buffer[: m * m * dtype.itemsize].view(dtype).reshape(m, m)
            fill_gram(part.kernel, part.samples.take(np.arange(m)), K, team)
            return solve_in_memory(
                K,
                part.problem,
                beta,
                team,
                equality=self.settings.fit_intercept,
                tol=tol,
                progress=self.progress,
                max_relative_gap=max_relative_gap,
            )

    def early_machine(self) -> Machine:
        """The last level's machine; if the fit was stopped there, not the one that was asked for."""
        assert self.early is not None
        is_goal = self.levels[-1]["level"] == self.settings.stop_level
        result = replace(self.early.result, converged=self.early.result.converged and is_goal)
        return replace(self.early, result=result, levels=self.levels)

    def solve_whole(self, beta: Vector, always_whole: bool) -> Machine:
        """Refine, then solve on all the data; if there was no time for the levels, from the solution on a sample."""
        if self.progress.stopped_by and self.sampled is not None:
            beta = self.sampled
        try:
            must_start = (always_whole or self.early is None) and not self.data.problem.nu
            result = self._refine_and_solve(beta, must_start=must_start)
        except StoppedAtStartError:
            if self.early is None:
                raise
            return self.early_machine()
        # both objectives are half a squared norm and C times the training loss, each of its own machine
        early = None if always_whole or not self.progress.stopped_by else self.early
        if early is not None and early.result.objective < result.objective:
            return self.early_machine()
        return Machine(result, None, np.array([result.intercept]), self.levels)

    def _refine_and_solve(self, beta: Vector, must_start: bool) -> DualResult:
        """Solve on the support vectors of the last level alone, whose kernel matrix then is part of the whole's."""
        support = np.flatnonzero(beta)
        if len(support) <= SINGLE_SET_ROWS:
            self.progress.stage("whole problem")
            solver = self._solver(self.data, must_start=must_start)
            return self._polish(self.data, solver, solver.solve(beta))
        order = np.concatenate([support, np.flatnonzero(beta == 0)])
        self.progress.stage("refine")
        data = self._take(self.data, order)
        solver = self._solver(data, must_start=must_start, first=len(support), order=order)
        tol = max(self.settings.tol, _START_TOL)
        refined, leading = beta[support], None
        with suppress(Stopped):
            if solver.rows.has_room and len(support) <= solver.active.capacity:
                refined, leading = solver.refine(refined, tol)
            else:
                part = self._solver(self._take(self.data, support), tol=tol, max_relative_gap=np.inf)
                refined, leading = part.solve_in_memory_of(solver, refined)
        start = np.concatenate([refined, np.zeros(len(beta) - len(support))])
        self.progress.stage("whole problem")
        result = self._polish(data, solver, solver.solve(start, leading))
        beta, decision = (solver.to_original_order(values) for values in (result.beta, result.decision))
        return replace(result, beta=beta, decision=decision)

    def _take(self, data: Data, rows: Rows) -> Data:
        """The problem on some rows, which are copied if that takes little memory."""
        kernel, samples, problem = data
        is_little = len(rows) * samples.row_bytes < self.settings.memory_budget // _COPY_SHARE
        return Data(kernel, SampleSubset(samples, rows, copy=is_little), problem.take(rows))

    def _polish(self, data: Data, solver: DualSolver, result: DualResult) -> DualResult:
        """Where float32 tiles are too coarse: go on from decision values in float64; if need be, with float64 tiles."""
        if not self._is_coarse(solver, result):
            return result
        self.progress.stage("float64")

        def exact(part: Data, **changes: Any) -> DualSolver:
            part = part._replace(samples=part.samples.astype(np.dtype(np.float64), np.dtype(np.float64)))
            return self._solver(part, must_start=False, is_exact=True, **changes)

        try:
            if len(result.beta) > SINGLE_SET_ROWS:
                most_rows = max(0, self.settings.memory_budget - solver.nbytes) // (2 * data.samples.row_bytes)
                result = solver.refine_uncertain_rows(
                    result,
                    lambda rows, beta: exact(self._take(data, rows), memory_budget=0).decision_values(beta),
                    most_rows,
                )
            if self._is_coarse(solver, result):
                result = solver.release_to(exact(data, order=solver.order)).solve(result.beta)
        except (Stopped, StoppedAtStartError):
            return replace(result, converged=False)
        return result

    def _is_coarse(self, solver: DualSolver, result: DualResult) -> bool:
        """Whether rounding of the kernel entries could hide a violation of `tol`, or a hundredth of the objective."""
        return hides_violation(solver.noise(result.beta), self.settings.tol, solver.box, result)

    def _solver(
        self,
        data: Data,
        team: ThreadTeam | None = None,
        *,
        must_start: bool = True,
        is_exact: bool = False,
        first: int = 0,
        order: Rows | None = None,
        **changes: float,
    ) -> DualSolver:
        """The exact solver, with the fit's settings and threads or some changed."""
        settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        rows, active_bytes = split_memory(data.kernel, data.samples, settings.memory_budget, team or self.team, first)
        solver = DualSolver(
            rows,
            data.problem,
            equality=settings.fit_intercept,
            tol=settings.tol,
            active_bytes=active_bytes,
            progress=self.progress,
            max_iter=settings.max_iter,
            must_start=must_start,
            entry_noise=0.0 if is_exact else self.entry_noise,
            max_relative_gap=settings.max_relative_gap,
        )
        solver.order = order
        return solver


def _is_small(n: int, n_problems: int, settings: Settings, progress: Progress | Part) -> bool:
    """Whether problems on n rows are solved on the whole kernel matrix at once: nobody asks for levels or rounds."""
    n_entries, itemsize = n * n, 8
    return (
        n_entries <= _FEW_ENTRIES * min(n_problems, _MANY_PROBLEMS)
        and n_entries * itemsize * _SQUARES <= settings.memory_budget
        and not settings.stop_level
        and settings.n_levels in ("auto", 0)
        and not progress.is_observed
    )


def _train_small(
    kernel: Kernel,
    samples: Samples,
    parts: list[Subproblem],
    settings: Settings,
    progress: Progress | Part,
    team: ThreadTeam,
) -> list[Machine]:
    """Train a machine for each part, on one kernel matrix."""
    progress.stage("whole problem")
    results = solve_on_whole_matrix(
        kernel,
        samples,
        parts,
        team,
        equality=settings.fit_intercept,
        tol=settings.tol,
        max_iter=settings.max_iter,
        progress=progress,
        max_relative_gap=settings.max_relative_gap,
    )
    return [Machine(result, None, np.array([result.intercept]), []) for result in results]


def _divide(
    kernel: Kernel,
    samples: Samples,
    level: int,
    beta: Vector,
    settings: Settings,
    progress: Progress | Part,
    rng: np.random.Generator,
    team: ThreadTeam,
) -> Division:
    """Adaptive clustering: the sample is taken from the support vectors of the level below, once there are any.

    `Stopped` is raised if the fit is stopped meanwhile.
    """
    candidates = np.flatnonzero(beta) if beta.any() else None
    k, m, method = min(settings.branching**level, len(beta)), settings.n_sample, settings.partition
    with progress.interrupting(team.native):
        return divide(kernel, samples, k, method=method, candidates=candidates, n_sample=m, rng=rng, team=team)


def pair_problem(classes: NDArray[np.integer], upper: Vector, first: int, second: int) -> tuple[Rows, DualProblem]:
    """The rows of two classes, and their binary problem on these rows; the first class is positive.

    `classes` (n,) are the rows' class numbers, `upper` (n,) the upper bounds of alpha.
    """
    rows = np.flatnonzero((classes == first) | (classes == second))
    return rows, svm_problem(np.where(classes[rows] == first, 1.0, -1.0), upper[rows])


def train_several(
    kernel: Kernel,
    samples: Samples,
    problems: Sequence[Callable[[], tuple[Rows, DualProblem]]],
    settings: Settings,
    progress: Progress,
    rng: np.random.Generator,
) -> list[Machine]:
    """Train machines on parts of the same samples: one for every pair of classes, or for every target.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    problems : sequence of callables
        Each returns the rows of a machine, and its dual problem on these rows.
    settings : Settings
        With a `stop_level`, all machines share one division of the samples.
    progress : Progress
    rng : numpy.random.Generator

    Returns
    -------
    list of Machine
        In the order of `problems`, each with its own `rows`. They are trained in parallel and share `memory_budget`.
    """
    n, n_workers = len(samples), min(effective_n_jobs(settings.n_jobs), len(problems))
    settings = replace(settings, memory_budget=settings.memory_budget // n_workers)
    progress.stage(f"{len(problems)} machines", len(problems))
    if _is_small(n, len(problems), settings, progress):
        return _train_several_small(kernel, samples, [make() for make in problems], settings, progress)
    division = None
    if settings.stop_level:
        with suppress(Stopped), blas_limit(1), ThreadTeam(settings.n_jobs) as team:
            division = _divide(kernel, samples, settings.stop_level, np.zeros(n), settings, progress, rng, team)
    samples.squares  # noqa: B018 - computed once, before the threads share it
    tasks = [
        partial(_train_one, kernel, samples, make, settings, progress, n_workers, seed, division)
        for make, seed in zip(problems, rng.integers(2**63, size=len(problems)), strict=True)
    ]
    return run(tasks, settings.n_jobs)


def _train_several_small(
    kernel: Kernel,
    samples: Samples,
    problems: list[tuple[Rows, DualProblem]],
    settings: Settings,
    progress: Progress,
) -> list[Machine]:
    """As `train_several`, on one kernel matrix."""
    with blas_limit(1), ThreadTeam(settings.n_jobs) as team:
        parts = [Subproblem(rows, problem, problem.sparse_point()) for rows, problem in problems]
        machines = _train_small(kernel, samples, parts, settings, progress, team)
    return [replace(machine, rows=part.rows) for machine, part in zip(machines, parts, strict=True)]


def _train_one(
    kernel: Kernel,
    samples: Samples,
    make: Callable[[], tuple[Rows, DualProblem]],
    settings: Settings,
    progress: Progress,
    n_workers: int,
    seed: int,
    division: Division | None,
) -> Machine:
    rows, problem = make()
    data = Data(kernel, SampleSubset(samples, rows), problem)
    local = None if division is None else division._replace(labels=division.labels[rows])
    part, rng = progress.part(n_workers), np.random.default_rng(seed)
    machine = train(data, settings, part, rng, division=local, always_whole=True)
    progress.advance()
    return replace(machine, rows=rows, division=division)
