"""Duals of several problems on the same rows, such as folds of a cross-validation: rounds that share kernel entries.

Solve    the problems of `DualSolver`s, which differ in their terms alone
Method   A round: each problem chooses its active set; all of them are solved on the union of these sets, whose entries
         are in memory, one problem a thread; then the kernel rows of all coordinates that changed are computed once,
         and added to every K beta. A problem leaves once it needs no more rounds. No problem is shrunk: what that saves
         is shared here. Decision values of float32 entries are computed again in float64 where their errors could
         change gaps, as soon as these are comparable: what rounds do after that is lost.
Cost     kernel entries of about one problem; working sets and products with coefficients of each
Source   decomposition as in `solver`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..._native import Stopped
from ..._threads import ThreadTeam
from ..._types import ROUNDING, RowIndices, Vector
from ...kernels.boxed_rows import local_order
from ...kernels.kernel_operator import KernelOperator
from ..results import DualResult
from .solver import DualSolver, Part, Point, State

_CORRECTIONS = 3  # of one solution, at most: each leaves the errors of fewer changes
_MAX_ERROR = 0.05  # of a gap / the gap allowed
_HIDDEN = 3.0  # rounds wait for a correction once the gap is at most so many times its error

Open = tuple[DualSolver, State]  # a problem that needs another round


def solve_side_by_side(solvers: Sequence[DualSolver], starts: Sequence[Point]) -> list[DualResult]:
    """Solve each problem from its start; a stop ends all of them. The solvers share one operator and active matrix.

    Where rounding of entries may change a gap by a part of the gap allowed, all go on from decision values in float64.
    """
    progress = solvers[0].progress
    for n_left in range(_CORRECTIONS, -1, -1):
        results = _run_rounds(solvers, starts, waits=n_left > 0)
        if not n_left or not any(map(_is_rough, solvers, results)) or progress.stopped_by:
            break
        try:
            starts = _float64_points(solvers, results)
        except Stopped:
            return [replace(result, converged=False) for result in results]
    return results


def _is_rough(solver: DualSolver, result: DualResult) -> bool:
    """Whether rounding of entries may change the gap by a part of the gap allowed."""
    return solver.gap_error(result.beta) > _MAX_ERROR * solver.limits.max_relative_gap * abs(result.objective)


def _waits(solver: DualSolver, state: State) -> bool:
    """Whether the gap is not much larger than its error, which is too large for the gap allowed."""
    error, (_, objective, gap, _) = solver.gap_error(state.point.beta), state.certificate
    return bool(max(_MAX_ERROR * solver.limits.max_relative_gap * abs(objective), gap / _HIDDEN) < error)


def _float64_points(solvers: Sequence[DualSolver], results: Sequence[DualResult]) -> list[Point]:
    """The points of the results, with decision values of float64 entries: later errors are those of changes alone."""
    first, float64 = solvers[0], np.dtype(np.float64)
    kernel, samples, team = first.operator.kernel, first.operator.samples, first.operator.team
    beta = np.array([result.beta for result in results])
    support = np.flatnonzero(beta.any(axis=0))
    with first.progress.interrupting(team.native):
        exact = KernelOperator(kernel, samples.astype(float64, float64), team, samples.dtype)
        decisions = exact.products(support, beta[:, support], np.arange(len(exact)))
    for solver, result in zip(solvers, results, strict=True):
        solver.float64_beta = result.beta
    return [Point(result.beta, decision) for result, decision in zip(results, decisions, strict=True)]


def _run_rounds(solvers: Sequence[DualSolver], starts: Sequence[Point], *, waits: bool) -> list[DualResult]:
    """The results of rounds from each start, which end where no problem needs another or a stop comes.

    With `waits` a problem needs none where rounding hides its gap.
    """
    states = [solver.begin(start) for solver, start in zip(solvers, starts, strict=True)]
    open_problems = list(zip(solvers, states, strict=True))
    try:
        while open_problems := [
            (solver, state)
            for solver, state in open_problems
            if not (waits and _waits(solver, state)) and solver.needs_a_round(state)
        ]:
            open_problems = [
                problem for group, wanted in _groups(open_problems) for problem in _run_round(group, wanted)
            ]
    except Stopped:
        pass
    return [solver.end(state) for solver, state in zip(solvers, states, strict=True)]


def _groups(problems: Sequence[Open]) -> Iterator[tuple[list[Open], RowIndices]]:
    """Problems whose active sets fit together in memory, and the union of these sets."""
    group, is_wanted = list[Open](), np.zeros(len(problems[0][0].operator), np.bool_)
    for solver, state in problems:
        own = solver.choose_active(state.point, state.certificate.intercept)
        if group and np.count_nonzero(is_wanted) + np.count_nonzero(~is_wanted[own]) > solver.max_active:
            yield group, np.flatnonzero(is_wanted)
            group, is_wanted = [], np.zeros_like(is_wanted)
        group.append((solver, state))
        is_wanted[own] = True
    yield group, np.flatnonzero(is_wanted)


def _run_round(group: Sequence[Open], wanted: RowIndices) -> list[Open]:
    """Solve the problems on the wanted rows, all other coordinates fixed; returns those that this has changed."""
    first, _ = group[0]
    parts = _solve_active(group, wanted)
    rows = parts[0].rows
    changes = np.array([part.beta - state.point.beta[rows] for part, (_, state) in zip(parts, group, strict=True)])
    changed = np.flatnonzero(changes.any(axis=0))
    changed = changed[np.argsort(rows[changed])]
    others = np.delete(np.arange(len(first.operator)), rows)
    with first.progress.interrupting(first.operator.team.native):
        sums = first.operator.products(rows[changed], changes[:, changed], others)
    for part, (solver, state), of_others in zip(parts, group, sums, strict=True):
        point = state.point.with_part(part)
        point.decision[others] += of_others
        solver.take(state, point)
    return [problem for problem, change in zip(group, changes, strict=True) if change.any()]


def _solve_active(group: Sequence[Open], wanted: RowIndices) -> list[Part]:
    """The solution of each problem on the wanted rows, and others of the active matrix, in a common order."""
    first, _ = group[0]
    team, K, entry_rows = first.operator.team, None, None
    with first.progress.interrupting(team.native):
        if first.is_without_matrix(len(wanted)):
            rows = wanted[local_order(first.operator.samples.take(wanted))]
            entry_rows = first.entry_rows(rows, first.far)
            assert entry_rows is not None
            entry_rows.fill(team.native)
        else:
            first.active_matrix.update(wanted)
            rows, K = first.active_matrix.rows, first.active_matrix.K
            entry_rows = first.entry_rows(rows, np.inf)

    def solve(problem: Open, team: ThreadTeam) -> Part:
        solver, state = problem
        part = state.point.take(rows)
        solver.solve_sets(K, entry_rows, part, solver.round_tol(state.point, state.certificate), team)
        return part

    return team.map_with_team(solve, group)


def scaled_starts(
    solvers: Sequence[DualSolver], results: Sequence[DualResult], factor: float, float64_betas: Sequence[Vector | float]
) -> list[Point]:
    """Starts from the results for bounds 1 / `factor` as large: what was at a bound is there again, the others stay.

    For problems with nu = 0 and D = 0. The sum that an intercept requires is kept by the free coordinates. Where fewer
    coordinates are at a bound than free, or these have no room, the results are the starts, which need no kernel entry.
    `float64_betas` are those of the solvers that found the results; those of `solvers` are set.
    """
    scaled = [_scaled(solver, result.beta, factor) for solver, result in zip(solvers, results, strict=True)]
    points, changes = [point for point, _ in scaled], np.array([change for _, change in scaled])
    rows = np.flatnonzero(changes.any(axis=0))
    operator = solvers[0].operator
    with solvers[0].progress.interrupting(operator.team.native):
        sums = operator.products(rows, changes[:, rows], np.arange(len(operator)))
    starts = []
    for solver, point, result, sum_, beta in zip(solvers, points, results, sums, float64_betas, strict=True):
        kept = 1.0 if point is result.beta else factor
        starts.append(Point(point, kept * result.decision + sum_))
        solver.float64_beta = kept * beta
    return starts


def _scaled(solver: DualSolver, beta: Vector, factor: float) -> tuple[Vector, Vector]:
    """A feasible point (n,) with the coordinates at a bound there again, and it less factor beta.

    beta itself, and zeros, if that is the better start.
    """
    lo, hi = solver.problem.lo, solver.problem.hi
    nearly = factor * (1.0 + ROUNDING)
    is_bound = (beta != 0.0) & ((beta * nearly <= lo) | (beta * nearly >= hi))
    is_free = (beta != 0.0) & ~is_bound
    if np.count_nonzero(is_bound) < np.count_nonzero(is_free):
        return beta, np.zeros(len(beta))
    point = np.where(is_bound, np.where(beta > 0.0, hi, lo), beta)
    if solver.problem.has_intercept:
        surplus = point.sum() - beta.sum()
        room = np.where(is_free, point - (lo if surplus > 0.0 else hi), 0.0)
        if not abs(surplus) <= abs(room.sum()):
            return beta, np.zeros(len(beta))
        point -= surplus * (room / (room.sum() or 1.0))
    return point, np.where(is_bound, 0.0, point - factor * beta)
