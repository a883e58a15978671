"""Newton's method on hinges with a rounded corner: where rows are many for their columns, a handful of steps.

    h(m) = max_(0 <= a <= 1) a m + width a (1 - a)       with m = 1 - y f

is quadratic for |m| < width and the hinge elsewhere. Its slopes a weigh the rows as those of any cutting plane do, so
each step brings a plane below the hinges themselves. At the minimum of the rounded objective that plane proves a gap of
C sum_i s_i (max(0, m_i) - a_i m_i), which shrinks with the square of the width. The best point is found as ever, by
exact line search on the hinges.

With many rows on the corner, in all directions, the rounded objective is nearly a parabola, and steps have length 1.
Where they are much too long, this is not the method.

Sources: Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19, 2007; Nesterov, Smooth
minimization of non-smooth functions, Mathematical Programming 103, 2005.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...data import LocalMatrix
from .losses import HingeRisk, Rounded
from .smoothed_hessian import CornerHessian
from .solver import Anchor, CuttingPlaneSolver, Plane

Matrix = NDArray[np.float64]

_ROWS_PER_COLUMN, _ROWS_PER_PAIR = 512, 32  # of columns: the Hessian costs some passes over a sample at most
_MOST = 25  # steps
_PROGRESS, _PATIENCE = 0.99, 4  # steps in a row that may leave more than this of the gap
_SHORTEST = 0.25  # step of the method where it is the right one: most are of length 1
_ARMIJO = 0.1
_SHRINK, _HASTE = 0.5, 0.25  # of the width, at a time: for a proof, and for an estimate
_LOSS_SHARE = 0.3  # of the gap to reach: the corner need not be sharper


def suits(shape: tuple[int, int]) -> bool:
    """Whether the rows are many for their columns, and for a Hessian."""
    n, d = shape
    return n >= max(_ROWS_PER_COLUMN * d, _ROWS_PER_PAIR * d * d)


class NewtonDescent:
    """A point on the way to the minimum of a machine's rounded objective.

    Parameters
    ----------
    rows : LocalMatrix
        In this process.
    solver : CuttingPlaneSolver
        Of a hinge risk; it has looked at a point, where this begins.
    width : float
        Of the corner at first, in units of the margin.

    Attributes
    ----------
    point : ndarray of shape (1, n_features)
        Where it has come to.
    """

    def __init__(self, rows: LocalMatrix, solver: CuttingPlaneSolver, width: float) -> None:
        assert isinstance(solver.risk, HingeRisk)
        self._rows = rows
        self._solver = solver
        self._risk: HingeRisk = solver.risk
        self._width = width
        self.point, self._f = solver.w, solver.outputs.copy()
        self._known = solver.anchor
        self._hessian = CornerHessian(rows, self._risk, solver.C)

    def run(self, tol: float, go_on: Callable[[], bool]) -> bool:
        """Take steps until the gap is at most `tol` of the objective, or does not shrink, or until told to stop.

        Returns
        -------
        bool
            False if this is not the method; the solver keeps what it has learnt.
        """
        ends_well = self._walk(tol, go_on, proves=True)
        target, self._solver.target = self._solver.target, self.point
        self._solver.descend(self._f)
        if not ends_well:
            self._solver.target = target  # of the reduced problem, for whoever goes on with planes
        return ends_well

    def approach(self, tol: float, go_on: Callable[[], bool]) -> bool:
        """As `run`, for the point alone, without a proof: that would take some steps more, and this is an estimate."""
        return self._walk(tol, go_on, proves=False)

    def _walk(self, tol: float, go_on: Callable[[], bool], *, proves: bool) -> bool:
        """From point to point on the rounded hinges. What the hinges themselves come to at each is known beside."""
        solver, leash = self._solver, self._solver.leash
        idle, least = 0, np.inf
        rounded = self._risk.rounded(self._f, self._width)
        for _ in range(_MOST):
            if rounded is None:
                return False
            objective = solver.value(self.point, rounded.risk)
            slope = self._slope(rounded)
            if proves:
                self._learn_plane(objective)
            gap, goal = objective - solver.bound, tol * objective
            if gap <= goal or idle > _PATIENCE or not go_on():
                break
            with np.errstate(over="ignore", invalid="ignore"):
                step = self._hessian.step(slope, self._f, rounded.shift, self._width)
                decrement = -0.5 * float(np.vdot(slope, step))
                if not proves and decrement + solver.C * rounded.loss <= goal:
                    break
                value = solver.value(self.point, rounded.value)
                ahead = self._search(step, value, decrement)
            if ahead is None:
                if self._hessian.is_new:
                    return False
                self._hessian.drop()
                continue
            self._hessian.judge(value - solver.value(self.point, ahead.value), decrement, self._width)
            if leash is not None and leash.is_beyond(self._f):
                break
            if decrement < solver.C * rounded.loss > _LOSS_SHARE * goal:
                self._width *= _SHRINK if proves else _HASTE
                rounded = self._risk.rounded(self._f, self._width)
            else:
                idle = idle + 1 if decrement <= goal and gap >= _PROGRESS * least else 0
                least = min(gap, least)
                rounded = ahead
        return True

    def _slope(self, rounded: Rounded) -> Matrix:
        """The gradient of the rounded objective."""
        known = self._known
        normal = self._rows.rmatvec(rounded.coef, known and known.plane.coef)
        if known is not None:
            normal += known.normal
        self._known = Anchor(Plane(rounded.coef, rounded.offset, self.point.ravel()), normal)
        return self._solver.slope(self.point, normal)

    def _learn_plane(self, objective: float) -> None:
        """Give the solver the plane at this point, which is that of the latest gradient."""
        assert self._known is not None
        self._solver.learn(*self._known)
        self._solver.solve_reduced(objective)

    def _search(self, step: Matrix, value: float, decrement: float) -> Rounded | None:
        """Go along the step as far as the rounded objective falls; None, and stay, if that is not far."""
        ahead = self._rows.matvec(self.point + step)
        length = 1.0
        while length >= _SHORTEST:
            point = self.point + length * step
            f = ahead if length == 1.0 else self._f + length * (ahead - self._f)
            rounded = self._risk.rounded(f, self._width)
            if rounded and self._solver.value(point, rounded.value) < value - _ARMIJO * length * decrement:
                self.point, self._f = point, f
                return rounded
            length *= 0.5
        return None
