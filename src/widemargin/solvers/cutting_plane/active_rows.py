"""Rounds on the rows near the margin: the rest of the risk is replaced by a line.

A hinge lies above both of its lines, zero and s (1 - y f). Let the rows whose margin is far from 1 keep the line that
they are on at the best point, and so be one linear function together:

    R(w) >= R_near(w) + <a, w> + b      with equality at the best point, and as far as no row changes its line

Cutting planes of the right side are planes of R, and cost as many rows as are near. So the lower bound stays proven
whatever happens here, and what these rounds come to is a point for the next round on all rows to search towards. Where
rows are many for their columns, Newton's method goes there in fewer steps, each of which brings a plane too.
How far they may go from the best point: until the outputs have changed by a part of the distance that counts as near.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...data import LocalMatrix
from . import smoothed_newton as newton
from .losses import HingeRisk
from .solver import Anchor, CuttingPlaneSolver, Leash, Plane, Rest, learn_planes

_SHARE, _LEAST_SHARE, _MOST_SHARE = 1 / 32, 1 / 256, 1 / 4  # of the rows: at first, and whatever happens
_GROWTH = 4.0  # times as many after rounds that came to the end of their reach; a part as many at least after others
_USE = 0.4  # of the reach: after rounds that went less far there will be fewer rows, after others more
_SETTLED = 4.0 * _USE  # as that, after Newton's method, which leaves little to go
_ERRORS = 4.0  # share of the rows to begin with, in errors of the outputs of a sample's machine
_LEAST = 2048  # rows: with fewer, the interpreter would be slower than the pass over them
_MOST = 1.5  # times as many as were asked for: margins that are all alike
_REACH = 0.5  # of the distance that counts as near
_WIDTH = 0.5  # of Newton's method at first, of the reach
_WORK = 2.0  # visits of each row of the whole, in their number
_DROP = 0.1  # of the gap at the start: less is not worth more rounds
_TOL_SHARE = 0.3  # of the goal for the whole
_NOISE = 1e-12  # of the objective: less is no progress
_BUDGET_SHARE = 4  # a copy of the rows may take as much of the memory


class NearRounds:
    """The rounds of one machine on the rows near its margin.

    Parameters
    ----------
    rows : LocalMatrix
        All of them.
    solver : CuttingPlaneSolver
        Of a hinge risk.
    tol : float
        Largest gap of the machine at the end, relative to its objective.
    memory_budget : int
        Bytes.
    go_on : callable
        Asked after every round whether there is time for more.

    Attributes
    ----------
    is_smooth : bool
        Whether Newton's method leads through the rows near the margin; else planes do.
    """

    def __init__(
        self, rows: LocalMatrix, solver: CuttingPlaneSolver, tol: float, memory_budget: int, go_on: Callable[[], bool]
    ) -> None:
        self._rows = rows
        self.solver = solver
        self._tol = tol
        self._go_on = go_on
        self._most = int(memory_budget / (_BUDGET_SHARE * _MOST * rows.row_bytes))
        self.is_smooth = newton.suits(rows.shape)
        self._share = _SHARE
        self.begin()

    def begin(self) -> None:
        """Count rounds without progress anew: the solver has another C, and so another objective."""
        self._n_failures, self._objective = 0, np.inf

    def follow(self, n_sample: int, *, is_smooth: bool) -> None:
        """Begin at the machine of a sample, which is as far from that of all rows as chance takes it."""
        self.is_smooth = is_smooth
        if is_smooth:
            self._share = min(_ERRORS * math.sqrt(self._rows.shape[1] / n_sample), _MOST_SHARE)

    def run(self) -> None:
        """Lead the machine's target to where rounds on few rows come to, and raise its bound.

        A machine that was led nowhere twice goes a round on all rows alone.
        """
        if self._has_failed_twice():
            return
        found = self._surrogate()
        if found is None:
            return
        rows, near, leash = found
        goal = _TOL_SHARE * self._tol
        if self.is_smooth:
            self.is_smooth = newton.NewtonDescent(rows, near, _WIDTH * leash.reach).run(goal, self._go_on)
        if not self.is_smooth:
            self._add_planes(rows, near, leash, goal)
        self.solver.lead(near)
        used = leash.moved / ((_SETTLED if self.is_smooth else _USE) * leash.reach)
        self._scale_share(_GROWTH if leash.is_taut else max(used, 1.0 / _GROWTH))

    def _add_planes(self, rows: LocalMatrix, near: CuttingPlaneSolver, leash: Leash, goal: float) -> None:
        """Rounds of the cutting plane algorithm."""
        goal = max(_DROP * near.gap, goal * near.objective)
        visits, most = 0, _WORK * self._rows.shape[0]
        while visits < most and near.gap > goal and not leash.is_taut and self._go_on():
            plane = near.descend(rows.matvec(near.target))
            learn_planes(rows, [near], [plane])
            near.solve_reduced()
            visits += rows.shape[0]

    def _has_failed_twice(self) -> bool:
        objective = self.solver.objective
        self._n_failures = self._n_failures + 1 if objective >= self._objective * (1.0 - _NOISE) else 0
        self._objective = objective
        if self._n_failures < 2:
            return False
        self._n_failures = 0
        return True

    def _scale_share(self, factor: float) -> None:
        self._share = min(max(factor * self._share, _LEAST_SHARE), _MOST_SHARE)

    def _surrogate(self) -> tuple[LocalMatrix, CuttingPlaneSolver, Leash] | None:
        """The rows near the margin, and a solver for the risk that is exact on them and a line for the rest."""
        solver, n = self.solver, self._rows.shape[0]
        if solver.anchor is None:
            return None
        assert isinstance(solver.risk, HingeRisk)
        wanted = min(max(_LEAST, int(self._share * n)), self._most)
        chosen, distance = solver.risk.nearest(solver.outputs, wanted)
        if not 0.0 < distance < np.inf or len(chosen) > _MOST * wanted:
            if self._share == _MOST_SHARE:  # there may be room between margins that are alike, or before them
                self._share = _LEAST_SHARE
            else:
                self._scale_share(_GROWTH)
            return None
        rows = self._rows.take(chosen)
        plane, normal = solver.anchor
        coef, f = (solver.risk.pick(values, chosen) for values in (plane.coef, solver.outputs))
        here = Anchor(Plane(coef, float(np.abs(coef).sum()), plane.point), rows.rmatvec(coef))
        rest = Rest(normal - here.normal, plane.offset - here.plane.offset)
        risk = solver.risk.part(chosen, pull=float(coef.sum()))
        leash = Leash(risk, f, _REACH * distance)
        near = CuttingPlaneSolver(risk, solver.bundle, solver.C, mu=solver.mu, rest=rest, leash=leash)
        near.look_at(solver.w, f)
        near.anchor, near.bound, near.target = here, solver.bound, solver.target
        return rows, near, leash
