"""OCAS: the linear machine by optimised cutting planes.

Source: Franc and Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, Algorithm 1:

    repeat
        w_t = solution of the reduced problem
        w_b = best point on the line from w_b to w_t
        add the plane that touches the risk at w_c = (1 - mu) w_b + mu w_t
    until F(w_b) - F_t(w_t) <= tol F(w_b)

Where rows are many for their columns, the first w_t comes from a sample of the rows, and the later ones from the few
rows near the margin: by Newton's method or, where that fails, by rounds on them. Elsewhere a round may begin with
epochs of dual coordinate ascent: then w_t is the dual's point, and its plane is added too.
Several machines on the same rows (one for each class) go in step, so that each of the two passes over the data of a
round serves them all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._native import Stopped, linear
from .._progress import Aside, Part, Progress
from .._threads import ThreadTeam
from ..data import DesignMatrix, LocalMatrix, RowAccess, make_design_matrix
from ..nystroem.local_machines import Fit, join_fits
from ..solvers.cutting_plane import smoothed_newton as newton
from ..solvers.cutting_plane.active_rows import NearRounds
from ..solvers.cutting_plane.dual_coordinate_ascent import CoordinateAscent
from ..solvers.cutting_plane.gram_dual import is_for_few_rows, solve_few_rows
from ..solvers.cutting_plane.losses import HingeRisk, Risk
from ..solvers.cutting_plane.master_problem import Bundle
from ..solvers.cutting_plane.solver import CuttingPlaneSolver, Plane, learn_planes
from ..solvers.results import History, LinearResult

Matrix = NDArray[np.float64]
Solvers = Sequence[CuttingPlaneSolver]
Trained = tuple[list[LinearResult], History]

_SMALL = 2**15  # values: rounds alone are fast, and do not depend on the order of the rows or on repeated ones
_MANY, _PER_COLUMN = 2**14, 64  # rows, in all and for each column, for rounds on few of them
_SAMPLED, _SAMPLED_PER_COLUMN = 2**15, 512  # rows, in all and for each column, for a start from a sample
_SAMPLE, _SAMPLE_PER_COLUMN, _RUN = 16, 256, 16  # one row in so many, or so many; so many neighbours stay together
_SAMPLE_SHARE = 8  # it may take as much of the memory
_SAMPLE_TOL = 3e-3
_WIDTH, _PLANES = 2.0, 100  # of Newton's method from zero, where all rows are at distance 1 from their margin
_PARTS = ("near", "dual", "outputs", "line_search", "plane", "reduced")
_PATIENCE, _ROUNDING = 50, 1e-12  # rounds in which objective and bound may move by no more than so much of the former
_POINTS = 8  # looked at in one pass at the start: their outputs are held at once


@dataclass(frozen=True)
class Settings:
    """How to solve: what does not depend on the data.

    Attributes
    ----------
    C : float
        Weight of the risk.
    tol : float
        Largest gap of each machine, relative to its objective.
    mu : float
        In (0, 1]: planes touch the risk at ``(1 - mu) best + mu target``.
    line_search : bool
        False is CPA: the next plane is taken at the solution of the reduced problem.
    max_iter : int
    memory_budget : int
        Bytes beyond the caller's data.
    keep_points : bool
        Whether results have `points` to start another problem from.
    """

    C: float = 1.0
    tol: float = 1e-3
    mu: float = 0.1
    line_search: bool = True
    max_iter: int = 1000
    memory_budget: int = 2**30
    keep_points: bool = True


def train(
    rows: DesignMatrix,
    risks: Sequence[Risk],
    settings: Settings,
    progress: Progress | Part | Aside,
    start: Sequence[Matrix] | None = None,
    team: ThreadTeam | None = None,
) -> Trained:
    """Train a machine for each risk.

    Parameters
    ----------
    rows : DesignMatrix
    risks : sequence of Risk
    settings : Settings
    progress : Progress
        Asked after every round; stopped, the best point so far is the result.
    start : sequence of ndarray of shape (n_points, q * n_features), optional
        For each risk points to take planes at before the first round, such as those of an earlier `LinearResult`.

    Returns
    -------
    results : list of LinearResult
    history : History
        One row a round: ``time``, ``objective`` and ``lower_bound`` (sums over the machines), ``step`` (mean over those
        that are not done), ``n_planes``, and ``seconds_dual``, ``seconds_outputs``, ``seconds_line_search``,
        ``seconds_plane``, ``seconds_reduced`` and ``seconds_near`` of this round.
    """
    return next(train_path(rows, risks, [settings.C], settings, progress, start, team))


def train_path(
    rows: DesignMatrix,
    risks: Sequence[Risk],
    Cs: Sequence[float],
    settings: Settings,
    progress: Progress | Part | Aside,
    start: Sequence[Matrix] | None = None,
    team: ThreadTeam | None = None,
) -> Iterator[Trained]:
    """Train for one C after another: what was learnt of the risk holds for all of them.

    Parameters and results are those of `train`, one result for each of `Cs`.
    """
    team = team or ThreadTeam(1)
    descent = _Descent(rows, risks, settings, progress, team)
    for C in Cs:
        descent.weigh(C)
        if (solved := descent.solve_few_rows(C)) is not None:
            yield solved
            continue
        if not descent.has_begun:
            descent.begin(start, replace(settings, C=C))
        descent.solve_reduced()
        with suppress(Stopped):  # in a pass over the rows: the points and the bounds are those before it
            while descent.is_open() and progress.go_on(**descent.state()):
                descent.iterate()
        descent.finish()
        yield descent.trained()


def _solve_sample(
    rows: LocalMatrix, risks: Sequence[Risk], settings: Settings, progress: Progress | Part | Aside, team: ThreadTeam
) -> tuple[list[Matrix], list[bool], int]:
    """The machines of a sample, as points to begin with; which of them Newton's method has found; its size."""
    n = rows.shape[0]
    suits = newton.suits(rows.shape)
    size = max(n // _SAMPLE, _SAMPLE_PER_COLUMN * rows.shape[1] if suits else 0)
    size = min(size, settings.memory_budget // (_SAMPLE_SHARE * rows.row_bytes))
    runs = np.random.default_rng(0).choice(n // _RUN, max(1, size // _RUN), replace=False)
    chosen = (_RUN * np.sort(runs)[:, None] + np.arange(_RUN)).ravel()
    parts = [risk.part(chosen, n / len(chosen)) for risk in risks]
    tol = max(settings.tol, _SAMPLE_TOL, rows.shape[1] / len(chosen))  # the sample itself is no more precise
    some = rows.take(chosen)
    points = [_leap(some, part, settings.C, tol, Aside(progress)) if suits else None for part in parts]
    left = [k for k, point in enumerate(points) if point is None]
    if left:
        settings = replace(settings, tol=tol, keep_points=False)
        results, _ = train(some, [parts[k] for k in left], settings, Aside(progress), team=team)
        for k, result in zip(left, results, strict=True):
            points[k] = result.w
    found = [point.reshape(1, -1) for point in points if point is not None]
    return found, [k not in left for k in range(len(parts))], len(chosen)


def _leap(rows: LocalMatrix, risk: Risk, C: float, tol: float, progress: Aside) -> Matrix | None:
    """A machine by Newton's method, if that leads to it."""
    if not isinstance(risk, HingeRisk):
        return None
    solver = CuttingPlaneSolver(risk, Bundle(rows.shape[1], _PLANES, keep_points=False), C)
    solver.look_at(solver.w, np.zeros((1, rows.shape[0])))
    descent = newton.NewtonDescent(rows, solver, _WIDTH)
    return descent.point if descent.approach(tol, progress.go_on) else None


def _is_sampled(rows: DesignMatrix, settings: Settings) -> bool:
    """Whether a sample of the rows says much about all of them."""
    return _are_many(rows, settings, _SAMPLED, _SAMPLED_PER_COLUMN)


def _are_many(rows: DesignMatrix, settings: Settings, least: int, per_column: int) -> bool:
    """Whether few rows can be read for all; not beside CPA, which is to be compared with."""
    n, d = rows.shape
    return settings.line_search and n >= max(least, per_column * d)


def train_hinges(X: NDArray[np.floating], signed: Matrix, tol: float, progress: Progress, memory_budget: int) -> Fit:
    """Train machines without intercept on dense rows in this thread: a `solvers.local.LinearTrainer`."""
    team = ThreadTeam(1)
    settings = Settings(tol=tol, memory_budget=memory_budget, keep_points=False)
    results, _ = train(make_design_matrix(X, team), [HingeRisk(s, team) for s in signed], settings, progress, team=team)
    return join_fits(np.concatenate([result.w for result in results]), results)


class _Descent:
    """The machines, and the passes over the data that they share."""

    def __init__(
        self,
        rows: DesignMatrix,
        risks: Sequence[Risk],
        settings: Settings,
        progress: Progress | Part | Aside,
        team: ThreadTeam,
    ) -> None:
        self.rows = rows
        self.team = team
        self.settings = settings
        self.progress = progress
        self.history = History()
        self.n_iter = 0
        self.has_begun = False
        n_outputs = sum(risk.n_outputs for risk in risks)
        capacity = settings.memory_budget // (4 * 8 * n_outputs * max(1, rows.shape[1]))
        self.solvers = [
            CuttingPlaneSolver(
                risk,
                Bundle(risk.n_outputs * rows.shape[1], capacity, keep_points=settings.keep_points),
                settings.C,
                mu=settings.mu,
                ascent=self._ascent(risk),
            )
            for risk in risks
        ]
        share = settings.memory_budget // len(risks)
        self.near = {
            solver: NearRounds(rows, solver, settings.tol, share, Aside(progress).go_on)
            for solver in self.solvers
            if isinstance(rows, LocalMatrix)
            and isinstance(solver.risk, HingeRisk)
            and _are_many(rows, settings, _MANY, _PER_COLUMN)
        }

    def solve_few_rows(self, C: float) -> Trained | None:
        """The machines by their duals, where rows are few, nobody looks at the rounds, and it is not CPA."""
        if self.progress.is_observed or not self.settings.line_search or not is_for_few_rows(self.rows.shape):
            return None
        risks = [solver.risk for solver in self.solvers]
        hinges = [risk for risk in risks if isinstance(risk, HingeRisk)]
        if len(hinges) < len(risks) or not isinstance(self.rows, LocalMatrix):
            return None
        X, places = self.rows.gather(np.arange(self.rows.shape[0]))
        clock = _Clock()
        results = solve_few_rows(X[places], hinges, C, self.settings.tol, self.team, self.progress)
        if results is None:
            return None
        clock.lap("dual")
        history = History()
        objective, gap = sum(result.objective for result in results), sum(result.gap for result in results)
        history.record(
            time=self.progress.elapsed,
            objective=objective,
            lower_bound=objective - gap,
            step=1.0,
            n_planes=0,
            **{f"seconds_{part}": seconds for part, seconds in clock.laps.items()},
        )
        return results, history

    def _ascent(self, risk: Risk) -> CoordinateAscent | None:
        """Where it pays; not beside CPA, which is to be compared with."""
        arrays = self.rows.row_arrays if isinstance(self.rows, RowAccess) else None
        if arrays is None or linear.count_values(arrays) < _SMALL or not self.settings.line_search:
            return None
        return None if _is_sampled(self.rows, self.settings) else risk.ascent(arrays, self.rows.shape[1])

    def is_open(self) -> bool:
        """Whether there is something left to do, and rounds come to something."""
        return bool(self._open()) and self.n_iter < self.settings.max_iter and not self._is_stalled()

    def _is_stalled(self) -> bool:
        """Whether the last rounds moved neither the objective nor the bound: there are no digits left to do it in."""
        if self.n_iter <= _PATIENCE:
            return False
        objective, bound = (self.history.columns[name] for name in ("objective", "lower_bound"))
        moved = objective[-1 - _PATIENCE] - objective[-1] + bound[-1] - bound[-1 - _PATIENCE]
        return not moved > _ROUNDING * objective[-1]

    def state(self) -> dict[str, float]:
        """What the progress object is told."""
        objective = sum(solver.objective for solver in self.solvers)
        violation = max(solver.gap / max(solver.objective, 1e-300) for solver in self.solvers)
        return {"round": self.n_iter, "violation": violation, "tol": self.settings.tol, "objective": objective}

    def trained(self) -> Trained:
        """Where the machines stand."""
        results = [
            LinearResult(s.w, s.intercept, s.objective, s.gap, self._is_done(s), s.bundle.active_points)
            for s in self.solvers
        ]
        return results, self.history

    def weigh(self, C: float) -> None:
        """Begin with another C."""
        self.n_iter, self.history = 0, History()
        for solver in self.solvers:
            solver.weigh(C)
        for near in self.near.values():
            near.begin()

    def begin(self, start: Sequence[Matrix] | None, settings: Settings) -> None:
        """Take the first planes: at the points given, or where a sample of the rows leads."""
        self.has_begun = True
        if start is None and isinstance(self.rows, LocalMatrix) and _is_sampled(self.rows, settings):
            risks = [solver.risk for solver in self.solvers]
            start, smooth, size = _solve_sample(self.rows, risks, settings, self.progress, self.team)
            for solver, is_smooth in zip(self.solvers, smooth, strict=True):
                if solver in self.near:
                    self.near[solver].follow(size, is_smooth=is_smooth)
        self.look_at(start)

    def look_at(self, start: Sequence[Matrix] | None) -> None:
        """Take planes at the points given, several in one pass; at zero, where the outputs are known, if none are."""
        points = [(s, p.reshape(s.w.shape)) for s, mine in zip(self.solvers, start or (), strict=False) for p in mine]
        for first in range(0, len(points), _POINTS):
            solvers, W = zip(*points[first : first + _POINTS], strict=True)
            outputs = self._outputs(solvers, W)
            learn_planes(
                self.rows, solvers, [solver.look_at(w, f) for solver, w, f in zip(solvers, W, outputs, strict=True)]
            )
        new = [solver for solver in self.solvers if not np.isfinite(solver.objective)]
        for first in range(0, len(new), _POINTS):
            some = new[first : first + _POINTS]
            known = [np.zeros((solver.risk.n_outputs, self.rows.shape[0])) for solver in some]
            learn_planes(
                self.rows,
                some,
                [solver.look_at(np.zeros_like(solver.w), f) for solver, f in zip(some, known, strict=True)],
            )

    def iterate(self) -> None:
        """One round of Algorithm 1, for all machines that are not done."""
        clock, solvers = _Clock(), self._open()
        self._stay_near(solvers)
        clock.lap("near")
        climbers, dual_planes = self._ascend(solvers)
        clock.lap("dual")
        with self.progress.interrupting(self.team.native):
            outputs = self._outputs(solvers, [solver.target for solver in solvers])
        clock.lap("outputs")
        planes = [self._advance(solver, f) for solver, f in zip(solvers, outputs, strict=True)]
        clock.lap("line_search")
        with self.progress.interrupting(self.team.native):
            learn_planes(self.rows, [*solvers, *climbers], [*planes, *dual_planes])
        clock.lap("plane")
        self.solve_reduced()
        clock.lap("reduced")
        self.n_iter += 1
        self._record(solvers, clock)
        self.progress.candidate = self.trained  # called only by those who look

    def finish(self) -> None:
        """Where no round was needed, or there was no time for one, the history is that of the start."""
        if not len(self.history):
            self._record(self.solvers, _Clock())

    def solve_reduced(self) -> None:
        """Find the next points, and the bounds that say who is done."""
        for solver in self._open():
            solver.solve_reduced()

    def _stay_near(self, solvers: Solvers) -> None:
        """Where rows are many, find the next points by rounds on few of them."""
        for solver in solvers:
            if solver in self.near and not solver.has_epochs:
                self.near[solver].run()

    def _advance(self, solver: CuttingPlaneSolver, f: Matrix) -> Plane:
        return solver.descend(f) if self.settings.line_search else solver.look_at(solver.target, f)

    def _ascend(self, solvers: Solvers) -> tuple[Solvers, list[Plane]]:
        """Who has a better dual point, and its plane."""
        planes = self.team.map(CuttingPlaneSolver.ascend, solvers)
        found = [(solver, plane) for solver, plane in zip(solvers, planes, strict=True) if plane is not None]
        return [solver for solver, _ in found], [plane for _, plane in found]

    def _outputs(self, solvers: Solvers, points: Sequence[Matrix]) -> list[Matrix]:
        """The outputs of one point of each solver, in one pass."""
        return _split(self.rows.matvec(np.concatenate(points)), solvers)

    def _open(self) -> list[CuttingPlaneSolver]:
        return [solver for solver in self.solvers if not self._is_done(solver)]

    def _is_done(self, solver: CuttingPlaneSolver) -> bool:
        return solver.gap <= self.settings.tol * solver.objective

    def _record(self, solvers: list[CuttingPlaneSolver], clock: _Clock) -> None:
        self.history.record(
            time=self.progress.elapsed,
            objective=sum(solver.objective for solver in self.solvers),
            lower_bound=sum(min(solver.bound, solver.objective) for solver in self.solvers),
            step=float(np.mean([solver.step for solver in solvers])),
            n_planes=sum(solver.bundle.n_planes for solver in self.solvers),
            **{f"seconds_{part}": seconds for part, seconds in clock.laps.items()},
        )


class _Clock:
    """Seconds of a round, by its parts."""

    def __init__(self) -> None:
        self.laps = dict.fromkeys(_PARTS, 0.0)
        self._start = time.perf_counter()

    def lap(self, part: str) -> None:
        """The time since the last lap was this part's."""
        now = time.perf_counter()
        self.laps[part], self._start = now - self._start, now


def _split(stacked: Matrix, solvers: Solvers) -> list[Matrix]:
    """Each machine's share of the rows of a stacked array."""
    ends = np.cumsum([solver.risk.n_outputs for solver in solvers])
    return np.split(stacked, ends[:-1])
