"""Dual problems whose kernel matrix is in memory: working sets, in slices of time.

Solve    min_b  1/2 b'Kb - t'b   s.t.  lo <= b <= hi   [and sum(b) = 0]
Given    K (m, m) in memory; a feasible start
Method   compiled working sets. Where the matrix is large, reading its rows to update the decision values takes longer
         than the working set itself, and is split between threads.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from .._jit import dual, workspace
from .._parallel import ThreadTeam, row_blocks
from .._progress import Part, Progress
from .certificate import DualProblem, certify, make_box
from .result import DualResult, History

Vector = NDArray[np.float64]
Array = NDArray[np.floating]

TILE = 512  # rows of a working set: a float32 tile of 1 MiB fits the second-level cache
NO_LIMIT = int(np.iinfo(np.int64).max)
_SLICE_SECONDS = 0.05
_SHARED_ROWS = 2048  # with fewer, waking the other threads takes longer than they save


class SquareSolver:
    """Working sets on a kernel matrix in memory, in slices of time so that a clock or an interrupt is heard.

    Parameters
    ----------
    K : ndarray of shape (m, >= m)
        In its leading m columns.
    box : workspace.Box of (m,) arrays
    team : ThreadTeam
    equality : bool
    progress : Progress or Part
    to_last_digits : bool
        Whether tiles are float64 even if K is not.
    """

    def __init__(
        self,
        K: Array,
        box: workspace.Box,
        team: ThreadTeam,
        *,
        equality: bool,
        progress: Progress | Part,
        to_last_digits: bool = False,
    ) -> None:
        self.K = K
        self.box = box
        self.team = team
        self.equality = equality
        self.progress = progress
        self.to_last_digits = to_last_digits
        self.n_iter = 0
        self.n_steps = 0

    def solve(self, beta: Vector, decision: Vector, tol: float, max_iter: int = NO_LIMIT) -> None:
        """Improve beta and decision = K beta in place, until the violation is below tol or no more is allowed."""
        size, m = min(TILE, len(beta)), len(beta)
        # steps that must keep sum(beta) = 0 over thousands of tiles are not rounded to float32
        dtype = np.dtype(np.float64) if self.equality or self.to_last_digits else self.K.dtype
        tile, work = workspace.make_tile(size, dtype), workspace.make_working_set(size, m)
        point = self.K, self.box, beta, decision, tile, work, tol, self.equality
        is_shared = m >= _SHARED_ROWS and self.team.n_threads > 1
        solve_sets = self._solve_shared if is_shared else dual.solve_active
        quota = 4
        while self.n_iter < max_iter:
            quota, begin = min(quota, max_iter - self.n_iter), time.perf_counter()
            done, steps, *_ = solve_sets(*point, quota)
            self.n_iter += done
            self.n_steps += steps
            if done < quota or not self.progress.go_on():
                break
            quota = int(np.clip(quota * _SLICE_SECONDS / (time.perf_counter() - begin + 1e-9), 1, 1000))

    def _solve_shared(
        self,
        K: Array,
        box: workspace.Box,
        beta: Vector,
        decision: Vector,
        tile: workspace.Tile,
        work: workspace.WorkingSet,
        tol: float,
        equality: bool,
        quota: int,
    ) -> tuple[int, int]:
        """`dual.solve_active` with the decision values updated by all threads, to the same digits."""
        steps, blocks = 0, row_blocks(len(beta), -(-len(beta) // self.team.n_threads))
        for done in range(quota):
            n, inner, *_ = dual.solve_set(K, box, beta, decision, tile, work, tol, equality)
            steps += inner
            if n == 0:
                return done, steps

            def update(columns: slice, n: int = n) -> None:
                dual.add_rows(K, work.changed[:n], work.change[:n], decision, columns.start, columns.stop)

            self.team.map(update, blocks)
        return quota, steps


def solve_square(
    K: Array,
    problem: DualProblem,
    beta: Vector,
    team: ThreadTeam,
    *,
    equality: bool,
    tol: float,
    progress: Progress | Part,
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

    Returns
    -------
    DualResult
        With an empty history.
    """
    box = make_box(problem, K.diagonal().astype(np.float64))
    beta = beta.copy()
    decision = np.zeros(len(beta))
    dual.add_rows(K, np.flatnonzero(beta), beta[beta != 0], decision, 0, len(beta))
    solver = SquareSolver(K, box, team, equality=equality, progress=progress)
    solver.solve(beta, decision, tol)
    found = certify(box, beta, decision, np.empty(len(beta)), equality=equality, tol=tol)
    return DualResult(beta, decision, *found, found.violation < tol, solver.n_iter, solver.n_steps, History())
