"""Train one DC-SVM for each pair of classes or each target.

Several targets share the clusters of each level and the kernel matrix where it fits in memory. Pairs of small classes
are grouped: the pairs between two sets of classes share one kernel matrix on the rows of both sets. Other machines are
trained apart, one a thread.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np

from .._native import Stopped
from .._progress import AnyProgress, Progress, SilentProgress, share_time
from .._threads import ThreadTeam, blas_limit, effective_n_jobs, run
from .._types import RowIndices, Vector
from ..data.labels import group_pairs
from ..data.samples import Samples, SampleSubset
from ..kernels.functions import Kernel
from ..kernels.kernel_operator import KernelOperator
from ..kernels.scratch import closing_scratch
from ..kernels.tiles import fill_gram
from ..partition.divide import Division
from ..solvers.dual.in_memory import WORKING_SET_ROWS, solve_several_in_memory
from ..solvers.dual.memory import share_budget
from ..solvers.dual.problem import DualProblem
from ..solvers.dual.subproblems import Subproblem
from ..solvers.results import DualResult
from .dc_svm import (
    DCSVMSettings,
    DCSVMTraining,
    KernelProblem,
    LazyProblem,
    TrainedMachine,
    divide_rows,
    max_rows_of_full_matrix,
    sketch,
    suits_full_matrix,
    train,
    train_on_full_matrix,
)

T = TypeVar("T")

_MATRIX_SHARE = 1 / 2  # several machines share a kernel matrix of at most this part of the memory budget


def train_several(
    kernel: Kernel,
    samples: Samples,
    problems: Sequence[LazyProblem],
    settings: DCSVMSettings,
    progress: Progress,
    rng: np.random.Generator,
    *,
    class_sizes: Sequence[int] | None = None,
) -> list[TrainedMachine]:
    """Train machines on rows of the same samples: one for every pair of classes, or for every target.

    Parameters
    ----------
    problems : sequence of callables
        Each returns the rows of a machine, in ascending order, and its dual problem on these rows.
    class_sizes : sequence of int, optional
        The numbers of rows of the classes, where the problems are those of their pairs, in order. Pairs of small
        classes are trained in groups that share a kernel matrix. None: the rows of every machine are all samples.
        Machines then share each level's clusters, and the kernel matrix if it takes at most half of `memory_budget`.

    Returns
    -------
    list of TrainedMachine
        In the order of `problems`, with their `rows`. They are trained in parallel and share `memory_budget`, and with
        a `stop_level` one division of the samples.
    """
    return _SeveralMachines(kernel, samples, problems, class_sizes, settings, progress, rng).run()


_Machines = dict[int, TrainedMachine]  # by the number of their problem


class _Batch(NamedTuple):
    """The numbers of some problems; the rows of all of these, if they are trained on one kernel matrix, else inf."""

    numbers: list[int]
    n_rows: float


class _Part(NamedTuple):
    """The number of a problem, its seed, and the machine that an earlier share of the time has left, if any."""

    number: int
    seed: int
    earlier: TrainedMachine | None


class _SeveralMachines:
    """Trains machines on rows of `samples`, in one of three ways: on a shared matrix, in groups, or apart."""

    def __init__(
        self,
        kernel: Kernel,
        samples: Samples,
        problems: Sequence[LazyProblem],
        class_sizes: Sequence[int] | None,
        settings: DCSVMSettings,
        progress: Progress,
        rng: np.random.Generator,
    ) -> None:
        self.kernel = kernel
        self.samples = samples
        self.problems = problems
        self.class_sizes = class_sizes
        self.settings = settings
        self.progress = progress
        self.rng = rng

    def run(self) -> list[TrainedMachine]:
        n, samples, settings = len(self.samples), self.samples, self.settings
        everything = range(len(self.problems))
        self.progress.stage(f"{len(everything)} machines", sum(self._work(everything)))
        has_room = n * n * samples.dtype.itemsize <= _MATRIX_SHARE * (settings.memory_budget - samples.nbytes)
        if self.class_sizes is None and has_room and n > WORKING_SET_ROWS and not settings.stop_level:
            return self._train_on_shared_matrix([make()[1] for make in self.problems])
        batches = self._batches()
        work = [sum(self._work(batch.numbers)) for batch in batches]
        solved = share_time(self._train_batch, batches, work, self.progress, _are_converged, _call_each)
        machines = ChainMap(*solved)
        return [machines[p] for p in range(len(self.problems))]

    def _batches(self) -> list[_Batch]:
        """The groups of problems that share kernel matrices, and at the end all other problems."""
        everything, settings = range(len(self.problems)), self.settings
        groups = [(len(self.samples), list(everything))]
        if self.class_sizes is not None:
            groups = group_pairs(self.class_sizes, max_rows_of_full_matrix(settings))
        batches = [
            _Batch(group, n_rows)
            for n_rows, group in groups
            if suits_full_matrix(n_rows, len(group), settings, self.progress)
        ]
        apart = sorted(set(everything).difference(*(batch.numbers for batch in batches)))
        return [*batches, _Batch(apart, np.inf)] if apart else batches

    def _train_batch(self, batch: _Batch, before: _Machines | None, progress: AnyProgress) -> _Machines:
        """Train the machines of a batch that have not converged `before`."""
        found = before or {}
        numbers = [p for p in batch.numbers if p not in found or not _is_converged(found[p])]
        train_some = self._train_apart if batch.n_rows == np.inf else self._train_group
        new = train_some(numbers, found, progress)
        return {**found, **{p: machine.following(found.get(p)) for p, machine in zip(numbers, new, strict=True)}}

    def _train_apart(self, numbers: list[int], before: _Machines, progress: AnyProgress) -> list[TrainedMachine]:
        """Machines with kernel matrices of their own, one a thread."""
        samples, stop_level, n_jobs = self.samples, self.settings.stop_level, self.settings.n_jobs
        n_workers = min(effective_n_jobs(n_jobs), len(numbers))
        budget = share_budget(samples, self.settings.memory_budget, n_workers)
        settings, division = replace(self.settings, memory_budget=budget), None
        if before:
            division = before[numbers[0]].division
        elif stop_level:
            with suppress(Stopped), blas_limit(1), ThreadTeam(n_jobs) as team:
                operator = KernelOperator(self.kernel, samples, team)
                division = divide_rows(operator, stop_level, np.zeros(len(samples)), settings, progress, self.rng)
        samples.squares  # noqa: B018 - computed once, before the threads share it
        seeds = self.rng.integers(2**63, size=len(numbers)).tolist()
        parts = [_Part(p, seed, before.get(p)) for p, seed in zip(numbers, seeds, strict=True)]
        train_part, sketch_part = (partial(f, settings, division) for f in (self._train_one, self._sketch_one))
        work, run_tasks = self._work(numbers), partial(run, n_jobs=n_jobs)
        return share_time(
            train_part, parts, work, progress, _is_converged, run_tasks, n_workers, None if before else sketch_part
        )

    def _work(self, numbers: Sequence[int]) -> list[int]:
        """The work of problems: the squares of their numbers of rows."""
        if self.class_sizes is None:
            return [1] * len(numbers)
        work = [(first + second) ** 2 for first, second in combinations(self.class_sizes, 2)]
        return [work[p] for p in numbers]

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
        rows, problem = self.problems[part.number]()
        data, local = self._take(rows, problem, division)
        sketched = start = None if known is None else known.result.beta
        if known is not None and known.is_sketch:
            start = None
        machine = train(data, settings, share, rng, start=start, sketched=sketched, division=local, allow_early=False)
        if share.stopped_by is None:  # else it goes on later
            self.progress.advance(sum(self._work([part.number])))
        return replace(machine, rows=rows, division=division).following(before)

    def _sketch_one(
        self,
        settings: DCSVMSettings,
        division: Division | None,
        part: _Part,
        before: TrainedMachine | None,
        share: AnyProgress,
    ) -> TrainedMachine:
        """The machine of a quarter of the rows, or `before` if that is better."""
        rows, problem = self.problems[part.number]()
        data, local = self._take(rows, problem, division)
        machine = replace(sketch(data, settings, share, local), rows=rows, division=division, is_sketch=True)
        return before if before is not None and before.result.improves(machine.result) else machine

    def _take(
        self, rows: RowIndices, problem: DualProblem, division: Division | None
    ) -> tuple[KernelProblem, Division | None]:
        """The data of a machine on these rows, and their clusters."""
        local = None if division is None else division._replace(labels=division.labels[rows])
        return KernelProblem(self.kernel, SampleSubset(self.samples, rows), problem), local

    def _train_group(self, numbers: list[int], before: _Machines, progress: AnyProgress) -> list[TrainedMachine]:
        """Machines on the kernel matrix of all their rows; beta = 0 if the fit is stopped before that is known."""
        made = [self.problems[p]() for p in numbers]
        union = np.unique(np.concatenate([rows for rows, _ in made]))
        starts = [
            before[p].result.beta if p in before else problem.sparse_point()
            for p, (_, problem) in zip(numbers, made, strict=True)
        ]
        subproblems = [
            Subproblem(np.searchsorted(union, rows), problem, start)
            for (rows, problem), start in zip(made, starts, strict=True)
        ]
        samples, silent = SampleSubset(self.samples, union), SilentProgress(progress)
        with blas_limit(1), ThreadTeam(self.settings.n_jobs) as team:
            machines = train_on_full_matrix(self.kernel, samples, subproblems, self.settings, silent, team)
        for machine, (rows, _) in zip(machines, made, strict=True):
            machine.rows = rows
        self.progress.advance(sum(self._work(numbers)))
        return machines

    def _train_on_shared_matrix(self, problems: list[DualProblem]) -> list[TrainedMachine]:
        """Machines of all samples, on one kernel matrix; corrected in float64 where float32 entries are too coarse."""
        kernel, samples, settings, progress = self.kernel, self.samples, self.settings, self.progress
        n, points = len(samples), [problem.sparse_point() for problem in problems]
        with blas_limit(1), ThreadTeam(settings.n_jobs) as team, closing_scratch():
            operator = KernelOperator(kernel, samples, team)
            fits = [
                DCSVMTraining(KernelProblem(kernel, samples, problem), settings, progress, self.rng, team)
                for problem in problems
            ]
            try:
                levels = settings.planned_levels(samples)
                for number, level in enumerate(levels):
                    share = progress.part(1 / (len(levels) + 1 - number))
                    division = divide_rows(operator, level, np.zeros(n), settings, share, self.rng)
                    points = _solve_level(level, fits, points, division, share)
                K = np.empty((n, n), samples.dtype)
                with progress.interrupting(team.native):
                    fill_gram(kernel, samples.take(slice(0, n)), K, team)
                results = solve_several_in_memory(K, problems, points, settings.limits, team, progress)
            except Stopped:
                return [fit.solve_whole(point, allow_early=False) for fit, point in zip(fits, points, strict=True)]
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
    return share_time(solve, parts, [1] * len(parts), progress, lambda _: True, _call_each)


def _correct(fits: list[DCSVMTraining], results: list[DualResult], progress: AnyProgress) -> list[TrainedMachine]:
    """`DCSVMTraining.correct` of each target, in its share of the time."""

    def correct(
        part: tuple[DCSVMTraining, DualResult], before: TrainedMachine | None, share: AnyProgress
    ) -> TrainedMachine:
        fit, result = part
        return fit.within(share).correct(result if before is None else before.result)

    parts = list(zip(fits, results, strict=True))
    return share_time(correct, parts, [1] * len(parts), progress, _is_converged, _call_each)


def _is_converged(machine: TrainedMachine) -> bool:
    return machine.result.converged


def _are_converged(machines: _Machines) -> bool:
    return all(map(_is_converged, machines.values()))


def _call_each(tasks: list[Callable[[], T]]) -> list[T]:
    """Call tasks one after the other."""
    return [task() for task in tasks]
