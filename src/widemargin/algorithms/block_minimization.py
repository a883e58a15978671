"""The dual of a kernel machine whose rows are on several workers: parallel block minimisation with joint rounds.

Solve    min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  lo <= beta <= hi   [and sum(beta) = s]
Given    the variables in P blocks, each on the worker that has its rows; a feasible start
Returns  `DualResult`: beta, K beta, the intercept, the violation, the primal objective and the duality gap
Method   A round proposes new coefficients, sends the rows that they change to all workers, and goes along the sum of
         the proposed steps to the minimum of the objective, which is quadratic there: it never rises. Proposals come
         from all blocks at once, each solved with the variables of the others fixed; or from a joint problem of rows
         near the margin in all blocks, solved by one worker. The first round from zero is the joint problem of the
         support vectors that each block alone would have (refine), or one of blocks if these are too many. Then rounds
         are joint ones, by turns with rounds of blocks while more variables violate than fit in one.
Why      Rounds of blocks alone converge slowly at the end: what couples the blocks is a few free variables, and with an
         intercept no sum of a block would ever change. The joint problem has just these.
Cost     a round: n x (changed rows) kernel entries, shared by the workers, and the changed rows to each of them; the
         certificate is a sum of what the workers know, and three numbers a changed row come to the client
Source   C.-J. Hsieh, S. Si, I. S. Dhillon, Communication-Efficient Distributed Block Minimization for Nonlinear Kernel
         Machines, KDD 2016, for rounds of blocks and the line search; the joint rounds are this library's
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .._native import Stopped
from .._progress import PartProgress, Progress
from .._types import Rows, Vector
from ..data import LostBlockError
from ..solvers.dual.block import Block, CertificateSums, call_at
from ..solvers.dual.certificate import MAX_RELATIVE_GAP, Certificate, DualProblem
from ..solvers.dual.stopping import hides_violation
from ..solvers.results import DualResult, History, StoppedAtStartError

Handles = list[Any]

_START_TOL = 0.1  # tolerance of the blocks' first solution
_ROUND_TOL = 0.1  # violation that a round solves to / that before it
_JOINT_ROWS = 2**14  # of a joint problem, at most: one worker solves it while the others wait (docs/decisions/0020)
_JOINT_TOL = 0.01  # violation that a joint problem is solved to / that before it: a round costs more than its digits
_JOINT_SHARE = 8  # memory budget / bytes of these rows, at least
_TRIAL_INTERCEPTS = 17  # intercepts between the optimality bounds, of which the one with the least objective is taken
_FIRST_SHARE = 0.5  # of the time that is left, at most, for each part of the first step's proposal
_MAX_LOSSES = 5  # times that blocks are lost without a round in between
_MAX_IDLE = 4  # rounds without a change of the objective, after which the precision is reached
_LEAST_CHANGE = 1e-13  # of the objective / itself


class Blocks(Protocol):
    """The blocks, each on a worker. The result of a function stays on its worker until it is fetched."""

    def __len__(self) -> int: ...

    def run(self, function: Callable[..., Any], *args: Any, only: Sequence[int] | None = None) -> Handles:
        """Start ``function(block, *args)`` on all blocks, or on some, and return handles; args may hold handles."""

    def fetch(self, handles: Handles) -> list[Any]:
        """What the functions have returned. Raises LostBlockError if a block or a result is lost, or `Stopped`."""


@dataclass(frozen=True)
class RoundSettings:
    """Parameters of a fit; the memory of a worker beside its rows, and a row, in bytes."""

    has_intercept: bool = False
    tol: float = 1e-3
    max_relative_gap: float = MAX_RELATIVE_GAP
    max_iter: int = -1
    memory_budget: int = 2**30
    row_bytes: int = 400


class BlockMinimizer:
    """Solves one dual on blocks.

    Parameters
    ----------
    blocks : Blocks
        Of `solvers.dual.block.Block`.
    problem : DualProblem of n coordinates
    index : list of ndarray of int
        The coordinates of each block.
    settings : RoundSettings
    progress : Progress or PartProgress
    """

    def __init__(
        self,
        blocks: Blocks,
        problem: DualProblem,
        index: list[Rows],
        settings: RoundSettings,
        progress: Progress | PartProgress,
    ) -> None:
        self.blocks = blocks
        self.problem = problem
        self.index = index
        self.settings = settings
        self.progress = progress
        self.history = History()
        self.n_iter = 0
        self.n_bytes = 0
        self.version = 0
        self.beta = np.zeros(len(problem.target))
        self.goal = settings.tol
        self.is_joint = True  # the latest round
        self.n_active = 0  # violators and free variables
        self.midpoint = 0.0  # of the optimality bounds of the intercept
        self.sums: list[CertificateSums] | None = None  # of the latest step
        self.is_float64 = False
        room = settings.memory_budget // (_JOINT_SHARE * settings.row_bytes)
        self.joint_rows = max(len(blocks), min(_JOINT_ROWS, room))

    def solve(self, beta: Vector) -> DualResult:
        """Solve from the feasible point beta (n,) until the tolerance or a stop.

        Raises
        ------
        StoppedAtStartError
            If the fit is stopped before the decision values of the start are known.
        LostBlockError
            If blocks are lost again and again.
        """
        self.beta = beta.copy()
        self.version = int(beta.any())
        try:
            if self.version:
                self._attempt(self._restore)
            self.best = self.beta, self._attempt(self._certify)
        except Stopped:
            raise StoppedAtStartError from None
        try:
            self._rounds()
            if self._is_coarse(*self.best):
                self.progress.stage("float64")
                self._attempt(self._to_float64)
                self.best = self.beta, self._attempt(self._certify)
                self._rounds()
        except Stopped:
            self.progress.go_on()  # sets `stopped_by`
        return self._result(*self.best)

    # ---------------------------------------------------------------------------------------------------------- rounds

    def _rounds(self) -> None:
        certificate, n_idle, self.goal = self.best[1], 0, self.settings.tol
        while not self._is_done(certificate) and self._report(certificate):
            if certificate.violation < self.goal:
                self.goal = certificate.tighter_tol(self.settings.max_relative_gap)
            before = certificate.objective - certificate.gap  # the lower bound: minus the dual objective
            self._attempt(lambda: self._round(certificate))  # noqa: B023 - called at once
            certificate = self._attempt(self._certify)
            # the dual objective decreases in every round, the primal one need not: a stop returns the least
            if certificate.violation < self.settings.tol or certificate.objective <= self.best[1].objective:
                self.best = self.beta, certificate
            gain = certificate.objective - certificate.gap - before
            n_idle = 0 if gain > _LEAST_CHANGE * abs(before) else n_idle + 1
            if n_idle == _MAX_IDLE:
                break

    def _is_done(self, certificate: Certificate) -> bool:
        if 0 <= self.settings.max_iter <= self.n_iter:
            return True
        return certificate.violation < self.settings.tol and certificate.is_tight(self.settings.max_relative_gap)

    def _report(self, certificate: Certificate) -> bool:
        self.progress.candidate = self.beta, certificate.intercept
        return self.progress.go_on(
            violation=certificate.violation,
            tol=self.goal,
            objective=certificate.objective,
            n_support=float(np.count_nonzero(self.beta)),
            round=float(len(self.history)),
        )

    def _round(self, certificate: Certificate) -> None:
        is_joint = self.version > 0 and not (self.is_joint and self.n_active > self.joint_rows)
        if not self.version:
            sizes = self._propose_start()
        else:
            sizes = self._propose_jointly(certificate) if is_joint else self._propose_by_blocks(certificate)
        length = self._search(sizes)
        version = self.version + 1
        beta, sums = self.beta.copy(), []
        for mine, (rows, values, part) in zip(
            self.index, self._fetch("step", length, version, len(self.blocks)), strict=True
        ):
            beta[mine[rows]] = values
            sums.append(part)
        self.beta, self.version, self.is_joint, self.sums = beta, version, is_joint, sums

    def _propose_start(self) -> list[int]:
        """From beta = 0: a joint problem of the support vectors of the blocks' levels, or the blocks' own problems."""
        n_support = self._fetch("choose_start", self._time_left())
        if not 0 < sum(n_support) <= self.joint_rows:
            return self._improve(_START_TOL)
        return self._solve_jointly(self._run("start_candidates"), _START_TOL)

    def _propose_by_blocks(self, certificate: Certificate) -> list[int]:
        return self._improve(self._round_tol(certificate.violation) if self.version > 1 else _START_TOL)

    def _improve(self, tol: float) -> list[int]:
        solved = self._fetch("improve", tol, self._time_left())
        self.n_iter += sum(size.n_iter for size in solved)
        return [size.changed_bytes for size in solved]

    def _propose_jointly(self, certificate: Certificate) -> list[int]:
        share = self.joint_rows // len(self.blocks)
        tol = max(0.5 * self.goal, _JOINT_TOL * certificate.violation)
        return self._solve_jointly(self._run("candidates", self.midpoint, certificate.violation, share), tol)

    def _solve_jointly(self, offers: Handles, tol: float) -> list[int]:
        (joint,) = self._run("solve_jointly", offers, tol, self._time_left(), only=[0])
        adopted = self._fetch("adopt", joint)
        self.n_iter += adopted[0].n_iter
        self.n_bytes += sum(size.candidate_bytes for size in adopted)
        return [size.changed_bytes for size in adopted]

    def _round_tol(self, violation: float) -> float:
        return max(0.5 * self.goal, _ROUND_TOL * violation)

    def _search(self, sizes: list[int]) -> float:
        """Exchange the proposals: the length in [0, 1] of the step along their sum with the least objective."""
        changes = self._run("changes")
        slope = curvature = 0.0
        for group in self._groups(sizes):
            slopes = self._fetch("absorb", group, [changes[p] for p in group])
            slope, curvature = (sum(getattr(part, name) for part in slopes) for name in ("slope", "curvature"))
        if slope >= 0.0:
            return 0.0
        return 1.0 if curvature <= -slope else -slope / curvature

    def _groups(self, sizes: list[int]) -> list[list[int]]:
        """Blocks whose changes a worker holds at a time: as many as half its memory has room for, at least one."""
        self.n_bytes += sum(sizes) * (len(sizes) - 1)
        groups: list[list[int]] = []
        room = 0
        for p in range(len(sizes)):
            if not groups or sizes[p] > room:
                groups.append([])
                room = self.settings.memory_budget // 2
            groups[-1].append(p)
            room -= sizes[p]
        return groups

    # -------------------------------------------------------------------------------------------------- the certificate

    def _certify(self) -> Certificate:
        sums: list[CertificateSums] = self.sums or self._fetch("sums")
        self.sums = None
        rise, fall = min(part.rise for part in sums), max(part.fall for part in sums)
        target_beta, beta_decision, norm, total, free_slack, n_free, n_support = (
            sum(column) for column in list(zip(*sums, strict=True))[2:]
        )
        if self.settings.has_intercept and math.isfinite(rise + fall):
            self.midpoint = -0.5 * (rise + fall)
        violation, intercepts = self._trial_intercepts(rise, fall, free_slack / n_free if n_free else None)
        measured = self._fetch("losses", intercepts, self.midpoint, self._round_tol(violation))
        self.n_active = sum(n for _, n in measured)
        gaps = beta_decision - target_beta + norm + total * intercepts + sum(losses for losses, _ in measured)
        best = int(np.argmin(gaps))
        gap = max(0.0, float(gaps[best]))
        lower_bound = float(target_beta - norm - 0.5 * beta_decision)
        self.history.record(
            time=self.progress.elapsed,
            objective=lower_bound + gap,
            lower_bound=lower_bound,
            violation=violation,
            n_support=n_support,
            bytes=self.n_bytes,
        )
        return Certificate(float(intercepts[best]), lower_bound + gap, gap, violation)

    def _trial_intercepts(self, rise: float, fall: float, mean: float | None) -> tuple[float, Vector]:
        """The violation, and intercepts of which one is nearly the best.

        Where variables can rise and fall, the minimiser of the primal objective is between -fall and -rise.
        """
        if not self.settings.has_intercept:
            return max(-rise, fall, 0.0), np.zeros(1)
        if not math.isfinite(rise + fall):
            return 0.0, np.array([-rise if math.isfinite(rise) else -fall if math.isfinite(fall) else 0.0])
        violation = max(fall - rise, 0.0)
        if violation < self.settings.tol:
            return violation, np.array([self.midpoint if mean is None else mean])
        return violation, np.linspace(-fall, -rise, _TRIAL_INTERCEPTS)

    def _result(self, beta: Vector, certificate: Certificate) -> DualResult:
        is_tight = certificate.is_tight(self.settings.max_relative_gap)
        converged = certificate.violation < self.settings.tol and is_tight
        decision = np.zeros(len(beta))
        if converged:  # the decision values of other machines are not used
            try:
                parts = self._attempt(lambda: self._fetch("get", "decision"))
            except Stopped:
                return DualResult(beta, decision, *certificate, False, self.n_iter, self.history)
            for mine, values in zip(self.index, parts, strict=True):
                decision[mine] = values
        return DualResult(beta, decision, *certificate, converged, self.n_iter, self.history)

    def _is_coarse(self, beta: Vector, certificate: Certificate) -> bool:
        """Whether rounding of float32 kernel entries could hide a violation."""
        noise = max(self._attempt(lambda: self._fetch("get", "noise"))) * float(np.linalg.norm(beta))
        point = DualResult(beta, beta, *certificate, True, 0, self.history)
        return hides_violation(noise, self.settings.tol, self.problem, point)

    def _to_float64(self) -> None:
        self._fetch("use_float64")
        self.is_float64 = True
        self._restore()

    # ------------------------------------------------------------------------------------------------------ lost blocks

    def _attempt(self, action: Callable[[], Any]) -> Any:
        """The action, again from the latest step if blocks are lost meanwhile."""
        for _ in range(_MAX_LOSSES):
            try:
                return action()
            except LostBlockError as error:
                lost = error
                self._restore_if_possible()
        raise LostBlockError(f"blocks were lost {_MAX_LOSSES} times in one round, the last time: {lost}") from lost

    def _restore_if_possible(self) -> None:
        try:
            self._restore()
        except LostBlockError:  # while they were restored: the next attempt finds them stale
            return

    def _restore(self) -> None:
        """Bring every block to the latest step; what lost blocks knew is computed again, from all support vectors."""
        is_there = self.blocks.fetch(self.blocks.run(Block.stand_at, self.version))
        stale = [p for p, is_current in enumerate(is_there) if not is_current]
        if not stale:
            return
        if self.is_float64:
            self.blocks.fetch(self.blocks.run(Block.use_float64, only=stale))
        starts = [self.blocks.run(Block.start, self.beta[self.index[p]], self.version, only=[p])[0] for p in stale]
        self.blocks.fetch(starts)
        support = self.blocks.run(Block.support, self.version)
        for group in self._groups(self.blocks.fetch(self.blocks.run(Block.support_bytes, self.version))):
            parts = [support[p] for p in group]
            restored = self.blocks.run(Block.restore, self.version, group, parts, len(self.blocks), only=stale)
            self.blocks.fetch(restored)

    def _run(self, name: str, *args: Any, only: Sequence[int] | None = None) -> Handles:
        return self.blocks.run(call_at, self.version, name, *args, only=only)

    def _fetch(self, name: str, *args: Any) -> list[Any]:
        return self.blocks.fetch(self._run(name, *args))

    def _time_left(self) -> float | None:
        """Seconds for a proposal, None without a limit; until the first step a share, to have time for that step."""
        left = self.progress.deadline - perf_counter()
        share = 1.0 if self.version else _FIRST_SHARE
        return max(share * left, 0.0) if math.isfinite(left) else None
