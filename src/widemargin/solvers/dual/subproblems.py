"""Several duals on parts of a shared matrix, such as one for each pair of classes: one thread each.

(For duals on all of its rows see `in_memory.solve_several_in_memory`.)

Solve    min_beta  1/2 beta'K_p beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]   for each p
Given    K (n, n), of which K_p = K[rows, rows]; the rows of each problem p; feasible starts
Method   compiled working sets, one problem a thread, interrupted every 50 ms for the clock and Ctrl-C; where coordinate
         steps stall, Newton steps on the free coordinates (`newton.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..._native import dual
from ..._progress import AnyProgress
from ..._threads import ThreadTeam
from ..._types import Array, RowIndices, Vector
from ...data.samples import Samples
from ...kernels.functions import Kernel, check_finite
from ...kernels.precision import entry_error
from ...kernels.tiles import fill_gram
from ..results import DualResult
from .certificate import Certificate, Limits, certify, certify_each, make_result
from .in_memory import SECONDS_PER_CHECK, SINGLE_SET_TOL, WORKING_SET_ROWS
from .newton import solve_newton_sets
from .problem import DualProblem, join_problems, make_terms, restrict_terms
from .stopping import SETS_PER_CHECK, CoordinateStallTest, decision_error, hides_violation

_BATCH_PROBLEMS = 4096  # advance so many at a time,
_MANY_PROBLEMS = 64  # and certify as many and more in common passes


class Subproblem(NamedTuple):
    """A dual on K[rows, rows]: rows (m,), the problem of m coordinates, a feasible start (m,), and K start if known."""

    rows: RowIndices
    problem: DualProblem
    start: Vector
    n_iter: int = 0  # working sets that led to the start
    decision: Vector | None = None


def solve_on_full_matrix(
    kernel: Kernel,
    samples: Samples,
    parts: Sequence[Subproblem],
    limits: Limits,
    team: ThreadTeam,
    progress: AnyProgress,
) -> list[DualResult]:
    """Compute the kernel matrix of all samples and solve problems on parts of it.

    Parameters and results are those of `solve_subproblems`. Problems for which float32 entries are too coarse go on
    with a float64 kernel matrix from their float32 solutions.

    Raises
    ------
    Stopped
        If all starts are zero and the fit is stopped before the kernel matrix is known.
    """

    def solve(samples: Samples, parts: Sequence[Subproblem]) -> list[DualResult]:
        K = np.empty((len(samples), len(samples)), samples.dtype)
        from_zero = not any(part.start.any() for part in parts)
        with progress.interrupting(team.native) if from_zero else nullcontext():
            fill_gram(kernel, samples, K, team)
        return solve_subproblems(K, parts, limits, team, progress)

    results, sigma = solve(samples, parts), entry_error(kernel, samples)
    errors = [decision_error(sigma, result.beta) for result in results]
    coarse = [
        k
        for k, (part, result) in enumerate(zip(parts, results, strict=True))
        if hides_violation(errors[k], limits.tol, part.problem, result.objective)
    ]
    if coarse and progress.go_on():
        float64_samples = samples.astype(np.dtype(np.float64), np.dtype(np.float64))
        reached = [parts[k]._replace(start=results[k].beta, n_iter=results[k].n_iter) for k in coarse]
        for k, result in zip(coarse, solve(float64_samples, reached), strict=True):
            results[k] = replace(result, history=results[k].history.followed_by(result.history))
    return results


def solve_subproblems(
    K: Array,
    parts: Sequence[Subproblem],
    limits: Limits,
    team: ThreadTeam,
    progress: AnyProgress,
    *,
    polish: bool = True,
) -> list[DualResult]:
    """Solve duals on parts of a given kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    parts : sequence of Subproblem
    limits : Limits
        Of each problem.
    team : ThreadTeam
    progress : AnyProgress
    polish : bool
        Whether problems of at most 512 rows are solved to a violation of 1e-9, where rounding allows it.

    Returns
    -------
    list of DualResult
        Each with one row of history.
    """
    results: list[DualResult] = []
    batches = [parts[first : first + _BATCH_PROBLEMS] for first in range(0, len(parts), _BATCH_PROBLEMS)]
    for number, some in enumerate(batches):
        batch, share = _Batch(K, some, limits, polish=polish), progress.part(1 / (len(batches) - number))
        while share.go_on() and batch.advance(team):
            if not share.go_on(violation=float(batch.violations.max()), tol=limits.tol):
                break
            batch.solve_stalled(share.go_on)
        results += batch.results(progress.elapsed)
    return results


class _Batch:
    """The points of all problems, as slices of common arrays, with the tolerance and the counts of each."""

    def __init__(self, K: Array, parts: Sequence[Subproblem], limits: Limits, *, polish: bool) -> None:
        self.K = K
        self.parts = parts
        self.limits = limits
        problem = join_problems([part.problem for part in parts])
        self.has_intercept = problem.has_intercept
        starts = np.cumsum([0, *(len(part.rows) for part in parts)], dtype=np.int64)
        self.starts = starts
        self.slices = [slice(*ends) for ends in pairwise(starts.tolist())]
        rows = np.concatenate([part.rows for part in parts])
        self.terms = make_terms(problem, np.asarray(K.diagonal()[rows], np.float64))
        self.beta = np.concatenate([part.start for part in parts])
        self.decision = np.zeros(len(rows))
        for part, part_slice in zip(parts, self.slices, strict=True):
            if part.decision is not None:
                self.decision[part_slice] = part.decision
            elif part.start.any():
                self.decision[part_slice] = self._entries(part) @ part.start
        self.tols = np.where(
            polish & (np.diff(starts) <= WORKING_SET_ROWS), min(limits.tol, SINGLE_SET_TOL), limits.tol
        )
        self.sets = np.array([part.n_iter for part in parts], np.int64)
        self.steps = np.zeros(len(parts), np.int64)
        self.next_check = self.sets + SETS_PER_CHECK
        self.is_unsolved = np.ones(len(parts), bool)
        self.violations = np.zeros(len(parts))
        self.certificates: dict[int, Certificate] = {}  # of solved problems
        self.stall_tests: dict[int, CoordinateStallTest] = {}
        make: Any = dual.Subproblems32 if K.dtype == np.float32 else dual.Subproblems64
        self.problems = make(K, rows, starts, self.terms, self.beta, self.decision, self.has_intercept)

    def _entries(self, part: Subproblem) -> Array:
        """K[rows, rows] (m, m)."""
        return np.asarray(self.K[np.ix_(part.rows, part.rows)])

    def advance(self, team: ThreadTeam) -> bool:
        """Solve for 50 ms; return whether any problem is left unsolved."""
        max_sets = np.minimum(self.next_check, self.limits.max_sets) - self.sets
        tols = np.where(max_sets > 0, self.tols, np.inf)  # those that have had their turn wait for the others
        new_sets, new_steps, left, is_stuck = self.problems.solve(team.native, tols, max_sets, SECONDS_PER_CHECK)
        self.violations = np.asarray(left)
        check_finite(self.violations)
        check_finite(self.decision)
        self.sets += new_sets
        self.steps += new_steps
        self.is_unsolved &= ~np.asarray(is_stuck) & (self.sets < self.limits.max_sets)
        self.tols[~self.is_unsolved] = np.inf  # no more working sets for these
        ended = np.flatnonzero(self.is_unsolved & (self.violations < self.tols))
        for k, certificate in zip(ended.tolist(), self._certify(ended), strict=True):
            if certificate.is_tight(self.limits.max_relative_gap) or certificate.violation == 0.0:
                self.is_unsolved[k], self.certificates[k] = False, certificate
            else:
                self.tols[k] = certificate.tighter_tol(self.limits.max_relative_gap)
        return bool(self.is_unsolved.any())

    def solve_stalled(self, go_on: Callable[[], bool]) -> None:
        """Once all have had their turn, solve by Newton steps those whose coordinate steps make no more progress."""
        if (self.is_unsolved & (self.sets < self.next_check)).any():
            return
        for k in np.flatnonzero(self.is_unsolved).tolist():
            self.next_check[k] += SETS_PER_CHECK
            point, stall_test = self._point(k), self.stall_tests.setdefault(k, CoordinateStallTest(WORKING_SET_ROWS))
            if stall_test.observe(*point, float(self.violations[k]), int(self.steps[k])):
                K, limits = self._entries(self.parts[k]), replace(self.limits, tol=float(self.tols[k]))
                self.sets[k] += solve_newton_sets(
                    K, *point, WORKING_SET_ROWS, limits, go_on, has_intercept=self.has_intercept
                )
                self.is_unsolved[k], self.tols[k] = False, np.inf

    def _point(self, k: int) -> tuple[dual.SeparableTerms, Vector, Vector]:
        """The terms of a problem of m coordinates, and views of its beta and its decision values (m,)."""
        part = self.slices[k]
        return restrict_terms(self.terms, part), self.beta[part], self.decision[part]

    def _certify(self, problems: RowIndices) -> list[Certificate]:
        """The certificates of some of the problems."""
        sizes, has_intercept, tol = np.diff(self.starts)[problems], self.has_intercept, self.limits.tol
        if len(problems) < _MANY_PROBLEMS or self.terms.epsilon or not sizes.all():
            points = [self._point(k) for k in problems.tolist()]
            return [certify(*p, np.empty(len(p[1])), has_intercept=has_intercept, tol=tol) for p in points]
        ends = np.cumsum(sizes)
        rows = np.repeat(self.starts[problems] - (ends - sizes), sizes) + np.arange(ends[-1])
        point = restrict_terms(self.terms, rows), self.beta[rows], self.decision[rows]
        return certify_each(*point, ends - sizes, has_intercept=has_intercept, tol=tol)

    def results(self, elapsed: float) -> list[DualResult]:
        """The point and the certificate of each problem."""
        others = np.array([k for k in range(len(self.parts)) if k not in self.certificates], np.intp)
        self.certificates.update(zip(others.tolist(), self._certify(others), strict=True))
        results = []
        for k, part in enumerate(self.slices):
            certificate, n_iter = self.certificates[k], int(self.sets[k])
            point, converged = (self.beta[part], self.decision[part]), self.limits.are_met(certificate)
            results.append(make_result(*point, certificate, elapsed, converged=converged, n_iter=n_iter))
        return results
