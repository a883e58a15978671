"""One block of the variables of a dual problem that several workers solve together.

    min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]

A worker has the rows of its block, and of the whole problem only what it has been sent. With K_pp the kernel matrix of
the block's rows, f = K beta the decision values of all rows and f_p those of the block's,

    min_d  1/2 d'K_pp d + (f_p - t_p)'d + eps |beta_p + d|_1   s.t.  lo <= beta_p + d <= hi   [and sum(d) = 0]

is the whole problem with all other variables fixed: that of `DualSolver` for the target t_p - (f_p - K_pp beta_p).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._progress import Progress
from ..._threads import ThreadTeam, blas_limit, row_blocks
from ..._types import RowIndices, Vector
from ...data import LostBlockError
from ...data.remote.remote_rows import stack_rows
from ...data.samples import Samples, converted, make_samples, view_samples
from ...kernels.boxed_rows import add_local_product
from ...kernels.functions import Kernel
from ...kernels.kernel_operator import KernelOperator
from ...kernels.precision import entry_error
from ..results import DualResult
from .certificate import Limits
from .memory import active_bytes
from .problem import (
    DualProblem,
    is_free,
    join_problems,
    kink_distances,
    make_terms,
    one_sided_derivatives,
    penalty,
    smooth_gradient,
    total_loss,
    without_rounding,
)
from .solver import DualSolver
from .stopping import is_uncertain

_DOUBLE = np.dtype(np.float64)

Start = Callable[[Kernel, Samples, DualProblem, Progress], Vector]


def start_at_zero(kernel: Kernel, samples: Samples, problem: DualProblem, progress: Progress) -> Vector:
    """The start (m,) of a block without levels: zero."""
    return np.zeros(len(samples))


class BlockSettings(NamedTuple):
    """Settings of the solves on one worker.

    Memory in bytes, threads of the worker, a function that tells whether the fit was stopped, one that returns a
    feasible point near the solution of a block alone, and the dtypes of inner products and tiles (default: the rows').
    """

    n_bytes: int
    n_jobs: int | None
    should_end: Callable[[], bool] = lambda: False
    start: Start = start_at_zero
    dtypes: tuple[np.dtype[Any], np.dtype[Any]] | None = None


class WeightedRows(NamedTuple):
    """Rows (m, d), and their coefficients or changes of these (m,)."""

    rows: Any
    coef: Vector

    @property
    def nbytes(self) -> int:
        """Bytes to send."""
        parts = (self.rows.data, self.rows.indices, self.rows.indptr) if hasattr(self.rows, "indptr") else (self.rows,)
        return int(self.coef.nbytes + sum(part.nbytes for part in parts))


class Candidates(NamedTuple):
    """Rows of a block for a joint problem with their coefficients, decision values (m,) and constraints.

    Without decision values all coefficients of the block are zero.
    """

    weighted: WeightedRows
    decision: Vector | None
    problem: DualProblem


class ProposalSize(NamedTuple):
    """The bytes that a proposal sends, and its working sets."""

    changed_bytes: int  # of the changed rows, which all other blocks get
    candidate_bytes: int  # of the block's rows in a joint problem, which one worker gets
    n_iter: int


class JointSolution(NamedTuple):
    """The solution of a joint problem: for each block its candidates' coefficients, and the rows where these change."""

    beta: list[Vector]
    changes: list[WeightedRows]
    n_iter: int


class StepObjective(NamedTuple):
    """An upper bound of the change of the dual objective along a step d: 1/2 curvature s^2 + slope s, 0 <= s <= 1.

    The convex term eps |beta + s d|_1 is replaced by its chord.
    """

    slope: float
    curvature: float


class CertificateSums(NamedTuple):
    """A block's share in the certificate: extremes of the derivatives, and sums over its variables."""

    min_right_derivative: float  # of the variables that can increase
    max_left_derivative: float  # of those that can decrease
    target_beta: float  # sum of t beta
    beta_decision: float  # sum of beta K beta
    norm: float  # eps |beta|_1 + 1/2 beta'D beta
    total: float  # sum of beta
    free_residual_sum: float  # sum of t - (K + D) beta -+ eps of the free variables: of their optimal intercepts
    n_free: int
    n_support: int


class RoundState(NamedTuple):
    """What a certificate depends on beside the blocks' sums.

    `midpoint` is the latest one of the optimality bounds, `needed_tol` the tolerance at which rounds end, and
    `round_share` the violation that a round solves to / that before it.
    """

    has_intercept: bool
    tol: float
    midpoint: float
    needed_tol: float
    round_share: float

    def violation_and_intercepts(self, sums: Sequence[CertificateSums]) -> tuple[float, Vector, float]:
        """The KKT violation, intercepts (q,) to try, and the midpoint of the intercept's optimality bounds.

        The bounds are -left and -right, for the largest left and the least right derivative: where variables can
        increase and decrease, the minimiser of the primal objective is between them.
        """
        right, left = min(part.min_right_derivative for part in sums), max(part.max_left_derivative for part in sums)
        if not self.has_intercept:
            return max(-right, left, 0.0), np.zeros(1), self.midpoint
        if not np.isfinite(right + left):
            bound = -right if np.isfinite(right) else -left if np.isfinite(left) else 0.0
            return 0.0, np.array([bound]), self.midpoint
        violation, midpoint = max(left - right, 0.0), -0.5 * (right + left)
        if violation >= self.tol:
            # the one with the least primal objective is taken
            return violation, np.linspace(-left, -right, 17), midpoint
        n_free = sum(part.n_free for part in sums)
        mean = sum(part.free_residual_sum for part in sums) / n_free if n_free else midpoint
        return violation, np.array([mean]), midpoint

    def round_tol(self, violation: float) -> float:
        """The tolerance of a round that begins with this violation."""
        return max(0.5 * self.needed_tol, self.round_share * violation)


class BlockReport(NamedTuple):
    """The result of a step on one block."""

    changed: RowIndices  # coefficients that the step has changed,
    beta: Vector  # and their values
    losses: Vector  # the block's losses with each intercept of `RoundState.violation_and_intercepts`
    n_active: int  # free variables and violators
    size: ProposalSize  # of the step's proposal
    entry_error: float


class Block:
    """A block of m variables, on the worker that has their rows.

    Parameters
    ----------
    number : int
        Among the blocks of the problem.
    X : ndarray or CSR array of shape (m, d)
    kernel : Kernel
    problem : DualProblem of m coordinates
    settings : BlockSettings

    Attributes
    ----------
    beta, decision, own_decision : ndarray of shape (m,), float64
        Coefficients; decision values K beta of all coefficients of the problem; and K_pp beta_p, of this block's alone.
    is_corrected : ndarray of shape (m,), bool
        Rows whose decision values were computed in float64, with later steps added.
    version : int or None
        0 at beta = 0, where a block begins; then one more with every step or start. None while it is restored.
    attempt : int
        How often blocks were lost and the others brought back since the fit began.

    Notes
    -----
    A step: `improve`, or `candidates`, `solve_jointly` and `propose_jointly`; `add_changes` of all blocks; `step`.
    If a block is lost, the others go back to the latest version by `rewind_to`, with which the next attempt begins.
    The lost one is made anew, at version 0, and gets there by `begin_restore` and `restore`, from all support vectors.
    """

    def __init__(self, number: int, X: Any, kernel: Kernel, problem: DualProblem, settings: BlockSettings) -> None:
        self.number = number
        self.kernel = kernel
        self.problem = problem
        self.settings = settings
        self.beta, self.own_decision, self.decision = np.zeros((3, X.shape[0]))
        self.version: int | None = 0
        self.attempt = 0
        self.next_version: int | None = None  # the version that it is being restored to
        self.step_blocks: set[int] = set()  # blocks whose changes are in `decision_step`
        self.restored_blocks: set[int] = set()  # blocks whose contributions are in `decision`, while it is restored
        self.corrected_blocks: set[int] = set()  # blocks whose contributions are in `corrected`
        self.proposal: Vector | None = None  # beta (m,) after the whole step that is proposed,
        self.own_step = self.decision_step = np.zeros(0)  # and the changes of `own_decision` and `decision` by it
        self.start: Vector | None = None  # beta (m,) from which the block's first problem is solved
        self.chosen = np.zeros(0, np.intp)  # the block's candidates in a joint problem
        self.size = ProposalSize(0, 0, 0)  # of the latest proposal
        self.changed = np.zeros(0, np.intp)  # coefficients that the latest step has changed
        self.previous: tuple[Vector, Vector, Vector] | None = None  # beta, own_decision and decision before that step
        self.is_corrected = np.zeros(X.shape[0], np.bool_)
        self.uncertain, self.corrected = np.zeros(0, np.intp), np.zeros(0)  # rows, and their float64 decision values
        self.X = X
        samples = view_samples(X, kernel.sample_form)
        self._set_samples(converted(samples, *(settings.dtypes or (samples.precision, samples.dtype))))

    def _set_samples(self, samples: Samples) -> None:
        self.samples = samples
        self.terms = make_terms(self.problem, np.asarray(self.kernel.diagonal(self.samples), np.float64))
        self.entry_error = entry_error(self.kernel, self.samples)

    def use_float64(self) -> None:
        """Compute float64 kernel entries from now on; the block's decision values must be restored."""
        self._set_samples(converted(self.samples, _DOUBLE, _DOUBLE))
        self.version = None

    def begin_correction(self, error: float, intercept: float) -> int:
        """Begin to correct decision values that rounding errors can affect (`is_uncertain`); how many are new."""
        mask = is_uncertain(self.problem, self.beta, self.decision, intercept, error)
        n_new = int(np.count_nonzero(mask & ~self.is_corrected))
        self.uncertain = np.flatnonzero(mask | self.is_corrected)
        self.corrected, self.corrected_blocks = np.zeros(len(self.uncertain)), set()
        return n_new

    def correct(self, numbers: Sequence[int], support: Sequence[WeightedRows], n_blocks: int) -> None:
        """Add some blocks' contributions to the corrected values, in float64; once all are added, take these over."""
        for part in row_blocks(len(self.uncertain)):
            samples = self.samples.take(self.uncertain[part]).astype(_DOUBLE, _DOUBLE)
            for number, changes in zip(numbers, support, strict=True):
                if number not in self.corrected_blocks:
                    self.corrected[part] += self._product(changes, samples)
        self.corrected_blocks.update(numbers)
        if len(self.corrected_blocks) == n_blocks:
            self.decision = self.decision.copy()
            self.decision[self.uncertain], self.is_corrected[self.uncertain] = self.corrected, True

    # ------------------------------------------------------------------------------------------ version and restoring

    def rewind_to(self, version: int, attempt: int) -> bool:
        """Undo the latest step if the block is one version ahead; return whether it is at `version` then.

        Tasks of earlier attempts, which may still be under way, have no effect any more.
        """
        self.attempt = attempt
        if self.version == version + 1 and self.previous is not None:
            (self.beta, self.own_decision, self.decision), self.previous, self.version = self.previous, None, version
        self.proposal = None
        return self.version == version

    def begin_restore(self, beta: Vector, version: int) -> None:
        """Begin to restore the block to beta (m,), of this version, with the decision values of its own rows alone."""
        self.beta, self.previous, self.proposal = beta.copy(), None, None
        self.own_decision = self._product(self._changes(beta))
        self.decision, self.restored_blocks = self.own_decision.copy(), {self.number}
        self.version, self.next_version, self.is_corrected[:] = None, version, False

    def support(self, version: int) -> WeightedRows:
        """The support vectors and their coefficients, of a block at this version or to be restored to it."""
        if version not in (self.version, self.next_version):
            raise LostBlockError(f"block {self.number} is not at version {version}")
        return self._changes(self.beta)

    def support_bytes(self, version: int) -> int:
        """Bytes of the support vectors."""
        return self.support(version).nbytes

    def restore(self, version: int, numbers: Sequence[int], support: Sequence[WeightedRows], n_blocks: int) -> None:
        """Add some blocks' contributions to the decision values; once all are added, the block is restored."""
        if self.next_version != version:
            raise LostBlockError(f"block {self.number} is not being restored to version {version}")
        for product in self._products(self.restored_blocks, numbers, support):
            self.decision += product
        if len(self.restored_blocks) == n_blocks:
            self.version, self.next_version = version, None

    # --------------------------------------------------------------------------------------------------------- a step

    def choose_start(self, max_time: float | None) -> int:
        """Find the point from which the block's first problem is solved; return the number of its support vectors.

        A repeated call, after another block was lost, finds nothing new.
        """
        if self.start is None:
            with self._progress(max_time) as progress:
                self.start = self.settings.start(self.kernel, self.samples, self.problem, progress)
        return int(np.count_nonzero(self.start))

    def start_candidates(self) -> Candidates:
        """The support vectors of the point that `choose_start` has found."""
        if self.start is None:
            raise LostBlockError(f"block {self.number} has no start")
        self.chosen = np.flatnonzero(self.start)
        return Candidates(self._changes(self.start), None, self.problem.take(self.chosen))

    def improve(self, tol: float, max_time: float | None) -> ProposalSize:
        """Solve the block's problem to `tol`, all other variables fixed, and propose the solution."""
        problem = self.problem._replace(target=self.problem.target - (self.decision - self.own_decision))
        if self.version == 0 and self.start is not None:
            result = self._solve(self.samples, problem, self.start, None, tol, max_time)
        else:
            result = self._solve(self.samples, problem, self.beta, self.own_decision, tol, max_time)
        self._propose(result.beta, result.decision - self.own_decision)
        self.size = ProposalSize(self.changes().nbytes, 0, result.n_iter)
        return self.size

    def candidates(self, intercept: float, max_distance: float, k: int) -> Candidates:
        """At most k rows for a joint problem: violators and free variables, then the rows nearest to a loss's kink.

        Violations are those with this intercept; `max_distance` is the largest distance of the other rows from a kink.
        """
        violations, is_active = self._kkt_violations(intercept)
        priority = np.where(is_active, violations, -kink_distances(self.problem, self.decision, intercept))
        rows = np.flatnonzero(priority > -max_distance)
        if len(rows) > k:
            rows = np.sort(rows[np.argpartition(-priority[rows], k)[:k]])
        self.chosen = rows
        return Candidates(WeightedRows(self.X[rows], self.beta[rows]), self.decision[rows], self.problem.take(rows))

    def solve_jointly(self, parts: Sequence[Candidates], tol: float, max_time: float | None) -> JointSolution:
        """Solve the problem of the candidates of all blocks, all other variables fixed."""
        rows = stack_rows([part.weighted.rows for part in parts])
        beta = np.concatenate([part.weighted.coef for part in parts])
        known = [part.decision for part in parts if part.decision is not None]
        samples = make_samples(rows, self.kernel.sample_form)
        samples = converted(samples, self.samples.precision, self.samples.dtype)
        problem = join_problems([part.problem for part in parts])
        result = self._solve(samples, problem, beta, np.concatenate(known) if known else None, tol, max_time)
        cuts = np.cumsum([len(part.weighted.coef) for part in parts])[:-1]
        new_beta, changes = np.split(result.beta, cuts), []
        for part, new in zip(parts, new_beta, strict=True):
            before = 0.0 if part.decision is None else part.weighted.coef
            changes.append(nonzero_rows(part.weighted.rows, new - before))
        return JointSolution(new_beta, changes, result.n_iter)

    def propose_jointly(self, joint: JointSolution) -> StepObjective:
        """Propose the solution of a joint problem for this block's candidates; then `add_changes` of all blocks."""
        proposal, new_beta = self.beta.copy(), joint.beta[self.number]
        if len(new_beta) != len(self.chosen):
            raise LostBlockError(f"block {self.number} has other candidates")
        proposal[self.chosen] = new_beta
        own = joint.changes[self.number]
        self._propose(proposal, self._product(own))
        n_iter = joint.n_iter if self.number == 0 else 0  # counted once
        self.size = ProposalSize(own.nbytes, WeightedRows(self.X[self.chosen], new_beta).nbytes, n_iter)
        return self.add_changes(range(len(joint.changes)), joint.changes)

    def changes(self) -> WeightedRows:
        """The rows that the proposal changes."""
        return self._changes(self._step())

    def add_changes(self, numbers: Sequence[int], changes: Sequence[WeightedRows]) -> StepObjective:
        """Add the changes of decision values by other blocks' proposals; the dual objective along all steps so far."""
        step = self._step()
        for product in self._products(self.step_blocks, numbers, changes):
            self.decision_step += product
        norm = self.problem.epsilon * float(np.abs(self.beta + step).sum() - np.abs(self.beta).sum())
        slope = float(step @ smooth_gradient(self.problem, self.beta, self.decision)) + norm
        curve = 0.0 if self.problem.curvature is None else float(self.problem.curvature @ np.square(step))
        return StepObjective(slope, float(step @ self.decision_step) + curve)

    def step(self, steps: Sequence[StepObjective], version: int, n_blocks: int) -> CertificateSums:
        """Go along the sum of all proposals to the least dual objective, with the same length in all blocks; `sums`."""
        step, length = self._step(), step_length(steps)
        if len(self.step_blocks) != n_blocks:
            raise LostBlockError(f"block {self.number} has the changes of blocks {sorted(self.step_blocks)} alone")
        self.previous = self.beta, self.own_decision, self.decision
        if length == 1.0:
            self.beta = np.asarray(self.proposal)
        else:
            self.beta = np.clip(self.beta + length * step, self.problem.lo, self.problem.hi)  # against rounding
        self.own_decision = self.own_decision + length * self.own_step
        self.decision = self.decision + length * self.decision_step
        self.proposal, self.version, self.changed = None, version, np.flatnonzero(step)
        return self.sums()

    # -------------------------------------------------------------------------------------------------- the certificate

    def sums(self) -> CertificateSums:
        """The block's share in the certificate, without the terms that depend on the intercept."""
        grad, eps, beta = smooth_gradient(self.problem, self.beta, self.decision), self.problem.epsilon, self.beta
        settled = without_rounding(self.terms, beta, np.abs(beta).sum())
        free, support = is_free(self.terms, settled), beta != 0
        right, left = one_sided_derivatives(self.terms, settled, grad)
        return CertificateSums(
            min_right_derivative=float(np.min(right, initial=np.inf)),
            max_left_derivative=float(np.max(left, initial=-np.inf)),
            target_beta=float(self.problem.target @ beta),
            beta_decision=float(beta @ self.decision),
            norm=penalty(self.problem, beta),
            total=float(beta.sum()),
            free_residual_sum=float(np.sum(-grad[free] - eps * np.sign(beta[free]))),
            n_free=int(np.count_nonzero(free)),
            n_support=int(np.count_nonzero(support)),
        )

    def report(self, sums: Sequence[CertificateSums], state: RoundState) -> BlockReport:
        """What the latest step has changed, and the block's losses, times C, with each intercept to try.

        Variables that are free, or violate by more than the tolerance of the next round with the intercept at the
        midpoint, are active.
        """
        violation, intercepts, midpoint = state.violation_and_intercepts(sums)
        grad = self.decision - self.problem.target
        losses = [total_loss(self.terms, grad + b) for b in intercepts]
        violations, _ = self._kkt_violations(midpoint)
        is_active = is_free(self.terms, self.beta) | (violations > state.round_tol(violation))
        n_active = int(np.count_nonzero(is_active))
        return BlockReport(
            self.changed, self.beta[self.changed], np.array(losses), n_active, self.size, self.entry_error
        )

    def decision_values(self) -> Vector:
        """K beta (m,), of all coefficients of the problem."""
        return np.asarray(self.decision)

    # -------------------------------------------------------------------------------------------------------- its parts

    def _solve(
        self,
        samples: Samples,
        problem: DualProblem,
        beta: Vector,
        decision: Vector | None,
        tol: float,
        max_time: float | None,
    ) -> DualResult:
        """Solve a dual to `tol` from beta (m,), with its decision values (m,) where they are known."""
        with self._progress(max_time) as progress, blas_limit(1), ThreadTeam(self.settings.n_jobs) as team:
            solver = DualSolver(
                KernelOperator(self.kernel, samples, team),
                problem,
                Limits(tol, max_relative_gap=np.inf),
                active_bytes=active_bytes(samples, self.settings.n_bytes, team.n_threads),
                progress=progress,
                entry_error=self.entry_error,
            )
            if decision is None or (not beta.any() and not decision.any()):
                return solver.solve(beta)
            return solver.solve_part(beta, decision)  # the line search decides how far to go

    def _progress(self, max_time: float | None) -> Progress:
        return Progress(max_time=max_time, callback=lambda state: self.settings.should_end())

    def _propose(self, beta: Vector, own_step: Vector) -> None:
        self.proposal, self.own_step, self.decision_step = beta, own_step, own_step.copy()
        self.step_blocks = {self.number}

    def _step(self) -> Vector:
        if self.proposal is None:
            raise LostBlockError(f"block {self.number} has no proposal")
        return np.asarray(self.proposal - self.beta)

    def _changes(self, step: Vector) -> WeightedRows:
        return nonzero_rows(self.X, step)

    def _products(self, known: set[int], numbers: Sequence[int], changes: Sequence[WeightedRows]) -> Iterator[Vector]:
        """Yield the products with changes of blocks not in `known`, and add these to it: a task may be run twice."""
        for number, part in zip(numbers, changes, strict=True):
            if number not in known:
                yield self._product(part)
                known.add(number)

    def _product(self, changes: WeightedRows, samples: Samples | None = None) -> Vector:
        """K(samples, changed rows) @ changes (m,); `samples` are all rows of the block by default."""
        samples = self.samples if samples is None else samples
        out = np.zeros(len(samples))
        if len(changes.coef):
            own, others = samples.pair_with(changes.rows)
            with blas_limit(1), ThreadTeam(self.settings.n_jobs) as team:
                add_local_product(self.kernel, others, changes.coef[None], own, out[None], team)
        return out

    def _kkt_violations(self, intercept: float) -> tuple[Vector, NDArray[np.bool_]]:
        """Sizes (m,) of the KKT violations with this intercept, and whether variables violate or are free."""
        grad = smooth_gradient(self.problem, self.beta, self.decision) + intercept
        right, left = one_sided_derivatives(self.terms, self.beta, grad)
        violations = np.maximum(np.maximum(-right, left), 0.0)
        return violations, is_free(self.terms, self.beta) | (violations > 0.0)


def nonzero_rows(X: Any, step: Vector) -> WeightedRows:
    """The rows of X (m, d) where a step (m,) is not zero."""
    rows = np.flatnonzero(step)
    return WeightedRows(X[rows], step[rows])


def step_length(steps: Sequence[StepObjective]) -> float:
    """The length in [0, 1] of the step with the least dual objective, which is quadratic along it."""
    slope, curvature = (sum(column) for column in zip(*steps, strict=True))
    if slope >= 0.0:
        return 0.0
    return 1.0 if curvature <= -slope else -slope / curvature


def call_at(block: Block, version: int, attempt: int, method: Callable[..., Any], *args: Any) -> Any:
    """Call a method of a block that must be at this version and attempt. Raises LostBlockError where it is not."""
    if block.attempt != attempt:
        raise LostBlockError(f"block {block.number} is at attempt {block.attempt}, the others are at {attempt}")
    if block.version != version:
        raise LostBlockError(f"block {block.number} is at version {block.version}, the others are at {version}")
    with blas_limit(1):
        return method(block, *args)
