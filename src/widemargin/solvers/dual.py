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

from .._jit import dual, workspace
from .._progress import Part, Progress
from ..kernels.cache import KernelRows
from .result import DualResult, History

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

TILE = 512  # rows of a working set: a float32 tile of 1 MiB fits the second-level cache
SMALL = TILE  # a problem of one tile is solved to the last digits
_SMALL_TOL = 1e-9
_ENTRIES_PER_LOOK = 10**8  # kernel entries between two looks at the clock
_FIRST_ROWS = 2048  # a first model soon
_NEW_ROWS = 8192  # violators that join the active set in one round
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


class _State(NamedTuple):
    """A feasible point, its decision values K beta, and each coordinate's violation."""

    beta: Vector
    decision: Vector
    violations: Vector


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
    ) -> None:
        n = len(problem.target)
        self.rows = rows
        self.equality = equality
        self.tol = min(tol, _SMALL_TOL) if n <= SMALL else tol
        self.progress = progress
        self.max_iter = max_iter if max_iter >= 0 else np.iinfo(np.int64).max
        diagonal = rows.kernel.diagonal(rows.samples)
        floor = 1e-12 * max(float(np.max(diagonal, initial=0.0)), 1e-300)
        self.box = workspace.Box(*problem, 1.0 / np.sqrt(np.maximum(diagonal, floor)))
        self.dtype = rows.samples.dtype
        self.capacity = max(TILE, int(np.sqrt(square_bytes / self.dtype.itemsize)))
        self.square = np.empty(min(n, self.capacity) ** 2, self.dtype)  # touched only as far as it is used
        self.history = History()
        self.n_iter = 0
        self.n_steps = 0

    def solve(self, beta: Vector, decision: Vector | None = None) -> DualResult:
        """Improve a feasible point, in a copy, until `tol` or until the progress object says stop."""
        state = self._start(beta, decision)
        found = self._certify(state)
        best = state, found
        while found.violation >= self.tol and self.n_iter < self.max_iter and self._report(state, found):
            improved = self._improve(state, found)
            if improved is None:
                break
            state = improved
            found = self._certify(state)
            # the dual falls in every round, the primal does not: whoever stops early gets the better machine
            if found.violation < self.tol or found.objective <= best[1].objective:
                best = state, found
        return self._result(*best)

    def _result(self, state: _State, found: Certificate) -> DualResult:
        return DualResult(
            beta=state.beta,
            decision=state.decision,
            intercept=found.intercept,
            objective=found.objective,
            gap=found.gap,
            violation=found.violation,
            converged=found.violation < self.tol,
            n_iter=self.n_iter,
            n_steps=self.n_steps,
            history=self.history,
        )

    def _start(self, beta: Vector, decision: Vector | None) -> _State:
        if decision is None:
            decision = np.zeros(len(beta))
            support = np.flatnonzero(beta)
            free = self._is_free(beta)[support]
            self.rows.add_product(support[~free], beta[support[~free]], decision, keep=False)
            self.rows.add_product(support[free], beta[support[free]], decision)
        return _State(beta.copy(), decision, np.empty(len(beta)))

    def _is_free(self, beta: Vector) -> NDArray[np.bool_]:
        return (beta > self.box.lo) & (beta < self.box.hi)

    def _certify(self, state: _State) -> Certificate:
        """Violation, intercept, primal value and gap of the present point, in O(n)."""
        offset, violation = dual.measure(self.box, state.beta, state.decision, self.equality, state.violations)
        if self.equality:
            offset = self._intercept(state, offset, violation)
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
            n_support=int(np.count_nonzero(state.beta)),
        )
        return found

    def _intercept(self, state: _State, midpoint: float, violation: float) -> float:
        """At the end LIBSVM's rule, the mean over free coordinates; before, the best for the primal as it stands."""
        slack = self.box.target - state.decision
        if violation >= self.tol:
            return _weighted_quantile(slack, self.box.hi - self.box.lo, self.box.hi.sum())
        free = self._is_free(state.beta)
        return float(np.mean(slack[free])) if free.any() else midpoint

    def _report(self, state: _State, found: Certificate) -> bool:
        self.progress.candidate = state.beta, found.intercept
        return self.progress.go_on(
            violation=found.violation,
            tol=self.tol,
            objective=found.objective,
            n_support=float(np.count_nonzero(state.beta)),
            round=float(len(self.history)),
        )

    def _improve(self, state: _State, found: Certificate) -> _State | None:
        """One round; None when it was cut short or could move nothing."""
        active = self._choose_active(state)
        beta = self._solve_active(state, active, max(0.9 * self.tol, _ROUND_GOAL * found.violation))
        changed = np.flatnonzero(beta != state.beta[active])
        return self._apply(state, active[changed], beta[changed]) if len(changed) else None

    def _choose_active(self, state: _State) -> Rows:
        """Free coordinates and the larger violators: as many as fit, the largest violations first."""
        v = state.violations
        free = self._is_free(state.beta)
        candidates = np.flatnonzero((v > max(0.5 * self.tol, _VIOLATOR_SHARE * v.max())) & ~free)
        new_rows = _NEW_ROWS if state.beta.any() else _FIRST_ROWS
        if len(candidates) > new_rows:
            candidates = _largest(v, candidates, new_rows)
        active = np.union1d(np.flatnonzero(free), candidates)
        return active if len(active) <= self.capacity else _largest(v, active, self.capacity)

    def _solve_active(self, state: _State, active: Rows, goal: float) -> Vector:
        """Solve on the active set, in slices of time so that a clock or an interrupt is heard."""
        m = len(active)
        K = self.square[: m * m].reshape(m, m)
        self.rows.square(active, K)
        box = workspace.Box(*(part[active] for part in self.box))
        beta, decision = state.beta[active], state.decision[active]
        size = min(TILE, m)
        # steps that must keep sum(beta) = 0 over thousands of tiles are not rounded to float32
        tile = workspace.make_tile(size, np.dtype(np.float64) if self.equality or m <= SMALL else self.dtype)
        work = workspace.make_working_set(size, m)
        n_sets, violation = 4, np.inf
        while violation >= goal and self.n_iter < self.max_iter:
            begin = time.perf_counter()
            quota = min(n_sets, self.max_iter - self.n_iter)
            done, steps, _, violation = dual.solve_active(
                K, box, beta, decision, tile, work, goal, self.equality, quota
            )
            self.n_iter += done
            self.n_steps += steps
            if done < quota or not self.progress.go_on():
                break
            n_sets = int(np.clip(n_sets * _SLICE_SECONDS / (time.perf_counter() - begin + 1e-9), 1, 1000))
        return beta

    def _apply(self, state: _State, rows: Rows, beta: Vector) -> _State | None:
        """The point with new values in some rows, and its decision values; None once stopped."""
        decision = state.decision.copy()
        change = beta - state.beta[rows]
        is_first = not state.beta.any()  # better a late first model than none
        blocks = np.array_split(np.arange(len(rows)), len(rows) * len(decision) // _ENTRIES_PER_LOOK + 1)
        for block in blocks:
            if not (is_first or len(blocks) == 1 or self.progress.go_on()):
                return None
            self.rows.add_product(rows[block], change[block], decision)
        everywhere = state.beta.copy()
        everywhere[rows] = beta
        return _State(everywhere, decision, state.violations)


def _largest(values: Vector, rows: Rows, k: int) -> Rows:
    """The k of `rows` with the largest values, in ascending order; ties are broken by a fixed shuffle."""
    rows = np.random.default_rng(0).permutation(rows)
    return np.sort(rows[np.argpartition(-values[rows], k)[:k]])


def _weighted_quantile(values: Vector, weights: Vector, total: float) -> float:
    """The smallest value up to which the weights sum to `total`.

    As a function of the intercept, the losses fall by hi for each coordinate with target - decision above it and rise
    by -lo for each below: sum(hi) units of hi - lo below it balance the two.
    """
    order = np.argsort(values, kind="stable")
    k = int(np.searchsorted(np.cumsum(weights[order]), total))
    return float(values[order[min(k, len(order) - 1)]])
