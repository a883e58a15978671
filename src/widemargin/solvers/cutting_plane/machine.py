"""One machine in training: its planes, its best point and its lower bound, and the steps of Algorithm 1 on them.

    minimise  F(w) = 1/2 |w|^2 + C R(w)          R(w) >= <a_j, w> + c_j  for every plane j

Source: Franc and Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, sections 2, 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._types import ROUNDING, Matrix, Vector
from ...data import DesignMatrix
from .losses import HingeLoss, Loss, risk_and_plane
from .master_problem import MasterProblem

_MASTER_TOL = 0.05  # gap of a solved master problem / gap of the machine, at most: the next plane changes it by more
_MAX_STEP = 2.0  # longest step of a line search: it multiplies decision values, and so their rounding, by |1 - step|
_PLANES_PER_SUM = 50  # sum the normal of every 50th base plane anew: rounding of the changes between does not add up


class Plane(NamedTuple):
    """A cutting plane: subgradient coefficients (q, n), the normal is coef X; offset; the point where it touches R."""

    coef: Matrix
    offset: float
    point: Vector


class BasePlane(NamedTuple):
    """A plane and its normal coef X (q, d): the next normal is the sum over the samples whose coefficients changed."""

    plane: Plane
    normal: Matrix


class LinearRemainder(NamedTuple):
    """A linear function <normal, w> + offset that stands for the risk of samples outside the active rows."""

    normal: Matrix  # (q, d)
    offset: float


class TrustRegion:
    """The points whose decision values differ from f (1, n), at the centre, by at most `radius` in root mean square.

    `is_at_boundary` is whether the latest step was shortened.
    """

    def __init__(self, loss: HingeLoss, f: Matrix, radius: float) -> None:
        self.radius = radius
        self.is_at_boundary = False
        self._loss = loss
        self._centre = f.copy()

    def is_outside(self, f: Matrix) -> bool:
        """Whether decision values f are at the radius or beyond."""
        return self._loss.rms_change(self._centre, f) >= self.radius

    def shorten(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> tuple[float, float]:
        """`step` and `mu`, reduced so far that best point and next plane stay within the region.

        The best point goes to f + step (f_end - f); the plane touches the risk mu of the way from there to f_end.
        """
        distance = self._loss.rms_change(self._centre, f)
        rate = self._loss.rms_change(f, f_end)
        longest = max(0.0, self.radius - distance) / rate if rate > 0.0 else np.inf
        self.is_at_boundary = step >= longest
        step = min(step, longest)
        return step, min(mu, (longest - step) / (1.0 - step)) if step < 1.0 else mu


class CuttingPlaneMachine:
    """The state of one machine, and what a round does to it.

    A round: `solve_master` finds w_t; the caller computes the decision values X w_t; `move_best_point` does the line
    search and returns a plane, whose normal the caller sums over the samples; `add` takes both. So several machines
    share the two passes over X. The loop over rounds is `algorithms.ocas.OCASTraining`.

    The master problem, with normals of ``loss.n_outputs * n_features`` values, may be shared. Planes touch the risk at
    w_c = (1 - mu) w_b + mu w_t. With `is_plain`, as in the paper, master problems are solved to rounding and steps are
    not limited. `remainder` is a linear part of the risk; `trust_region` limits the line search.

    `w` (q, d) is w_b, the best point so far; `search_point` (q, d) is w_t, where the line search has k = 1: the latest
    master solution, or a point that an acceleration found; `objective` and `bound` are F(w_b) and the largest lower
    bound so far; `step` is that of the latest line search, 1 where there was none. `base` is the latest plane at, or
    near, the best point; `further_planes` are those that the latest line search found beside it.
    """

    def __init__(
        self,
        loss: Loss,
        master: MasterProblem,
        C: float = 1.0,
        *,
        mu: float = 0.1,
        is_plain: bool = False,
        remainder: LinearRemainder | None = None,
        trust_region: TrustRegion | None = None,
    ) -> None:
        self.loss = loss
        self.master = master
        self.C = C
        self.mu = mu
        self.w = self.search_point = np.zeros((loss.n_outputs, master.normals.shape[1] // loss.n_outputs))
        self.objective, self.bound, self.step = np.inf, master.first_bound(C), 0.0
        self.further_planes: list[Plane] = []
        self.base: BasePlane | None = None
        self.trust_region = trust_region
        self._master_tol, self._max_step = (0.0, np.inf) if is_plain else (_MASTER_TOL, _MAX_STEP)
        self._remainder = remainder or LinearRemainder(np.zeros_like(self.w), 0.0)
        self._risk = np.inf
        self._f: Matrix | None = None
        self._plane_at_best = False  # whether the next plane is taken with mu = 0
        self._next_base: Plane | None = None  # the plane that is the base once `add` has its normal
        self._n_base_planes = 0

    @property
    def decision_values(self) -> Matrix:
        """X w_b (q, n)."""
        assert self._f is not None, "evaluate a point first"
        return self._f

    @property
    def gap(self) -> float:
        """F(w_b) minus the lower bound."""
        return max(self.objective - self.bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """The gap as a part of the objective."""
        return self.gap / max(abs(self.objective), 1e-300)

    @property
    def intercept(self) -> Vector:
        """Intercepts (q,) of the best point."""
        return np.zeros(len(self.w)) if self._f is None else self.loss.intercept(self._f)

    def set_risk_weight(self, C: float) -> None:
        """Set C, the weight of the risk, anew; the planes, which are below the risk itself, stay."""
        self.C, self.bound = C, self.master.first_bound(C)
        self.objective = self.value(self.w, self._risk)

    def solve_master(self, objective: float | None = None) -> None:
        """Set `search_point` to the master solution and raise the bound; solved to 5 % of the gap to `objective`."""
        self._plane_at_best = False
        objective = self.objective if objective is None else objective
        tol = max(self._master_tol * (objective - self.bound), ROUNDING * abs(objective))
        w, bound = self.master.solve(self.C, tol)
        self.bound = max(self.bound, bound)
        self.search_point = w.reshape(self.w.shape)

    def raise_bound(self, bound: float) -> None:
        """Take over a lower bound of the objective that was found without a master problem."""
        self.bound = max(self.bound, bound)

    def lengthen_search_point(self, f: Matrix) -> Matrix:
        """Multiply `search_point`, of decision values f, by the best factor >= 1; return its decision values.

        The factor is 1 + k for the k of a line search on the ray from w_t, k = 0, through 2 w_t, k = 1. Along it, F / C
        is |w_t|^2 / C (1/2 + k + k^2 / 2) + R: curvature and slope are both |w_t|^2 / C.
        """
        square = float(np.vdot(self.search_point, self.search_point)) / self.C
        factor = 1.0 + self.loss.find_step(f, 2.0 * f, square, square)
        self.search_point = factor * self.search_point
        return factor * f

    def move_best_point(self, f: Matrix) -> Plane:
        """Move the best point along the line to `search_point`, of decision values f; return the plane at w_c."""
        toward = self.search_point - self.w
        curvature = float(np.vdot(toward, toward))
        self.step, mu = 0.0, 0.0 if self._plane_at_best else self.mu
        if curvature > 0.0:
            slope = float(np.vdot(self.w, toward)) / self.C + float(np.vdot(self._remainder.normal, toward))
            self.step = min(self.loss.find_step(self.decision_values, f, curvature / self.C, slope), self._max_step)
        if self.trust_region is not None:
            self.step, mu = self.trust_region.shorten(self.decision_values, f, self.step, mu)
        found = self.loss.advance(self.decision_values, f, self.step, mu)
        self.w = self.w + self.step * toward
        self._risk = found.risk
        self.objective = min(self.objective, self.value(self.w, found.risk))  # a rise is rounding
        end = self.search_point.ravel()
        self.further_planes = [Plane(c, offset, end if point is None else point) for c, offset, point in found.further]
        touching = self.w + mu * (self.search_point - self.w)
        self._next_base = Plane(found.coef, found.offset, touching.ravel())
        return self._next_base

    def evaluate(self, w: Matrix, f: Matrix) -> Plane:
        """Return the plane at w, whose decision values f are kept if w is the new best point."""
        found = risk_and_plane(self.loss, f)
        objective = self.value(w, found.risk)
        plane = Plane(found.coef, found.offset, w.ravel())
        if objective < self.objective:
            own = f if f.base is None or f.base.size == f.size else f.copy()  # a part would keep all of it in memory
            self.w, self._f, self._risk, self.objective = w, own, found.risk, objective
            self._next_base = plane
        self.step = 1.0
        return plane

    def add(self, plane: Plane, normal: Matrix) -> None:
        """Add a plane, given its normal coef X (q, n_features)."""
        self.master.add((normal + self._remainder.normal).ravel(), plane.offset + self._remainder.offset, plane.point)
        if plane is self._next_base:
            self.base = BasePlane(plane, normal)
            self._n_base_planes += 1

    @property
    def base_to_update(self) -> BasePlane | None:
        """The base plane whose normal the next one is summed from; None every 50 planes, for a fresh sum."""
        return self.base if self._n_base_planes % _PLANES_PER_SUM else None

    def search_towards(self, other: CuttingPlaneMachine) -> None:
        """Take over the bound of a machine that shares the master problem; search next towards its best point.

        The plane at the best point is an exact base plane, even if the step is zero.
        """
        self.bound = other.bound
        self.search_for(other.w)

    def search_for(self, point: Matrix) -> None:
        """Search next towards a point that is no master solution: the next plane is taken at the best point itself."""
        self.search_point, self._plane_at_best = point, True

    def gradient(self, w: Matrix, normal: Matrix) -> Matrix:
        """The gradient of the objective at w, where that of the samples' risk is `normal`."""
        total: Matrix = w + self.C * (normal + self._remainder.normal)
        return total

    def value(self, w: Matrix, risk: float) -> float:
        """The objective at w, where the samples' risk is `risk`."""
        remainder = float(np.vdot(self._remainder.normal, w)) + self._remainder.offset
        return 0.5 * float(np.vdot(w, w)) + self.C * (risk + remainder)


def add_planes(X: DesignMatrix, machines: Sequence[CuttingPlaneMachine], planes: Sequence[Plane]) -> None:
    """Sum the normal of one plane of each machine in one pass over X, and add the planes.

    Only samples are read whose coefficient differs from that in the machine's base plane: late in a fit, few.
    """
    bases = [machine.base_to_update for machine in machines]
    known = [None if base is None else base.plane.coef for base in bases]
    if len(planes) == 1:
        sums = X.rmatvec(planes[0].coef, known[0])
    elif planes:
        changes = [plane.coef if old is None else plane.coef - old for plane, old in zip(planes, known, strict=True)]
        sums = X.rmatvec(np.concatenate(changes))
    for k, (machine, plane, base) in enumerate(zip(machines, planes, bases, strict=True)):
        q = len(plane.coef)
        change = sums[k * q : (k + 1) * q]
        machine.add(plane, change if base is None else base.normal + change)
