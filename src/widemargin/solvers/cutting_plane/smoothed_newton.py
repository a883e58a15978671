"""Newton's method on smoothed hinges: a handful of steps where samples are many for their features.

    h(z) = max_(0 <= a <= 1) a z + width a (1 - a)       with the slack z = 1 - y f

is quadratic for |z| < width and the hinge elsewhere. Its slopes a weigh the samples as those of a cutting plane do, so
each step gives a plane below the hinges themselves. At the minimum of the smoothed objective that plane proves a gap of
C sum_i s_i (max(0, z_i) - a_i z_i), which shrinks with the square of the width. The best point is found by line search
on the hinges, as in any round.

With many samples near the kink, in all directions, the smoothed objective is nearly quadratic and steps have length 1.
Where no step that is shortened to a thousandth gains enough, the method gives up.

The Hessian is I + C sum_i s_i / (2 width) x_i x_iᵀ over a random part of the samples near the kink, |z_i| < width; with
an intercept, x_i minus their weighted mean. A narrower kink has fewer samples with a larger curvature each, and the
Hessian hardly changes: one serves for several steps. Experiments: decision 0006.

Sources: Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19, 2007; Nesterov, Smooth
minimization of non-smooth functions, Mathematical Programming 103, 2005.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._types import Matrix, RowIndices, Vector
from ...data import LocalMatrix
from .derivative_zeros import ARMIJO, SHORTEST_STEP
from .losses import HingeLoss, Smoothed
from .machine import BasePlane, CuttingPlaneMachine, Plane
from .ridge_system import RidgeSystem

_MAX_STEPS = 25  # end after so many steps; most fits take a handful
_WIDTH_FACTOR = 0.25  # next width / width
_ROWS_PER_COLUMN = 64  # samples of a Hessian / d
_KEPT_WIDTH = 0.25  # keep a Hessian up to this width (of a wider hinge, steps are more, or diverge),
_KEPT_ERROR = 0.3  # while gains differ from what steps promised by at most this part


class NewtonDescent:
    """A point on the way to the minimum of a machine's smoothed objective, which begins at the machine's best point.

    The machine has a hinge loss; `width` is that of the smoothed hinge at first, in units of the margin. `point` (1, d)
    is the latest point.
    """

    def __init__(self, X: LocalMatrix, machine: CuttingPlaneMachine, width: float) -> None:
        assert machine.loss.hinge is not None
        self._X = X
        self._machine = machine
        self._loss: HingeLoss = machine.loss.hinge
        self._width = width
        self.point, self._f = machine.w, machine.decision_values.copy()
        self._base = machine.base
        self._hessian = SmoothedHessian(X, self._loss, machine.C)

    def run(self, tol: float, go_on: Callable[[], bool]) -> bool:
        """Take steps until the relative gap is at most `tol`, or `go_on` returns False; False if the method gave up.

        The machine keeps the planes.
        """
        machine = self._machine
        succeeded = self._descend(tol, go_on, proves=True)
        master_solution = machine.search_point
        machine.search_point = self.point
        machine.move_best_point(self._f)  # the plane that it returns is not added: those of the steps have been
        if not succeeded:
            machine.search_point = master_solution  # where rounds with planes go on
        return succeeded

    def approach(self, tol: float, go_on: Callable[[], bool]) -> bool:
        """As `run`, but for the point alone: no planes, and no last steps that prove the gap."""
        return self._descend(tol, go_on, proves=False)

    def _descend(self, tol: float, go_on: Callable[[], bool], *, proves: bool) -> bool:
        """Newton's method; False if it gave up. It ends where the trust region does.

        repeat: gradient g at w and, if `proves`, the plane of g in the master problem and the bound
                stop at gap <= tol F
                w -= a H^-1 g with a = 1, 1/2, 1/4, ... (Armijo); if none is accepted, with a new H; then give up
                narrow the width if the decrement is below the plane's gap
        """
        machine, region = self._machine, self._machine.trust_region
        smoothed = self._loss.smoothed(self._f, self._width)
        for _ in range(_MAX_STEPS):
            if smoothed is None:
                return False
            objective = machine.value(self.point, smoothed.risk)
            gradient = self._gradient(smoothed)
            if proves:
                self._add_plane(objective)
            gap, goal = objective - machine.bound, tol * objective
            if gap <= goal or not go_on():
                break
            with np.errstate(over="ignore", invalid="ignore"):
                step = self._hessian.step(gradient, self._f, smoothed.intercept, self._width)
                decrement = -0.5 * float(np.vdot(gradient, step))  # the promised gain, 1/2 g' H^-1 g
                if not proves and decrement + machine.C * smoothed.plane_gap <= goal:
                    break
                next_smoothed = self._advance(step, smoothed, decrement)
            if next_smoothed is None:
                if self._hessian.is_new:
                    return False
                self._hessian.drop()
                continue
            if region is not None and region.is_outside(self._f):
                break
            smoothing = machine.C * smoothed.plane_gap  # what it costs of the gap
            if smoothing > max(decrement, goal):
                self._width *= _WIDTH_FACTOR
                smoothed = self._loss.smoothed(self._f, self._width)
            else:
                smoothed = next_smoothed
        return True

    def _advance(self, step: Matrix, smoothed: Smoothed, decrement: float) -> Smoothed | None:
        """Take the step by `_backtrack`; keep the Hessian if the smoothed objective falls about as much as promised."""
        value = self._machine.value(self.point, smoothed.value)
        next_smoothed = self._backtrack(step, value, decrement)
        if next_smoothed is not None:
            gain = value - self._machine.value(self.point, next_smoothed.value)
            self._hessian.drop_if_inaccurate(gain, decrement, self._width)
        return next_smoothed

    def _gradient(self, smoothed: Smoothed) -> Matrix:
        """The gradient of the smoothed objective (1, n_features); its plane is the new base plane."""
        base = self._base
        normal = self._X.rmatvec(smoothed.coef, None if base is None else base.plane.coef)
        if base is not None:
            normal += base.normal
        self._base = BasePlane(Plane(smoothed.coef, smoothed.offset, self.point.ravel()), normal)
        return self._machine.gradient(self.point, normal)

    def _add_plane(self, objective: float) -> None:
        """Add the plane of the latest gradient, and raise the bound."""
        assert self._base is not None
        self._machine.add(*self._base)
        self._machine.solve_master(objective)

    def _backtrack(self, step: Matrix, value: float, decrement: float) -> Smoothed | None:
        """Go along the step, halved until the smoothed objective falls enough; return the hinges there.

        None, without moving, if steps would be shorter than a thousandth.
        """
        f_end = self._X.decision_values(self.point + step)
        length = 1.0
        while length >= SHORTEST_STEP:
            point = self.point + length * step
            f = f_end if length == 1.0 else self._f + length * (f_end - self._f)
            smoothed = self._loss.smoothed(f, self._width)
            if smoothed and self._machine.value(point, smoothed.value) < value - ARMIJO * length * decrement:
                self.point, self._f = point, f
                return smoothed
            length *= 0.5
        return None


class SmoothedHessian:
    """Newton steps for 1/2 |w|^2 + C times a smoothed hinge risk; `is_new`: the latest computed its own Hessian."""

    def __init__(self, X: LocalMatrix, loss: HingeLoss, C: float) -> None:
        self.is_new = False
        self._X = X
        self._loss = loss
        self._C = C
        self._draws = np.random.default_rng(0).random(_ROWS_PER_COLUMN * X.shape[1])
        self._kept: Callable[[Vector], Vector] | None = None  # solves with the Hessian

    def step(self, gradient: Matrix, f: Matrix, intercept: float, width: float) -> Matrix:
        """The Newton step (1, n_features) at decision values f + intercept."""
        self.is_new = self._kept is None
        if self._kept is None:
            chosen, stride = _draw(self._loss.rows_near_kink(f, intercept, width), self._draws)
            curvatures = stride * self._C / (2.0 * width) * np.abs(self._loss.signed_weights[chosen])
            system = RidgeSystem(self._X.take(chosen), self._loss.team, has_intercept=self._loss.has_intercept)
            self._kept = system.decompose(curvatures).newton_step
        return -self._kept(gradient[0])[None]

    def drop_if_inaccurate(self, gain: float, promised: float, width: float) -> None:
        """Drop the Hessian unless a step at this width gained about what it promised."""
        if width > _KEPT_WIDTH or abs(gain - promised) > _KEPT_ERROR * promised:
            self.drop()

    def drop(self) -> None:
        """Compute a new Hessian at the next step."""
        self._kept = None


def _draw(chosen: RowIndices, draws: Vector) -> tuple[RowIndices, float]:
    """One index at random out of each of len(draws) equal parts of `chosen`, and the size of a part; all, if fewer."""
    stride = len(chosen) / len(draws)
    if stride <= 1.0:
        return chosen, 1.0
    places = (np.arange(len(draws)) + draws) * stride
    return chosen[places.astype(np.int64)], stride
