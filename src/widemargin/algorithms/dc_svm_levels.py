"""DC-SVM: divide the data, solve the clusters, and solve the whole problem from their concatenated solutions.

Source: Hsieh, Si, Dhillon, A Divide-and-Conquer Solver for Kernel Support Vector Machines, ICML 2014, Algorithm 1:

    for l = l_max, ..., 1:
        cluster the data into k^l clusters, by a sample of the support vectors of level l + 1
        solve every cluster, from the dual variables of level l + 1
        (for l = l_max: a sample of all rows, and from zero)
    refine: solve on the support vectors of level 1 (here of the last level)
    solve on the whole data

By Lemma 1 the concatenated solution is optimal for the kernel k(x, z) [same cluster]: the machine of early prediction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt
from operator import attrgetter, call
from typing import NamedTuple, TypeAlias

import numpy as np

from .._memory import DEFAULT_PLAN, MemoryPlan
from .._native import Stopped
from .._progress import AnyProgress, Progress, share_time
from .._threads import ThreadTeam, blas_limit, cached_property
from .._types import RowIndices, Vector
from ..data.rows import group_by_label
from ..data.samples import Samples, SampleSubset
from ..kernels.boxed_rows import far_distance
from ..kernels.entry_precision import entry_error
from ..kernels.functions import Kernel
from ..kernels.kernel_operator import KernelOperator
from ..kernels.scratch import Scratch, closing_scratch, free_scratch
from ..kernels.tiles import SMALL_ENTRY_WORK, fill_gram
from ..partition.divide import ClusteringSettings, Division, clustering_level, divide
from ..solvers.dual.certificate import MAX_RELATIVE_GAP, START_TOL, Limits, join_results
from ..solvers.dual.float64_correction import correct_in_float64
from ..solvers.dual.in_memory import (
    WORKING_SET_ROWS,
    certified_result,
    result_at_start,
    solve_in_memory,
    uncertified_result,
)
from ..solvers.dual.memory import active_bytes, among_solves, free_bytes
from ..solvers.dual.problem import DualProblem, PairProblems
from ..solvers.dual.solver import DualSolver
from ..solvers.dual.subproblems import Subproblems, solve_on_full_matrix
from ..solvers.results import DualResult
from .trained_machines import TrainedMachine, TrainedMachines, describe_level

# A function that returns a machine's rows (m,) and its dual problem of m coordinates.
LazyProblem = Callable[[], tuple[RowIndices, DualProblem]]
Problems: TypeAlias = Sequence[LazyProblem] | PairProblems  # several: by number, a LazyProblem

_MAX_IN_MEMORY = 6000  # solve clusters of at most so many rows on their full matrix
_FULL_MATRIX_ENTRIES = 2**20  # solve a problem without levels and rounds if its full matrix has at most so many,
_FULL_MATRIX_PROBLEMS = 8  # or several whose shared matrix has as many for each of up to so many problems
_MIN_ROWS_FOR_LEVEL = 5000  # choose no automatic level with fewer: it takes longer than it saves


@dataclass(frozen=True)
class DCSVMSettings:
    """Parameters of the training, independent of the data.

    Attributes
    ----------
    tol : float
    max_relative_gap : float
        Largest gap / primal objective of a converged machine; infinite for kernels that are not positive semidefinite,
        where the gap is no bound.
    max_iter : int
        Working sets for each binary problem, and for each cluster of a level; -1 for no limit.
    memory : MemoryPlan
    n_jobs : int or None
    n_levels : int or "auto"
        Levels n_levels, ..., 1, of ``branching ** l`` clusters each, are solved before the whole problem. "auto": the
        one of fewest clusters of at most 2,000 rows in the mean, and those after it while the kernel matrix of the
        support vectors does not fit in the memory budget; none below 5,000 rows, nor where few support vectors are
        expected.
    stop_level : int
        0, or the level whose machine is the result.
    branching : int
    n_sample : int
        Samples that are clustered at each level.
    partition : {"kernel", "input"}
    """

    tol: float = 1e-3
    max_relative_gap: float = MAX_RELATIVE_GAP
    max_iter: int = -1
    memory: MemoryPlan = DEFAULT_PLAN
    n_jobs: int | None = None
    n_levels: int | str = 0
    stop_level: int = 0
    branching: int = 4
    n_sample: int = 1000
    partition: str = "input"

    @cached_property
    def limits(self) -> Limits:
        """Where the solve of each dual ends."""
        return Limits(self.tol, self.max_relative_gap, self.max_iter)

    def planned_levels(self, kernel: Kernel, samples: Samples) -> range:
        """The levels to solve for these n rows, in descending order: most clusters first.

        An automatic level of sparse rows only where most kernel values round to nothing: elsewhere it costs more than
        it saves (docs/decisions/0005).
        """
        n = len(samples)
        if not isinstance(self.n_levels, str):
            deepest = max(self.stop_level, int(np.ceil(np.log(max(n, 2)) / np.log(self.branching))))  # of single rows
            return range(min(self.n_levels, deepest), max(self.stop_level, 1) - 1, -1)
        if self.stop_level:
            return range(self.stop_level, self.stop_level - 1, -1)
        if n < _MIN_ROWS_FOR_LEVEL or (samples.is_sparse and far_distance(kernel, samples) == np.inf):
            return range(0)
        level = clustering_level(n, self.branching)
        return range(level, level - 1, -1)


class KernelProblem(NamedTuple):
    """Samples of length n, their kernel, and the dual problem of n coordinates."""

    kernel: Kernel
    samples: Samples
    problem: DualProblem


def train_machine(
    data: KernelProblem,
    settings: DCSVMSettings,
    progress: AnyProgress,
    rng: np.random.Generator,
    *,
    before: TrainedMachine | None = None,
    division: Division | None = None,
    is_one_of_several: bool = False,
) -> TrainedMachine:
    """Train one machine by Algorithm 1.

    A fit that is stopped gives the last level's machine, or the whole problem's if its primal objective is less.

    Parameters
    ----------
    before : TrainedMachine, optional
        The machine that an earlier, stopped fit has left, or a feasible point without a certificate: the training goes
        on from it, and gives no machine of a larger objective. It replaces the levels above `stop_level`.
    division : Division, optional
        The clusters of `stop_level`; new ones by default.
    is_one_of_several : bool
        Whether the machine is one of several, all early or none: a stopped fit then gives the whole problem's.

    Notes
    -----
    With an intercept the solution of every cluster satisfies sum(beta) = nu sum(hi), and so does their concatenation.

    float32 data give float32 kernel entries with errors of 1e-7. Where these errors, summed in the decision values,
    come near `tol`, the solution is corrected with float64 entries.
    """
    if suits_full_matrix(len(data.samples), 1, settings, progress):
        return replace(train_on_full_matrix(data, settings, progress, before)[0], rows=None)
    is_exact = before is not None and before.division is None
    # Train anew from zeros, and where the earlier solution is the whole problem's but clusters are asked for
    if before is not None and (not before.result.beta.any() or (is_exact and settings.stop_level)):
        anew = train_machine(data, settings, progress, rng, division=division, is_one_of_several=is_one_of_several)
        return anew.following(before)
    with _training(data, settings, progress, rng) as training:
        point = None if before is None else training.begin_at(before)
        if point is None:
            # Algorithm 1, l = l_max, ..., 1: cluster the data, solve every cluster from the level before
            beta = training.solve_levels(before, division)
            early = None if is_one_of_several else training.early
            if training.is_at_stop_level or (early is not None and progress.stopped_by):
                # early prediction: the machines of the last level's clusters (Lemma 1)
                return training.early_machine().following(before)
            # refine: solve on the support vectors of the last level; then on the whole data
            whole = training.solve_whole(beta)
        else:  # an earlier fit was stopped in the whole problem
            early, whole = training.early, training.go_on_from(point)
        # of a stopped fit the better of both: the objective of an early machine is the sum of its clusters'
        if early is not None and progress.stopped_by and early.result.objective < whole.result.objective:
            return replace(training.early_machine(), unfinished=whole.unfinished or whole.result).following(before)
        return whole.following(before)


def train_on_full_matrix(
    data: KernelProblem, settings: DCSVMSettings, progress: AnyProgress, before: TrainedMachine | None
) -> TrainedMachines:
    """`train_machine` without levels and rounds, as arrays of one machine."""
    (kernel, samples, problem), n = data, len(data.samples)
    start = problem.sparse_point() if before is None else before.start
    progress.stage("whole problem")
    whole = Subproblems(np.arange(n), np.array([0, n]), problem, start, keeps_start=before is not None)
    work = n**2 * (samples.row_cost + SMALL_ENTRY_WORK)
    with blas_limit(1, n**2 * samples.row_cost), ThreadTeam(settings.n_jobs, work) as team, closing_scratch():
        results = solve_on_full_matrix(kernel, samples, whole, settings.limits, team, progress)
    return TrainedMachines.of_results(whole.rows, results)


@contextmanager
def _training(
    data: KernelProblem, settings: DCSVMSettings, progress: AnyProgress, rng: np.random.Generator
) -> Iterator[DCSVMTraining]:
    with blas_limit(1), ThreadTeam(settings.n_jobs) as team, closing_scratch():
        yield DCSVMTraining(data, settings, progress, rng, team)


def solve_clusters(
    data: KernelProblem, clusters: Sequence[RowIndices], settings: DCSVMSettings, progress: Progress
) -> list[DualResult]:
    """The machine of each cluster of rows: those that an early machine consists of.

    Clusters that are not begun when the fit is stopped have the `result_at_start`.
    """
    with _training(data, settings, progress, np.random.default_rng(0)) as training:
        return training.solve_clusters(clusters, data.problem.uniform_point(), settings.tol, settings.max_relative_gap)


class DCSVMTraining:
    """The steps of Algorithm 1. `levels` describes the levels solved, `early` is the machine of the last one."""

    def __init__(
        self,
        data: KernelProblem,
        settings: DCSVMSettings,
        progress: AnyProgress,
        rng: np.random.Generator,
        team: ThreadTeam,
    ) -> None:
        self.data = data
        self.settings = settings
        self.progress = progress
        self.rng = rng
        self.team = team
        self.levels: list[dict[str, float]] = []
        self.early: TrainedMachine | None = None
        self.sample_beta: Vector | None = None  # (n,): the solution on a sample of the rows, 0 for all other rows
        self.entry_error = entry_error(data.kernel, data.samples)

    @cached_property
    def worthwhile_levels(self) -> range:
        """The planned levels, an automatic one only if it saves more kernel entries than it computes.

        A level costs n * (rows of a cluster) kernel entries, and saves about n * (support vectors). The number of
        support vectors is estimated from a sample of at most 512 rows: it grows like the square root of n.
        """
        n = len(self.data.samples)
        levels = self.settings.planned_levels(self.data.kernel, self.data.samples)
        if not isinstance(self.settings.n_levels, str) or self.settings.stop_level or not levels:
            return levels
        if self.data.problem.curvature is not None:  # from zero it takes half the time that levels take
            return range(0)
        if self.data.problem.nu:  # that share of the rows are support vectors
            return levels
        cluster_rows = max(1, n // self.settings.branching ** levels[0])
        m = min(cluster_rows, WORKING_SET_ROWS)
        rows = np.sort(self.rng.choice(n, m, replace=False))
        self.sample_beta = np.zeros(n)
        self.sample_beta[rows] = self._solve_cluster(rows, self.sample_beta, START_TOL, np.inf).beta
        expected = np.count_nonzero(self.sample_beta) * np.sqrt(n / m)
        expects_few = np.ptp(self.data.problem.target[rows]) > 0.0 and expected <= cluster_rows
        return range(0) if expects_few else levels

    def following_levels(self, planned: range) -> Iterator[int]:
        """The planned levels; after automatic ones those of fewer clusters, while the support vectors are too many.

        That is, while their kernel matrix does not fit in the memory budget: a cluster's does.
        """
        yield from planned
        if isinstance(self.settings.n_levels, str) and planned and not self.settings.stop_level:
            most = isqrt(self.settings.memory["active matrix"] // self.data.samples.dtype.itemsize)
            for level in range(planned[-1] - 1, 0, -1):
                if self.early is None or np.count_nonzero(self.early.result.beta) <= most:
                    return
                yield level

    def begin_at(self, before: TrainedMachine) -> DualResult | None:
        """Take the levels of an earlier fit; return the point of the whole problem to go on from.

        None if a level is to be solved first: the one in which that fit was stopped, or an automatic one.
        """
        self.levels = list(before.levels)
        self.early = before if before.division is not None else None
        is_early = self.early is not None and not before.result.has_certificate  # of another problem
        if before.unfinished is not None and not self.settings.stop_level and not is_early:
            return before.unfinished
        has_levels = self.settings.stop_level or self.early or (not self.levels and self.worthwhile_levels)
        return None if has_levels else before.result

    def solve_levels(self, before: TrainedMachine | None, division: Division | None = None) -> Vector:
        """The solution (n,) of the last level; the parameters are those of `train_machine`."""
        stop_level = self.settings.stop_level
        known = {stop_level: division}
        if self.early is not None:  # of an earlier fit: go on with its level, or jump to the level of early prediction
            level = int(self.levels[-1]["level"])
            lowest = level if isinstance(self.settings.n_levels, str) else 1
            planned = range(level, max(stop_level, lowest) - 1, -1) or range(stop_level, stop_level - 1, -1)
            known[level] = known.get(level) or self.early.division
        else:
            planned = self.worthwhile_levels
        if before is not None:
            beta = before.start
        else:
            beta = self.data.problem.uniform_point() if planned else self.data.problem.sparse_point()
        for level in self.following_levels(planned):
            beta = self.solve_level(level, beta, known.get(level))
        return beta

    def solve_level(self, level: int, beta: Vector, division: Division | None) -> Vector:
        """Divide the data, and solve the clusters from beta (n,) in parallel; return all solutions.

        Stopped before this gives a division, or a machine better than that of the level before, it returns beta.
        """
        begin = time.perf_counter()
        given = None if self.early is None or division is not self.early.division else self.early.result
        if division is None:
            self.progress.stage(f"level {level}: division")
            operator = KernelOperator(self.data.kernel, self.data.samples, self.team)
            division = divide_rows(operator, level, beta, self.settings, self.progress, self.rng)
            if division is None:
                return beta
        clustered = time.perf_counter()
        n_clusters = division.router.n_clusters
        clusters = group_by_label(division.labels, n_clusters)
        self.progress.stage(f"level {level}: {n_clusters} clusters", sum(len(rows) ** 2 for rows in clusters))
        tol, max_relative_gap = max(self.settings.tol, START_TOL), np.inf
        if level == self.settings.stop_level:
            tol, max_relative_gap = self.settings.tol, self.settings.max_relative_gap
        results = self.solve_clusters(clusters, beta, tol, max_relative_gap, given)
        # Lemma 1: the optimum for the kernel k(x, z) [same cluster]
        joined = join_results(clusters, results, len(beta), self.progress.elapsed)
        is_worse = self.early is not None and self.early.result.objective < joined.objective
        if not joined.has_certificate or (is_worse and self.progress.stopped_by and level != self.settings.stop_level):
            return beta
        self.early = TrainedMachine(joined, division, np.array([result.intercept for result in results]), [])
        if given is not None:
            self.levels.pop()
        seconds = {"clustering_seconds": clustered - begin, "seconds": time.perf_counter() - begin}
        self.levels.append(describe_level(level, n_clusters, joined, **seconds))
        return joined.beta

    def solve_clusters(
        self,
        clusters: Sequence[RowIndices],
        beta: Vector,
        tol: float,
        max_relative_gap: float,
        given: DualResult | None = None,
    ) -> list[DualResult]:
        """Solve the clusters in parallel, each from its coordinates of beta (n,) and in its share of the time.

        `given`: a result on these clusters with this beta; no cluster's objective becomes larger than it is there.
        """

        def solve(rows: RowIndices, before: DualResult | None, share: AnyProgress) -> DualResult:
            start = beta
            if before is None and given is not None:
                before = self._take_result(given, rows, Limits(tol, max_relative_gap))
                if before.converged or not share.go_on():
                    return before
            if before is not None and before.has_certificate:
                start = np.zeros_like(beta)
                start[rows] = before.beta
            steps = self if self.data.problem.nu else self.within(share)  # zero is not feasible: no share is enough
            result = steps._solve_cluster(rows, start, tol, max_relative_gap)
            if share.stopped_by is None:  # else it goes on later
                self.progress.advance(len(rows) ** 2)
            return result.following(before)

        run, n_workers = partial(self.team.map, call), self.team.n_threads
        work = [len(rows) ** 2 + 1 for rows in clusters]
        solved = share_time(solve, clusters, work, self.progress, attrgetter("converged"), run, n_workers)
        free_scratch()
        return solved

    def _take_result(self, given: DualResult, rows: RowIndices, limits: Limits) -> DualResult:
        """The part of an early machine's result that is a cluster's; O(rows of the cluster)."""
        beta, elapsed = given.beta[rows], self.progress.elapsed
        if not given.has_certificate:
            return uncertified_result(beta, elapsed)
        return certified_result(self.data.problem.take(rows), beta, given.decision[rows], limits, elapsed)

    def within(self, share: AnyProgress) -> DCSVMTraining:
        """These steps in a share of the time."""
        part = copy(self)
        part.progress = share
        return part

    def _solve_cluster(self, rows: RowIndices, beta: Vector, tol: float, max_relative_gap: float) -> DualResult:
        """Solve a cluster from beta (n,)."""
        data, start = self._take(self.data, rows), beta[rows]
        if data.problem.has_intercept:  # beta has the right sum in each cluster of level l + 1, not in these
            start = data.problem.nearby_point(start)
        if not self.progress.go_on():
            return result_at_start(data.problem, start, self.progress.elapsed)
        return self._solve_part(data, start, tol, max_relative_gap)

    def _solve_part(self, data: KernelProblem, beta: Vector, tol: float, max_relative_gap: float) -> DualResult:
        """Solve from beta (m,): on the full matrix if m is small, else by rounds on an active set."""
        m, itemsize = len(beta), data.samples.dtype.itemsize
        memory = among_solves(self.data.samples, self.settings.memory, self.team.n_threads, "clusters")
        with ThreadTeam(self.settings.n_jobs) as team:
            if m > _MAX_IN_MEMORY or m * m * itemsize > free_bytes(data.samples, memory.budget):
                gap = max_relative_gap
                return self._solver(data, team, tol=tol, max_relative_gap=gap, memory=memory).solve(beta)
            return self._solve_in_memory(data, team, beta, tol, max_relative_gap)

    def _solve_in_memory(
        self, part: KernelProblem, team: ThreadTeam, beta: Vector, tol: float, max_relative_gap: float
    ) -> DualResult:
        """Solve a problem of m rows from beta (m,) on its kernel matrix, in scratch memory."""
        kernel, samples, problem = part
        m, dtype = len(samples), samples.dtype
        limits = Limits(tol, max_relative_gap, self.settings.max_iter)
        with Scratch(m * m * dtype.itemsize) as buffer:
            K = buffer[: m * m * dtype.itemsize].view(dtype).reshape(m, m)
            rows = samples.take(slice(0, m))
            try:
                with self.progress.interrupting(team.native):
                    fill_gram(kernel, rows, K, team)
            except Stopped:
                return result_at_start(problem, beta, self.progress.elapsed)
            entry_rows = kernel.entry_rows(rows, slice(0, m))
            return solve_in_memory(K, problem, beta, limits, team, self.progress, entry_rows=entry_rows)

    @property
    def is_at_stop_level(self) -> bool:
        """Whether the last level that was solved is `stop_level`."""
        return self.early is not None and self.levels[-1]["level"] == self.settings.stop_level

    def early_machine(self) -> TrainedMachine:
        """The last level's machine; it counts as converged at `stop_level` only."""
        assert self.early is not None
        result = replace(self.early.result, converged=self.early.result.converged and self.is_at_stop_level)
        return replace(self.early, result=result, levels=self.levels)

    def solve_whole(self, beta: Vector) -> TrainedMachine:
        """Solve on the support vectors of the last level (refine), then the whole problem from there.

        It begins with the solution on a sample if the levels were stopped, and goes on with the kernel matrix of the
        support vectors.
        """
        if self.progress.stopped_by and self.sample_beta is not None:
            beta = self.sample_beta
        support = np.flatnonzero(beta)
        if len(support) <= WORKING_SET_ROWS or self.progress.stopped_by:
            self.progress.stage("whole problem")
            solver = self._solver(self.data)
            result = correct_in_float64(solver, solver.solve(beta), self.settings.memory["active matrix"])
            return replace(TrainedMachine.exact(result, self.levels), unfinished=solver.unfinished)
        self.progress.stage("refine")
        solver = self._solver(self.data)
        tol = max(self.settings.tol, START_TOL)
        refiner = self._solver(self._take(self.data, support), tol=tol, max_relative_gap=np.inf)
        refined = refiner.solve_sharing_memory(solver, support, beta[support])
        start = np.zeros(len(beta))
        start[support] = refined.beta
        self.progress.stage("whole problem")
        result = solver.solve(start, (support, refined.decision) if refined.has_certificate else None, refined.n_iter)
        result = correct_in_float64(solver, result, self.settings.memory["active matrix"])
        unfinished = solver.unfinished
        if unfinished is not None and not unfinished.has_certificate and refiner.unfinished is not None:
            start[support] = refiner.unfinished.beta
            unfinished = replace(unfinished, beta=start)
        return replace(TrainedMachine.exact(result, self.levels), unfinished=unfinished)

    def go_on_from(self, point: DualResult) -> TrainedMachine:
        """Solve the whole problem from the point that an earlier fit has reached."""
        self.progress.stage("whole problem")
        solver = self._solver(self.data)
        result = solver.go_on_from(point)
        if result.has_certificate:
            result = correct_in_float64(solver, result, self.settings.memory["active matrix"])
        return replace(TrainedMachine.exact(result, self.levels), unfinished=solver.unfinished)

    def correct(self, result: DualResult) -> TrainedMachine:
        """The machine of a solution of the whole problem that was computed on float32 entries, corrected if needed."""
        result = correct_in_float64(self._solver(self.data), result, self.settings.memory["active matrix"])
        return TrainedMachine.exact(result, self.levels)

    def _take(self, data: KernelProblem, rows: RowIndices) -> KernelProblem:
        """The samples `rows` and their problem."""
        kernel, samples, problem = data
        return KernelProblem(kernel, SampleSubset(samples, rows), problem.take(rows))

    def _solver(
        self,
        data: KernelProblem,
        team: ThreadTeam | None = None,
        **changes: object,
    ) -> DualSolver:
        """A solver of `data` with the fit's settings, some of them changed."""
        settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        team = team or self.team
        return DualSolver(
            KernelOperator(data.kernel, data.samples, team),
            data.problem,
            settings.limits,
            active_bytes=active_bytes(data.samples, settings.memory["active matrix"], team.n_threads),
            progress=self.progress,
            entry_error=self.entry_error,
        )


def suits_full_matrix(n: int, n_problems: int, settings: DCSVMSettings, progress: AnyProgress) -> bool:
    """Whether problems on n rows are solved on one full matrix, without levels, rounds and callbacks."""
    return (
        n <= max_rows_of_full_matrix(settings, n_problems)
        and not settings.stop_level
        and settings.n_levels in ("auto", 0)
        and not progress.is_observed
    )


def max_rows_of_full_matrix(settings: DCSVMSettings, n_problems: int = _FULL_MATRIX_PROBLEMS) -> int:
    """The most rows of problems that are solved on one full matrix; by default of 8 or more problems."""
    n_entries = _FULL_MATRIX_ENTRIES * min(n_problems, _FULL_MATRIX_PROBLEMS)
    return isqrt(int(min(n_entries, settings.memory["full matrix"] / 8)))


def divide_rows(
    operator: KernelOperator,
    level: int,
    beta: Vector,
    settings: DCSVMSettings,
    progress: AnyProgress,
    rng: np.random.Generator,
) -> Division | None:
    """Cluster the rows, by a sample of the support vectors of beta; of all rows if these are fewer than 10 a cluster.

    None if the fit is stopped meanwhile.
    """
    if not progress.go_on():  # k-means, which comes first, does not end before it has converged
        return None
    candidates = np.flatnonzero(beta) if beta.any() else None
    clustering = ClusteringSettings(min(settings.branching**level, len(beta)), settings.partition, settings.n_sample)
    with suppress(Stopped), progress.interrupting(operator.team.native):
        return divide(operator, clustering, rng, candidates=candidates, go_on=progress.go_on)
    return None
