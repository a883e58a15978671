"""Cutting planes: a convex risk, replaced by the maximum of linear functions below it.

    minimise  F(w) = 1/2 |w|^2 + C R(w)          R(w) >= <a_j, w> + b_j  for every plane j

The reduced problem, with the planes in place of R, is a quadratic program over the simplex: its value is a lower bound
of F, its solution the next point to look at.

Source: Franc and Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, section 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import simplex_qp
from .coordinate import CoordinateAscent
from .risks import Risk

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_MAX_ROUNDS = 10_000
_REDUCED_TOL = 0.05  # of the gap: more precision would be lost with the next plane
_PATIENCE = 20  # rounds that a plane stays without weight
_NOISE = 1e-13  # of the objective: what rounding leaves


class Plane(NamedTuple):
    """What makes a plane, but for the sum of the rows: weights of the rows (q, n), offset, and where it touches."""

    coef: Matrix
    offset: float
    point: Vector


class Bundle:
    """The planes known so far, and the points they touch the risk at. The zero plane is the first.

    Parameters
    ----------
    n_features : int
    capacity : int
        Most planes that are kept.
    keep_points : bool
        False saves half of the memory; `active_points` is empty then.
    """

    def __init__(self, n_features: int, capacity: int, *, keep_points: bool = True) -> None:
        self.capacity = max(3, capacity)
        self.n_planes = 1
        self._normals = np.zeros((1, n_features))
        self._points = np.zeros((1, n_features if keep_points else 0))
        self._gram = np.zeros((1, 1))
        self._offsets, self._beta, self._idle = np.zeros((3, 1))

    @property
    def normals(self) -> Matrix:
        """Of shape (n_planes, n_features)."""
        return self._normals[: self.n_planes]

    @property
    def beta(self) -> Vector:
        """Weights of the planes in the latest reduced problem."""
        return self._beta[: self.n_planes]

    @property
    def active_points(self) -> Matrix:
        """The points of the planes that carry weight, the heaviest first."""
        order = np.argsort(-self.beta[1:], kind="stable")[: np.count_nonzero(self.beta[1:])] + 1
        return self._points[order]

    def add(self, normal: Vector, offset: float, point: Vector) -> None:
        """Learn a plane."""
        self._drop_idle()
        if self.n_planes == self.capacity:
            self._make_room()
        t = self.n_planes
        if t == len(self._normals):
            self._grow()
        self._normals[t], self._points[t], self._offsets[t] = normal, point[: self._points.shape[1]], offset
        self._beta[t] = self._idle[t] = 0.0
        self._gram[t, : t + 1] = self._gram[: t + 1, t] = self._normals[: t + 1] @ normal
        self.n_planes += 1

    def solve(self, C: float, tol: float) -> tuple[Vector, float]:
        """Minimise 1/2 |w|^2 + C max_j (<a_j, w> + b_j) to a gap of `tol`, from the latest weights on.

        Returns
        -------
        w : ndarray of shape (n_features,)
        bound : float
            The dual value: a lower bound of F, however small or large `tol` was.
        """
        t, beta = self.n_planes, self.beta
        total = beta.sum()
        beta *= C / total if total > 0 else 0.0
        beta[0] += C - beta.sum()
        grad, step = np.empty((2, t))
        scratch = grad, np.empty((t, t)), step, np.empty(t, np.int64)
        simplex_qp.solve_simplex(self._gram, self._offsets[:t], beta, *scratch, tol, _MAX_ROUNDS)
        self._idle[:t] = np.where(beta > 0.0, 0.0, self._idle[:t] + 1.0)
        w = -beta @ self.normals
        return w, float(self._offsets[:t] @ beta - 0.5 * w @ w)

    def _grow(self) -> None:
        size = 2 * len(self._normals) + 14
        for name in ("_normals", "_points", "_offsets", "_beta", "_idle"):
            old = getattr(self, name)
            new = np.empty((size, *old.shape[1:]))
            new[: len(old)] = old
            setattr(self, name, new)
        gram = np.empty((size, size))
        gram[: self.n_planes, : self.n_planes] = self._gram[: self.n_planes, : self.n_planes]
        self._gram = gram

    def _drop_idle(self) -> None:
        for j in range(self.n_planes - 1, 0, -1):
            if self._idle[j] > _PATIENCE:
                self._drop(j)

    def _make_room(self) -> None:
        """Drop the plane that has been without weight for longest; where all have weight, let one stand for two."""
        idlest = int(np.argmax(self._idle[1 : self.n_planes])) + 1
        if self._idle[idlest] > 0.0:
            self._drop(idlest)
        else:
            self._merge(*(np.argsort(self.beta[1:])[:2] + 1))

    def _drop(self, j: int) -> None:
        last = self.n_planes - 1
        for column in (self._normals, self._points, self._offsets, self._beta, self._idle, self._gram, self._gram.T):
            column[j] = column[last]
        self.n_planes = last

    def _merge(self, i: int, j: int) -> None:
        """Their weighted mean is a plane below the risk too, and the solution stays where it is."""
        total = self._beta[i] + self._beta[j]
        share, other = self._beta[i] / total, self._beta[j] / total
        for column in (self._normals, self._points, self._offsets, self._gram, self._gram.T):
            column[i] = share * column[i] + other * column[j]
        self._beta[i] = total
        self._drop(j)


class CuttingPlaneSolver:
    """One minimisation: its planes, its best point and its lower bound.

    A round: `solve_reduced` finds a target, the caller computes its outputs, `descend` gives a plane as weights of the
    rows, the caller sums them, `learn` takes both. So several minimisations share a pass over the data. `ascend` may
    give one more plane.

    Parameters
    ----------
    risk : Risk
    n_features : int
    C : float
        Weight of the risk.
    mu : float
        Planes touch the risk at ``(1 - mu) best + mu target``.
    capacity : int
        Most planes kept.
    keep_points : bool
        Whether their points are wanted at the end.
    ascent : CoordinateAscent, optional
        Where planes come from beside those that touch the risk.

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
    """

    def __init__(
        self,
        risk: Risk,
        n_features: int,
        C: float,
        *,
        mu: float = 0.1,
        capacity: int = 1000,
        keep_points: bool = True,
        ascent: CoordinateAscent | None = None,
    ) -> None:
        self.risk = risk
        self.C = C
        self.mu = mu
        self.ascent = ascent
        if ascent is not None:
            ascent.weigh(C)
        self.bundle = Bundle(risk.n_outputs * n_features, capacity, keep_points=keep_points)
        self.w = self.target = np.zeros((risk.n_outputs, n_features))
        self.objective, self.bound, self.step = np.inf, 0.0, 0.0
        self._risk = np.inf
        self._outputs: Matrix | None = None
        self._has_ascended = False

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
        self.objective = self._value(self.w, self._risk)
        if self.ascent is not None:
            self.ascent.weigh(C)

    def solve_reduced(self) -> None:
        """Find the next target, and a lower bound."""
        noise = _NOISE * abs(self.objective)
        w, bound = self.bundle.solve(self.C, max(_REDUCED_TOL * self.gap, noise))
        self.bound = max(self.bound, bound)
        self.target = w.reshape(self.w.shape)
        if self.ascent is not None:
            self.ascent.judge(self.gap / max(self.objective, 1e-300), self.bundle.n_planes)

    def descend(self, f: Matrix) -> Plane:
        """Search along the line to the target, whose outputs are f; return a plane near the new best point."""
        assert self._outputs is not None, "look at a point first"
        if self.ascent is not None and self._has_ascended:
            self.ascent.observe(f[0])
        toward = self.target - self.w
        curvature = float(np.vdot(toward, toward))
        self.step = 0.0
        if curvature > 0.0:
            slope = float(np.vdot(self.w, toward))
            self.step = self.risk.search(self._outputs, f, curvature / self.C, slope / self.C)
        cut = self.risk.advance(self._outputs, f, self.step, self.mu)
        self.w = self.w + self.step * toward
        self._risk = cut.risk
        self.objective = min(self.objective, self._value(self.w, cut.risk))  # the search is exact: a rise is rounding
        near = self.w + self.mu * (self.target - self.w)
        return Plane(cut.coef, cut.offset, near.ravel())

    def look_at(self, w: Matrix, f: Matrix) -> Plane:
        """Return a plane at a point, whose outputs are f; the point becomes the best one if it is."""
        cut = self.risk.advance(f, f, 0.0, 0.0)
        objective = self._value(w, cut.risk)
        if objective < self.objective:
            self.w, self._outputs, self._risk, self.objective = w, f.copy(), cut.risk, objective
        self.step = 1.0
        return Plane(cut.coef, cut.offset, w.ravel())

    def learn(self, plane: Plane, normal: Matrix) -> None:
        """Add a plane, given the sum of the rows with its weights (q, n_features)."""
        self.bundle.add(normal.ravel(), plane.offset, plane.point)

    def ascend(self) -> Plane | None:
        """Make a better dual point the target, if it is time for that; return its plane if `learn` needs a pass."""
        self._has_ascended = self.ascent is not None and self.ascent.turns.has_epochs
        if self.ascent is None or not self._has_ascended:
            return None
        self.ascent.ascend()
        plane, normal = Plane(*self.ascent.plane()), self.ascent.normal
        self.target = plane.point.reshape(self.w.shape)
        if normal is None:
            return plane
        self.learn(plane, normal)
        return None

    def _value(self, w: Matrix, risk: float) -> float:
        return 0.5 * float(np.vdot(w, w)) + self.C * risk
