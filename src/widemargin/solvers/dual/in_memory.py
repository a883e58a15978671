"""The dual of a problem whose kernel matrix is in memory, or computed from its rows, by working sets.

Solve    min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]
Given    K (m, m) in memory; a feasible start
Returns  beta and its decision values K beta
Method   compiled working sets of two-coordinate steps, interrupted every 50 ms for the clock and Ctrl-C. Threads share
         the update of K beta. Where coordinate steps stall, Newton steps on the free coordinates go on (`newton.py`)
Source   decomposition: Joachims 1999; working sets: Fan, Chen, Lin, JMLR 6, 2005
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter, call

import numpy as np

from ..._native import dual, kernels
from ..._progress import AnyProgress, share_time
from ..._threads import ThreadTeam
from ..._types import Array, Vector
from ...kernels.functions import EntryRows
from ..results import NO_CERTIFICATE, DualResult
from .certificate import Limits, certify, make_result, scaled
from .newton import solve_newton_sets
from .problem import DualProblem, make_terms
from .stopping import SETS_PER_CHECK, CoordinateStallTest

WORKING_SET_ROWS = 512  # rows at most: a float32 tile of 1 MiB fits the second-level cache; best from 512 to 1024
SINGLE_SET_TOL = 1e-9  # solve problems of one working set to this: weighted and repeated rows then agree
SECONDS_PER_CHECK = 0.05  # look at the clock about so often


class WorkingSetSolver:
    """Solves duals on one kernel matrix by working sets, and counts these (`n_iter`).

    The matrix is the leading m columns of K. None: all entries are computed from `entry_rows`, the samples, for m >
    512; given both, entries of tiles of the samples' dtype are computed instead of read. Working sets are gathered as
    tiles of K's dtype, a problem that is one working set as a float64 tile.
    """

    def __init__(
        self,
        K: Array | None,
        terms: dual.SeparableTerms,
        team: ThreadTeam,
        *,
        has_intercept: bool,
        progress: AnyProgress,
        entry_rows: EntryRows | None = None,
    ) -> None:
        self.K = K
        self.entry_rows = entry_rows
        self.terms = terms
        self.team = team
        self.has_intercept = has_intercept
        self.progress = progress
        self.n_iter = 0

    def solve(self, beta: Vector, decision: Vector, tol: float, max_iter: int) -> None:
        """Improve beta (m,) and decision = K beta (m,) in place until violation < tol or `max_iter` working sets.

        A stall ends it too; with K known, after Newton steps.
        """
        solve_sets = self._prepare(beta, decision, tol)
        n_sets = 4  # of the first call; then as many as take `SECONDS_PER_CHECK`
        stall_test, until_check, n_steps = CoordinateStallTest(WORKING_SET_ROWS), SETS_PER_CHECK, 0
        while self.n_iter < max_iter:
            n_sets, begin = min(n_sets, until_check, max_iter - self.n_iter), time.perf_counter()
            done, steps, _, violation = solve_sets(n_sets)
            self.n_iter += done
            n_steps += steps
            until_check -= done
            if done < n_sets or not self.progress.go_on():  # solved, or no coordinate changed; or stopped
                return
            if not until_check:
                if stall_test.observe(self.terms, beta, decision, violation, n_steps):
                    if self.K is None:
                        return
                    stop = Limits(tol, max_relative_gap=np.inf), self.progress.go_on
                    state = self.terms, beta, decision, WORKING_SET_ROWS
                    self.n_iter += solve_newton_sets(self.K, *state, *stop, has_intercept=self.has_intercept)
                    return
                until_check = SETS_PER_CHECK
            n_sets = int(np.clip(n_sets * SECONDS_PER_CHECK / (time.perf_counter() - begin + 1e-9), 1, 1000))

    def _prepare(self, beta: Vector, decision: Vector, tol: float) -> Callable[[int], tuple[int, int, float, float]]:
        """A function of a number of working sets, which solves these in place on K, or with entries from the rows."""
        size, m = min(WORKING_SET_ROWS, len(beta)), len(beta)
        state, work, how = (self.terms, beta, decision), dual.WorkingSet(size, m), (tol, self.has_intercept)
        team, rows = self.team.native, self.entry_rows
        if self.K is None:
            assert rows is not None
            tile = dual.Tile32(size) if isinstance(rows, dual.EntryRows32) else dual.Tile64(size)
            return partial(dual.solve_from_rows, team, rows, *state, tile, work, *how)
        if self.K.dtype == np.float32 and m > WORKING_SET_ROWS:
            return partial(dual.solve_working_sets, team, self.K, *state, dual.Tile32(size), work, *how, rows=rows)
        return partial(dual.solve_working_sets, team, self.K, *state, dual.Tile64(size), work, *how)


def solve_in_memory(
    K: Array,
    problem: DualProblem,
    beta: Vector,
    limits: Limits,
    team: ThreadTeam,
    progress: AnyProgress,
    *,
    decision: Vector | None = None,
    entry_rows: EntryRows | None = None,
) -> DualResult:
    """Solve the dual of a problem on its kernel matrix K (m, m), from a feasible beta (m,), which is not changed.

    `decision` is K beta, where it is known; for `entry_rows` see `WorkingSetSolver`. The result has one row of history.
    """
    # k(x, x) = 1 of an RBF kernel, which float32 entries may miss where gamma |x|^2 is huge
    terms = make_terms(problem, np.ones(len(K)) if entry_rows is not None else K.diagonal().astype(np.float64))
    if problem.curvature is not None:  # tiles of computed entries are not scaled to a unit diagonal
        entry_rows = None
    beta = beta.copy()
    if decision is None:
        decision = np.zeros(len(beta))
        kernels.add_product(K, beta[None], decision[None])
    else:
        decision = decision.copy()
    has_intercept = problem.has_intercept
    solver = WorkingSetSolver(K, terms, team, has_intercept=has_intercept, progress=progress, entry_rows=entry_rows)
    tol, violations = limits.tol, np.empty(len(beta))
    while True:
        solver.solve(beta, decision, tol, limits.max_sets)
        certificate = certify(terms, beta, decision, violations, has_intercept=has_intercept, tol=limits.intercept_tol)
        certificate, scale = scaled(terms, beta, decision, certificate, limits)
        last, tol = tol, limits.next_tol(tol, certificate)
        if not tol < last or progress.stopped_by:
            break
    return make_result(
        beta,
        decision,
        certificate,
        progress.elapsed,
        converged=limits.are_met(certificate),
        n_iter=solver.n_iter,
        scale=scale,
    )


def solve_several_in_memory(
    K: Array,
    problems: Sequence[DualProblem],
    starts: Sequence[Vector],
    limits: Limits,
    team: ThreadTeam,
    progress: AnyProgress,
    *,
    keeps_starts: bool = False,
) -> list[DualResult]:
    """Solve several problems on one kernel matrix K (n, n), one a thread; a last one that is left over has all threads.

    `starts` are feasible points (n,), not changed. Each problem has its share of the time that is left. With
    `keeps_starts` no result has a larger objective than its start.
    """
    progress.stage(f"{len(problems)} machines", len(problems))

    def solve(
        part: tuple[DualProblem, Vector], before: DualResult | None, share: AnyProgress, own: ThreadTeam
    ) -> DualResult:
        problem, start = part
        is_first = before is None
        if is_first and keeps_starts:
            before = solve_in_memory(K, problem, start, replace(limits, max_iter=0), own, share)
        point, decision = (start, None) if before is None else (before.beta, before.decision)
        result = solve_in_memory(K, problem, point, limits, own, share, decision=decision)
        if is_first:
            progress.advance()
        return result.following(before)

    def run(tasks: list[Callable[[ThreadTeam], tuple[DualResult, bool]]]) -> list[tuple[DualResult, bool]]:
        return team.map_with_team(call, tasks)

    parts = list(zip(problems, starts, strict=True))
    return share_time(solve, parts, [1] * len(parts), progress, attrgetter("converged"), run, team.n_threads)


def result_at_start(problem: DualProblem, beta: Vector, elapsed: float) -> DualResult:
    """The result of a solve that is stopped, after `elapsed` seconds, before K beta is known for its start (m,).

    beta = 0 with its certificate, or, with nu > 0, where zero is not feasible, the start without one. O(m).
    """
    if problem.nu:
        return uncertified_result(beta, elapsed)
    zero = np.zeros(len(problem.target))
    return certified_result(problem, zero, zero.copy(), Limits(0.0), elapsed)


def uncertified_result(beta: Vector, elapsed: float) -> DualResult:
    """The result of a point beta (m,) whose decision values are not known, `elapsed` seconds after the start."""
    return make_result(beta.copy(), np.zeros(len(beta)), NO_CERTIFICATE, elapsed, converged=False)


def certified_result(
    problem: DualProblem, beta: Vector, decision: Vector, limits: Limits, elapsed: float
) -> DualResult:
    """The result of a point beta (m,) with K beta (m,), `elapsed` seconds after the start. O(m): no kernel entry."""
    m = len(beta)
    terms, has_intercept = make_terms(problem, np.ones(m)), problem.has_intercept
    certificate = certify(terms, beta, decision, np.empty(m), has_intercept=has_intercept, tol=limits.tol)
    return make_result(beta, decision, certificate, elapsed, converged=bool(limits.are_met(certificate)))
