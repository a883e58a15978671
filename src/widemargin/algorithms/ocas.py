"""OCAS: linear machines by optimised cutting planes.

Source: Franc and Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, Algorithm 1:

    1  t = 0, no cutting plane but the zero plane
    2  repeat
    3      w_t = solution of the master problem (the paper: reduced problem): the search point
    4      w_b = best point on the line from w_b towards w_t
    5      add the plane that touches the risk at w_c = (1 - mu) w_b + mu w_t
    6      t = t + 1
    7  until F(w_b) - F_t(w_t) <= tol F(w_b)

`OCASTraining.run_round` is lines 4 to 6 and line 3 of the next iteration, for several machines on the same samples at
once (one for each class), so that each of the two passes over the data serves them all. The accelerations are in
`solvers/cutting_plane`; a table in `accelerations.py` there says when each is used. States of a fit:

    few samples and features ── Gram dual, or the interior-point method ──────────────────────── done
    all others ── start: given points, a sample's machines, or w = 0 ── rounds ── gap <= tol ── done
    a round: [another w_t: active rows, Newton steps, epochs] ── X w_t ── line search ── plane ── master problem
    of few samples or features, one late round, if rounds are slow: the interior-point method ── X w ── bound
    of wide samples, a round: conjugate gradients and epochs on the dual: w_t and bound ── X w_t ── line search
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from .._config import ALLOWED_BYTES
from .._memory import DEFAULT_PLAN, MemoryPlan
from .._native import Stopped
from .._progress import AnyProgress, SilentProgress
from .._threads import ONE_THREAD, ThreadTeam
from .._types import ROUNDING, Array, Matrix
from ..data import DesignMatrix, IdentityMatrix, LocalMatrix, RowAccess, make_design_matrix, split_constant
from ..solvers.cutting_plane.accelerations import Accelerations, choose_accelerations
from ..solvers.cutting_plane.active_rows import ActiveRows
from ..solvers.cutting_plane.crammer_singer import MulticlassDual, MulticlassHingeLoss
from ..solvers.cutting_plane.dual_alone import DualAlone
from ..solvers.cutting_plane.dual_epochs import DualEpochs, squared_norms
from ..solvers.cutting_plane.given_risk import GivenRisk, Risk
from ..solvers.cutting_plane.gram_dual import has_few_columns, solve_gram_duals, suits_gram_dual
from ..solvers.cutting_plane.interior_point import InteriorPoint, solve_interior_points
from ..solvers.cutting_plane.losses import HingeLoss, Loss
from ..solvers.cutting_plane.machine import CuttingPlaneMachine, Plane, add_planes
from ..solvers.cutting_plane.master_problem import IDLE_ROUNDS, MasterProblem
from ..solvers.cutting_plane.newton_steps import NewtonSteps
from ..solvers.cutting_plane.ridge_system import RidgeSystem, is_small
from ..solvers.cutting_plane.sample_start import draw_sample, find_newton_point
from ..solvers.cutting_plane.smooth_losses import SmoothLoss, SquaredHingeLoss
from ..solvers.results import History, LinearResult

Trained = tuple[list[LinearResult], History]

_PARTS = "active_rows", "dual_ascent", "decision_values", "line_search", "plane", "master_problem"  # of a round
_STALL_ROUNDS = 50  # stop after so many rounds in which neither bound nor objective moves: see `_is_stalled`
_FIRST_ROUNDS = 30  # before the interior-point method, at least: most fits end in them, whatever the repeated samples
_SIDE_OF_ROUND = 3  # min(n, d) / 3 rounds without Newton steps take about as long as that method
_BLOCK_POINTS = 8  # evaluate at most so many points of the start in one pass: their decision values are in memory


@dataclass(frozen=True)
class OCASSettings:
    """Parameters of `OCASClassifier`, and two more.

    Attributes
    ----------
    is_plain : bool
        ``acceleration=None``: Algorithm 1 as it is, with master problems solved to rounding, no limit of steps, and no
        plane dropped while there is memory.
    keep_points : bool
        Whether results have `points` to start another problem from.
    """

    C: float = 1.0
    tol: float = 1e-3
    mu: float = 0.1
    line_search: bool = True
    is_plain: bool = False
    max_iter: int = 1000
    memory: MemoryPlan = DEFAULT_PLAN
    keep_points: bool = True


def train_linear(
    X: DesignMatrix,
    losses: Sequence[Loss],
    settings: OCASSettings,
    progress: AnyProgress,
    start: Sequence[Matrix] | None = None,
    team: ThreadTeam | None = None,
) -> Trained:
    """Train a machine for each loss, all losses of one kind.

    After every round `progress.go_on` is called; once it returns False, the best points so far are the result. `start`
    has points (n_points, q * n_features) for each loss, to take planes at before the first round.

    Returns
    -------
    results : list of LinearResult
    history : History
        One row a round: ``time``, ``objective`` and ``lower_bound`` (sums over the machines), ``step`` (mean over those
        that are not done), ``n_planes``, and the seconds of the parts of this round: ``seconds_active_rows``,
        ``seconds_dual_ascent`` (epochs, and all that raises duals without planes), ``seconds_decision_values``,
        ``seconds_line_search``, ``seconds_plane`` and ``seconds_master_problem``.
    """
    return next(train_path(X, losses, [settings.C], settings, progress, start, team))


def train_path(
    X: DesignMatrix,
    losses: Sequence[Loss],
    Cs: Sequence[float],
    settings: OCASSettings,
    progress: AnyProgress,
    start: Sequence[Matrix] | None = None,
    team: ThreadTeam | None = None,
) -> Iterator[Trained]:
    """Train as `train_linear` does, for one C after another; planes, which do not depend on C, are kept."""
    return _train_each(OCASTraining(X, losses, settings, progress, team or ThreadTeam(1)), Cs, start)


def train_risk(
    risk: Risk, n_features: int, settings: OCASSettings, progress: AnyProgress, start: Matrix | None = None
) -> Trained:
    """Minimise ``1/2 |w|^2 + C risk(w)``, beginning with planes at the points `start` (n_points, n_features).

    Raises
    ------
    WrongSubgradientError
        If a cutting plane lies above the risk at a point where it is known.
    """
    loss = GivenRisk(risk, n_features)
    training = OCASTraining(IdentityMatrix(n_features), [loss], settings, progress, ThreadTeam(1))
    training.make_machines()
    loss.master = training.machines[0].master
    return next(_train_each(training, [settings.C], None if start is None else [start]))


def _train_each(training: OCASTraining, Cs: Sequence[float], start: Sequence[Matrix] | None) -> Iterator[Trained]:
    progress = training.progress
    for C in Cs:
        training.restart()
        if (solved := training.solve_at_once(C, has_start=start is not None)) is not None:
            yield solved
            continue
        if not training.machines:
            training.make_machines()
        training.set_risk_weight(C)
        if not training.has_begun:
            training.begin(start, C)
        training.update_bounds()
        with suppress(Stopped):  # in a pass over the samples: points and bounds are those before it
            while training.should_continue() and progress.go_on(**training.state()):
                training.run_round()
        training.complete_history()
        yield training.results()


def train_hinges(
    X: Array, signed_weights: Matrix, tol: float, progress: AnyProgress, memory: MemoryPlan
) -> list[LinearResult]:
    """Train q machines without intercept, C = 1, on dense samples X (n, d) in this thread.

    `signed_weights` (q, n): for each machine, the samples' weights times their labels.
    """
    team = ThreadTeam(1)
    settings = OCASSettings(tol=tol, memory=memory, keep_points=False)
    losses = [HingeLoss(own_weights, team) for own_weights in signed_weights]
    return train_linear(make_design_matrix(X, team), losses, settings, progress, team=team)[0]


class OCASTraining:
    """The machines in training, and the passes over the data that they share."""

    def __init__(
        self,
        X: DesignMatrix,
        losses: Sequence[Loss],
        settings: OCASSettings,
        progress: AnyProgress,
        team: ThreadTeam,
    ) -> None:
        self.X = X
        self.losses = losses
        self.team = team
        self.settings = settings
        self.progress = progress
        self.history = History()
        self.n_iter = 0
        self.has_begun = False
        is_accelerated = settings.line_search and not settings.is_plain
        self.accelerations = choose_accelerations(X, losses) if is_accelerated else Accelerations()
        self.machines: list[CuttingPlaneMachine] = []  # none before `make_machines`
        self.active_rows: dict[CuttingPlaneMachine, ActiveRows] = {}
        self.newton_steps: dict[CuttingPlaneMachine, NewtonSteps] = {}
        self.dual_epochs: dict[CuttingPlaneMachine, DualEpochs] = {}
        self.dual_alone: dict[CuttingPlaneMachine, DualAlone | MulticlassDual] = {}  # of all machines, or none
        self._gaps: list[float] = []  # the largest relative gap of a machine, before each round
        self._interior_points_are_left = False  # set by `restart`

    def make_machines(self) -> None:
        """Make a machine without planes for each loss, with the accelerations of its rounds."""
        settings, n_outputs = self.settings, sum(loss.n_outputs for loss in self.losses)
        # of each plane the normal, with `keep_points` its point too, in arrays with room for up to twice as many planes
        of_plane = 2 * (1 + settings.keep_points) * 8 * n_outputs * max(1, self.X.shape[1])
        self.machines = [self._make_machine(loss, settings.memory["planes"] // of_plane) for loss in self.losses]
        self._accelerate(settings.memory.among(len(self.losses)))

    def _make_machine(self, loss: Loss, capacity: int) -> CuttingPlaneMachine:
        settings = self.settings
        master = MasterProblem(
            loss.n_outputs * self.X.shape[1],
            capacity,
            keep_points=settings.keep_points,
            idle_rounds=np.inf if settings.is_plain else IDLE_ROUNDS,
            first=loss.first_plane,
        )
        return CuttingPlaneMachine(loss, master, mu=settings.mu, is_plain=settings.is_plain)

    def _accelerate(self, memory: MemoryPlan) -> None:
        """Give the machines the accelerations of their rounds."""
        X, used, tol, go_on = self.X, self.accelerations, self.settings.tol, SilentProgress(self.progress).go_on
        rows, constant = split_constant(X)
        has_dual = used.dual_epochs or used.dual_alone
        norms = squared_norms(rows) if isinstance(rows, RowAccess) and has_dual else np.empty(0)
        first, n_bytes, system = self.losses[0], self.settings.memory["preconditioner"], None
        if isinstance(first, SmoothLoss) and isinstance(X, LocalMatrix):
            system = RidgeSystem(X, self.team, has_intercept=first.has_intercept)
        for machine in self.machines:
            loss, hinge = machine.loss, machine.loss.hinge
            if used.dual_alone and isinstance(loss, MulticlassHingeLoss) and isinstance(rows, RowAccess):
                self.dual_alone[machine] = MulticlassDual(rows, constant, loss, norms, tol, self.team, go_on)
            if used.newton_steps and isinstance(loss, SmoothLoss):
                self.newton_steps[machine] = NewtonSteps(X, machine, loss, system, n_bytes, go_on)
            if used.dual_alone and isinstance(loss, HingeLoss | SquaredHingeLoss) and isinstance(X, RowAccess):
                self.dual_alone[machine] = DualAlone(X, loss, norms, tol, memory["free rows"], go_on)
            if hinge is None:
                continue
            if used.active_rows and isinstance(X, LocalMatrix):
                self.active_rows[machine] = ActiveRows(
                    X, machine, tol, memory["active rows"], go_on, newton=used.smoothed_newton
                )
            if used.dual_epochs and isinstance(X, RowAccess):
                self.dual_epochs[machine] = DualEpochs(X, hinge, norms)

    # ------------------------------------------------------------------------------------------------- Algorithm 1

    def run_round(self) -> None:
        """One round of Algorithm 1, for all machines that are not done."""
        clock, machines = _Clock(), self._unconverged()
        # accelerations that replace a round, or give another search point w_t
        self._gaps.append(max(machine.relative_gap for machine in self.machines))
        if self._are_slow():
            self._run_interior_points(machines, clock)
            return
        if self.dual_alone:
            self._run_dual_round(machines, clock)
            return
        self._run_inner_rounds(machines)
        clock.lap("active_rows")
        with self.progress.interrupting(self.team.native):
            ascended, dual_planes = self._run_epochs(machines)
            clock.lap("dual_ascent")
            # line 4: w_b, the best point on the line to w_t; the first pass over the samples
            values = self._decision_values([machine.search_point for machine in machines])
        clock.lap("decision_values")
        planes = [self._move_best_point(machine, f) for machine, f in zip(machines, values, strict=True)]
        clock.lap("line_search")
        # line 5: the plane at w_c, and those of the accelerations; the second pass
        further = [(machine, plane) for machine in machines for plane in machine.further_planes]
        with self.progress.interrupting(self.team.native):
            owners = [*machines, *ascended, *(machine for machine, _ in further)]
            add_planes(self.X, owners, [*planes, *dual_planes, *(plane for _, plane in further)])
        clock.lap("plane")
        # lines 6 and 3: the next w_t, and the bound
        self.update_bounds()
        clock.lap("master_problem")
        self._end_round(machines, clock)

    def _run_dual_round(self, machines: list[CuttingPlaneMachine], clock: _Clock) -> None:
        """A round without planes: duals are raised, one thread a machine; line searches find the best points."""
        with self.progress.interrupting(self.team.native):
            self.team.map(lambda machine: self.dual_alone[machine].ascend(), machines)
        for machine in machines:
            machine.search_point = self.dual_alone[machine].point
        clock.lap("dual_ascent")
        with self.progress.interrupting(self.team.native):
            values = self._decision_values([machine.search_point for machine in machines])
        clock.lap("decision_values")
        for machine, f in zip(machines, values, strict=True):
            self.dual_alone[machine].take_decision_values(f[0])
            machine.move_best_point(machine.lengthen_search_point(f))
        clock.lap("line_search")
        with self.progress.interrupting(self.team.native):
            self.update_bounds()
        self._end_round(machines, clock)

    def _are_slow(self) -> bool:
        """Whether the interior-point method replaces the rounds. It takes about as long as all rounds so far: of Newton
        steps each is about as long as an iteration.

        Rounds go on while the gap falls so fast that as many again would end the fit. It is taken for a power of the
        number of rounds: the latest third made that number 1.5 times as large, and 1.5^1.71 = 2.
        """
        (n, d), gaps = self.X.shape, self._gaps
        n_first = _FIRST_ROUNDS if self.newton_steps else max(_FIRST_ROUNDS, min(n, d) // _SIDE_OF_ROUND)
        if self.n_iter < n_first or not self._interior_points_are_left:
            return False
        return bool(gaps[-1] * (gaps[-1] / gaps[2 * self.n_iter // 3]) ** 1.71 > self.settings.tol)

    def _run_interior_points(self, machines: list[CuttingPlaneMachine], clock: _Clock) -> None:
        """A round for machines that others take too many rounds for: their problems to the end, one by one."""
        X, tol, go_on = self.X, 0.9 * self.settings.tol, SilentProgress(self.progress).go_on
        self._interior_points_are_left = False
        for machine in machines:  # each to its plane, without `interrupting`: a stop leaves the point of an iteration
            loss = machine.loss.hinge or machine.loss
            assert isinstance(X, LocalMatrix)
            assert isinstance(loss, HingeLoss | SquaredHingeLoss)
            w, bound = InteriorPoint(X, loss).solve(machine.C, tol, go_on)
            machine.raise_bound(bound)
            self._add_planes_at([machine], [w], self._decision_values([w]))
            if not go_on():
                break
        clock.lap("dual_ascent")
        self.update_bounds()
        clock.lap("master_problem")
        self._end_round(machines, clock)

    def _end_round(self, machines: list[CuttingPlaneMachine], clock: _Clock) -> None:
        self.n_iter += 1
        self._record_round(machines, clock)
        if self.progress.is_observed:
            self.progress.current_solution = self.results()

    def _move_best_point(self, machine: CuttingPlaneMachine, f: Matrix) -> Plane:
        """Line 4, given the decision values f (q, n) of the search point; return the plane of line 5.

        Without line search (CPA), the plane is that at the search point.
        """
        if self._has_epochs(machine):
            self.dual_epochs[machine].update_shrinking(f[0])
        return machine.move_best_point(f) if self.settings.line_search else machine.evaluate(machine.search_point, f)

    def update_bounds(self) -> None:
        """Raise the lower bounds: by line 3, with the next search points; of machines without planes by their duals."""
        for machine in self._unconverged():
            if machine in self.dual_alone:
                machine.raise_bound(self.dual_alone[machine].bound())
                continue
            machine.solve_master()
            if machine in self.dual_epochs:
                self.dual_epochs[machine].record_round(machine.master.n_planes)

    def should_continue(self) -> bool:
        """Whether a machine is not done, and rounds are still allowed and still move objective or bound."""
        return bool(self._unconverged()) and self.n_iter < self.settings.max_iter and not self._is_stalled()

    def _is_stalled(self) -> bool:
        """Whether in the last 50 rounds the bound has not risen, nor has the objective fallen by more than `tol`.

        In exact arithmetic the bound rises: the precision of float64 is reached.
        """
        if self.n_iter <= _STALL_ROUNDS:
            return False
        objective, bound = (self.history.columns[name] for name in ("objective", "lower_bound"))
        rise, fall = bound[-1] - bound[-1 - _STALL_ROUNDS], objective[-1 - _STALL_ROUNDS] - objective[-1]
        size = abs(objective[-1])
        return not (rise > ROUNDING * size or fall > self.settings.tol * size)

    def _unconverged(self) -> list[CuttingPlaneMachine]:
        """The machines that are not done: their gap is above the tolerance."""
        return [machine for machine in self.machines if not self._is_done(machine)]

    def _is_done(self, machine: CuttingPlaneMachine) -> bool:
        """Whether the gap is small; at w = 0, which a small C makes nearly optimal, only after a round."""
        is_untrained = self.n_iter == 0 and machine.gap > 0.0 and not machine.w.any()
        return machine.gap <= self.settings.tol * abs(machine.objective) and not is_untrained

    def _decision_values(self, points: Sequence[Matrix]) -> list[Matrix]:
        """Decision values (q, n) of one point of each machine, in one pass."""
        stacked = self.X.decision_values(np.concatenate(points))
        return list(stacked.reshape(len(points), -1, stacked.shape[1]))

    # ----------------------------------------------------------------------------------------------- accelerations

    def solve_at_once(self, C: float, *, has_start: bool) -> Trained | None:
        """All machines without rounds, where samples are few; None where that fails, or a callback observes the rounds.

        By their duals on the Gram matrix, or where that fails and columns are few by the interior-point method. Hinges
        of targets have rounds: a wild target makes nearly all of the objective, and of what its gap may be.
        """
        X, (n, d), clock = self.X, self.X.shape, _Clock()
        if not self.accelerations.at_once or self.progress.is_observed or not isinstance(X, LocalMatrix):
            return None
        hinges = [hinge for loss in self.losses if (hinge := loss.hinge) is not None]
        results = self._solve_gram_duals(X, hinges, C) if suits_gram_dual(n, d) else None
        if results is None and has_few_columns(n, d) and self._interior_points_are_left:
            results = solve_interior_points(X, hinges, C, self.settings.tol, self.progress)
        if results is None or (has_start and not all(result.converged for result in results)):
            return None
        clock.lap("dual_ascent")
        objective, gap = sum(result.objective for result in results), sum(result.gap for result in results)
        self._record(objective, objective - gap, 1.0, 0, clock)
        return results, self.history

    def _solve_gram_duals(self, X: LocalMatrix, hinges: list[HingeLoss], C: float) -> list[LinearResult] | None:
        n, d = X.shape
        # columns (n,) of float64 that memory allows beside two copies of X, and X Xᵀ; each thread has a copy of X Xᵀ
        columns_left = (self.settings.memory["Gram matrix"] + ALLOWED_BYTES) / (8 * n) - (2 * d + n)
        if columns_left < n:
            return None
        team = self.team if columns_left >= n * min(self.team.n_threads, len(hinges)) else ONE_THREAD
        rows, places = X.gather(np.arange(n))
        return solve_gram_duals(rows[places], hinges, C, self.settings.tol, team, self.progress)

    def _run_inner_rounds(self, machines: Sequence[CuttingPlaneMachine]) -> None:
        """Newton steps, or rounds on the active rows, of each machine whose round does not begin with epochs."""
        for machine in machines:
            if machine in self.newton_steps:
                self.newton_steps[machine].run()
            if machine in self.active_rows and not self._has_epochs(machine):
                self.active_rows[machine].run()

    def _run_epochs(self, machines: Sequence[CuttingPlaneMachine]) -> tuple[list[CuttingPlaneMachine], list[Plane]]:
        """Epochs of dual ascent, one thread a machine: the dual point is the search point, and its plane is added.

        Returns the machines whose plane still needs its normal, a pass over X, and these planes.
        """

        def run(machine: CuttingPlaneMachine) -> Plane | None:
            dual = self.dual_epochs[machine]
            dual.run_epochs()
            plane, normal = Plane(*dual.plane()), dual.normal
            machine.search_point = plane.point.reshape(machine.w.shape)
            if normal is not None:
                machine.add(plane, normal)
            return plane if normal is None else None

        with_epochs = [machine for machine in machines if self._has_epochs(machine)]
        planes = self.team.map(run, with_epochs)
        found = [(machine, plane) for machine, plane in zip(with_epochs, planes, strict=True) if plane is not None]
        return [machine for machine, _ in found], [plane for _, plane in found]

    def _has_epochs(self, machine: CuttingPlaneMachine) -> bool:
        """Whether this round of a machine begins with epochs."""
        return machine in self.dual_epochs and self.dual_epochs[machine].have_turn

    def begin(self, start: Sequence[Matrix] | None, C: float) -> None:
        """Take the first planes: at the points given, at the machines of a sample, or at w = 0."""
        self.has_begun = True
        if start is None and self.accelerations.sample_start and isinstance(self.X, LocalMatrix):
            start = self._start_from_sample(self.X, C)
        starts = [
            (machine, point.reshape(machine.w.shape))
            for machine, points in zip(self.machines, start or (), strict=False)
            for point in points
        ]
        for first in range(0, len(starts), _BLOCK_POINTS):
            machines, W = zip(*starts[first : first + _BLOCK_POINTS], strict=True)
            self._add_planes_at(machines, W, self._decision_values(W))
        at_zero = [machine for machine in self.machines if not np.isfinite(machine.objective)]  # without a point so far
        for first in range(0, len(at_zero), _BLOCK_POINTS):
            some = at_zero[first : first + _BLOCK_POINTS]
            zeros = [self.X.decision_values_at_zero(machine.loss.n_outputs) for machine in some]
            self._add_planes_at(some, [np.zeros_like(machine.w) for machine in some], zeros)

    def _start_from_sample(self, X: LocalMatrix, C: float) -> list[Matrix]:
        """The machines of drawn rows, by Newton's method where that works, else by cutting planes."""
        settings, silent, points = self.settings, SilentProgress(self.progress), dict[int, Matrix]()
        few, losses = draw_sample(X, self.losses, settings.memory["drawn rows"])
        tol = max(settings.tol, few.shape[1] / few.shape[0])  # about the error of the drawn rows' machine on all rows
        for k, loss in enumerate(losses):
            if self.accelerations.smoothed_newton and loss.hinge is not None:
                found = find_newton_point(few, loss.hinge, C, tol, silent)
                if found is not None:
                    points[k] = found
        by_newton, left = set(points), [k for k in range(len(losses)) if k not in points]
        if left:
            changed = replace(settings, C=C, tol=tol, keep_points=False)
            results, _ = train_linear(few, [losses[k] for k in left], changed, silent, team=self.team)
            points |= {k: result.w for k, result in zip(left, results, strict=True)}
        for k, machine in enumerate(self.machines):
            if machine in self.active_rows:
                self.active_rows[machine].start_at_sample(few.shape[0], is_newton=k in by_newton)
        return [points[k].reshape(1, -1) for k in range(len(losses))]

    def _add_planes_at(
        self, machines: Sequence[CuttingPlaneMachine], points: Sequence[Matrix], values: Sequence[Matrix]
    ) -> None:
        """Evaluate a point of each machine, given its decision values; add its plane, unless duals go without."""
        planes = [machine.evaluate(w, f) for machine, w, f in zip(machines, points, values, strict=True)]
        if not self.dual_alone:
            add_planes(self.X, machines, planes)

    # ----------------------------------------------------------------------------------------- C, state and results

    def restart(self) -> None:
        """Begin to count rounds and to record the history again; planes and points stay."""
        self.n_iter, self.history, self.progress.current_solution = 0, History(), None
        share = "preconditioner" if isinstance(self.losses[0], SmoothLoss) else "active rows"
        (n, d), n_bytes = self.X.shape, self.settings.memory[share]
        self._gaps.clear()
        self._interior_points_are_left = self.accelerations.interior_point and is_small(n, d, n_bytes)

    def set_risk_weight(self, C: float) -> None:
        """Set C of the machines and of their accelerations."""
        for machine in self.machines:
            machine.set_risk_weight(C)
        for epochs in self.dual_epochs.values():
            epochs.set_risk_weight(C)
        for dual in self.dual_alone.values():
            dual.set_risk_weight(C)
        for active_rows in self.active_rows.values():
            active_rows.begin()

    def state(self) -> dict[str, float]:
        """What `Progress.go_on` shows and passes to callbacks: its ``violation`` is the largest relative gap."""
        objective = sum(machine.objective for machine in self.machines)
        violation = max(machine.relative_gap for machine in self.machines)
        return {"round": self.n_iter, "violation": violation, "tol": self.settings.tol, "objective": objective}

    def results(self) -> Trained:
        """The machines at their best points."""
        limit = "max_iter" if self.n_iter >= self.settings.max_iter else "the precision of float64"
        reason = self.progress.stopped_by or limit

        def result_of(s: CuttingPlaneMachine) -> LinearResult:
            is_done = self._is_done(s)
            points, stopped_by = s.master.binding_points, None if is_done else reason
            return LinearResult(s.w, s.intercept, s.objective, s.gap, is_done, points, stopped_by)

        return [result_of(machine) for machine in self.machines], self.history

    def complete_history(self) -> None:
        """Record the start as the only row, where no round was needed or there was no time for one."""
        if not len(self.history):
            self._record_round(self.machines, _Clock())

    def _record_round(self, machines: list[CuttingPlaneMachine], clock: _Clock) -> None:
        self._record(
            sum(machine.objective for machine in self.machines),
            sum(min(machine.bound, machine.objective) for machine in self.machines),
            sum(machine.step for machine in machines) / len(machines),
            sum(machine.master.n_planes for machine in self.machines),
            clock,
        )

    def _record(self, objective: float, bound: float, step: float, n_planes: int, clock: _Clock) -> None:
        self.history.record(
            time=self.progress.elapsed,
            objective=objective,
            lower_bound=bound,
            step=step,
            n_planes=n_planes,
            **{f"seconds_{part}": seconds for part, seconds in clock.laps.items()},
        )


class _Clock:
    """Seconds of the parts of a round."""

    def __init__(self) -> None:
        self.laps = dict.fromkeys(_PARTS, 0.0)
        self._start = time.perf_counter()

    def lap(self, part: str) -> None:
        """Set the seconds of a part: those since the previous call."""
        now = time.perf_counter()
        self.laps[part], self._start = now - self._start, now
