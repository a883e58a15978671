"""Train one DC-SVM, or one for each pair of classes or each target, wherever the rows are: what the estimators call.

Several targets share the kernel matrix where it fits in memory, and then the clusters of each level. Pairs of small
classes are grouped: the pairs between two sets of classes share one kernel matrix on the rows of both sets. Other
machines are trained apart, one a thread.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from .._native import Stopped
from .._progress import AnyProgress, Progress, SilentProgress, share_time
from .._threads import ThreadTeam, blas_limit, effective_n_jobs, run
from .._types import RowIndices, Vector
from ..data.labels import group_pairs
from ..data.remote.remote_rows import RemoteRows
from ..data.samples import Samples, SampleSubset, make_samples
from ..kernels.entry_precision import ensure_precision
from ..kernels.functions import Kernel
from ..kernels.kernel_operator import KernelOperator
from ..kernels.scratch import closing_scratch
from ..kernels.tiles import SMALL_ENTRY_WORK, fill_gram
from ..partition.divide import Division
from ..solvers.dual.in_memory import WORKING_SET_ROWS, solve_several_in_memory
from ..solvers.dual.memory import among_solves, solution_bytes
from ..solvers.dual.problem import DualProblem, PairProblems
from ..solvers.dual.subproblems import Subproblem, Subproblems, join_subproblems, solve_on_full_matrix
from ..solvers.results import DualResult
from .dc_svm_levels import (
    DCSVMSettings,
    DCSVMTraining,
    KernelProblem,
    Problems,
    divide_rows,
    max_rows_of_full_matrix,
    suits_full_matrix,
    train_machine,
    train_on_full_matrix,
)
from .dc_svm_on_workers import train_on_workers
from .trained_machines import TrainedMachine, TrainedMachines, in_order


def train_machines(
    kernel: Kernel,
    samples: Samples | RemoteRows,
    problems: Problems,
    settings: DCSVMSettings,
    progress: Progress,
    rng: np.random.Generator,
    *,
    before: TrainedMachines | None = None,
) -> TrainedMachines:
    """The machine of each problem, in this order: early ones with a `stop_level`, else the exact ones.

    The training goes on from the machines `before`, where these are given. Machines of `RemoteRows` are early, and
    trained one after the other, on one division of the rows.
    """
    if not isinstance(samples, RemoteRows):
        if len(problems) > 1:
            return SeveralMachines(kernel, samples, problems, settings, progress, rng).run(before)
        data, given = KernelProblem(kernel, samples, problems[0]()[1]), None if before is None else before[0]
        if suits_full_matrix(len(samples), 1, settings, progress):
            return train_on_full_matrix(data, settings, progress, given)
        return TrainedMachines.join([train_machine(data, settings, progress, rng, before=given)])
    if len(problems) > 1:
        progress.stage(f"{len(problems)} machines", len(problems))
    each = [problems[p] for p in range(len(problems))]
    return TrainedMachines.join(train_on_workers(kernel, samples, each, settings, progress, rng, before=before))


def take_samples(kernel: Kernel, samples: Samples | RemoteRows, rows: RowIndices) -> Samples:
    """Some of the samples; those of `RemoteRows` are brought here."""
    if not isinstance(samples, RemoteRows):
        return SampleSubset(samples, rows)
    return ensure_precision(kernel, make_samples(samples[rows], kernel.sample_form))


class _Batch(NamedTuple):
    """The numbers of some problems; the rows of all of these, if they are trained on one kernel matrix, else inf."""

    numbers: RowIndices
    n_rows: float


class _Part(NamedTuple):
    """The number of a problem, its seed, and the machine that an earlier share of the time has left, if any."""

    number: int
    seed: int
    earlier: TrainedMachine | None


class SeveralMachines:
    """Training of machines on rows of the same samples: one for every pair of classes, or for every target.

    On a shared kernel matrix, in groups, or apart; in parallel, in one budget, and with a `stop_level` on one division
    of the samples.

    Parameters
    ----------
    problems : PairProblems, or sequence of callables
        Pairs of small classes are trained in groups that share a kernel matrix. Callables return the rows of a machine,
        which are all samples, and its dual problem. Such machines share the kernel matrix, and each level's clusters,
        if it takes at most half of the budget.
    """

    def __init__(
        self,
        kernel: Kernel,
        samples: Samples,
        problems: Problems,
        settings: DCSVMSettings,
        progress: Progress,
        rng: np.random.Generator,
    ) -> None:
        self.kernel = kernel
        self.samples = samples
        self.problems = problems
        self.settings = settings
        self.progress = progress
        self.rng = rng
        self.sizes = (  # (P,): the rows of each problem
            problems.sizes if isinstance(problems, PairProblems) else np.full(len(problems), len(samples))
        )
        self.work = self.sizes.astype(np.float64) ** 2

    def run(self, before: TrainedMachines | None = None) -> TrainedMachines:
        """Train them, in the order of `problems`, from the machines `before`, where an earlier fit has left these."""
        n, samples, settings = len(self.samples), self.samples, self.settings
        if before is not None and before.level != settings.stop_level:  # of another kind: no start
            machines = self.run()
            is_better = machines.results.converged.all() or machines.objective <= before.objective
            return machines if is_better else before
        self.progress.stage(f"{len(self.work)} machines", float(self.work.sum()))
        if (
            not isinstance(self.problems, PairProblems)
            and n > WORKING_SET_ROWS
            and not settings.stop_level
            and n * n * samples.dtype.itemsize <= settings.memory.less(samples.nbytes)["shared matrix"]
        ):
            problems = [self.problems[p]()[1] for p in range(len(self.problems))]
            return TrainedMachines.join(self._train_on_shared_matrix(problems, before))
        batches = self._batches()
        work = [float(self.work[batch.numbers].sum()) for batch in batches]
        solved = share_time(partial(self._train_batch, before), batches, work, self.progress, _are_converged)
        return in_order([batch.numbers for batch in batches], solved)

    def _batches(self) -> list[_Batch]:
        """The groups of problems that share kernel matrices, and at the end all other problems."""
        everything, settings = np.arange(len(self.work)), self.settings
        groups = [(len(self.samples), everything)]
        if isinstance(self.problems, PairProblems):
            groups = group_pairs(self.problems.class_sizes.tolist(), max_rows_of_full_matrix(settings))
        batches = [
            _Batch(group, n_rows)
            for n_rows, group in groups
            if suits_full_matrix(n_rows, len(group), settings, self.progress)
        ]
        is_apart = np.ones(len(everything), np.bool_)
        for batch in batches:
            is_apart[batch.numbers] = False
        return [*batches, _Batch(np.flatnonzero(is_apart), np.inf)] if is_apart.any() else batches

    def _train_batch(
        self, given: TrainedMachines | None, batch: _Batch, before: TrainedMachines | None, progress: AnyProgress
    ) -> TrainedMachines:
        """Train the machines of a batch that have not converged `before`, or in an earlier fit."""
        if before is None and given is not None:
            before = given.take(batch.numbers)
        if before is not None and _are_converged(before):
            return before
        train_some = self._train_apart if batch.n_rows == np.inf else self._train_group
        return train_some(batch.numbers, before, progress)

    def _train_apart(
        self, numbers: RowIndices, before: TrainedMachines | None, progress: AnyProgress
    ) -> TrainedMachines:
        """Machines with kernel matrices of their own, one a thread."""
        found = {} if before is None else dict(enumerate(before))
        left = [k for k in range(len(numbers)) if k not in found or not found[k].result.converged]
        samples, stop_level, n_jobs = self.samples, self.settings.stop_level, self.settings.n_jobs
        n_workers = min(effective_n_jobs(n_jobs), len(left))
        memory = self.settings.memory.less(solution_bytes(int(self.sizes[numbers].sum())))
        memory = among_solves(samples, memory, n_workers)
        settings, division = replace(self.settings, memory=memory), None if before is None else before.division
        if stop_level and division is None:
            with blas_limit(1), ThreadTeam(n_jobs) as team:
                operator = KernelOperator(self.kernel, samples, team)
                division = divide_rows(operator, stop_level, np.zeros(len(samples)), settings, progress, self.rng)
        samples.squares  # noqa: B018 - computed once, before the threads share it
        seeds = self.rng.integers(2**63, size=len(left)).tolist()
        parts = [_Part(int(numbers[k]), seed, found.get(k)) for k, seed in zip(left, seeds, strict=True)]
        train, run_tasks = partial(self._train_one, settings, division), partial(run, n_jobs=n_jobs)
        work = self.work[numbers[left]].tolist()
        machines = share_time(train, parts, work, progress, _is_converged, run_tasks, n_workers)
        found |= dict(zip(left, machines, strict=True))
        return TrainedMachines.join([found[k] for k in range(len(numbers))])

    def _train_one(
        self,
        settings: DCSVMSettings,
        division: Division | None,
        part: _Part,
        before: TrainedMachine | None,
        share: AnyProgress,
    ) -> TrainedMachine:
        """A machine; from the one that an earlier share of the time has left, if any."""
        known, rng = before or part.earlier, np.random.default_rng(part.seed)
        if known is not None and (known.division is None) != (division is None):  # stopped before there were clusters
            known = None
        rows, problem = self.problems[part.number]()
        data, local = self._take(rows, problem, division)
        known = None if known is None else replace(known, division=local)
        machine = train_machine(data, settings, share, rng, before=known, division=local, is_one_of_several=True)
        if share.stopped_by is None:  # else it goes on later
            self.progress.advance(float(self.work[part.number]))
        return replace(machine, rows=rows, division=division)

    def _take(
        self, rows: RowIndices, problem: DualProblem, division: Division | None
    ) -> tuple[KernelProblem, Division | None]:
        """The data of a machine on these rows, and their clusters."""
        local = None if division is None else division._replace(labels=division.labels[rows])
        return KernelProblem(self.kernel, SampleSubset(self.samples, rows), problem), local

    def _train_group(
        self, numbers: RowIndices, before: TrainedMachines | None, progress: AnyProgress
    ) -> TrainedMachines:
        """Machines on the kernel matrix of all their rows; beta = 0 if the fit is stopped before that is known."""
        left = np.arange(len(numbers)) if before is None else (~before.results.converged).nonzero()[0]
        parts = self._join(numbers[left])
        if before is not None:
            parts = parts.starting_at(before.results.take(left))
            parts = replace(parts, point=before.take(left).starting_points, keeps_start=True)
        is_used = np.zeros(len(self.samples), np.bool_)
        is_used[parts.rows] = True
        samples: Samples = self.samples
        local, limits = parts, self.settings.limits
        if not is_used.all():
            samples = SampleSubset(samples, np.flatnonzero(is_used))
            local = replace(parts, rows=(np.cumsum(is_used) - 1)[parts.rows])
        squares = float(self.work[numbers[left]].sum())
        work = squares * (samples.row_cost + SMALL_ENTRY_WORK)
        product = len(samples) ** 2 * samples.row_cost
        with blas_limit(1, product), ThreadTeam(self.settings.n_jobs, work) as team:
            results = solve_on_full_matrix(self.kernel, samples, local, limits, team, SilentProgress(progress))
        self.progress.advance(squares)
        if before is None:
            return TrainedMachines.of_results(parts.rows, results)
        is_better = results.converged | (results.objective <= before.results.objective[left])
        return TrainedMachines.of_results(before.rows, before.results.followed_by(left, results, is_better))

    def _join(self, numbers: RowIndices) -> Subproblems:
        """Some of the problems as slices of common arrays, each from its sparse point."""
        if isinstance(self.problems, PairProblems):
            rows, starts, problem = self.problems.join(numbers)
            return Subproblems(rows, starts, problem, np.zeros(len(rows)))
        made = [self.problems[p]() for p in numbers]
        return join_subproblems([Subproblem(rows, problem, problem.sparse_point()) for rows, problem in made])

    def _train_on_shared_matrix(
        self, problems: list[DualProblem], before: TrainedMachines | None
    ) -> list[TrainedMachine]:
        """Machines of all samples, on one kernel matrix; corrected in float64 where float32 entries are too coarse."""
        kernel, samples, settings, progress = self.kernel, self.samples, self.settings, self.progress
        n, points = len(samples), [problem.sparse_point() for problem in problems]
        with blas_limit(1), ThreadTeam(settings.n_jobs) as team, closing_scratch():
            operator = KernelOperator(kernel, samples, team)
            fits = [
                DCSVMTraining(KernelProblem(kernel, samples, problem), settings, progress, self.rng, team)
                for problem in problems
            ]
            levels = settings.planned_levels(self.kernel, samples)
            if before is not None:
                levels, points = range(0), [machine.start for machine in before]
            for number, level in enumerate(levels):
                share = progress.part(1 / (len(levels) + 1 - number))
                if (division := divide_rows(operator, level, np.zeros(n), settings, share, self.rng)) is not None:
                    points = _solve_level(level, fits, points, division, share)
            K = np.empty((n, n), samples.dtype)
            try:
                with progress.interrupting(team.native):
                    fill_gram(kernel, samples.take(slice(0, n)), K, team)
            except Stopped:
                if before is not None:
                    return list(before)
                return [fit.solve_whole(point) for fit, point in zip(fits, points, strict=True)]
            how = {"keeps_starts": before is not None}
            results = solve_several_in_memory(K, problems, points, settings.limits, team, progress, **how)
            del K
            return _correct(fits, results, progress)


def _solve_level(
    level: int, fits: list[DCSVMTraining], points: list[Vector], division: Division, progress: AnyProgress
) -> list[Vector]:
    """`DCSVMTraining.solve_level` of each target, in its share of the time."""

    def solve(part: tuple[DCSVMTraining, Vector], before: Vector | None, share: AnyProgress) -> Vector:
        fit, point = part
        return fit.within(share).solve_level(level, point, division)

    parts = list(zip(fits, points, strict=True))
    return share_time(solve, parts, [1] * len(parts), progress, lambda _: True)


def _correct(fits: list[DCSVMTraining], results: list[DualResult], progress: AnyProgress) -> list[TrainedMachine]:
    """`DCSVMTraining.correct` of each target, in its share of the time."""

    def correct(
        part: tuple[DCSVMTraining, DualResult], before: TrainedMachine | None, share: AnyProgress
    ) -> TrainedMachine:
        fit, result = part
        return fit.within(share).correct(result if before is None else before.result)

    parts = list(zip(fits, results, strict=True))
    return share_time(correct, parts, [1] * len(parts), progress, _is_converged)


def _is_converged(machine: TrainedMachine) -> bool:
    return machine.result.converged


def _are_converged(machines: TrainedMachines) -> bool:
    return bool(machines.results.converged.all())
