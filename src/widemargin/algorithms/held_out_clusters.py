"""Held-out values of early machines: cross-validation inside each cluster of rows.

By Lemma 1 an early machine is one machine for each cluster, so that its folds, values of C and kernel matrix are the
cluster's own: what `HeldOutSolver` does for all rows is done for every cluster, one a thread.

    for every cluster, in parallel:
        K (m, m) of its rows
        for every machine and fold: the dual with the bounds [0, 0] for held-out rows; solve for C_1 < C_2 < ...
        decision values of held-out rows: those in K beta
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .._memory import MemoryPlan
from .._native import Stopped
from .._progress import AnyProgress
from .._threads import ThreadTeam
from .._types import Array, Labels, Mask, RowIndices, Vector
from ..data.samples import Samples, SampleSubset
from ..kernels.functions import Kernel
from ..kernels.tiles import fill_gram
from ..solvers.dual.certificate import Limits
from ..solvers.dual.dual_path import scale_bounds
from ..solvers.dual.problem import DualProblem
from ..solvers.dual.subproblems import Subproblem, Subproblems, join_subproblems, solve_subproblems
from .held_out import Fold, HeldOutSolver

_MANY_MACHINES = 3  # of pairs of a cluster's classes: solved in one batch, on one matrix,
_BATCH_ROWS = 4000  # of so many rows at most: the batch reads scattered entries, 3 times as slowly at 7,000 rows


class ClusterValues(NamedTuple):
    """Of a fold: its held-out rows (n_test,) in the clusters, and their values (n_C, n_test, n_machines)."""

    rows: RowIndices
    values: Array


_JoinedDuals = tuple[Labels, Labels, Subproblems]  # the fold and the machine of each problem, and the problems


class _LocalDuals(NamedTuple):
    """Of a cluster: the rows of the machines to solve, their duals in each fold; and of all machines constant values.

    `constants` (n_folds, n_machines) are NaN where there is no constant; `solved` are the numbers of machines to solve.
    """

    machine_rows: list[RowIndices]
    problems: list[list[DualProblem]]
    constants: Array
    solved: RowIndices
    joined: _JoinedDuals | None  # of three machines and more


class ClusteredHeldOut:
    """Trains and evaluates the machines of clusters of rows, for all folds and Cs of one kernel after another.

    Parameters
    ----------
    clusters : sequence of ndarray of int
        The rows of each, ascending.
    machine_rows : sequence of ndarray of int
        The rows of each machine, in ascending order: all n, or those of two classes.
    n : int
        Number of rows.
    limits : Limits
    memory : MemoryPlan
    progress : AnyProgress
    team : ThreadTeam
    """

    def __init__(
        self,
        clusters: Sequence[RowIndices],
        machine_rows: Sequence[RowIndices],
        n: int,
        limits: Limits,
        memory: MemoryPlan,
        progress: AnyProgress,
        team: ThreadTeam,
    ) -> None:
        self.clusters = clusters
        self.machine_rows = machine_rows
        self.n = n
        self.limits = limits
        self.memory = memory
        self.progress = progress
        self.team = team
        # of one cluster, whose folds have the same lists of duals for all kernels: by these lists
        self._local: dict[tuple[int, ...], tuple[Sequence[Fold], _LocalDuals]] = {}

    def held_out_values(
        self, kernel: Kernel, samples: Samples, folds: Sequence[Fold], chosen: Sequence[int]
    ) -> list[ClusterValues]:
        """The held-out rows of each fold that are in the `chosen` clusters, and their decision values.

        A machine of a pair of classes with an intercept has the values 1 or -1 in a cluster whose training rows are of
        one of them; any has 0 where they are of neither. NaN for what a stopped search has not solved.
        """
        in_parallel = len(chosen) > 1
        part = sum(len(self.clusters[c]) for c in chosen) / self.n
        n_values = part * sum(len(fold.Cs) * len(fold.test) for fold in folds) * len(self.machine_rows)
        memory = self.memory.less(int(2 * 8 * n_values))  # twice, as they are joined at the end
        memory = memory.among(min(self.team.n_threads, len(chosen)) if in_parallel else 1)
        masks = [_mask(fold.test, self.n) for fold in folds]

        def solve(c: int) -> list[ClusterValues]:
            if in_parallel:
                with ThreadTeam(1) as team:
                    return self._solve_cluster(kernel, samples, folds, masks, self.clusters[c], memory, team)
            return self._solve_cluster(kernel, samples, folds, masks, self.clusters[c], memory, self.team)

        largest_first = sorted(chosen, key=lambda c: -len(self.clusters[c]))  # threads then end at about one time
        found = dict(zip(largest_first, self.team.map(solve, largest_first), strict=True))
        solved = [found[c] for c in chosen]
        return [
            ClusterValues(np.concatenate([p.rows for p in parts]), np.concatenate([p.values for p in parts], axis=1))
            for parts in zip(*solved, strict=True)
        ]

    def _solve_cluster(
        self,
        kernel: Kernel,
        samples: Samples,
        folds: Sequence[Fold],
        masks: Sequence[Mask],
        cluster: RowIndices,
        memory: MemoryPlan,
        team: ThreadTeam,
    ) -> list[ClusterValues]:
        m = len(cluster)
        machine_rows, problems, constants, solved, joined = self._local_duals(folds, cluster)
        tests = [np.flatnonzero(mask[cluster]) for mask in masks]
        shape = len(self.machine_rows)
        values = [
            np.tile(constants[k], (len(fold.Cs), len(tests[k]), 1)).reshape(len(fold.Cs), len(tests[k]), shape)
            for k, fold in enumerate(folds)
        ]
        if len(solved) and any(map(len, tests)):
            parts = [Fold(test, own, fold.Cs) for test, own, fold in zip(tests, problems, folds, strict=True)]
            local = samples if m == self.n else SampleSubset(samples, cluster).take(np.arange(m))
            fits = m <= _BATCH_ROWS and m * m * samples.dtype.itemsize <= memory["shared matrix"]
            if joined is not None and fits:
                solve = partial(_solve_on_one_matrix, limits=self.limits, progress=self.progress, team=team)
                found_values = solve(kernel, local, joined, len(machine_rows), parts)
            else:
                solver = HeldOutSolver(machine_rows, self.limits, memory["folds"], self.progress, team)
                found_values = solver.held_out_values(kernel, local, parts)
            for k, found in enumerate(found_values):
                is_solved = np.isnan(constants[k, solved])
                values[k][:, :, solved[is_solved]] = found[:, :, is_solved]
        return [ClusterValues(cluster[test], value) for test, value in zip(tests, values, strict=True)]

    def _local_duals(self, folds: Sequence[Fold], cluster: RowIndices) -> _LocalDuals:
        """The machines of a cluster, and their duals in each fold."""
        key = tuple(id(fold.problems) for fold in folds)
        if key in self._local:
            return self._local[key][1]
        places = [_places(rows, cluster, self.n) for rows in self.machine_rows]
        problems = [
            [problem.take(place[place >= 0]) for problem, place in zip(fold.problems, places, strict=True)]
            for fold in folds
        ]
        constants = np.array([[_constant(problem) for problem in of_fold] for of_fold in problems])
        solved = np.flatnonzero(np.isnan(constants).any(axis=0))
        machine_rows = [np.flatnonzero(places[p] >= 0) for p in solved]
        problems = [[of_fold[p] for p in solved] for of_fold in problems]
        is_batch = len(solved) >= _MANY_MACHINES and max(map(len, machine_rows)) < len(cluster)
        joined = _join_free(machine_rows, problems) if is_batch else None
        found = _LocalDuals(machine_rows, problems, constants, solved, joined)
        if len(self.clusters) == 1:
            self._local[key] = folds, found
        return found


def _solve_on_one_matrix(
    kernel: Kernel,
    samples: Samples,
    joined: _JoinedDuals,
    n_machines: int,
    folds: Sequence[Fold],
    limits: Limits,
    progress: AnyProgress,
    team: ThreadTeam,
) -> list[Array]:
    """`HeldOutSolver.held_out_values` of many machines of few rows each: all in one compiled batch for each C.

    Their decision values are one product, B K[:, held out], of the coefficients B (n_machines, m).
    """
    m = len(samples)
    values = [np.full((len(fold.Cs), len(fold.test), n_machines), np.nan) for fold in folds]
    K = np.empty((m, m), samples.dtype)
    try:
        with progress.interrupting(team.native):
            fill_gram(kernel, samples, K, team)
    except Stopped:
        return values
    of_fold, of_machine, parts = joined
    parts = replace(parts, decision=parts.point)
    for c in range(max(len(fold.Cs) for fold in folds)):
        is_walking = np.array([c < len(fold.Cs) for fold in folds])
        left = np.flatnonzero(is_walking[of_fold])
        of_fold, of_machine, parts = of_fold[left], of_machine[left], parts.take(left)
        Cs = np.array([fold.Cs[c] if c < len(fold.Cs) else np.nan for fold in folds])
        bounds = scale_bounds(parts.problem, np.repeat(Cs[of_fold], parts.sizes))
        results = solve_subproblems(K, replace(parts, problem=bounds), limits, team, progress, polish=False)
        if progress.stopped_by:
            break
        parts, numbers = replace(parts, point=results.beta, decision=results.decision), results.numbers
        for k in np.flatnonzero(is_walking).tolist():
            own, is_own = of_fold == k, of_fold[numbers] == k
            b = np.zeros(n_machines)
            b[of_machine[own]] = results.intercept[own]
            place = of_machine[numbers[is_own]], parts.rows[is_own]
            B = sp.csr_array((results.beta[is_own].astype(K.dtype), place), shape=(n_machines, m))
            values[k][c] = (B @ K[:, folds[k].test]).T + b
    return values


def _join_free(machine_rows: Sequence[RowIndices], problems: Sequence[list[DualProblem]]) -> _JoinedDuals:
    """The duals at C = 1 of all machines on the rows that a fold trains on, with the fold and the machine of each."""
    numbers, parts = list[tuple[int, int]](), list[Subproblem]()
    for k, of_fold in enumerate(problems):
        for p, (own, unit) in enumerate(zip(machine_rows, of_fold, strict=True)):
            free = np.flatnonzero(unit.hi > unit.lo)
            if len(free):
                numbers.append((k, p))
                parts.append(Subproblem(own[free], unit.take(free), np.zeros(len(free))))
    return *np.array(numbers).T, join_subproblems(parts)


def _mask(rows: RowIndices, n: int) -> Mask:
    mask = np.zeros(n, np.bool_)
    mask[rows] = True
    return mask


def _places(rows: RowIndices, cluster: RowIndices, n: int) -> RowIndices:
    """The place of each of the cluster's rows (m,) among `rows`, or -1."""
    if len(rows) == n:
        return cluster
    place = np.minimum(np.searchsorted(rows, cluster), len(rows) - 1)
    return np.where(rows[place] == cluster, place, -1)


def _constant(problem: DualProblem) -> float:
    """The decision value of a machine with an intercept whose training rows have one target of +-1, 0 without any rows.

    NaN for others.
    """
    target: Vector = problem.target[problem.hi > problem.lo]
    if not len(target):
        return 0.0
    is_constant = problem.has_intercept and not problem.epsilon and abs(target[0]) == 1.0
    return float(target[0]) if is_constant and bool((target == target[0]).all()) else np.nan
