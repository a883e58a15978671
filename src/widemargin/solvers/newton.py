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
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .._parallel import row_blocks
from ..rows import Rows
from .cutting_plane import Anchor, CuttingPlaneSolver, Plane
from .risks import HingeRisk, Rounded

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_ROWS_PER_COLUMN, _ROWS_PER_PAIR = 512, 32  # of columns: the Hessian costs some passes over a sample at most
_MOST = 25  # steps
_PROGRESS, _PATIENCE = 0.99, 4  # steps in a row that may leave more than this of the gap
_SHORTEST = 0.25  # step of the method where it is the right one: most are of length 1
_ARMIJO = 0.1
_LOSS_SHARE = 0.3  # of the gap to reach: the corner need not be sharper
_CURVED = 64  # rows for each column, for the Hessian
_PARTS = 4  # of its rows: each is a matrix product
_JITTER, _JITTERS = 1e-12, 6  # of the Hessian's diagonal, each time a hundred times as much


def suits(shape: tuple[int, int]) -> bool:
    """Whether the rows are many for their columns, and for a Hessian."""
    n, d = shape
    return n >= max(_ROWS_PER_COLUMN * d, _ROWS_PER_PAIR * d * d)


class NewtonDescent:
    """A point on the way to the minimum of a machine's rounded objective.

    Parameters
    ----------
    rows : Rows
        In this process.
    solver : CuttingPlaneSolver
        Of a hinge risk; it has looked at a point, where this begins.
    width : float
        Of the corner at first, in units of the margin.
    """

    def __init__(self, rows: Rows, solver: CuttingPlaneSolver, width: float) -> None:
        assert isinstance(solver.risk, HingeRisk)
        self._rows = rows
        self._solver = solver
        self._risk: HingeRisk = solver.risk
        self._width = width
        self._point, self._f = solver.w, solver.outputs.copy()
        self._known = solver.anchor

    def run(self, tol: float, go_on: Callable[[], bool]) -> bool:
        """Take steps until the gap is at most `tol` of the objective, or does not shrink, or until told to stop.

        Returns
        -------
        bool
            False if this is not the method; the solver keeps what it has learnt.
        """
        solver = self._solver
        idle, gap = 0, np.inf
        for _ in range(_MOST):
            if (rounded := self._risk.rounded(self._f, self._width)) is None:
                return False
            slope = self._learn_plane(rounded)
            goal = tol * solver.objective
            if solver.gap <= goal or not go_on():
                return True
            with np.errstate(over="ignore", invalid="ignore"):
                step = self._find_step(rounded, slope)
                decrement = -0.5 * float(np.vdot(slope, step))
                if not self._search(step, solver.value(self._point, rounded.value), decrement):
                    return False
            if decrement < solver.C * rounded.loss > _LOSS_SHARE * goal:
                self._width *= 0.5
            if solver.leash is None and decrement > goal:
                continue  # the gap is no smaller: it need not be known
            self._descend()
            idle = 0 if solver.gap < _PROGRESS * gap else idle + 1
            gap = min(gap, solver.gap)
            if solver.is_held or idle > _PATIENCE:
                return True
        self._descend()
        return True

    def _descend(self) -> None:
        """Let the solver go down on the hinges themselves, towards this point."""
        self._solver.target = self._point
        self._solver.descend(self._f)

    def _learn_plane(self, rounded: Rounded) -> Matrix:
        """Give the solver the plane at this point; return the gradient of the rounded objective."""
        known = self._known
        normal = self._rows.weighted_sums(rounded.coef, known and known.plane.coef)
        if known is not None:
            normal += known.normal
        self._known = Anchor(Plane(rounded.coef, rounded.offset, self._point.ravel()), normal)
        self._solver.learn(*self._known)
        self._solver.solve_reduced()
        return self._solver.slope(self._point, normal)

    def _find_step(self, rounded: Rounded, slope: Matrix) -> Matrix:
        """Newton's: the Hessian is the identity and C s / (2 width) times the second moments of rows on the corner."""
        chosen, every = _sample(self._risk.corner(self._f, rounded.shift, self._width), _CURVED * self._rows.shape[1])
        weights = every * self._solver.C / (2.0 * self._width) * np.abs(self._risk.signed[chosen])
        hessian = self._moments(chosen, weights, self._centre(chosen, weights))
        hessian[np.diag_indices_from(hessian)] += 1.0
        return -_solve(hessian, slope[0])[None]

    def _centre(self, chosen: Indices, weights: Vector) -> Vector:
        """What the best intercept takes out of the rows: their mean."""
        if not self._risk.has_intercept or not len(chosen):
            return np.zeros(self._rows.shape[1])
        coef = np.zeros_like(self._f)
        np.add.at(coef[0], chosen, weights / weights.sum())
        mean: Vector = self._rows.weighted_sums(coef)[0]
        return mean

    def _moments(self, chosen: Indices, weights: Vector, centre: Vector) -> Matrix:
        """Sum of w (x - c)(x - c)'."""

        def product(part: slice) -> Matrix:
            factors = self._rows.copy(chosen[part]) - centre
            factors *= np.sqrt(weights[part])[:, None]
            moments: Matrix = factors.T @ factors
            return moments

        size = max(-(-len(chosen) // _PARTS), 1)
        total = np.zeros((len(centre), len(centre)))
        for part in self._risk.team.map(product, row_blocks(len(chosen), size)):
            total += part
        return total

    def _search(self, step: Matrix, value: float, decrement: float) -> bool:
        """Go along the step as far as the rounded objective falls; False, and stay, if that is not far."""
        change = self._rows.outputs(self._point + step) - self._f
        length = 1.0
        while length >= _SHORTEST:
            point, f = self._point + length * step, self._f + length * change
            rounded = self._risk.rounded(f, self._width)
            if rounded and self._solver.value(point, rounded.value) < value - _ARMIJO * length * decrement:
                self._point, self._f = point, f
                return True
            length *= 0.5
        return False


def _sample(chosen: Indices, enough: int) -> tuple[Indices, float]:
    """About one of every so many: by chance, as rows may come in periods."""
    every = len(chosen) / enough
    if every <= 1.0:
        return chosen, 1.0
    places = (np.arange(enough) + np.random.default_rng(0).random(enough)) * every
    return chosen[places.astype(np.int64)], every


def _solve(H: Matrix, b: Vector) -> Vector:
    """Solve H x = b, where rounding may have left H with small negative eigenvalues; zero if that is in vain."""
    scale = 1.0 / np.sqrt(np.diagonal(H))
    H = H * scale * scale[:, None]
    for k in range(_JITTERS):
        H[np.diag_indices_from(H)] += _JITTER * 100.0**k
        try:
            factor = cho_factor(H, check_finite=False)
        except LinAlgError:
            continue
        x: Vector = scale * cho_solve(factor, scale * b, check_finite=False)
        return x
    return np.zeros_like(b)
