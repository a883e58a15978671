"""The kernel machine's dual, exactly: an active set in memory, its outside by streamed kernel rows.

Solve    min_b  1/2 b'Kb - t'b   s.t.  lo <= b <= hi   [and sum(b) = 0, which gives an intercept]
         (b = y * alpha, t = y, and bounds 0 and y * C s of the C-SVM: design, section 4)
Given    K as `KernelRows` (n, n); t, lo <= 0 <= hi (n,); a feasible start
Returns  `DualResult`: the point, K b, the intercept, the violation, the primal value and the duality gap
Method   Each round takes the *active set*: free coordinates and violators. Its kernel matrix fits in memory, and
         compiled working sets solve it to a tenth of the largest violation there is. Only the rows of coordinates
         that changed are then streamed over all n columns, so coordinates at a bound cost nothing while they stay.
Cost     about (support vectors) x n kernel entries once, as many again as rows do not fit the cache;
         memory: the active matrix and the cache, both cut to the bytes given
Source   decomposition: Joachims 1999; working sets: Fan, Chen, Lin 2005; gap: Hsieh et al. 2014, section 3
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._config import get_config
from .._jit import dual, workspace
from .._parallel import ThreadTeam
from .._progress import Part, Progress
from ..kernels.cache import KernelRows
from ..kernels.functions import Kernel
from ..kernels.samples import Samples
from .certificate import Certificate, DualProblem, certify, is_free, make_box
from .result import DualResult, History, StoppedAtStartError

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

TILE = 512  # rows of a working set: a float32 tile of 1 MiB fits the second-level cache
SMALL = TILE  # a problem of one tile is solved to the last digits
_SMALL_TOL = 1e-9
_SMALL_SETS = 100  # for these last digits
NOISE_SHARE = 0.25  # of tol: more noise than this in the decision values cannot be certified
_MARGIN = 4.0  # standard deviations of the decision values' noise
_NOISE_FLOOR = 10.0  # times that noise: the violation at which coarse entries have done their work
_ENTRIES_PER_LOOK = 10**8  # kernel entries between two looks at the clock
_NEW_ROWS = (2048, 8192)  # violators that join in a cold start's first round, and in later ones
_VIOLATOR_SHARE = 0.03  # of the largest violation: smaller ones wait
_ROUND_GOAL = 0.1
_SLICE_SECONDS = 0.05
_VECTORS = 16  # float64 vectors of n that a solve holds at its peak
_SQUARE_SHARE = 0.4  # of the memory, for the active set's kernel matrix; the rest caches rows
_LEAST_BYTES = 2**22
_SLACK = 2**24  # what the interpreter and the allocator keep
_TILES = 8  # a thread holds at one time, with their batches and what the allocator keeps
_GATHERED = 3 * _NEW_ROWS[-1]  # rows in batches at one time
_NO_LIMIT = int(np.iinfo(np.int64).max)


class _State(NamedTuple):
    """A feasible point, its decision values K beta, and each coordinate's violation."""

    beta: Vector
    decision: Vector
    violations: Vector


class SquareSolver:
    """Working sets on a kernel matrix in memory, in slices of time so that a clock or an interrupt is heard.

    Parameters
    ----------
    K : ndarray of shape (m, m)
    box : workspace.Box of (m,) arrays
    equality : bool
    progress : Progress or Part
    to_last_digits : bool
        Whether tiles are float64 even if K is not.
    """

    def __init__(
        self,
        K: NDArray[np.floating],
        box: workspace.Box,
        *,
        equality: bool,
        progress: Progress | Part,
        to_last_digits: bool = False,
    ) -> None:
        self.K = K
        self.box = box
        self.equality = equality
        self.progress = progress
        self.to_last_digits = to_last_digits
        self.n_iter = 0
        self.n_steps = 0

    def solve(self, beta: Vector, decision: Vector, tol: float, max_iter: int = _NO_LIMIT) -> tuple[float, float]:
        """Improve beta and decision = K beta in place; return the offset and the violation that is left."""
        m = len(beta)
        size = min(TILE, m)
        # steps that must keep sum(beta) = 0 over thousands of tiles are not rounded to float32
        dtype = np.dtype(np.float64) if self.equality or self.to_last_digits else self.K.dtype
        tile, work = workspace.make_tile(size, dtype), workspace.make_working_set(size, m)
        quota, offset, violation = 4, 0.0, np.inf
        while violation >= tol and self.n_iter < max_iter:
            begin = time.perf_counter()
            quota = min(quota, max_iter - self.n_iter)
            done, steps, offset, violation = dual.solve_active(
                self.K, self.box, beta, decision, tile, work, tol, self.equality, quota
            )
            self.n_iter += done
            self.n_steps += steps
            if done < quota or not self.progress.go_on():
                break
            quota = int(np.clip(quota * _SLICE_SECONDS / (time.perf_counter() - begin + 1e-9), 1, 1000))
        return offset, violation


def solve_square(
    K: NDArray[np.floating],
    problem: DualProblem,
    beta: Vector,
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
    dual.add_rows(K, np.flatnonzero(beta), beta[beta != 0], decision)
    solver = SquareSolver(K, box, equality=equality, progress=progress)
    solver.solve(beta, decision, tol)
    found = certify(box, beta, decision, np.empty(len(beta)), equality=equality, tol=tol)
    return DualResult(beta, decision, *found, found.violation < tol, solver.n_iter, solver.n_steps, History())


class DualSolver:
    """Runs the rounds on one problem.

    Parameters
    ----------
    rows : KernelRows of n rows
    problem : DualProblem of n coordinates
    equality : bool
        Whether sum(beta) = 0, the dual of an unregularised intercept.
    tol : float
        Largest violation at the end.
    square_bytes : int
        For the active set's kernel matrix.
    progress : Progress or Part
    max_iter : int
        Working sets; -1 for no limit.
    must_start : bool
        Whether the decision values of the start are computed to the end even when there is no time left. If not,
        `solve` raises StoppedAtStartError: the caller has something better.
    entry_noise : float
        Error of a kernel entry. Where it leaves more than `tol` in the decision values, `solve` returns as soon as the
        violation is no longer large beside it: there is nothing to be gained from these entries any more.
    """

    def __init__(
        self,
        rows: KernelRows,
        problem: DualProblem,
        *,
        equality: bool,
        tol: float,
        square_bytes: int,
        progress: Progress | Part,
        max_iter: int = -1,
        must_start: bool = True,
        entry_noise: float = 0.0,
    ) -> None:
        n = len(problem.target)
        self.rows = rows
        self.equality = equality
        self.tol = tol
        self.goal = min(tol, _SMALL_TOL) if n <= SMALL else tol
        self.progress = progress
        self.must_start = must_start
        self.entry_noise = entry_noise
        self.max_iter = max_iter if max_iter >= 0 else _NO_LIMIT
        self.box = make_box(problem, np.asarray(rows.kernel.diagonal(rows.samples), np.float64))
        self.dtype = rows.samples.dtype
        self.capacity = max(TILE, int(np.sqrt(square_bytes / self.dtype.itemsize)))
        self.square = np.empty(min(n, self.capacity) ** 2, self.dtype)  # touched only as far as it is used
        self.history = History()
        self.n_iter = 0
        self.n_steps = 0
        self.n_rounds = 0
        self.last_active = np.empty(0, np.intp)

    def solve(self, beta: Vector, decision: Vector | None = None) -> DualResult:
        """Improve a feasible point, in a copy, until `tol` or until the progress object says stop."""
        state = self._start(beta, decision)
        found = self._certify(state)
        best = state, found
        while not self._is_done(state, found) and self._report(state, found):
            improved = self._improve(state, found)
            if improved is None:
                break
            state = improved
            found = self._certify(state)
            # the dual falls in every round, the primal does not: whoever stops early gets the better machine
            if found.violation < self.tol or found.objective <= best[1].objective:
                best = state, found
        return self._result(*best)

    def _goal(self, state: _State) -> float:
        """The violation to reach as these entries show it, so that the true one is below `goal` too."""
        return self.goal - min(_MARGIN * self._noise(state), 0.5 * self.goal)

    def _noise(self, state: _State) -> float:
        """Standard deviation of a decision value, from the errors of its kernel entries."""
        return self.entry_noise * float(np.linalg.norm(state.beta))

    def _is_done(self, state: _State, found: Certificate) -> bool:
        if found.violation < self._goal(state) or self.n_iter >= self.max_iter:
            return True
        if self.goal < self.tol and found.violation < self.tol and self.n_iter >= _SMALL_SETS:
            return True  # the last digits are a courtesy
        noise = self._noise(state)
        return noise > NOISE_SHARE * self.tol and found.violation < _NOISE_FLOOR * noise

    def _result(self, state: _State, found: Certificate) -> DualResult:
        converged = found.violation < self.tol
        return DualResult(state.beta, state.decision, *found, converged, self.n_iter, self.n_steps, self.history)

    def _start(self, beta: Vector, decision: Vector | None) -> _State:
        if decision is None:
            decision = np.zeros(len(beta))
            support = np.flatnonzero(beta)
            free = is_free(self.box, beta)[support]
            for rows, keep in ((support[~free], False), (support[free], True)):
                for block in self._blocks(rows):
                    if not (self.must_start or self.progress.go_on()):
                        raise StoppedAtStartError
                    self.rows.add_product(block, beta[block], decision, keep=keep)
            self.n_rounds = len(_NEW_ROWS) - 1 if len(support) else 0
        return _State(beta.copy(), decision, np.empty(len(beta)))

    def _certify(self, state: _State) -> Certificate:
        found = certify(self.box, state.beta, state.decision, state.violations, equality=self.equality, tol=self.tol)
        self.history.record(
            time=self.progress.elapsed,
            objective=found.objective,
            lower_bound=found.objective - found.gap,
            violation=found.violation,
            n_support=int(np.count_nonzero(state.beta)),
        )
        return found

    def _report(self, state: _State, found: Certificate) -> bool:
        self.progress.candidate = state.beta, found.intercept
        return self.progress.go_on(
            violation=found.violation,
            tol=self.goal,
            objective=found.objective,
            n_support=float(np.count_nonzero(state.beta)),
            round=float(len(self.history)),
        )

    def _improve(self, state: _State, found: Certificate) -> _State | None:
        """One round; None when it was cut short or could move nothing."""
        active = self._choose_active(state)
        beta = self._solve_active(state, active, max(0.9 * self._goal(state), _ROUND_GOAL * found.violation))
        changed = np.flatnonzero(beta != state.beta[active])
        return self._apply(state, active[changed], beta[changed]) if len(changed) else None

    def _choose_active(self, state: _State) -> Rows:
        """Free coordinates and the larger violators: as many as fit, the largest violations first."""
        size = np.abs(state.violations)
        free = is_free(self.box, state.beta)
        wanted = (size > max(0.5 * self.goal, _VIOLATOR_SHARE * size.max())) & ~free
        quota = _NEW_ROWS[self.n_rounds]
        self.n_rounds = min(self.n_rounds + 1, len(_NEW_ROWS) - 1)
        if self.equality:  # one side alone cannot move
            rising, falling = (np.flatnonzero(wanted & (sign * state.violations > 0)) for sign in (1, -1))
            new = np.union1d(_largest(size, rising, quota // 2), _largest(size, falling, quota // 2))
        else:
            new = _largest(size, np.flatnonzero(wanted), quota)
        return self._cut_to_memory(state, np.union1d(np.flatnonzero(free), new))

    def _cut_to_memory(self, state: _State, active: Rows) -> Rows:
        """As many rows as fit: the newer half of the last active set, and the largest violators of the rest."""
        if len(active) > self.capacity:
            kept = self.last_active[-(self.capacity // 2) :]
            others, room = np.setdiff1d(active, kept), self.capacity - len(kept)
            size = np.abs(state.violations)
            if self.equality:
                rising, falling = (others[sign * state.violations[others] > 0] for sign in (1, -1))
                first = _largest(size, rising, room // 2)
                others, kept, room = falling, np.concatenate([kept, first]), room - len(first)
            active = np.concatenate([kept, _largest(size, others, room)])
        self.last_active = active
        return np.sort(active)

    def _solve_active(self, state: _State, active: Rows, goal: float) -> Vector:
        """Solve on the active set; its kernel matrix is filled from kept rows where there are any."""
        m = len(active)
        K = self.square[: m * m].reshape(m, m)
        self.rows.square(active, K)
        box = workspace.Box(*(part[active] for part in self.box))
        beta, decision = state.beta[active], state.decision[active]
        is_small = self.goal < self.tol
        square = SquareSolver(K, box, equality=self.equality, progress=self.progress, to_last_digits=is_small)
        left = self.max_iter - self.n_iter
        square.solve(beta, decision, goal, min(left, _SMALL_SETS) if is_small else left)
        self.n_iter += square.n_iter
        self.n_steps += square.n_steps
        return beta

    def _blocks(self, rows: Rows) -> list[Rows]:
        """Rows whose products take a fraction of a second each: the clock is asked between them."""
        return np.array_split(rows, len(rows) * len(self.rows) // _ENTRIES_PER_LOOK + 1)

    def _apply(self, state: _State, rows: Rows, beta: Vector) -> _State | None:
        """The point with new values in some rows, and its decision values; None once stopped."""
        decision = state.decision.copy()
        change = beta - state.beta[rows]
        is_first = not state.beta.any()  # better a late first model than none
        blocks = self._blocks(np.arange(len(rows)))
        for block in blocks:
            if not (is_first or len(blocks) == 1 or self.progress.go_on()):
                return None
            self.rows.add_product(rows[block], change[block], decision)
        if not np.all(np.isfinite(decision)):
            raise ValueError("kernel must be finite, but some k(x, z) is NaN or infinite")
        everywhere = state.beta.copy()
        everywhere[rows] = beta
        return _State(everywhere, decision, state.violations)


def share_memory(kernel: Kernel, samples: Samples, memory_budget: int, team: ThreadTeam) -> tuple[KernelRows, int]:
    """Kernel rows with their cache, and the bytes that are left for the active set's matrix.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    memory_budget : int
        Bytes beyond the caller's data: the samples' own copy, some vectors and a tile a thread come off first.
    team : ThreadTeam
    """
    n = len(samples)
    gathered = min(n, _GATHERED) * samples.row_bytes
    overhead = samples.nbytes + gathered + _VECTORS * 8 * n + _TILES * team.n_threads * get_config()["block_bytes"]
    free = max(_LEAST_BYTES, memory_budget - overhead - _SLACK)
    square_bytes = min(n * n * samples.dtype.itemsize, int(_SQUARE_SHARE * free))
    return KernelRows(kernel, samples, free - square_bytes, team), square_bytes


def _largest(values: Vector, rows: Rows, k: int) -> Rows:
    """The k of `rows` with the largest values, in ascending order; ties are broken by a fixed shuffle."""
    if len(rows) <= k:
        return rows
    rows = np.random.default_rng(0).permutation(rows)
    return np.sort(rows[np.argpartition(-values[rows], k)[:k]])
