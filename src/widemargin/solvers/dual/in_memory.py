"""Dual problems whose kernel matrix is in memory: working sets, in slices of time.

Solve    min_b  1/2 b'Kb - t'b   s.t.  lo <= b <= hi   [and sum(b) = 0]
Given    K (m, m) in memory; a feasible start
Method   compiled working sets. Where the matrix is large, reading its rows takes longer than solving the working set,
         and is shared out among threads. Where coordinate steps crawl, exact working sets (`active_set`) go on.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ..._native import dual, kernels
from ..._progress import Part, Progress
from ..._threads import ThreadTeam
from ..results import DualResult, History
from .certificate import MAX_RELATIVE_GAP, DualProblem, certify, make_box
from .newton import SETS_PER_CHECK, StallTest, solve_newton_sets

Vector = NDArray[np.float64]
Array = NDArray[np.floating]

WORKING_SET_ROWS = 512  # rows of a working set: a float32 tile of 1 MiB fits the second-level cache
NO_LIMIT = int(np.iinfo(np.int64).max)
_SLICE_SECONDS = 0.05


class InMemorySolver:
    """Working sets on a kernel matrix in memory, in slices of time so that a clock or an interrupt is heard.

    Parameters
    ----------
    K : ndarray of shape (m, >= m)
        In its leading m columns.
    box : dual.Box of (m,) arrays
    team : ThreadTeam
    equality : bool
    progress : Progress or Part
    use_float64 : bool
        Whether tiles are float64 even if K is not.
    """

    def __init__(
        self,
        K: Array,
        box: dual.Box,
        team: ThreadTeam,
        *,
        equality: bool,
        progress: Progress | Part,
        use_float64: bool = False,
    ) -> None:
        self.K = K
        self.box = box
        self.team = team
        self.equality = equality
        self.progress = progress
        self.use_float64 = use_float64
        self.n_iter = 0
        self.n_steps = 0

    def solve(self, beta: Vector, decision: Vector, tol: float, max_iter: int = NO_LIMIT) -> None:
        """Improve beta and decision = K beta in place, until the violation is below tol or no more is allowed."""
        size, m = min(WORKING_SET_ROWS, len(beta)), len(beta)
        # steps that must keep sum(beta) = 0 over thousands of tiles are not rounded to float32
        dtype = np.dtype(np.float64) if self.equality or self.use_float64 else self.K.dtype
        tile = dual.Tile64(size) if dtype == np.float64 else dual.Tile32(size)
        point = self.K, self.box, beta, decision, tile, dual.WorkingSet(size, m), tol, self.equality
        quota, crawls, first_steps = 4, StallTest(WORKING_SET_ROWS), self.n_steps
        until_look = SETS_PER_CHECK
        while self.n_iter < max_iter:
            quota, begin = min(quota, until_look, max_iter - self.n_iter), time.perf_counter()
            done, steps, _, violation = dual.solve_active(self.team.native, *point, quota)
            self.n_iter += done
            self.n_steps += steps
            until_look -= done
            if done < quota or not self.progress.go_on():
                break
            if not until_look:
                if crawls(self.box, beta, decision, violation, self.n_steps - first_steps):
                    self._solve_exactly(beta, decision, tol)
                    break
                until_look = SETS_PER_CHECK
            quota = int(np.clip(quota * _SLICE_SECONDS / (time.perf_counter() - begin + 1e-9), 1, 1000))

    def _solve_exactly(self, beta: Vector, decision: Vector, tol: float) -> None:
        self.n_iter += solve_newton_sets(
            self.K,
            self.box,
            beta,
            decision,
            WORKING_SET_ROWS,
            equality=self.equality,
            tol=tol,
            go_on=self.progress.go_on,
        )


def solve_in_memory(
    K: Array,
    problem: DualProblem,
    beta: Vector,
    team: ThreadTeam,
    *,
    equality: bool,
    tol: float,
    progress: Progress | Part,
    max_relative_gap: float = MAX_RELATIVE_GAP,
) -> DualResult:
    """Solve a problem whose kernel matrix is at hand.

    Parameters
    ----------
    K : ndarray of shape (m, m)
    problem : DualProblem of m coordinates
    beta : ndarray of shape (m,)
        A feasible start; not changed.
    team : ThreadTeam
    equality : bool
    tol : float
    progress : Progress or Part
    max_relative_gap : float
        Share of the objective that the gap may be at the end.

    Returns
    -------
    DualResult
        With an empty history.
    """
    box = make_box(problem, K.diagonal().astype(np.float64))
    beta = beta.copy()
    decision = np.zeros(len(beta))
    kernels.add_rows(team.native, K, np.flatnonzero(beta), beta[beta != 0], decision)
    solver = InMemorySolver(K, box, team, equality=equality, progress=progress)
    goal, violations = tol, np.empty(len(beta))
    while True:
        solver.solve(beta, decision, goal)
        found = certify(box, beta, decision, violations, equality=equality, tol=tol)
        if not found.violation < goal or found.is_tight(max_relative_gap) or progress.stopped_by:
            break
        goal = found.tighter_tol(max_relative_gap)
    converged = found.violation < tol and found.is_tight(max_relative_gap)
    return DualResult(beta, decision, *found, converged, solver.n_iter, solver.n_steps, History())


def zero_result(problem: DualProblem, *, equality: bool) -> DualResult:
    """The point zero of a problem for which there is no time, with its certificate: O(m), no kernel entry."""
    m = len(problem.target)
    zero, box = np.zeros(m), make_box(problem, np.ones(m))
    found = certify(box, zero, zero, np.empty(m), equality=equality, tol=0.0)
    return DualResult(zero, zero.copy(), *found, False, 0, 0, History())
