"""Cutting planes: a convex risk, replaced by the maximum of linear functions below it.

    minimise  F(w) = 1/2 |w|^2 + C R(w)          R(w) >= <a_j, w> + b_j  for every plane j

The reduced problem, with the planes in place of R, gives a lower bound of F, and the next point to look at.

Source: Franc and Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data import DesignMatrix
from .dual_coordinate_ascent import CoordinateAscent
from .losses import HingeRisk, Risk
from .master_problem import Bundle

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_REDUCED_TOL = 0.05  # of the gap: more precision would be lost with the next plane
_LONGEST = 2.0  # step: the rounding of the best point's outputs is multiplied by |1 - step|
_FRESH = 50  # planes that are sums of changes, between two that are not
_NOISE = 1e-13  # of the objective: what rounding leaves


class Plane(NamedTuple):
    """What makes a plane, but for the sum of the rows: weights of the rows (q, n), offset, and where it touches."""

    coef: Matrix
    offset: float
    point: Vector


class Anchor(NamedTuple):
    """A plane, and the sum of the rows with its weights (q, n_features)."""

    plane: Plane
    normal: Matrix


class Rest(NamedTuple):
    """What there is of the risk beside that of the rows: a linear function."""

    normal: Matrix  # (q, n_features)
    offset: float


class Leash:
    """How far a solver may go from its first best point, as the outputs of its rows tell.

    Parameters
    ----------
    risk : HingeRisk
    f : ndarray of shape (1, n)
        The outputs of that point; copied, as a solver overwrites its own.
    reach : float
        Of the outputs' change, in the mean square.

    Attributes
    ----------
    moved : float
        How far it has gone.
    is_taut : bool
        Whether its latest step was shortened.
    """

    def __init__(self, risk: HingeRisk, f: Matrix, reach: float) -> None:
        self.reach = reach
        self.moved = 0.0
        self.is_taut = False
        self._risk = risk
        self._first = f.copy()

    def is_beyond(self, f: Matrix) -> bool:
        """Whether these outputs are out of reach."""
        return self._risk.distance(self._first, f) >= self.reach

    def hold(self, f: Matrix, target: Matrix, step: float, mu: float) -> tuple[float, float]:
        """The step from outputs f towards those of the target, and mu from there on, as far as the reach allows."""
        self.moved = self._risk.distance(self._first, f)
        rate = self._risk.distance(f, target)
        furthest = max(0.0, self.reach - self.moved) / rate if rate > 0.0 else np.inf
        self.is_taut = step >= furthest
        step = min(step, furthest)
        self.moved += step * rate
        return step, min(mu, (furthest - step) / (1.0 - step)) if step < 1.0 else mu


class CuttingPlaneSolver:
    """One minimisation: its planes, its best point and its lower bound.

    A round: `solve_reduced` finds a target, the caller computes its outputs, `descend` gives a plane as weights of the
    rows, the caller sums them, `learn` takes both. So several minimisations share a pass over the data. `ascend` may
    give one more plane.

    Parameters
    ----------
    risk : Risk
    bundle : Bundle
        Where the planes are kept, of ``risk.n_outputs * n_features`` columns.
    C : float
        Weight of the risk.
    mu : float
        Planes touch the risk at ``(1 - mu) best + mu target``.
    ascent : CoordinateAscent, optional
        Where planes come from beside those that touch the risk.
    rest : Rest, optional
        A linear part of the risk.
    leash : Leash, optional
        For a risk that is what it says near the first best point alone.

    Attributes
    ----------
    w : ndarray of shape (q, n_features)
        Best point so far.
    target : ndarray of shape (q, n_features)
        Solution of the latest reduced problem.
    objective, bound : float
        F at the best point, and the largest lower bound so far.
    step : float
        The latest of the line search.
    leash : Leash or None
        As given.
    anchor : Anchor or None
        The latest plane that touches the risk at the best point, or near it.
    """

    def __init__(
        self,
        risk: Risk,
        bundle: Bundle,
        C: float,
        *,
        mu: float = 0.1,
        ascent: CoordinateAscent | None = None,
        rest: Rest | None = None,
        leash: Leash | None = None,
    ) -> None:
        self.risk = risk
        self.C = C
        self.mu = mu
        self.ascent = ascent
        if ascent is not None:
            ascent.weigh(C)
        self.bundle = bundle
        self.w = self.target = np.zeros((risk.n_outputs, bundle.normals.shape[1] // risk.n_outputs))
        self.objective, self.bound, self.step = np.inf, 0.0, 0.0
        self.anchor: Anchor | None = None
        self._rest = rest or Rest(np.zeros_like(self.w), 0.0)
        self.leash = leash
        self._risk = np.inf
        self._outputs: Matrix | None = None
        self._has_ascended = False
        self._is_led = False
        self._touching: Plane | None = None
        self._n_changes = 0

    @property
    def outputs(self) -> Matrix:
        """Those of the best point (q, n)."""
        assert self._outputs is not None, "look at a point first"
        return self._outputs

    @property
    def is_held(self) -> bool:
        """Whether the leash has shortened the latest step."""
        return self.leash is not None and self.leash.is_taut

    @property
    def has_epochs(self) -> bool:
        """Whether the next round begins with epochs of dual coordinate ascent."""
        return self.ascent is not None and self.ascent.turns.has_epochs

    @property
    def gap(self) -> float:
        """How far from the optimum the best point can be."""
        return max(self.objective - self.bound, 0.0)

    @property
    def intercept(self) -> Vector:
        """Intercepts (q,) of the best point."""
        return np.zeros(len(self.w)) if self._outputs is None else self.risk.intercept(self._outputs)

    def weigh(self, C: float) -> None:
        """Go on with another weight of the risk: its planes stay what they are."""
        self.C, self.bound = C, 0.0
        self.objective = self.value(self.w, self._risk)
        if self.ascent is not None:
            self.ascent.weigh(C)

    def solve_reduced(self, objective: float | None = None) -> None:
        """Find the next target, and a lower bound: so precisely that an objective, by default the best, is far off."""
        self._is_led = False
        objective = self.objective if objective is None else objective
        w, bound = self.bundle.solve(self.C, max(_REDUCED_TOL * (objective - self.bound), _NOISE * abs(objective)))
        self.bound = max(self.bound, bound)
        self.target = w.reshape(self.w.shape)
        if self.ascent is not None:
            self.ascent.judge(self.gap / max(self.objective, 1e-300), self.bundle.n_planes)

    def descend(self, f: Matrix) -> Plane:
        """Search along the line to the target, whose outputs are f; return a plane near the new best point."""
        if self.ascent is not None and self._has_ascended:
            self.ascent.observe(f[0])
        toward = self.target - self.w
        curvature = float(np.vdot(toward, toward))
        self.step, mu = 0.0, 0.0 if self._is_led else self.mu
        if curvature > 0.0:
            slope = float(np.vdot(self.w, toward)) / self.C + float(np.vdot(self._rest.normal, toward))
            self.step = min(self.risk.search(self.outputs, f, curvature / self.C, slope), _LONGEST)
        if self.leash is not None:
            self.step, mu = self.leash.hold(self.outputs, f, self.step, mu)
        cut = self.risk.advance(self.outputs, f, self.step, mu)
        self.w = self.w + self.step * toward
        self._risk = cut.risk
        self.objective = min(self.objective, self.value(self.w, cut.risk))  # the search is exact: a rise is rounding
        near = self.w + mu * (self.target - self.w)
        self._touching = Plane(cut.coef, cut.offset, near.ravel())
        return self._touching

    def look_at(self, w: Matrix, f: Matrix) -> Plane:
        """Return a plane at a point; the point becomes the best one if it is, and its outputs f the solver's own."""
        cut = self.risk.advance(f, f, 0.0, 0.0)
        objective = self.value(w, cut.risk)
        plane = Plane(cut.coef, cut.offset, w.ravel())
        if objective < self.objective:
            own = f if f.base is None or f.base.size == f.size else f.copy()  # a part would keep all of it in memory
            self.w, self._outputs, self._risk, self.objective = w, own, cut.risk, objective
            self._touching = plane
        self.step = 1.0
        return plane

    def learn(self, plane: Plane, normal: Matrix) -> None:
        """Add a plane, given the sum of the rows with its weights (q, n_features)."""
        self.bundle.add((normal + self._rest.normal).ravel(), plane.offset + self._rest.offset, plane.point)
        if plane is self._touching:
            self.anchor = Anchor(plane, normal)
            self._n_changes += 1

    @property
    def known(self) -> Anchor | None:
        """The anchor, to sum changes on; now and then None, so that their rounding does not add up."""
        return self.anchor if self._n_changes % _FRESH else None

    def lead(self, other: CuttingPlaneSolver) -> None:
        """Search next towards the best point of another solver with the same bundle, and take over its bound.

        That point is no solution of the reduced problem, so the plane is taken at the best point itself: an exact
        anchor, even if the search leads nowhere.
        """
        self.bound, self.target, self._is_led = other.bound, other.w, True

    def ascend(self) -> Plane | None:
        """Make a better dual point the target, if it is time for that; return its plane if `learn` needs a pass."""
        self._has_ascended = self.has_epochs
        if self.ascent is None or not self._has_ascended:
            return None
        self.ascent.ascend()
        plane, normal = Plane(*self.ascent.plane()), self.ascent.normal
        self.target = plane.point.reshape(self.w.shape)
        if normal is None:
            return plane
        self.learn(plane, normal)
        return None

    def slope(self, w: Matrix, normal: Matrix) -> Matrix:
        """The gradient at w, if that of the rows' risk is `normal`."""
        total: Matrix = w + self.C * (normal + self._rest.normal)
        return total

    def value(self, w: Matrix, risk: float) -> float:
        """The objective at w, where the rows' risk is this."""
        rest = float(np.vdot(self._rest.normal, w)) + self._rest.offset
        return 0.5 * float(np.vdot(w, w)) + self.C * (risk + rest)


def learn_planes(rows: DesignMatrix, solvers: Sequence[CuttingPlaneSolver], planes: Sequence[Plane]) -> None:
    """Sum the rows for one plane of each solver, in one pass, and let it learn the plane.

    Only rows are read whose weight is not that in the solver's anchor: late in a fit, few of those that count.
    """
    anchors = [solver.known for solver in solvers]
    known = [None if anchor is None else anchor.plane.coef for anchor in anchors]
    if len(planes) == 1:
        sums = rows.rmatvec(planes[0].coef, known[0])
    elif planes:
        news = [plane.coef if old is None else plane.coef - old for plane, old in zip(planes, known, strict=True)]
        sums = rows.rmatvec(np.concatenate(news))
    ends = np.cumsum([0, *(len(plane.coef) for plane in planes)])
    for k, (solver, plane, anchor) in enumerate(zip(solvers, planes, anchors, strict=True)):
        change = sums[ends[k] : ends[k + 1]]
        solver.learn(plane, change if anchor is None else anchor.normal + change)
