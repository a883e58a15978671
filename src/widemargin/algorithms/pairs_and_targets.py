"""Train one DC-SVM for each pair of classes or each target.

Several targets share the clusters of each level and the kernel matrix where it fits in memory. Pairs of small classes
are grouped: the pairs between two sets of classes share one kernel matrix on the rows of both sets. Other machines are
trained apart, one a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from .._native import Stopped
from .._progress import Progress, SilentProgress
from .._threads import ThreadTeam, blas_limit, effective_n_jobs, run
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
from .dc_svm import (
    DCSVMSettings,
    DCSVMTraining,
    KernelProblem,
    LazyProblem,
    TrainedMachine,
    divide_rows,
    max_rows_of_full_matrix,
    suits_full_matrix,
    train,
    train_on_full_matrix,
)

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
    return _SeveralMachines(kernel, samples, settings, progress, rng).run(problems, class_sizes)


class _SeveralMachines:
    """Trains machines on rows of `samples`, in one of three ways: on a shared matrix, in groups, or apart."""

    def __init__(
        self,
        kernel: Kernel,
        samples: Samples,
        settings: DCSVMSettings,
        progress: Progress,
        rng: np.random.Generator,
    ) -> None:
        self.kernel = kernel
        self.samples = samples
        self.settings = settings
        self.progress = progress
        self.rng = rng

    def run(self, problems: Sequence[LazyProblem], class_sizes: Sequence[int] | None) -> list[TrainedMachine]:
        n, samples, settings = len(self.samples), self.samples, self.settings
        self.progress.stage(f"{len(problems)} machines", len(problems))
        has_room = n * n * samples.dtype.itemsize <= _MATRIX_SHARE * (settings.memory_budget - samples.nbytes)
        if class_sizes is None and has_room and n > WORKING_SET_ROWS and not settings.stop_level:
            return self._train_on_shared_matrix([make()[1] for make in problems])
        everything = [(n, list(range(len(problems))))]
        groups = everything if class_sizes is None else group_pairs(class_sizes, max_rows_of_full_matrix(settings))
        machines: dict[int, TrainedMachine] = {}
        for n_rows, group in groups:
            if suits_full_matrix(n_rows, len(group), settings, self.progress):
                machines.update(zip(group, self._train_group([problems[p] for p in group]), strict=True))
        single = [p for p in range(len(problems)) if p not in machines]
        if single:
            machines.update(zip(single, self._train_apart([problems[p] for p in single]), strict=True))
        return [machines[p] for p in range(len(problems))]

    def _train_apart(self, problems: Sequence[LazyProblem]) -> list[TrainedMachine]:
        """Machines with kernel matrices of their own, one a thread."""
        samples, stop_level = self.samples, self.settings.stop_level
        n_workers = min(effective_n_jobs(self.settings.n_jobs), len(problems))
        budget = share_budget(samples, self.settings.memory_budget, n_workers)
        settings, division = replace(self.settings, memory_budget=budget), None
        if stop_level:
            with suppress(Stopped), blas_limit(1), ThreadTeam(settings.n_jobs) as team:
                operator = KernelOperator(self.kernel, samples, team)
                division = divide_rows(operator, stop_level, np.zeros(len(samples)), settings, self.progress, self.rng)
        samples.squares  # noqa: B018 - computed once, before the threads share it
        tasks = [
            partial(self._train_one, make, settings, n_workers, np.random.default_rng(seed), division)
            for make, seed in zip(problems, self.rng.integers(2**63, size=len(problems)), strict=True)
        ]
        return run(tasks, settings.n_jobs)

    def _train_one(
        self,
        make: LazyProblem,
        settings: DCSVMSettings,
        n_workers: int,
        rng: np.random.Generator,
        division: Division | None,
    ) -> TrainedMachine:
        rows, problem = make()
        data = KernelProblem(self.kernel, SampleSubset(self.samples, rows), problem)
        local = None if division is None else division._replace(labels=division.labels[rows])
        share = self.progress.part(n_workers)
        machine = train(data, settings, share, rng, division=local, allow_early=False)
        self.progress.advance()
        return replace(machine, rows=rows, division=division)

    def _train_group(self, problems: Sequence[LazyProblem]) -> list[TrainedMachine]:
        """Machines on the kernel matrix of all their rows; beta = 0 if the fit is stopped before that is known."""
        made = [make() for make in problems]
        union = np.unique(np.concatenate([rows for rows, _ in made]))
        subproblems = [
            Subproblem(np.searchsorted(union, rows), problem, problem.sparse_point()) for rows, problem in made
        ]
        samples, silent = SampleSubset(self.samples, union), SilentProgress(self.progress)
        with blas_limit(1), ThreadTeam(self.settings.n_jobs) as team:
            machines = train_on_full_matrix(self.kernel, samples, subproblems, self.settings, silent, team)
        self.progress.advance(len(subproblems))
        return [replace(machine, rows=rows) for machine, (rows, _) in zip(machines, made, strict=True)]

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
                for level in settings.planned_levels(samples):
                    division = divide_rows(operator, level, np.zeros(n), settings, progress, self.rng)
                    points = [fit.solve_level(level, point, division) for fit, point in zip(fits, points, strict=True)]
                K = np.empty((n, n), samples.dtype)
                with progress.interrupting(team.native):
                    fill_gram(kernel, samples.take(slice(0, n)), K, team)
                results = solve_several_in_memory(K, problems, points, settings.limits, team, progress)
            except Stopped:
                return [fit.solve_whole(point, allow_early=False) for fit, point in zip(fits, points, strict=True)]
            del K
            return [fit.correct(result) for fit, result in zip(fits, results, strict=True)]
