"""Duals on parts of one kernel matrix that is in memory, side by side: one for each pair of classes.

Solve    for each problem   min_b  1/2 b'K_p b - t'b   s.t.  lo <= b <= hi   [and sum(b) = 0],   K_p = K[rows, rows]
Given    K (n, n); the rows of each problem; feasible starts
Method   compiled working sets, a problem to a thread, all problems in one call, in slices of time; where they crawl,
         exact ones (`active_set`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._native import dual
from ..._progress import Aside, Part, Progress
from ..._threads import ThreadTeam
from ...data.samples import Samples
from ...kernels.functions import Kernel
from ...kernels.precision import entry_noise
from ...kernels.tiles import fill_gram
from ..results import DualResult, History
from .certificate import MAX_RELATIVE_GAP, Certificate, DualProblem, certify, make_box, restrict_box
from .in_memory import NO_LIMIT, WORKING_SET_ROWS
from .newton import SETS_PER_CHECK, StallTest, solve_newton_sets
from .solver import hides_violation

Vector = NDArray[np.float64]
Array = NDArray[np.floating]
Rows = NDArray[np.intp]

_SLICE_SECONDS = 0.05
SINGLE_SET_TOL = 1e-9  # of a problem of one tile, which is solved to the last digits


class Subproblem(NamedTuple):
    """A dual on some rows of the kernel matrix: rows (m,), the problem of m coordinates, a feasible start (m,)."""

    rows: Rows
    problem: DualProblem
    start: Vector


def solve_on_whole_matrix(
    kernel: Kernel,
    samples: Samples,
    parts: Sequence[Subproblem],
    team: ThreadTeam,
    *,
    equality: bool,
    tol: float,
    max_iter: int,
    progress: Progress | Part | Aside,
    max_relative_gap: float = MAX_RELATIVE_GAP,
) -> list[DualResult]:
    """Compute the kernel matrix of all samples, and solve problems on parts of it.

    Parameters and results are those of `solve_subproblems`. Where float32 entries are too coarse for a problem, it goes
    on with float64 ones.
    """

    def solve(samples: Samples, parts: Sequence[Subproblem]) -> list[DualResult]:
        K = np.empty((len(samples), len(samples)), samples.dtype)
        fill_gram(kernel, samples, K, team)
        return solve_subproblems(
            K,
            parts,
            team,
            equality=equality,
            tol=tol,
            max_iter=max_iter,
            progress=progress,
            max_relative_gap=max_relative_gap,
        )

    results, noise = solve(samples, parts), entry_noise(kernel, samples)
    coarse = [
        k
        for k, (part, result) in enumerate(zip(parts, results, strict=True))
        if hides_violation(noise * float(np.linalg.norm(result.beta)), tol, part.problem, result)
    ]
    if coarse and progress.go_on():
        exact = samples.astype(np.dtype(np.float64), np.dtype(np.float64))
        again = solve(exact, [parts[k]._replace(start=results[k].beta) for k in coarse])
        for k, result in zip(coarse, again, strict=True):
            results[k] = replace(result, history=results[k].history.followed_by(result.history))
    return results


def solve_subproblems(
    K: Array,
    parts: Sequence[Subproblem],
    team: ThreadTeam,
    *,
    equality: bool,
    tol: float,
    max_iter: int,
    progress: Progress | Part | Aside,
    max_relative_gap: float = MAX_RELATIVE_GAP,
) -> list[DualResult]:
    """Solve problems on parts of a kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    parts : sequence of Subproblem
    team : ThreadTeam
    equality : bool
    tol : float
        Largest violation; of a problem that fits one tile 1e-9, where rounding allows it.
    max_iter : int
        Working sets for each problem; -1 for no limit.
    progress : Progress or Part
        Asked between slices of 50 ms.
    max_relative_gap : float
        Share of the objective that each gap may be at the end.

    Returns
    -------
    list of DualResult
        With a row of history each.
    """
    batch = _Batch(K, parts, equality=equality, tol=tol, max_iter=max_iter, max_relative_gap=max_relative_gap)
    while batch.advance(team):
        if not progress.go_on(violation=float(batch.violations.max()), tol=tol):
            break
        batch.finish_crawling(progress.go_on)
    return batch.results(progress.elapsed)


class _Batch:
    """The problems' points, as slices of common arrays, and how far they are."""

    def __init__(
        self,
        K: Array,
        parts: Sequence[Subproblem],
        *,
        equality: bool,
        tol: float,
        max_iter: int,
        max_relative_gap: float,
    ) -> None:
        self.K = K
        self.parts = parts
        self.equality = equality
        self.tol = tol
        self.max_relative_gap = max_relative_gap
        self.limit = max_iter if max_iter >= 0 else NO_LIMIT
        starts = np.cumsum([0, *(len(part.rows) for part in parts)], dtype=np.int64)
        self.slices = [slice(*ends) for ends in pairwise(starts.tolist())]
        rows = np.concatenate([part.rows for part in parts])
        problem = DualProblem(*(np.concatenate(columns) for columns in zip(*(p.problem for p in parts), strict=True)))
        self.box = make_box(problem, np.asarray(K.diagonal()[rows], np.float64))
        self.beta = np.concatenate([part.start for part in parts])
        self.f = np.zeros(len(rows))
        for part, mine in zip(parts, self.slices, strict=True):
            if part.start.any():
                self.f[mine] = self._entries(part) @ part.start
        self.goals = np.where(np.diff(starts) <= WORKING_SET_ROWS, min(tol, SINGLE_SET_TOL), tol)
        self.sets, self.steps = np.zeros((2, len(parts)), np.int64)
        self.next_look = np.full(len(parts), SETS_PER_CHECK)
        self.is_open = np.ones(len(parts), bool)
        self.violations = np.zeros(len(parts))
        self.found: dict[int, Certificate] = {}  # of problems that are solved
        self.crawls: dict[int, StallTest] = {}
        make: Any = dual.Subproblems32 if K.dtype == np.float32 else dual.Subproblems64
        self.problems = make(K, rows, starts, self.box, self.beta, self.f, equality)

    def _entries(self, part: Subproblem) -> Array:
        return self.K[np.ix_(part.rows, part.rows)]

    def advance(self, team: ThreadTeam) -> bool:
        """One slice of time; whether anything is left to do."""
        most = np.minimum(self.next_look, self.limit) - self.sets
        new_sets, new_steps, left, is_stuck = self.problems.solve(team.native, self.goals, most, _SLICE_SECONDS)
        self.violations = np.asarray(left)
        if not (np.isfinite(self.violations).all() and np.isfinite(self.f).all()):
            raise ValueError("kernel must be finite, but some k(x, z) is NaN or infinite")
        self.sets += new_sets
        self.steps += new_steps
        self.is_open &= ~np.asarray(is_stuck) & (self.sets < self.limit)
        self.goals[~self.is_open] = np.inf  # which ends a problem at once
        for k in np.flatnonzero(self.is_open & (self.violations < self.goals)).tolist():
            found = self._certify(k)
            if found.is_tight(self.max_relative_gap):
                self.is_open[k], self.found[k] = False, found
            else:
                self.goals[k] = found.tighter_tol(self.max_relative_gap)
        return bool(self.is_open.any())

    def finish_crawling(self, go_on: Callable[[], bool]) -> None:
        """Exact steps for the problems whose coordinate steps have come to nothing."""
        for k in np.flatnonzero(self.is_open & (self.sets >= self.next_look)).tolist():
            self.next_look[k] += SETS_PER_CHECK
            mine = self.slices[k]
            box, beta, f = restrict_box(self.box, mine), self.beta[mine], self.f[mine]
            crawls = self.crawls.setdefault(k, StallTest(WORKING_SET_ROWS))
            if crawls(box, beta, f, float(self.violations[k]), int(self.steps[k])):
                self.sets[k] += solve_newton_sets(
                    self._entries(self.parts[k]),
                    box,
                    beta,
                    f,
                    WORKING_SET_ROWS,
                    equality=self.equality,
                    tol=self.goals[k],
                    max_relative_gap=self.max_relative_gap,
                    go_on=go_on,
                )
                self.is_open[k], self.goals[k] = False, np.inf

    def _certify(self, k: int) -> Certificate:
        box, beta, f = restrict_box(self.box, self.slices[k]), self.beta[self.slices[k]], self.f[self.slices[k]]
        return certify(box, beta, f, np.empty(len(beta)), equality=self.equality, tol=self.tol)

    def results(self, elapsed: float) -> list[DualResult]:
        """Where each problem stands."""
        results = []
        for k, mine in enumerate(self.slices):
            found, history = self.found.get(k) or self._certify(k), History()
            history.record(
                time=elapsed,
                objective=found.objective,
                lower_bound=found.objective - found.gap,
                violation=found.violation,
                n_support=int(np.count_nonzero(self.beta[mine])),
            )
            converged = found.violation < self.tol and found.is_tight(self.max_relative_gap)
            counts = int(self.sets[k]), int(self.steps[k])
            results.append(DualResult(self.beta[mine], self.f[mine], *found, converged, *counts, history))
        return results
