"""The dual of a kernel machine: an active set whose kernel matrix is in memory, kernel rows streamed for the rest.

Solve    min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]
         (the C-SVM's, regression's and the one-class machine's: `problem`)
Given    K as a `KernelOperator` (n, n); t, lo <= 0 <= hi (n,); a feasible start
Returns  `DualResult`: beta, K beta, the intercept, the violation, the primal objective and the duality gap
Method   A round: choose the active set (free coordinates and violators); solve the dual on it to a tenth of the largest
         violation of all coordinates; add the kernel rows of the coordinates that changed to K beta, over all n
         columns. Coordinates that stay at a bound need no kernel entry.
         The active set's kernel matrix is in memory. It is not made where most entries round to nothing: those between
         far rows are not computed, the others are kept while there is room, and more rows are active.
         Shrinking: once most rows are farther from the margin than a round changes decision values, the rounds go on
         with the rows near the margin alone until these are solved; then K beta of the others is computed, and shows
         whether one violates.
Cost     about 2 to 4 (support vectors) x n kernel entries; memory: the active matrix, within the bytes given
Source   decomposition, shrinking: Joachims 1999; working sets: Fan, Chen, Lin 2005; gap: Hsieh et al. 2014, section 3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._native import Stopped
from ..._progress import AnyProgress
from ..._threads import WORK_PER_CHECK, ThreadTeam, cached_property, raise_if_stopped
from ..._types import Array, RowIndices, Vector
from ...data.rows import positions
from ...data.samples import SampleSubset
from ...kernels.active_matrix import ActiveMatrix
from ...kernels.boxed_rows import LEAST_ROWS, far_distance, local_order
from ...kernels.functions import EntryRows, check_finite, dense_row_bytes
from ...kernels.kernel_operator import KernelOperator
from ...kernels.tiles import entry_work
from ..results import Certificate, DualResult, History
from .certificate import Limits, certify, scaled
from .in_memory import SINGLE_SET_TOL, WORKING_SET_ROWS, WorkingSetSolver, uncertified_result
from .problem import DualProblem, is_free, kink_distances, make_terms, restrict_terms
from .stopping import MAX_IDLE_CHECKS, StallTest, is_comparable_with_rounding

_TOL_MARGIN = 4.0  # subtract so many decision errors from tol: the true violation is then below tol too
_MAX_TOL_MARGIN = 0.5  # subtract at most this part of tol
_MEAN_ERROR = 0.8  # mean of |error| / standard deviation
_BLOCK_ROWS = 8192  # compute about so many kernel rows or more between two calls of `go_on`, and WORK_PER_CHECK
_NEW_VIOLATORS = 4096  # add at most so many violators to the active set in a round
_NEW_SHARE = 0.7  # new violators / sqrt(support vectors x rows), at most
_NEW_VIOLATORS_FROM_ZERO = 2048  # add at most so many in the first round from beta = 0
_FIRST_ROUND_SHARE = 0.25  # new violators of that round / rows, at most
_LEAST_VIOLATION = 0.03  # add those with a violation above this part of the largest one
_NEAR_MARGIN = 512, 2048  # add as many satisfied coordinates near their margin as new violators, within these bounds
_CHANGE_QUANTILE = 0.95  # take this quantile of the rows' last changes of decision values for a bound of later ones
_UNSHRUNK_SHARE = 0.5  # shrink the problem if at most this part of the rows is left
ROUND_TOL = 0.1  # solve a round on the active set to this part of the largest violation before it


class Part(NamedTuple):
    """Some rows, their beta and decision values: (m,) each."""

    rows: RowIndices
    beta: Vector
    decision: Vector


class Point(NamedTuple):
    """A feasible point and its decision values K beta: (n,) each."""

    beta: Vector
    decision: Vector

    @property
    def is_zero(self) -> bool:
        """Whether beta = 0, and there are no fixed coordinates outside the problem that have decision values."""
        return not (self.beta.any() or self.decision.any())

    def take(self, rows: RowIndices) -> Part:
        """A copy of beta and decision values at `rows`."""
        return Part(rows, self.beta[rows], self.decision[rows])

    def with_part(self, part: Part) -> Point:
        """A copy with beta and decision values of the part."""
        beta, decision = self.beta.copy(), self.decision.copy()
        beta[part.rows], decision[part.rows] = part.beta, part.decision
        return Point(beta, decision)


def zero_point(n: int) -> Point:
    """beta = 0."""
    return Point(np.zeros(n), np.zeros(n))


@dataclass
class State:
    """Of rounds: the last and the best point, with their certificates, and the test for rounds that bring nothing."""

    point: Point
    certificate: Certificate
    scale: float
    best: tuple[Point, Certificate, float]
    stall_test: StallTest
    returns_last: bool


class DualSolver:
    """Solves one dual of n coordinates, in rounds; its active set's kernel matrix has `active_bytes`, or is given.

    `entry_error` is the root mean square error of a kernel entry. Where decision values have errors beyond a part
    of `tol`, `solve` returns once the violation is comparable with it: these entries cannot improve the point further.
    `go_on` is called before each round with beta (n,) and its certificate, and False stops the solver; by default
    it is `progress.go_on`.

    After a solve `violations` (n,) has the signed KKT violations of the point that was certified last. `unfinished` is
    the last point of a solve that was stopped, if that is not the result: another solve goes on from it (`go_on_from`).
    Its decision values are unknown where the stop was in a product with K.

    Three tolerances::

        tol                of the limits: the violation of a converged machine is below it
        goal_tol           `tol`, or less while the gap is too large; at most 1e-9 of a problem that is one working set
        _observable_tol    `goal_tol` less some decision errors, for violations that are computed from rounded entries

    Rounds end below `_observable_tol`.
    """

    def __init__(
        self,
        operator: KernelOperator,
        problem: DualProblem,
        limits: Limits,
        *,
        active_bytes: int = 0,
        active_matrix: ActiveMatrix | None = None,
        progress: AnyProgress,
        entry_error: float = 0.0,
        go_on: Callable[[Vector, Certificate], bool] | None = None,
    ) -> None:
        n = len(problem.target)
        self.operator = operator
        self.problem = problem
        self.limits = limits
        self.goal_tol = limits.tol
        self.progress = progress
        self.entry_error = entry_error
        self.go_on = go_on
        self.terms = make_terms(problem, np.asarray(operator.kernel.diagonal(operator.samples), np.float64))
        least_bytes = WORKING_SET_ROWS**2 * operator.samples.dtype.itemsize
        self.active_matrix = active_matrix or ActiveMatrix(operator, max(active_bytes, least_bytes))
        self.far = far_distance(operator.kernel, operator.samples)
        self.float64_beta: Vector | float = 0.0  # whose decision values were computed in float64
        self.history = History()
        self.violations = np.empty(n)
        self.n_iter = 0
        self.last_active = np.empty(0, np.intp)
        self.last_change = np.inf  # of the decision values in the last round, for most rows
        self.unfinished: DualResult | None = None

    def solve(self, beta: Vector, known: tuple[RowIndices, Vector] | None = None, n_iter: int = 0) -> DualResult:
        """Solve from the feasible point beta (n,), which is not changed, until `tol` or a stop.

        Stopped before K beta is known, it returns a point on a few of the support vectors; with nu > 0 the start.

        `known`: some coordinates and their decision values (m,); all others of beta are zero.
        `n_iter`: working sets that led to the start.
        """
        self.n_iter = n_iter
        try:
            point = Point(beta.copy(), self.decision_values(beta, known))
        except Stopped:
            start = uncertified_result(beta, self.progress.elapsed)
            if self.problem.nu:
                return start
            result = self._run_rounds(self._start_on_subset(beta))
            self.unfinished = start
            return result
        return self._run_rounds(point)

    def go_on_from(self, given: DualResult) -> DualResult:
        """Go on from a result of another solve of this problem: itself, if stopped before its K beta is known."""
        try:
            decision = given.decision.copy() if given.has_certificate else self.decision_values(given.beta)
        except Stopped:
            return given
        return self._run_rounds(Point(given.beta.copy(), decision))

    def solve_sharing_memory(self, whole: DualSolver, rows: RowIndices, beta: Vector) -> DualResult:
        """`solve` with the active matrix of `whole`, of whose coordinates these are `rows`: it keeps the matrix."""
        self.active_matrix = whole.active_matrix
        self.active_matrix.renumber(self.operator, positions(rows, len(whole.operator)))
        result = self.solve(beta)
        self.active_matrix.renumber(whole.operator, rows)
        return result

    def free_matrix(self) -> None:
        """Free the active matrix."""
        self.active_matrix = ActiveMatrix(self.operator, 0)

    def continue_from(self, result: DualResult, decision: Vector) -> DualResult:
        """Go on from a result, with decision values computed in float64: only changes of beta add errors."""
        self.n_iter, self.history, self.float64_beta = result.n_iter, result.history, result.beta
        return self._run_rounds(Point(result.beta.copy(), decision))

    def solve_part(self, beta: Vector, decision: Vector) -> DualResult:
        """Solve from beta; the decision values include those of fixed coordinates outside the problem, and are exact.

        The result is the last point: objectives, which are without the terms of fixed coordinates, don't compare it.
        """
        self.float64_beta = beta
        return self._run_rounds(Point(beta.copy(), decision), returns_last=True)

    def _run_rounds(self, point: Point, *, returns_last: bool = False) -> DualResult:
        """The rounds from a point, see `end`."""
        state = self.begin(point, returns_last=returns_last)
        while self.needs_a_round(state):
            # 1. Solve the dual on the rows near the margin (shrinking), or on an active set; others are fixed
            point, certificate = state.point, state.certificate
            try:
                rows = self._rows_left_by_shrinking(point, certificate)
                if rows is None:
                    part = self._solve_active(point, certificate)
                else:
                    part = self._solve_shrunk(point, certificate, rows)
            except Stopped:
                break
            # 2. K beta over all rows: add the kernel rows of the coordinates that changed
            changed = np.flatnonzero(part.beta != point.beta[part.rows])
            changed = changed[np.argsort(part.rows[changed])]
            new_point = self._update(point, part, changed) if len(changed) else None
            if new_point is None:
                break
            # 3. Certify
            self.take(state, new_point)
        return self.end(state)

    def begin(self, point: Point, *, returns_last: bool = False) -> State:
        """The state of rounds that begin at a point; with `returns_last` they end with the last point."""
        certified = self._certify(point)
        self.unfinished = None
        stall_test = StallTest(MAX_IDLE_CHECKS if len(point.beta) > WORKING_SET_ROWS else 1)
        return State(point, *certified, (point, *certified), stall_test, returns_last)

    def needs_a_round(self, state: State) -> bool:
        """Whether another round can improve the point, and nobody stops it."""
        point, certificate = state.point, state.certificate
        if self.n_iter >= self.limits.max_sets:
            return False
        self.goal_tol = self._goal_tol(certificate)
        if certificate.violation < self._observable_tol(point):  # not where the gap is too large
            return False
        # A violation that is comparable with the rounding of float32 entries: these can't improve it
        tol = self.goal_tol if certificate.violation < self.limits.tol else self.limits.tol
        if is_comparable_with_rounding(certificate.violation, self.decision_error(point.beta), tol):
            return False
        if not self._go_on(point.beta, certificate):
            return False
        return not state.stall_test.observe(self.terms, point.beta, point.decision, certificate.violation)

    def _goal_tol(self, certificate: Certificate) -> float:
        """The violation to go on to from a point with this certificate: `tol`, or what too large a gap needs."""
        largest = min(self.limits.tol, SINGLE_SET_TOL) if len(self.violations) <= WORKING_SET_ROWS else self.limits.tol
        needed = float(self.limits.next_tol(np.inf, certificate))
        return min(largest, max(needed, ROUND_TOL * float(certificate.violation)))

    def take(self, state: State, point: Point) -> None:
        """Certify a round's point: the dual objective decreases in each but for rounding, the primal one need not."""
        last, state.point = (state.point, state.certificate), point
        state.certificate, state.scale = self._certify(point)
        change = point.decision - last[0].decision + (state.certificate.intercept - last[1].intercept)
        self.last_change = float(np.quantile(np.abs(change), _CHANGE_QUANTILE))
        is_better = state.certificate.primal_objective <= state.best[1].primal_objective
        if state.returns_last or self.limits.are_met(state.certificate) or is_better:
            state.best = point, state.certificate, state.scale

    def end(self, state: State) -> DualResult:
        """The point of least primal objective, or a later one that has converged; or the last one."""
        if state.best[0] is not state.point and self.unfinished is None:
            self.unfinished = self._result(state.point, state.certificate, state.scale)
        return self._result(*state.best)

    def _certify(self, point: Point) -> tuple[Certificate, float]:
        """The certificate of the point, a row of the history, and the machine's scale; sets `violations`."""
        certificate, scale = scaled(self.terms, *point, self._find_certificate(point), self.limits)
        self.history.record_point(self.progress.elapsed, point.beta, certificate)
        return certificate, scale

    def _find_certificate(self, point: Point) -> Certificate:
        has_intercept, tol = self.problem.has_intercept, self.limits.intercept_tol
        return certify(*(self.terms, *point, self.violations), has_intercept=has_intercept, tol=tol)

    def _observable_tol(self, point: Point) -> float:
        """`goal_tol` less a multiple of the decision error: a computed violation below it is truly below `goal_tol`."""
        return self.goal_tol - min(_TOL_MARGIN * self.decision_error(point.beta), _MAX_TOL_MARGIN * self.goal_tol)

    def decision_error(self, beta: Vector) -> float:
        """Standard deviation sigma |beta - beta_0| of a decision value's error, for an entry error sigma.

        The decision values of beta_0, `float64_beta`, have no errors.
        """
        return self.entry_error * float(np.linalg.norm(beta - self.float64_beta))

    def gap_error(self, beta: Vector) -> float:
        """What decision errors change the gap by, about: those of free coordinates, times half their boxes."""
        boxes = (self.terms.hi - self.terms.lo)[is_free(self.terms, beta)]
        return 0.5 * _MEAN_ERROR * self.decision_error(beta) * float(boxes.sum())

    def _go_on(self, beta: Vector, certificate: Certificate) -> bool:
        if self.go_on is not None:
            return self.go_on(beta, certificate)
        self.progress.current_solution = beta, certificate.intercept
        return self.progress.go_on(
            violation=certificate.violation,
            tol=self.goal_tol,
            objective=certificate.primal_objective,
            n_support=float(np.count_nonzero(beta)),
            round=float(len(self.history)),
        )

    def _rows_left_by_shrinking(self, point: Point, certificate: Certificate) -> RowIndices | None:
        """Rows that shrinking leaves: free ones, violators, and those nearer to the margin than `last_change`.

        The rows of the active matrix, whose entries are known, are added unless they are too many. None if the rows
        left are too many, or too few, or if the free ones do not fit in an active set.
        """
        free = is_free(self.terms, point.beta)
        if np.count_nonzero(free) > self.max_active:
            return None
        is_left = kink_distances(self.terms, point.decision, certificate.intercept) < self.last_change
        is_left |= free | (self.violations != 0.0)
        is_left_or_active = is_left.copy()
        is_left_or_active[self.active_matrix.rows] = True
        for mask in (is_left_or_active, is_left):
            if WORKING_SET_ROWS < np.count_nonzero(mask) <= _UNSHRUNK_SHARE * len(mask):
                return np.flatnonzero(mask)
        return None

    def _solve_shrunk(self, point: Point, certificate: Certificate, rows: RowIndices) -> Part:
        """Solve the shrunk problem, of these rows, by rounds of its own, all other coordinates fixed.

        The decision values of the other rows are computed once, afterwards, and show whether one of them violates.
        """

        def go_on(beta: Vector, inner: Certificate) -> bool:
            whole = point.beta.copy()
            whole[rows] = beta
            return self._go_on(whole, certificate._replace(intercept=inner.intercept, violation=inner.violation))

        samples = SampleSubset(self.operator.samples, rows)
        operator = KernelOperator(self.operator.kernel, samples, self.operator.team)
        self.active_matrix.renumber(operator, positions(rows, len(point.beta)))
        max_iter = self.limits.max_sets - self.n_iter
        part = DualSolver(
            operator,
            self.problem.take(rows),
            Limits(self._observable_tol(point), max_relative_gap=np.inf, max_iter=max_iter),
            active_matrix=self.active_matrix,
            progress=self.progress,
            go_on=go_on,
        )
        result = part.solve_part(point.beta[rows], point.decision[rows])
        self.active_matrix.renumber(self.operator, rows)
        self.n_iter += result.n_iter
        return Part(rows, result.beta, result.decision)

    def _solve_active(self, point: Point, certificate: Certificate) -> Part:
        """Solve on an active set: on its kernel matrix or, of a local kernel, with entries computed from its rows."""
        wanted, tol = self.choose_active(point, certificate.intercept), self.round_tol(point, certificate)
        if self.is_without_matrix(len(wanted)):
            part = point.take(wanted[local_order(self.operator.samples.take(wanted))])
            self._solve_sets(None, part, tol)
            return part
        with self.progress.interrupting(self.operator.team.native):
            self.active_matrix.update(wanted)
        part = point.take(self.active_matrix.rows)
        self._solve_sets(self.active_matrix.K, part, tol)
        return part

    def round_tol(self, point: Point, certificate: Certificate) -> float:
        """The violation to which a round solves an active set."""
        return max(self._observable_tol(point), ROUND_TOL * float(certificate.violation))

    def choose_active(self, point: Point, intercept: float) -> RowIndices:
        """Free coordinates, the largest violators, and satisfied coordinates near their margin, as far as they fit."""
        n, magnitude = len(point.beta), np.abs(self.violations)
        is_active = is_free(self.terms, point.beta)
        violates = (magnitude > _LEAST_VIOLATION * magnitude.max()) & ~is_active
        if point.is_zero:
            most = min(_NEW_VIOLATORS_FROM_ZERO, max(WORKING_SET_ROWS, int(_FIRST_ROUND_SHARE * n)))
        else:
            expected = int(_NEW_SHARE * np.sqrt(np.count_nonzero(point.beta) * n))
            most = int(np.clip(expected, WORKING_SET_ROWS, _NEW_VIOLATORS))
        if self.problem.has_intercept:  # sum(beta) is fixed: half of them to increase, half to decrease
            sides = [np.flatnonzero(violates & (sign * self.violations > 0)) for sign in (1, -1)]
            new = np.concatenate([_largest(magnitude, side, most // 2) for side in sides])
        else:
            new = _largest(magnitude, np.flatnonzero(violates), most)
        is_active[new] = True
        active = self._cut_to_memory(np.flatnonzero(is_active))
        if point.is_zero:
            return active
        # satisfied coordinates near their margin, which the round may turn into violators
        margin_distance = kink_distances(self.terms, point.decision, intercept)
        near = margin_distance < magnitude.max()
        near[active] = False
        n_near = min(int(np.clip(len(new), *_NEAR_MARGIN)), self.max_active - len(active))
        is_active = np.zeros(n, bool)
        is_active[active] = is_active[_largest(-margin_distance, np.flatnonzero(near), n_near)] = True
        return np.flatnonzero(is_active)

    @property
    def max_active(self) -> int:
        """Rows of an active set, at most: those of the active matrix, or copies of rows that have room in its place."""
        capacity = self.active_matrix.capacity
        if not self.is_local:
            return capacity
        return max(capacity, min(len(self.operator), self.active_matrix.n_bytes // self._copied_bytes(1)))

    def _copied_bytes(self, n: int) -> int:
        return 4 * n * dense_row_bytes(self.operator.samples)  # so many copies at one time

    def is_without_matrix(self, n: int) -> bool:
        """Whether an active set of n rows has no kernel matrix: that of a local kernel, but for few rows."""
        return self.is_local and n > min(LEAST_ROWS, self.active_matrix.capacity)

    @cached_property
    def is_local(self) -> bool:
        """Whether sums of kernel rows are computed from the samples: fast where most entries are left out."""
        return self.far < np.inf and self.entry_rows(np.arange(1), self.far) is not None

    def _cut_to_memory(self, active: RowIndices) -> RowIndices:
        """As many rows as fit: the newer half of the last active set, and the largest violators of the others."""
        if len(active) <= self.max_active:
            was_active = np.isin(active, self.last_active)
            self.last_active = np.concatenate([active[was_active], active[~was_active]])  # newest last
            return active
        kept = self.last_active[-(self.max_active // 2) :]
        others, room = np.setdiff1d(active, kept), self.max_active - len(kept)
        magnitude = np.abs(self.violations)
        if self.problem.has_intercept:  # half of the room is for those that should increase
            increasing, decreasing = (others[sign * self.violations[others] > 0] for sign in (1, -1))
            first = _largest(magnitude, increasing, room // 2)
            others, kept, room = decreasing, np.concatenate([kept, first]), room - len(first)
        self.last_active = np.concatenate([kept, _largest(magnitude, others, room)])
        return self.last_active

    def entry_rows(self, rows: RowIndices, limit: float) -> EntryRows | None:
        """Rows that entries are computed from; those within `limit` are kept in the memory of the active matrix."""
        if self.terms.curvature is not None:  # tiles of computed entries are not scaled to a unit diagonal
            return None
        samples = self.operator.samples
        memory = self.active_matrix.unused
        memory = memory[: max(0, len(memory) - self._copied_bytes(len(rows)))]
        return self.operator.kernel.entry_rows(samples, rows, limit, memory)

    def _solve_sets(self, K: Array | None, part: Part, tol: float) -> None:
        """`solve_sets` with the entries of the part's rows."""
        entry_rows = self.entry_rows(part.rows, self.far if K is None else np.inf)
        self.solve_sets(K, entry_rows, part, tol, self.operator.team)

    def solve_sets(
        self, K: Array | None, entry_rows: EntryRows | None, part: Part, tol: float, team: ThreadTeam
    ) -> None:
        """`WorkingSetSolver.solve` of the part, in place: on its kernel matrix K, or with None from its rows."""
        terms, has_intercept = restrict_terms(self.terms, part.rows), self.problem.has_intercept
        solver = WorkingSetSolver(
            K, terms, team, has_intercept=has_intercept, progress=self.progress, entry_rows=entry_rows
        )
        solver.solve(part.beta, part.decision, tol, self.limits.max_sets - self.n_iter)
        self.n_iter += solver.n_iter

    def _update(self, point: Point, part: Part, changed: RowIndices) -> Point | None:
        """The point with the solution of a part, which changed its coordinates `changed`; None if stopped.

        A start from zero that is stopped gives a point on some of the support vectors.
        """
        new = point.with_part(part)
        rows = part.rows[changed]
        change = new.beta[rows] - point.beta[rows]
        unknown = np.delete(np.arange(len(new.beta)), part.rows)
        try:
            self._add_product(rows, change, new.decision, unknown)
        except Stopped:
            self.unfinished = uncertified_result(new.beta, self.progress.elapsed)
            return self._start_on_subset(new.beta) if point.is_zero else None
        check_finite(new.decision)
        return new

    def decision_values(self, beta: Vector, known: tuple[RowIndices, Vector] | None = None) -> Vector:
        """K beta (n,), of which some are known: coordinates, and their values (m,).

        Raises `Stopped` if the fit is stopped meanwhile, unless the product takes a fraction of a second.
        """
        decision, columns, rows = np.zeros(len(beta)), None, np.flatnonzero(beta)
        if known is not None:
            decision[known[0]], columns = known[1], np.delete(np.arange(len(beta)), known[0])
        if len(rows) and (columns is None or len(columns)):  # else all rows would be gathered for nothing
            self._add_product(rows, beta[rows], decision, columns)
        return decision

    def _add_product(self, rows: RowIndices, coef: Vector, f: Vector, columns: RowIndices | None) -> None:
        """f[columns] += coef @ K[rows, columns], block by block; raise `Stopped`, also in a block, in a stopped fit.

        Products that take a fraction of a second in all are never stopped.
        """
        n_checks = self._n_checks(rows)
        if n_checks == 0:
            return self.operator.add_product(rows, coef, f, columns)
        n_blocks = min(n_checks, len(rows) // _BLOCK_ROWS) + 1
        with self.progress.interrupting(self.operator.team.native):
            for k in range(n_blocks):
                raise_if_stopped(self.progress.go_on)
                self.operator.add_product(rows[k::n_blocks], coef[k::n_blocks], f, columns)

    def _n_checks(self, rows: RowIndices) -> int:
        """Number of clock checks during a product of these rows of K."""
        return int(entry_work(len(rows) * len(self.operator), self.operator.samples.row_cost) / WORK_PER_CHECK)

    def _start_on_subset(self, beta: Vector) -> Point:
        """beta on as many support vectors as take a fraction of a second, or 0 if its primal objective is smaller."""
        few, decision = np.zeros((2, len(beta)))
        zero = Point(few.copy(), decision.copy())
        rows = np.flatnonzero(beta)
        rows = rows[:: self._n_checks(rows) + 1]
        few[rows] = beta[rows]
        if self.problem.has_intercept:
            few = self.problem.nearby_point(few)
        self.operator.add_product(rows, few[rows], decision)
        return min(zero, Point(few, decision), key=lambda point: self._find_certificate(point).primal_objective)

    def _result(self, point: Point, certificate: Certificate, scale: float) -> DualResult:
        converged = self.limits.are_met(certificate)
        return DualResult(point.beta, point.decision, *certificate, converged, self.n_iter, self.history, scale)


def _largest(values: Vector, rows: RowIndices, k: int) -> RowIndices:
    """The k of `rows` with the largest `values`, in ascending order; ties are broken by a fixed random permutation."""
    if len(rows) <= k:
        return rows
    rows = np.random.default_rng(0).permutation(rows)
    return np.sort(rows[np.argpartition(-values[rows], k)[:k]])
