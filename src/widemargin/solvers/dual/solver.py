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

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._config import get_config
from ..._native import Stopped, dual, kernels
from ..._progress import Part, Progress
from ..._threads import ThreadTeam
from ...data.samples import Samples
from ...kernels.active_matrix import ActiveMatrix
from ...kernels.cache import KernelRows
from ...kernels.functions import Kernel
from ...kernels.tiles import entry_work
from ..results import DualResult, History, StoppedAtStartError
from .certificate import (
    MAX_RELATIVE_GAP,
    Certificate,
    DualProblem,
    certify,
    is_free,
    make_box,
    rescale_to_zero_sum,
    restrict_box,
)
from .in_memory import NO_LIMIT, WORKING_SET_ROWS, InMemorySolver
from .newton import MAX_IDLE_CHECKS, ProgressMonitor

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]
Decide = Callable[[Rows, Vector], Vector]

SINGLE_SET_ROWS = WORKING_SET_ROWS  # a problem of one tile is solved to the last digits
SINGLE_SET_TOL = 1e-9
NOISE_SHARE = 0.25  # of tol: more noise than this in the decision values cannot be certified
_MARGIN = 4.0  # standard deviations of the decision values' noise
_NOISE_FLOOR = 10.0  # times that noise: the violation at which coarse entries have done their work
_SURE = 20.0  # times that noise: a row that is so far from the margin is on the side where it seems to be
_BLOCK_ROWS = 512  # at least, of kernel rows that are computed together
_WORK_PER_LOOK = 1e10  # multiply-adds between two looks at the clock
_NEW_ROWS = (2048, 8192)  # violators that join in a cold start's first round, and in later ones
_FIRST_SHARE = 4  # one of so many rows, at most, joins in that first round
_VIOLATOR_SHARE = 0.03  # of the largest violation: smaller ones wait
_NEXT_ROWS = 512, 2048  # that are no violators yet: as many as violators, within these limits
_ROUND_GOAL = 0.1
_VECTORS = 16  # float64 vectors of n that a solve holds at its peak
_SQUARE_SHARES = (0.3, 0.5)  # of the memory, least and most for the active set's kernel matrix; the rest keeps rows
_CHEAP_ROW = 64  # multiply-adds: kernel entries of shorter rows are computed again sooner than kept
_LEAST_BYTES = 2**22
_SLACK = 2**24  # what the interpreter and the allocator keep
_TILES = 8  # a thread holds at one time, with their batches and what the allocator keeps
_GATHERED = 3 * _NEW_ROWS[-1]  # rows in batches at one time


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
    active_bytes : int
        For the active set's kernel matrix.
    progress : Progress or Part
    max_iter : int
        Working sets; -1 for no limit.
    must_start : bool
        Whether there is a result even where there was no time for the decision values of the start: that of a few of
        its support vectors. If not, `solve` raises StoppedAtStartError: the caller has something better.
    entry_noise : float
        Error of a kernel entry. Where it leaves more than `tol` in the decision values, `solve` returns as soon as the
        violation is no longer large beside it: there is nothing to be gained from these entries any more.
    max_relative_gap : float
        Share of the objective that the gap may be at the end.

    Attributes
    ----------
    order : ndarray of shape (n,) or None
        The caller's number of each coordinate, for the points that `progress` is shown; None: the same number.
    """

    def __init__(
        self,
        rows: KernelRows,
        problem: DualProblem,
        *,
        equality: bool,
        tol: float,
        active_bytes: int,
        progress: Progress | Part,
        max_iter: int = -1,
        must_start: bool = True,
        entry_noise: float = 0.0,
        max_relative_gap: float = MAX_RELATIVE_GAP,
    ) -> None:
        n = len(problem.target)
        self.rows = rows
        self.equality = equality
        self.tol = self.wanted = tol  # `wanted` is less where the gap is still too large at tol
        self.goal = min(tol, SINGLE_SET_TOL) if n <= SINGLE_SET_ROWS else tol
        self.max_relative_gap = max_relative_gap
        self.progress = progress
        self.must_start = must_start
        self.entry_noise = entry_noise
        self.order: Rows | None = None
        self.max_iter = max_iter if max_iter >= 0 else NO_LIMIT
        self.box = make_box(problem, np.asarray(rows.kernel.diagonal(rows.samples), np.float64))
        self.active = ActiveMatrix(rows, max(active_bytes, WORKING_SET_ROWS**2 * rows.samples.dtype.itemsize))
        self.exact_at: Vector | float = 0.0  # where the decision values had no noise
        self.history = History()
        self.n_iter = 0
        self.n_steps = 0
        self.n_rounds = 0
        self.last_active = np.empty(0, np.intp)

    @property
    def nbytes(self) -> int:
        """What the kernel entries at hand take."""
        return self.active.K.nbytes + self.rows.nbytes

    def refine(self, beta: Vector, tol: float) -> tuple[Vector, Vector]:
        """Solve on the leading coordinates alone, on their kernel matrix: that is part of the rows that `solve` keeps.

        Parameters
        ----------
        beta : ndarray of shape (m,)
            A feasible start; not changed. m is at most `active.capacity`.
        tol : float

        Returns
        -------
        (ndarray of shape (m,), ndarray of shape (m,))
            The solution, and its decision values on the leading coordinates.

        Raises
        ------
        Stopped
            If the fit is stopped before the kernel matrix is computed.
        """
        m = len(beta)
        with self.progress.interrupting(self.rows.team.native):
            self.active.fill_leading(m)
        box = restrict_box(self.box, slice(m))
        beta, decision, support = beta.copy(), np.zeros(m), np.flatnonzero(beta)
        kernels.add_rows(self.rows.team.native, self.active.K, support, beta[support], decision)
        self._run(self.active.K, box, beta, decision, tol)
        return beta, decision

    def solve(self, beta: Vector, leading: Vector | None = None) -> DualResult:
        """Improve a feasible point, in a copy, until `tol` or until the progress object says stop.

        Where beta is zero but for its leading coordinates, their decision values may be known.
        """
        self.n_rounds = len(_NEW_ROWS) - 1 if beta.any() else 0
        try:
            state = _State(beta.copy(), self.decision_values(beta, leading), np.empty(len(beta)))
        except Stopped:
            if not self.must_start:
                raise StoppedAtStartError from None
            state = self._reduced(beta)
        return self._go_on(state)

    def solve_in_memory_of(self, whole: DualSolver, beta: Vector) -> tuple[Vector, Vector]:
        """As `solve`, in the memory of a solver that begins later; the solution and its decision values."""
        self.active.borrow(whole.active)
        result = self.solve(beta)
        return result.beta, result.decision

    def release_to(self, other: DualSolver) -> DualSolver:
        """Hand the counts over to a solver that goes on, and give back the memory."""
        other.n_iter, other.n_steps, other.history = self.n_iter, self.n_steps, self.history
        self.rows.release()
        self.active = ActiveMatrix(self.rows, 0)
        return other

    def correct(self, beta: Vector, decision: Vector) -> DualResult:
        """Go on from a point whose decision values are more exact than these entries: only changes have their noise."""
        self.exact_at = beta
        return self._go_on(_State(beta.copy(), decision, np.empty(len(beta))))

    def refine_uncertain_rows(self, result: DualResult, decide: Decide, most_rows: int) -> DualResult:
        """As `correct`, of the rows alone that count to the last digits, and of those that come to count on the way.

        `decide` takes rows and their beta. Where there are more than `most_rows`, the result stays as it is.
        """
        noise, known = self.noise(result.beta), np.empty(0, np.intp)
        while len(rows := np.union1d(known, self._in_doubt(result, noise))) > len(known):
            if len(rows) > most_rows:
                self.exact_at = 0.0
                break
            known, decision = rows, result.decision.copy()
            decision[rows] = decide(rows, result.beta[rows])
            result = self.correct(result.beta, decision)
            if self.noise(result.beta) > NOISE_SHARE * self.tol:
                break  # it takes more exact entries
        return result

    def _go_on(self, state: _State) -> DualResult:
        found = self._certify(state)
        best, test = (state, found), ProgressMonitor()
        patience = MAX_IDLE_CHECKS if len(state.beta) > SINGLE_SET_ROWS else 1
        while not self._is_done(state, found) and self._report(state, found):
            test(self.box, state.beta, state.decision, found.violation)
            if test.n_idle >= patience:
                break
            if found.violation < self._goal(state):
                self.wanted = found.tighter_tol(self.max_relative_gap)
                self.goal = min(self.goal, self.wanted)
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
        return self.goal - min(_MARGIN * self.noise(state.beta), 0.5 * self.goal)

    def noise(self, beta: Vector) -> float:
        """Standard deviation of a decision value, from the errors of its kernel entries."""
        return self.entry_noise * float(np.linalg.norm(beta - self.exact_at))

    def _is_done(self, state: _State, found: Certificate) -> bool:
        if self.n_iter >= self.max_iter:
            return True
        if found.violation < self._goal(state) and found.is_tight(self.max_relative_gap):
            return True
        noise = self.noise(state.beta)
        return noise > NOISE_SHARE * self.wanted and found.violation < _NOISE_FLOOR * noise

    def _result(self, state: _State, found: Certificate) -> DualResult:
        converged = found.violation < self.tol and found.is_tight(self.max_relative_gap)
        return DualResult(state.beta, state.decision, *found, converged, self.n_iter, self.n_steps, self.history)

    def decision_values(self, beta: Vector, leading: Vector | None = None) -> Vector:
        """The decision values K beta; `Stopped` is raised if the fit is stopped before many of them are computed."""
        decision, first, K = np.zeros(len(beta)), 0, None
        if leading is not None and (len(self.active.rows) or not self.rows.has_room):
            first, K = len(leading), self.active.K if len(self.active.rows) else None
            decision[:first] = leading
        support = np.flatnonzero(beta)
        free = is_free(self.box, beta)[support]

        def add(rows: Rows, *, keep: bool) -> None:
            self.rows.add_product(rows, beta[rows], decision, keep=keep, first=first, leading=K)

        self._until_stopped(partial(add, keep=False), support[~free])
        self._until_stopped(partial(add, keep=True), support[free])
        return decision

    def _reduced(self, beta: Vector) -> _State:
        """The better of two points: zero, and beta on as many support vectors as can be evaluated in a moment."""
        few, decision = np.zeros((2, len(beta)))
        zero = _State(few.copy(), decision.copy(), np.empty(len(beta)))
        rows = np.flatnonzero(beta)
        rows = rows[:: self._n_looks(rows) + 1]
        few[rows] = beta[rows]
        if self.equality:
            few = rescale_to_zero_sum(few)
        self.rows.add_product(rows, few[rows], decision, keep=False)
        return min(
            zero, _State(few, decision, np.empty(len(beta))), key=lambda state: self._find_certificate(state).objective
        )

    def to_original_order(self, values: Vector) -> Vector:
        """One value for each coordinate (n,), in the caller's order."""
        if self.order is None:
            return values
        ordered = np.empty_like(values)
        ordered[self.order] = values
        return ordered

    def _in_doubt(self, result: DualResult, noise: float) -> Rows:
        """Where beta is not zero, or nearly could be: elsewhere noise changes neither the sum of beta nor the loss."""
        distance = np.abs(result.decision - self.box.target + result.intercept)
        return np.flatnonzero((result.beta != 0.0) | (distance < _SURE * noise))

    def _certify(self, state: _State) -> Certificate:
        found = self._find_certificate(state)
        self.history.record(
            time=self.progress.elapsed,
            objective=found.objective,
            lower_bound=found.objective - found.gap,
            violation=found.violation,
            n_support=int(np.count_nonzero(state.beta)),
        )
        return found

    def _find_certificate(self, state: _State) -> Certificate:
        return certify(self.box, state.beta, state.decision, state.violations, equality=self.equality, tol=self.tol)

    def _report(self, state: _State, found: Certificate) -> bool:
        self.progress.candidate = self.to_original_order(state.beta), found.intercept
        return self.progress.go_on(
            violation=found.violation,
            tol=self.goal,
            objective=found.objective,
            n_support=float(np.count_nonzero(state.beta)),
            round=float(len(self.history)),
        )

    def _improve(self, state: _State, found: Certificate) -> _State | None:
        """One round; None when it was cut short or could move nothing."""
        try:
            with self.progress.interrupting(self.rows.team.native):
                self.active.update(self._choose_active(state, found.intercept))
        except Stopped:
            return None
        active = self.active.rows
        goal = max(0.9 * self._goal(state), _ROUND_GOAL * found.violation)
        beta, decision = self._solve_active(state, active, goal)
        changed = np.flatnonzero(beta != state.beta[active])
        changed = changed[np.argsort(active[changed])]
        if not len(changed):
            return None
        known = None if self.rows.has_room else active  # rows that are kept must be whole
        improved = self._apply(state, active[changed], beta[changed], known)
        if improved is not None and known is not None:
            improved.decision[known] = decision
        return improved

    def _choose_active(self, state: _State, intercept: float) -> Rows:
        """Free coordinates, the larger violators and those next in line: as many as fit, in this order."""
        size = np.abs(state.violations)
        free = is_free(self.box, state.beta)
        wanted = (size > max(0.5 * self.goal, _VIOLATOR_SHARE * size.max())) & ~free
        quota = _NEW_ROWS[self.n_rounds]
        if self.n_rounds == 0:
            quota = min(quota, max(SINGLE_SET_ROWS, len(size) // _FIRST_SHARE))
        self.n_rounds = min(self.n_rounds + 1, len(_NEW_ROWS) - 1)
        if self.equality:  # one side alone cannot move
            rising, falling = (np.flatnonzero(wanted & (sign * state.violations > 0)) for sign in (1, -1))
            new = np.union1d(_largest(size, rising, quota // 2), _largest(size, falling, quota // 2))
        else:
            new = _largest(size, np.flatnonzero(wanted), quota)
        active = self._cut_to_memory(state, np.union1d(np.flatnonzero(free), new))
        return self._with_next(state, intercept, active, int(np.clip(len(new), *_NEXT_ROWS)))

    def _with_next(self, state: _State, intercept: float, active: Rows, k: int) -> Rows:
        """With up to k coordinates more: satisfied ones that the moves of the others may turn into violators."""
        slack = np.abs(state.decision - self.box.target + intercept)
        near = slack < np.abs(state.violations).max()
        near[active] = False
        room = self.active.capacity - len(active)
        return np.union1d(active, _largest(-slack, np.flatnonzero(near), min(k, room)))

    def _cut_to_memory(self, state: _State, active: Rows) -> Rows:
        """As many rows as fit: the newer half of the last active set, and the largest violators of the rest."""
        if len(active) > self.active.capacity:
            kept = self.last_active[-(self.active.capacity // 2) :]
            others, room = np.setdiff1d(active, kept), self.active.capacity - len(kept)
            size = np.abs(state.violations)
            if self.equality:
                rising, falling = (others[sign * state.violations[others] > 0] for sign in (1, -1))
                first = _largest(size, rising, room // 2)
                others, kept, room = falling, np.concatenate([kept, first]), room - len(first)
            active = np.concatenate([kept, _largest(size, others, room)])
        self.last_active = active
        return active

    def _solve_active(self, state: _State, active: Rows, goal: float) -> tuple[Vector, Vector]:
        """Solve on the active set's kernel matrix: its new point and decision values."""
        box = restrict_box(self.box, active)
        beta, decision = state.beta[active], state.decision[active]
        self._run(self.active.K, box, beta, decision, goal)
        return beta, decision

    def _run(self, K: NDArray[np.floating], box: dual.Box, beta: Vector, decision: Vector, goal: float) -> None:
        """Improve beta and decision in place, and book the work."""
        is_small = len(self.rows) <= SINGLE_SET_ROWS
        square = InMemorySolver(
            K, box, self.rows.team, equality=self.equality, progress=self.progress, use_float64=is_small
        )
        left = self.max_iter - self.n_iter
        square.solve(beta, decision, goal, left)
        self.n_iter += square.n_iter
        self.n_steps += square.n_steps

    def _blocks(self, rows: Rows) -> list[Rows]:
        """Rows whose products take a fraction of a second each; of both signs where these are sorted."""
        n_blocks = min(self._n_looks(rows), len(rows) // _BLOCK_ROWS) + 1
        return [rows[k::n_blocks] for k in range(n_blocks)]

    def _n_looks(self, rows: Rows) -> int:
        """How often the clock is to be asked during products of these rows."""
        return int(entry_work(len(rows) * len(self.rows), self.rows.samples.row_cost) / _WORK_PER_LOOK)

    def _until_stopped(self, add: Callable[[Rows], None], rows: Rows) -> None:
        """Call `add` for blocks of the rows. Once the fit should end, `Stopped` is raised, in the middle of one too.

        Products that take a fraction of a second are always finished.
        """
        if self._n_looks(rows) == 0:
            return add(rows)
        with self.progress.interrupting(self.rows.team.native):
            for block in self._blocks(rows):
                if not self.progress.go_on():
                    raise Stopped
                add(block)

    def _apply(self, state: _State, rows: Rows, beta: Vector, known: Rows | None) -> _State | None:
        """The point with new values in some rows, and its decision values but for the known ones; None once stopped."""
        decision = state.decision.copy()
        change = beta - state.beta[rows]
        everywhere = state.beta.copy()
        everywhere[rows] = beta
        unknown = None if known is None else np.delete(np.arange(len(decision)), known)

        def add(block: Rows) -> None:
            if unknown is None:
                self.rows.add_product(rows[block], change[block], decision)
            else:
                self.rows.add_product_to(unknown, rows[block], change[block], decision)

        try:
            self._until_stopped(add, np.arange(len(rows)))
        except Stopped:
            if state.beta.any():
                return None
            return self._reduced(everywhere)
        if not np.all(np.isfinite(decision)):
            raise ValueError("kernel must be finite, but some k(x, z) is NaN or infinite")
        return _State(everywhere, decision, state.violations)


def hides_violation(noise: float, tol: float, problem: DualProblem | dual.Box, result: DualResult) -> bool:
    """Whether noise of the decision values could hide a violation of `tol`, or a hundredth of the objective."""
    total = float(np.sum(problem.hi - problem.lo))
    return noise > NOISE_SHARE * tol or noise * total > 0.01 * result.objective


def split_memory(
    kernel: Kernel, samples: Samples, memory_budget: int, team: ThreadTeam, first: int = 0
) -> tuple[KernelRows, int]:
    """Kernel rows with their cache, and the bytes that are left for the active set's matrix.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    memory_budget : int
        Bytes beyond the caller's data: the samples' own copy, some vectors and a tile a thread come off first.
    team : ThreadTeam
    first : int
        Rows whose whole kernel matrix will be asked for first.

    Notes
    -----
    Memory that was never touched costs as much a byte as the arithmetic of a short row's kernel entry: only rows that
    are long, or come from a function that is not ours, are kept.
    """
    n, itemsize = len(samples), samples.dtype.itemsize
    gathered = min(n, _GATHERED) * samples.row_bytes
    overhead = samples.nbytes + gathered + _VECTORS * 8 * n + _TILES * team.n_threads * get_config()["block_bytes"]
    free = max(_LEAST_BYTES, memory_budget - overhead - _SLACK)
    least, most = _SQUARE_SHARES
    if kernel.sample_form != "rows" and samples.row_cost <= _CHEAP_ROW:
        return KernelRows(kernel, samples, 0, team), min(n * n * itemsize, free)
    active_bytes = min(n * n * itemsize, int(np.clip(first**2 * itemsize, least * free, most * free)))
    return KernelRows(kernel, samples, free - active_bytes, team), active_bytes


def _largest(values: Vector, rows: Rows, k: int) -> Rows:
    """The k of `rows` with the largest values, in ascending order; ties are broken by a fixed shuffle."""
    if len(rows) <= k:
        return rows
    rows = np.random.default_rng(0).permutation(rows)
    return np.sort(rows[np.argpartition(-values[rows], k)[:k]])
