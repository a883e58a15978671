"""The dual of a kernel machine whose rows are on several workers: parallel block minimisation with joint rounds.

Solve    min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]
Given    the variables in P blocks, each on the worker that has its rows; a feasible start
Returns  `DualResult`: beta, K beta, the intercept, the violation, the primal objective and the duality gap
Method   A round: propose a step d; send the rows where d is not zero to all workers, which add their kernel rows to
         K beta; go along d to the minimum of the dual objective, quadratic there, which thus never rises.
         Block rounds: d is the sum of the steps of all blocks, each solved with the variables of the others fixed.
         Joint rounds: one worker solves the problem of rows near the margin in all blocks, other variables fixed.
         The first round from zero is a joint one of the support vectors that each block alone would have (refine), or a
         block round if these are too many. Then rounds are joint, and every other one a block round while more
         variables violate or are free than fit in a joint problem.
Why      Block rounds alone converge slowly at the end: a few free variables couple the blocks, and with an intercept
         the sum of a block's coefficients would never change. The joint problem has just these variables.
Cost     a round: n x (changed rows) kernel entries, shared by the workers, and the changed rows to each of them; the
         certificate is a sum over the workers, and three numbers a changed row come to the client
Source   C.-J. Hsieh, S. Si, I. S. Dhillon, Communication-Efficient Distributed Block Minimization for Nonlinear Kernel
         Machines, KDD 2017, for block rounds and the line search; the joint rounds are this library's
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._memory import DEFAULT_PLAN, MemoryPlan
from .._native import Stopped
from .._progress import AnyProgress
from .._types import ROUNDING, RowIndices, Vector
from ..data import LostBlockError
from ..data.remote.client import MAX_LOSSES
from ..solvers.dual.certificate import START_TOL, Limits
from ..solvers.dual.in_memory import result_at_start
from ..solvers.dual.problem import DualProblem
from ..solvers.dual.solver import ROUND_TOL
from ..solvers.dual.stopping import MAX_ERROR, decision_error, hides_violation
from ..solvers.dual.variable_block import Block, BlockReport, CertificateSums, RoundState, call_at
from ..solvers.results import NO_CERTIFICATE, Certificate, DualResult, History

Handles = list[Any]

_JOINT_ROWS = 2**14  # take at most so many in a joint problem, while other workers wait (docs/decisions/0020)
_JOINT_TOL = 1e-3  # solve it to this part of the violation before it: more digits cost less than a round
_FIRST_SHARE = 0.5  # use at most this part of the time that is left for each part of the first step's proposal
_MAX_IDLE = 4  # stop after so many rounds that change the dual objective by no more than this part: rounding


class Blocks(Protocol):
    """The blocks, each on a worker. The result of a function stays on its worker until it is fetched."""

    def __len__(self) -> int: ...

    def run(self, function: Callable[..., Any], *args: Any, only: Sequence[int] | None = None) -> Handles:
        """Start ``function(block, *args)`` on all blocks, or on some, and return handles; args may hold handles."""

    def fetch(self, handles: Handles) -> list[Any]:
        """What the functions have returned. Raises LostBlockError if a block or a result is lost, or `Stopped`."""


class RoundSettings(NamedTuple):
    """Limits of the solve; the memory of a worker beside its rows; the bytes of a row."""

    limits: Limits
    memory: MemoryPlan = DEFAULT_PLAN
    row_bytes: int = 400


class BlockMinimizer:
    """Solves one dual on blocks.

    Parameters
    ----------
    blocks : Blocks
        Of `solvers.dual.variable_block.Block`.
    problem : DualProblem of n coordinates
    index : list of ndarray of int
        The coordinates of each block.
    settings : RoundSettings
    progress : AnyProgress
    """

    def __init__(
        self,
        blocks: Blocks,
        problem: DualProblem,
        index: list[RowIndices],
        settings: RoundSettings,
        progress: AnyProgress,
    ) -> None:
        self.blocks = blocks
        self.problem = problem
        self.index = index
        self.settings = settings
        self.limits = settings.limits
        self.progress = progress
        self.history = History()
        self.n_iter = 0
        self.n_bytes = 0
        self.version = self.attempt = 0  # see `Block`
        self.beta = np.zeros(len(problem.target))
        self.best = self.beta, NO_CERTIFICATE  # the coefficients of least primal objective so far
        self.needed_tol = self.limits.tol
        self.last_was_joint = True  # whether the latest round was
        self.n_active = 0  # variables that violate or are free
        self.midpoint = 0.0  # of the optimality bounds of the intercept
        self.entry_error = 0.0  # root mean square error of a kernel entry
        self.float64_beta: Vector | float = 0.0  # the beta of the latest decision values computed in float64
        self.is_float64 = False
        room = settings.memory["joint rows"] // settings.row_bytes
        self.joint_rows = max(len(blocks), min(_JOINT_ROWS, room))

    def solve(self, beta: Vector) -> DualResult:
        """Solve from the feasible point beta (n,) until the tolerance or a stop.

        Stopped before the decision values of the start are known, it returns the `result_at_start`.

        Raises
        ------
        LostBlockError
            If blocks are lost again and again.
        """
        self.beta = beta.copy()
        self.version = int(beta.any())
        decision = None
        try:
            if self.version:
                self._attempt(self._restore)
            self.best = self.beta, self._attempt(self._find_certificate)
            self._rounds()
            self._correct_in_float64()
            if self.limits.are_met(self.best[1]):  # the decision values of other machines are not used
                decision = self._decision_values()
        except Stopped:
            self.progress.go_on()  # sets `stopped_by`
        if self.best[1] is NO_CERTIFICATE:
            return result_at_start(self.problem, beta, self.progress.elapsed)
        known = np.zeros(len(beta)) if decision is None else decision
        beta, certificate = self.best
        return DualResult(beta, known, *certificate, decision is not None, self.n_iter, self.history)

    # ---------------------------------------------------------------------------------------------------------- rounds

    def _rounds(self) -> None:
        certificate, n_idle, self.needed_tol = self.best[1], 0, self.limits.tol
        while not self._is_done(certificate) and self._report(certificate):
            self.needed_tol = self.limits.next_tol(self.needed_tol, certificate)
            before = certificate.lower_bound
            certificate = self._attempt(lambda: self._round(certificate))  # noqa: B023 - called at once
            # the dual objective decreases in every round, the primal one need not: a stop returns the least
            is_better = certificate.primal_objective <= self.best[1].primal_objective
            if certificate.violation < self.limits.tol or is_better:
                self.best = self.beta, certificate
            gain = certificate.lower_bound - before
            n_idle = 0 if gain > ROUNDING * abs(before) else n_idle + 1
            if n_idle == _MAX_IDLE:
                break

    def _is_done(self, certificate: Certificate) -> bool:
        return self.n_iter >= self.limits.max_sets or self.limits.are_met(certificate)

    def _report(self, certificate: Certificate) -> bool:
        self.progress.current_solution = self.beta, certificate.intercept
        return self.progress.go_on(
            violation=certificate.violation,
            tol=self.needed_tol,
            objective=certificate.primal_objective,
            gap=certificate.gap,
            n_support=float(np.count_nonzero(self.beta)),
            round=float(len(self.history)),
        )

    def _round(self, certificate: Certificate) -> Certificate:
        """Propose, exchange, step and certify. Tasks whose arguments are handles are submitted without a wait."""
        is_joint = self.version > 0 and not (self.last_was_joint and self.n_active > self.joint_rows)
        if not self.version:
            steps = self._propose_start()
        else:
            steps = self._propose_jointly(certificate) if is_joint else self._propose_by_blocks(certificate)
        version = self.version + 1
        certificate = self._finish_step(version, self._run(Block.step, steps, version, len(self.blocks)))
        self.last_was_joint = is_joint
        return certificate

    def _propose_start(self) -> Handles:
        """From beta = 0: a joint problem of the support vectors of the blocks' levels, or the blocks' own problems."""
        n_support = self._fetch(Block.choose_start, self._time_left())
        if not 0 < sum(n_support) <= self.joint_rows:
            return self._improve(START_TOL)
        return self._solve_jointly(self._run(Block.start_candidates), START_TOL)

    def _propose_by_blocks(self, certificate: Certificate) -> Handles:
        return self._improve(self._state.round_tol(certificate.violation) if self.version > 1 else START_TOL)

    def _improve(self, tol: float) -> Handles:
        """Solve all blocks, and send the changed rows to all, group by group: handles of `StepObjective`."""
        groups = self._groups([size.changed_bytes for size in self._fetch(Block.improve, tol, self._time_left())])
        changes = self._run(Block.changes)
        for group in groups[:-1]:
            self._fetch(Block.add_changes, group, [changes[p] for p in group])
        return self._run(Block.add_changes, groups[-1], [changes[p] for p in groups[-1]])

    def _propose_jointly(self, certificate: Certificate) -> Handles:
        share = self.joint_rows // len(self.blocks)
        tol = max(0.5 * self.needed_tol, _JOINT_TOL * certificate.violation)
        return self._solve_jointly(self._run(Block.candidates, self.midpoint, certificate.violation, share), tol)

    def _solve_jointly(self, candidates: Handles, tol: float) -> Handles:
        """Solve a joint problem on one worker, which sends all changed rows: handles of `StepObjective`."""
        (joint,) = self._run(Block.solve_jointly, candidates, tol, self._time_left(), only=[0])
        return self._run(Block.propose_jointly, joint)

    def _groups(self, sizes: list[int]) -> list[list[int]]:
        """Blocks whose changes a worker holds at a time: as many as its memory has room for, at least one."""
        groups: list[list[int]] = []
        room = 0
        for p in range(len(sizes)):
            if not groups or sizes[p] > room:
                groups.append([])
                room = self.settings.memory["changed rows"]
            groups[-1].append(p)
            room -= sizes[p]
        return groups

    # -------------------------------------------------------------------------------------------------- the certificate

    @property
    def _state(self) -> RoundState:
        return RoundState(self.problem.has_intercept, self.limits.tol, self.midpoint, self.needed_tol, ROUND_TOL)

    def _find_certificate(self) -> Certificate:
        """The certificate at the latest version."""
        return self._join_certificate(*self._fetch_reports(self.version, self._run(Block.sums)))

    def _finish_step(self, version: int, sums: Handles) -> Certificate:
        """Take over the coefficients that the step to `version` has changed; the certificate, of its `sums`."""
        fetched, reports = self._fetch_reports(version, sums)
        self._take_over(version, reports)
        return self._join_certificate(fetched, reports)

    def _fetch_reports(self, version: int, sums: Handles) -> tuple[list[CertificateSums], list[BlockReport]]:
        """The sums of all blocks at this version, and the reports that each block makes of them."""
        reports = self.blocks.run(call_at, version, self.attempt, Block.report, sums, self._state)
        fetched = self.blocks.fetch([*sums, *reports])
        return fetched[: len(sums)], fetched[len(sums) :]

    def _take_over(self, version: int, reports: list[BlockReport]) -> None:
        """Take the coefficients that a step has changed from the reports, and count its bytes and working sets."""
        beta = self.beta.copy()
        for coordinates, report in zip(self.index, reports, strict=True):
            beta[coordinates[report.changed]] = report.beta
        self.beta, self.version = beta, version
        sizes = [report.size for report in reports]
        self.n_iter += sum(size.n_iter for size in sizes)
        self.n_bytes += sum(size.changed_bytes * (len(sizes) - 1) + size.candidate_bytes for size in sizes)

    def _join_certificate(self, sums: list[CertificateSums], reports: list[BlockReport]) -> Certificate:
        """The certificate, from the blocks' sums and losses; recorded as a row of the history."""
        violation, intercepts, self.midpoint = self._state.violation_and_intercepts(sums)
        self.n_active = sum(report.n_active for report in reports)
        self.entry_error = max(report.entry_error for report in reports)
        target_beta, beta_decision, norm, total = (
            sum(getattr(part, name) for part in sums) for name in ("target_beta", "beta_decision", "norm", "total")
        )
        gaps = beta_decision - target_beta + norm + total * intercepts + sum(report.losses for report in reports)
        best = int(np.argmin(gaps))
        gap = max(0.0, float(gaps[best]))
        lower_bound = float(target_beta - norm - 0.5 * beta_decision)
        self.history.record(
            time=self.progress.elapsed,
            objective=lower_bound + gap,
            lower_bound=lower_bound,
            violation=violation,
            n_support=sum(part.n_support for part in sums),
            bytes=self.n_bytes,
        )
        return Certificate(float(intercepts[best]), lower_bound + gap, gap, violation)

    def _decision_values(self) -> Vector:
        """K beta (n,) at the latest version."""
        decision, parts = np.zeros(len(self.beta)), self._attempt(lambda: self._fetch(Block.decision_values))
        for coordinates, values in zip(self.index, parts, strict=True):
            decision[coordinates] = values
        return decision

    # ------------------------------------------------------------------------------------------------------ float64

    def _decision_error(self, beta: Vector) -> float:
        return decision_error(self.entry_error, beta, self.float64_beta)

    def _is_coarse(self, beta: Vector, certificate: Certificate) -> bool:
        """Whether rounding of float32 kernel entries could hide a violation."""
        error = self._decision_error(beta)
        return bool(hides_violation(error, self.limits.tol, self.problem, certificate.primal_objective))

    def _correct_in_float64(self) -> None:
        """Where float32 entries are too coarse: go on from float64 decision values, at need with float64 entries."""
        beta, certificate = self.best
        if not self._is_coarse(beta, certificate):
            return
        self.progress.stage("float64")
        error = self._decision_error(beta)  # that of all values not yet computed in float64, also later on
        while self._attempt(lambda: self._correct(error, self.best[1].intercept)):  # until no new row needs it
            self.best = self.beta, self._attempt(self._find_certificate)
            self._rounds()
            if self._decision_error(self.best[0]) > MAX_ERROR * self.limits.tol:
                break
        if self._is_coarse(*self.best):
            self._attempt(self._to_float64)
            self.best = self.beta, self._attempt(self._find_certificate)
            self._rounds()

    def _correct(self, error: float, intercept: float) -> bool:
        """Compute in float64 the decision values that rounding errors can affect; False if all of them are exact."""
        if not sum(self._fetch(Block.begin_correction, error, intercept)):
            return False
        support, sizes = self._run(Block.support, self.version), self._fetch(Block.support_bytes, self.version)
        self.n_bytes += sum(sizes) * (len(sizes) - 1)
        for group in self._groups(sizes):
            self._fetch(Block.correct, group, [support[p] for p in group], len(self.blocks))
        self.float64_beta = self.beta
        return True

    def _to_float64(self) -> None:
        self._fetch(Block.use_float64)
        self.is_float64 = True
        self._restore()

    # ------------------------------------------------------------------------------------------------------ lost blocks

    def _attempt(self, action: Callable[[], Any]) -> Any:
        """The action, again from the latest step if blocks are lost meanwhile."""
        for _ in range(MAX_LOSSES):
            try:
                return action()
            except LostBlockError as error:
                lost = error
                self._restore_if_possible()
        raise LostBlockError(f"blocks were lost {MAX_LOSSES} times in one round, the last time: {lost}") from lost

    def _restore_if_possible(self) -> None:
        try:
            self._restore()
        except LostBlockError:  # while they were restored: the next attempt finds them stale
            return

    def _restore(self) -> None:
        """Bring every block to the latest step; decision values of lost ones are computed from all support vectors."""
        self.attempt += 1
        is_there = self.blocks.fetch(self.blocks.run(Block.rewind_to, self.version, self.attempt))
        stale = [p for p, is_current in enumerate(is_there) if not is_current]
        if not stale:
            return
        self.float64_beta = 0.0
        if self.is_float64:
            self.blocks.fetch(self.blocks.run(Block.use_float64, only=stale))
        self.blocks.fetch(
            [self.blocks.run(Block.begin_restore, self.beta[self.index[p]], self.version, only=[p])[0] for p in stale]
        )
        support = self.blocks.run(Block.support, self.version)
        sizes = self.blocks.fetch(self.blocks.run(Block.support_bytes, self.version))
        self.n_bytes += sum(sizes) * (len(sizes) - 1)
        for group in self._groups(sizes):
            parts = [support[p] for p in group]
            restored = self.blocks.run(Block.restore, self.version, group, parts, len(self.blocks), only=stale)
            self.blocks.fetch(restored)

    def _run(self, method: Callable[..., Any], *args: Any, only: Sequence[int] | None = None) -> Handles:
        return self.blocks.run(call_at, self.version, self.attempt, method, *args, only=only)

    def _fetch(self, method: Callable[..., Any], *args: Any) -> list[Any]:
        return self.blocks.fetch(self._run(method, *args))

    def _time_left(self) -> float | None:
        """Seconds for a proposal, None without a limit: all that are left; before the first step half of them."""
        left = self.progress.deadline - perf_counter()
        share = 1.0 if self.version else _FIRST_SHARE
        return max(share * left, 0.0) if math.isfinite(left) else None
