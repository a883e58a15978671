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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import dual
from .._progress import Progress
from ..kernels.cache import KernelRows
from .result import DualResult, History

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

TILE = 512  # rows of a working set: a float32 tile of 1 MiB fits the second-level cache
SMALL = TILE  # a problem of one tile is solved to the last digits
_SMALL_TOL = 1e-9
_ENTRIES_PER_ROUND = 5e8  # new rows x n, while there is no model yet
_ENTRIES_PER_LOOK = 10**8  # kernel entries between two looks at the clock
_NEW_ROWS = (1024, 8192)
_VIOLATOR_SHARE = 0.03  # of the largest violation: smaller ones wait
_ROUND_GOAL = 0.1
_SLICE_SECONDS = 0.05


class DualProblem(NamedTuple):
    """Targets and signed bounds, float64 arrays of shape (n,)."""

    target: Vector
    lo: Vector
    hi: Vector


class Certificate(NamedTuple):
    """Where a point stands: intercept, violation, primal value, duality gap."""

    intercept: float
    violation: float
    objective: float
    gap: float


def svm_problem(y: Vector, upper: Vector) -> DualProblem:
    """The C-SVM's signed dual: labels y = +-1 and alpha in [0, upper]."""
    return DualProblem(y, np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0))


@dataclass
class _State:
    """The point being improved, and what is known of it."""

    beta: Vector
    decision: Vector
    violations: Vector
    n_iter: int = 0
    n_steps: int = 0


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
    progress : Progress
    max_iter : int
        Working sets; -1 for no limit.
    """

    def __init__(
        self,
        rows: KernelRows,
        problem: DualProblem,
        *,
        equality: bool,
        tol: float,
        square_bytes: int,
        progress: Progress,
        max_iter: int = -1,
    ) -> None:
        n = len(problem.target)
        self.rows = rows
        self.equality = equality
        self.tol = min(tol, _SMALL_TOL) if n <= SMALL else tol
        self.progress = progress
        self.max_iter = max_iter if max_iter >= 0 else np.iinfo(np.int64).max
        diagonal = rows.kernel.diagonal(rows.samples)
        floor = 1e-12 * max(float(np.max(diagonal, initial=0.0)), 1e-300)
        self.box = dual.Box(*problem, 1.0 / np.sqrt(np.maximum(diagonal, floor)))
        self.dtype = rows.samples.dtype
        self.capacity = max(TILE, int(np.sqrt(square_bytes / self.dtype.itemsize)))
        self.new_rows = int(np.clip(_ENTRIES_PER_ROUND / n, *_NEW_ROWS))
        self.square = np.empty(min(n, self.capacity) ** 2, self.dtype)  # touched only as far as it is used
        self.history = History()

    def solve(self, beta: Vector, decision: Vector | None = None) -> DualResult:
        """Improve a feasible point, in a copy, until `tol` or until the progress object says stop."""
        state = self._start(beta, decision)
        while True:
            found = self._certify(state)
            if found.violation < self.tol or state.n_iter >= self.max_iter or not self._report(state, found):
                break
            if not self._improve(state, found):
                break
        return DualResult(
            beta=state.beta,
            decision=state.decision,
            intercept=found.intercept,
            objective=found.objective,
            gap=found.gap,
            violation=found.violation,
            converged=found.violation < self.tol,
            n_iter=state.n_iter,
            n_steps=state.n_steps,
            history=self.history,
        )

    def _start(self, beta: Vector, decision: Vector | None) -> _State:
        state = _State(beta.copy(), np.zeros(len(beta)), np.empty(len(beta)))
        if decision is not None:
            state.decision[:] = decision
            return state
        support = np.flatnonzero(beta)
        free = self._is_free(beta)[support]
        self.rows.add_product(support[~free], beta[support[~free]], state.decision, keep=False)
        self.rows.add_product(support[free], beta[support[free]], state.decision)
        return state

    def _is_free(self, beta: Vector) -> NDArray[np.bool_]:
        return (beta > self.box.lo) & (beta < self.box.hi)

    def _certify(self, state: _State) -> Certificate:
        """Violation, intercept, primal value and gap of the present point, in O(n)."""
        offset, violation = dual.measure(self.box, state.beta, state.decision, self.equality, state.violations)
        if self.equality:
            offset = self._intercept(state, offset)
        slack = state.decision - self.box.target + offset
        gap = state.beta @ slack + self.box.hi @ np.maximum(-slack, 0) - self.box.lo @ np.maximum(slack, 0)
        lower_bound = self.box.target @ state.beta - 0.5 * state.beta @ state.decision
        gap = max(float(gap), 0.0)
        found = Certificate(float(offset), float(violation), float(lower_bound) + gap, gap)
        self.history.record(
            time=self.progress.elapsed,
            objective=found.objective,
            lower_bound=float(lower_bound),
            violation=found.violation,
            n_support=np.count_nonzero(state.beta),
        )
        return found

    def _intercept(self, state: _State, midpoint: float) -> float:
        """LIBSVM's rule: the mean over free coordinates, or the middle of what the others allow."""
        free = self._is_free(state.beta)
        return float(np.mean((self.box.target - state.decision)[free])) if free.any() else midpoint

    def _report(self, state: _State, found: Certificate) -> bool:
        self.progress.candidate = state.beta, found.intercept
        return self.progress.go_on(
            violation=found.violation,
            tol=self.tol,
            objective=found.objective,
            n_support=float(np.count_nonzero(state.beta)),
            round=float(len(self.history)),
        )

    def _improve(self, state: _State, found: Certificate) -> bool:
        """One round; False when it was cut short or could move nothing."""
        active = self._choose_active(state)
        beta = self._solve_active(state, active, max(0.9 * self.tol, _ROUND_GOAL * found.violation))
        changed = np.flatnonzero(beta != state.beta[active])
        return len(changed) > 0 and self._apply(state, active[changed], beta[changed])

    def _choose_active(self, state: _State) -> Rows:
        """Free coordinates and the larger violators: as many as fit, the largest violations first."""
        v = state.violations
        free = self._is_free(state.beta)
        candidates = np.flatnonzero((v > max(0.5 * self.tol, _VIOLATOR_SHARE * v.max())) & ~free)
        if len(candidates) > self.new_rows:
            candidates = _largest(v, candidates, self.new_rows)
        active = np.union1d(np.flatnonzero(free), candidates)
        return active if len(active) <= self.capacity else _largest(v, active, self.capacity)

    def _solve_active(self, state: _State, active: Rows, goal: float) -> Vector:
        """Solve on the active set, in slices of time so that a clock or an interrupt is heard."""
        m = len(active)
        K = self.square[: m * m].reshape(m, m)
        self.rows.square(active, K)
        box = dual.Box(*(part[active] for part in self.box))
        beta, decision = state.beta[active], state.decision[active]
        size = min(TILE, m)
        # steps that must keep sum(beta) = 0 over thousands of tiles are not rounded to float32
        tile = dual.make_tile(size, np.dtype(np.float64) if self.equality or m <= SMALL else self.dtype)
        work = dual.make_working_set(size, m)
        n_sets, violation = 4, np.inf
        while violation >= goal and state.n_iter < self.max_iter:
            begin = time.perf_counter()
            quota = min(n_sets, self.max_iter - state.n_iter)
            done, steps, _, violation = dual.solve_active(
                K, box, beta, decision, tile, work, goal, self.equality, quota
            )
            state.n_iter += done
            state.n_steps += steps
            if done < quota or not self.progress.go_on():
                break
            n_sets = int(np.clip(n_sets * _SLICE_SECONDS / (time.perf_counter() - begin + 1e-9), 1, 1000))
        return beta

    def _apply(self, state: _State, rows: Rows, beta: Vector) -> bool:
        """Take new values over into beta and into all decision values; or, once stopped, into neither."""
        decision = state.decision.copy()
        change = beta - state.beta[rows]
        is_first = not state.beta.any()  # better a late first model than none
        for block in np.array_split(np.arange(len(rows)), len(rows) * len(decision) // _ENTRIES_PER_LOOK + 1):
            if not (self.progress.go_on() or is_first):
                return False
            self.rows.add_product(rows[block], change[block], decision)
        state.beta[rows] = beta
        state.decision = decision
        return True


def _largest(values: Vector, rows: Rows, k: int) -> Rows:
    """The k of `rows` with the largest values, in ascending order; ties are broken by a fixed shuffle."""
    rows = np.random.default_rng(0).permutation(rows)
    return np.sort(rows[np.argpartition(-values[rows], k)[:k]])
