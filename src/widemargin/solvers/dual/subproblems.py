"""Several duals on parts of a shared matrix, such as one for each pair of classes: one thread each.

(For duals on all of its rows see `in_memory.solve_several_in_memory`.)

Solve    min_beta  1/2 beta'K_p beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]   for each p
Given    K (n, n), of which K_p = K[rows, rows]; the rows of each problem p; feasible starts
Method   compiled working sets, one problem a thread, interrupted every 50 ms for the clock and Ctrl-C; where coordinate
         steps stall, Newton steps on the free coordinates (`newton.py`)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..._native import Stopped, dual
from ..._progress import AnyProgress, share_time
from ..._threads import ThreadTeam, cached_property, row_blocks
from ..._types import Array, Mask, RowIndices, Vector
from ...data.samples import Samples
from ...kernels.entry_precision import entry_error
from ...kernels.functions import Kernel, check_finite
from ...kernels.tiles import fill_gram
from ..results import Certificate, DualResults, coordinates_of, starts_of
from .certificate import Limits, certify_each
from .in_memory import SECONDS_PER_CHECK, SINGLE_SET_TOL, WORKING_SET_ROWS
from .newton import solve_newton_sets
from .problem import DualProblem, join_problems, make_terms, restrict_terms
from .stopping import SETS_PER_CHECK, CoordinateStallTest, hides_violation

_BATCH_PROBLEMS = 4096  # advance so many at a time


class Subproblem(NamedTuple):
    """A dual on K[rows, rows]: rows (m,), the problem of m coordinates, a feasible start (m,)."""

    rows: RowIndices
    problem: DualProblem
    start: Vector


@dataclass(frozen=True)
class Subproblems:
    """P duals on parts of one matrix, as slices of common arrays: p has the coordinates starts[p]:starts[p + 1].

    Rows (N,), the problem of all N coordinates, feasible starts `point` (N,), and K_p times these, if known. With
    `keeps_start` no result has a larger objective than the start.
    """

    rows: RowIndices
    starts: RowIndices
    problem: DualProblem
    point: Vector
    decision: Vector | None = None
    n_iter: RowIndices | None = None  # (P,): working sets that led to the start
    keeps_start: bool = False

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> RowIndices:
        """The rows (P,) of each problem."""
        return self.starts[1:] - self.starts[:-1]

    def take(self, problems: RowIndices) -> Subproblems:
        """Some of the problems."""
        coordinates = coordinates_of(self.starts, problems)
        return Subproblems(
            self.rows[coordinates],
            starts_of(self.sizes[problems]),
            self.problem.take(coordinates),
            self.point[coordinates],
            None if self.decision is None else self.decision[coordinates],
            None if self.n_iter is None else self.n_iter[problems],
            self.keeps_start,
        )

    def starting_at(self, results: DualResults) -> Subproblems:
        """The problems, from the points of results on the same or another precision of the matrix."""
        return replace(self, point=results.beta, decision=None, n_iter=results.n_iter)


def join_subproblems(parts: Sequence[Subproblem]) -> Subproblems:
    """Several problems as slices of common arrays."""
    rows, problems, points = zip(*parts, strict=True)
    starts = np.cumsum([0, *map(len, rows)])
    return Subproblems(np.concatenate(rows), starts, join_problems(problems), np.concatenate(points))


def solve_on_full_matrix(
    kernel: Kernel, samples: Samples, parts: Subproblems, limits: Limits, team: ThreadTeam, progress: AnyProgress
) -> DualResults:
    """Compute the kernel matrix of all samples and solve problems on parts of it.

    Parameters and results are those of `solve_subproblems`. Problems for which float32 entries are too coarse go on
    with a float64 kernel matrix from their float32 solutions.
    beta = 0 if all starts are zero, and the fit is stopped before the kernel matrix is known.
    """

    def solve(samples: Samples, parts: Subproblems) -> DualResults:
        K = np.empty((len(samples), len(samples)), samples.dtype)
        with nullcontext() if parts.point.any() else progress.interrupting(team.native):
            fill_gram(kernel, samples, K, team)
        return solve_subproblems(K, parts, limits, team, progress)

    try:
        results = solve(samples, parts)
    except Stopped:
        zero = np.zeros(len(parts.rows))
        return _results_at(parts, zero, zero.copy(), Limits(0.0), progress)
    if not (error := entry_error(kernel, samples)):
        return results
    errors = error * np.sqrt(results.sums(results.beta**2))
    is_coarse = hides_violation(errors, limits.tol, parts.problem, results.objective, results.sums)
    if not is_coarse.any():
        return results
    if not progress.go_on():
        return replace(results, converged=results.converged & ~is_coarse)
    coarse = np.flatnonzero(is_coarse)
    float64_samples = samples.astype(np.dtype(np.float64), np.dtype(np.float64))
    corrected = solve(float64_samples, parts.starting_at(results).take(coarse))
    return results.followed_by(coarse, corrected, np.ones(len(coarse), np.bool_))


def solve_subproblems(
    K: Array, parts: Subproblems, limits: Limits, team: ThreadTeam, progress: AnyProgress, *, polish: bool = True
) -> DualResults:
    """Solve duals on parts of a given kernel matrix K (n, n), each to the limits and with one row of history.

    With `polish` problems of at most 512 rows are solved to a violation of 1e-9, where rounding allows it.
    """
    batches = [np.arange(some.start, some.stop) for some in row_blocks(len(parts), _BATCH_PROBLEMS)]

    def solve(some: RowIndices, before: DualResults | None, share: AnyProgress) -> DualResults:
        own = parts if len(batches) == 1 else parts.take(some)
        batch = _Batch(K, own, limits, polish=polish)
        start = (
            _results_at(own, batch.beta.copy(), batch.decision.copy(), limits, progress) if own.keeps_start else None
        )
        batch.solve(team, share)
        batch.step_from_zero()
        found = batch.results(progress.elapsed)
        if start is None:
            return found
        return start.followed_by(np.arange(len(start)), found, found.converged | (found.objective <= start.objective))

    return DualResults.concatenate(share_time(solve, batches, [*map(len, batches)], progress, lambda _: True))


def find_points(K: Array, parts: Subproblems, limits: Limits, team: ThreadTeam, progress: AnyProgress) -> Vector:
    """The points (N,) of `solve_subproblems`, without certificates: for a caller who has his own."""
    batch = _Batch(K, parts, limits, polish=True)
    batch.solve(team, progress)
    return batch.beta


def _results_at(
    parts: Subproblems, beta: Vector, decision: Vector, limits: Limits, progress: AnyProgress
) -> DualResults:
    """Points (N,) and K_p times these with their certificates: no kernel entry."""
    terms, has_intercept = make_terms(parts.problem, np.ones(len(beta))), parts.problem.has_intercept
    certificates = certify_each(terms, beta, decision, parts.starts, has_intercept=has_intercept, tol=limits.tol)
    converged, n_iter = np.asarray(limits.are_met(certificates)), np.zeros(len(parts), np.int64)
    point = parts.starts, beta, decision
    return _make_results(*point, certificates, progress.elapsed, converged=converged, n_iter=n_iter)


def _make_results(
    starts: RowIndices,
    beta: Vector,
    decision: Vector,
    certificates: Certificate,
    elapsed: float,
    *,
    converged: Mask,
    n_iter: RowIndices,
) -> DualResults:
    """`make_result` of many problems with the certificates as columns (P,)."""
    n_support = _count_nonzeros(beta, starts)
    history = {
        "time": np.zeros(len(n_iter)) + elapsed,
        "objective": certificates.primal_objective,
        "lower_bound": certificates.lower_bound,
        "violation": certificates.violation,
        "n_support": n_support.astype(np.float64),
        "problem": np.arange(len(n_iter)),
    }
    return DualResults(starts, beta, decision, *certificates, converged, n_iter, history)


def _count_nonzeros(beta: Vector, starts: RowIndices) -> RowIndices:
    """The number of coordinates of each problem (P,) that are not zero."""
    ends = starts_of(beta != 0.0)[starts]
    return ends[1:] - ends[:-1]


def _gradient_at_zero(parts: Subproblems) -> Vector:
    """Minus the gradient (N,) of each dual at zero in proportion to the bounds: of two classes, that of their means."""
    first, problem = parts.starts[:-1], parts.problem
    width, slope = problem.hi - problem.lo, problem.target
    if problem.has_intercept:  # sum(beta) stays zero
        total = np.maximum(np.add.reduceat(width, first), np.finfo(np.float64).tiny)
        slope = slope - np.repeat(np.add.reduceat(width * slope, first) / total, parts.sizes)
    return np.asarray(width * slope)


def _step_lengths(parts: Subproblems, step: Vector, along: Vector) -> Vector:
    """The length (P,) at which each dual is least along its `step` (N,) from zero; `along` (N,) is K_p times that."""
    first, problem = parts.starts[:-1], parts.problem
    gain = np.add.reduceat(problem.target * step - problem.epsilon * np.abs(step), first)
    square = np.add.reduceat(step * along, first)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step == 0.0, np.inf, np.where(step > 0.0, problem.hi, problem.lo) / step)
        best = np.where(square > 0.0, gain / square, np.inf)
    return np.asarray(np.clip(best, 0.0, np.minimum.reduceat(room, first)))


class _Batch:
    """The points of all problems, as slices of common arrays, with the tolerance and the counts of each."""

    def __init__(self, K: Array, parts: Subproblems, limits: Limits, *, polish: bool) -> None:
        self.K = K
        self.parts = parts
        self.limits = limits
        self.has_intercept = parts.problem.has_intercept
        self.terms = make_terms(parts.problem, np.asarray(K.diagonal()[parts.rows], np.float64))
        self.beta = parts.point.copy()
        self.decision = np.zeros(len(self.beta)) if parts.decision is None else parts.decision.copy()
        self.tols = np.where(polish & (parts.sizes <= WORKING_SET_ROWS), min(limits.tol, SINGLE_SET_TOL), limits.tol)
        n_problems = len(self.tols)
        self.sets = np.zeros(n_problems, np.int64) if parts.n_iter is None else parts.n_iter.copy()
        self.steps = np.zeros(n_problems, np.int64)
        self.next_check = self.sets + SETS_PER_CHECK
        self.is_solved = np.zeros(n_problems, np.bool_)
        self.is_unsolved = ~self.is_solved  # to be advanced
        self.violations = np.zeros(n_problems)
        self.certificates = np.zeros((4, n_problems))  # columns
        self.is_certified = self.is_solved.copy()
        self.stall_tests: dict[int, CoordinateStallTest] = {}
        make: Any = dual.Subproblems32 if K.dtype == np.float32 else dual.Subproblems64
        self.problems = make(K, parts.rows, parts.starts, self.terms, self.beta, self.decision, self.has_intercept)
        if parts.decision is None:
            self.problems.compute_decision_values()

    def solve(self, team: ThreadTeam, progress: AnyProgress) -> None:
        """Solve all problems, as far as the time and `limits` allow."""
        while progress.go_on() and self.advance(team, progress.deadline - time.perf_counter()):
            if not progress.go_on(violation=float(self.violations.max()), tol=self.limits.tol):
                break
            self.solve_stalled(progress.go_on)

    def step_from_zero(self) -> None:
        """Move the problems without a working set, which are at zero, to the best point along their gradients."""
        is_idle = ~self.is_solved & (self.sets == 0) & (self.parts.sizes > 0)
        if not is_idle.any():
            return
        n_support = _count_nonzeros(self.beta, self.parts.starts)
        idle = np.flatnonzero(is_idle & (n_support == 0))
        if len(idle):
            parts, rows = self.parts.take(idle), coordinates_of(self.parts.starts, idle)
            step = _gradient_at_zero(parts)
            along = _Batch(self.K, replace(parts, point=step, decision=None), self.limits, polish=False).decision
            check_finite(along)
            length = np.repeat(_step_lengths(parts, step, along), parts.sizes)
            self.beta[rows], self.decision[rows] = length * step, length * along

    def _slice(self, k: int) -> slice:
        """The coordinates of a problem."""
        return slice(*self.parts.starts[k : k + 2].tolist())

    def advance(self, team: ThreadTeam, seconds_left: float) -> bool:
        """Solve for 50 ms, or the seconds left; return whether any problem is left unsolved."""
        max_sets = np.minimum(self.next_check, self.limits.max_sets) - self.sets
        tols = np.where(max_sets > 0, self.tols, np.inf)  # those that have had their turn wait for the others
        seconds = min(SECONDS_PER_CHECK, max(0.0, seconds_left))
        new_sets, new_steps, left, is_stuck = self.problems.solve(team.native, tols, max_sets, seconds)
        self.violations = np.asarray(left)
        check_finite(self.violations)
        check_finite(self.decision)
        self.sets += new_sets
        self.steps += new_steps
        self.is_unsolved &= ~np.asarray(is_stuck) & (self.sets < self.limits.max_sets)
        self.tols[~self.is_unsolved] = np.inf  # no more working sets for these
        self._end((self.is_unsolved & (self.violations < self.tols)).nonzero()[0])
        return bool(self.is_unsolved.any())

    def _end(self, problems: RowIndices) -> None:
        """Certify problems that have reached their tolerances; where a gap is too large, go on to a smaller one."""
        if self.limits.max_relative_gap == np.inf:  # no gap is: `results` certifies
            self.is_solved[problems], self.is_unsolved[problems], self.tols[problems] = True, False, np.inf
            return
        self._certify(problems)
        found = Certificate(*self.certificates[:, problems])
        tols = self.limits.next_tol(np.inf, found)
        is_wide = np.isfinite(tols) & (found.violation > 0.0)
        self.is_unsolved[problems], self.is_solved[problems] = is_wide, ~is_wide
        if is_wide.any():
            wide = problems[is_wide]
            self.tols[wide] = tols[is_wide]
            self.is_certified[wide] = False

    def solve_stalled(self, go_on: Callable[[], bool]) -> None:
        """Once all have had their turn, solve by Newton steps those whose coordinate steps make no more progress."""
        if (self.is_unsolved & (self.sets < self.next_check)).any():
            return
        for k in np.flatnonzero(self.is_unsolved).tolist():
            self.next_check[k] += SETS_PER_CHECK
            point, stall_test = self._point(k), self.stall_tests.setdefault(k, CoordinateStallTest(WORKING_SET_ROWS))
            if stall_test.observe(*point, float(self.violations[k]), int(self.steps[k])):
                rows = self.parts.rows[self._slice(k)]
                K, limits = self.K[np.ix_(rows, rows)], replace(self.limits, tol=float(self.tols[k]))
                self.sets[k] += solve_newton_sets(
                    K, *point, WORKING_SET_ROWS, limits, go_on, has_intercept=self.has_intercept
                )
                self.is_unsolved[k], self.tols[k] = False, np.inf

    def _point(self, k: int) -> tuple[dual.SeparableTerms, Vector, Vector]:
        """The terms of a problem of m coordinates, and views of its beta and its decision values (m,)."""
        part = self._slice(k)
        return restrict_terms(self.terms, part), self.beta[part], self.decision[part]

    def _certify(self, problems: RowIndices) -> None:
        """Certify some of the problems."""
        if not len(problems):
            return
        point, starts = (self.terms, self.beta, self.decision), self.parts.starts
        if len(problems) < len(self.parts):
            rows, sizes = coordinates_of(starts, problems), self.parts.sizes[problems]
            point = restrict_terms(self.terms, rows), self.beta[rows], self.decision[rows]
            starts = starts_of(sizes)
        self.is_certified[problems] = True
        self.certificates[:, problems] = certify_each(
            *point, starts, has_intercept=self.has_intercept, tol=self.limits.tol
        )

    def results(self, elapsed: float) -> DualResults:
        """The point and the certificate of each problem."""
        self._certify((~self.is_certified).nonzero()[0])
        certificates, point = Certificate(*self.certificates), (self.parts.starts, self.beta, self.decision)
        converged = self.limits.are_met(certificates)
        return _make_results(*point, certificates, elapsed, converged=converged, n_iter=self.sets)
