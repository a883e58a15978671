"""Duals on parts of one kernel matrix that is in memory, side by side: one for each pair of classes.

Solve    for each problem   min_b  1/2 b'K_p b - t'b   s.t.  lo <= b <= hi   [and sum(b) = 0],   K_p = K[rows, rows]
Given    K (n, n); the rows of each problem; feasible starts
Method   compiled working sets, a problem to a thread, all problems in one call, in slices of time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._native import dual
from .._parallel import ThreadTeam
from .._progress import Aside, Part, Progress
from ..kernels.blocks import fill_square
from ..kernels.functions import Kernel
from ..kernels.precision import entry_noise
from ..kernels.samples import Samples
from .certificate import DualProblem, certify, make_box, sub_box
from .dual import hides_violation
from .result import DualResult, History
from .square import NO_LIMIT, TILE

Vector = NDArray[np.float64]
Array = NDArray[np.floating]
Rows = NDArray[np.intp]

_SLICE_SECONDS = 0.05
_SMALL_TOL, _SMALL_SETS = 1e-9, 100  # a problem of one tile is solved to the last digits, or for so many working sets


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
) -> list[DualResult]:
    """Compute the kernel matrix of all samples, and solve problems on parts of it.

    Parameters and results are those of `solve_subproblems`. Where float32 entries are too coarse for a problem, it goes
    on with float64 ones.
    """

    def solve(samples: Samples, parts: Sequence[Subproblem]) -> list[DualResult]:
        K = np.empty((len(samples), len(samples)), samples.dtype)
        fill_square(kernel, samples, K, team)
        return solve_subproblems(K, parts, team, equality=equality, tol=tol, max_iter=max_iter, progress=progress)

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
) -> list[DualResult]:
    """Solve problems on parts of a kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    parts : sequence of Subproblem
    team : ThreadTeam
    equality : bool
    tol : float
        Largest violation; of a problem that fits one tile 1e-9, if some more working sets reach that.
    max_iter : int
        Working sets for each problem; -1 for no limit.
    progress : Progress or Part
        Asked between slices of 50 ms.

    Returns
    -------
    list of DualResult
        With a row of history each.
    """
    starts = np.cumsum([0, *(len(part.rows) for part in parts)], dtype=np.int64)
    rows = np.concatenate([part.rows for part in parts])
    problem = DualProblem(*(np.concatenate(columns) for columns in zip(*(p.problem for p in parts), strict=True)))
    box = make_box(problem, np.asarray(K.diagonal()[rows], np.float64))
    beta = np.concatenate([part.start for part in parts])
    f = np.zeros(len(rows))
    for part, first in zip(parts, starts, strict=False):
        if part.start.any():
            f[first : first + len(part.rows)] = K[np.ix_(part.rows, part.rows)] @ part.start
    sizes = np.diff(starts)
    goals = np.where(sizes <= TILE, min(tol, _SMALL_TOL), tol)
    limit = max_iter if max_iter >= 0 else NO_LIMIT
    sets, steps = np.zeros((2, len(parts)), np.int64)
    make: Any = dual.Subproblems32 if K.dtype == np.float32 else dual.Subproblems64
    problems = make(K, rows, starts, box, beta, f, equality)
    while True:
        goals[sets >= _SMALL_SETS] = tol  # the last digits are a courtesy
        most = np.minimum(np.where(goals < tol, _SMALL_SETS, limit), limit) - sets
        new_sets, new_steps, left, is_stuck = problems.solve(team.native, goals, most, _SLICE_SECONDS)
        violations = np.asarray(left)
        if not (np.isfinite(violations).all() and np.isfinite(f).all()):
            raise ValueError("kernel must be finite, but some k(x, z) is NaN or infinite")
        sets += new_sets
        steps += new_steps
        is_open = (violations >= goals) & ~np.asarray(is_stuck) & (sets < limit)
        is_open &= (violations >= tol) | (sets < _SMALL_SETS)
        if not is_open.any() or not progress.go_on(violation=float(violations.max()), tol=tol):
            break
    results = []
    for k, part in enumerate(parts):
        mine = slice(starts[k], starts[k + 1])
        found = certify(sub_box(box, mine), beta[mine], f[mine], np.empty(len(part.rows)), equality=equality, tol=tol)
        history = History()
        history.record(
            time=progress.elapsed,
            objective=found.objective,
            lower_bound=found.objective - found.gap,
            violation=found.violation,
            n_support=int(np.count_nonzero(beta[mine])),
        )
        converged = found.violation < tol
        results.append(DualResult(beta[mine], f[mine], *found, converged, int(sets[k]), int(steps[k]), history))
    return results
