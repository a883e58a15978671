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
from .risks import Risk

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_MAX_ROUNDS = 10_000
_REDUCED_TOL = 0.05  # of the gap: more precision would be lost with the next plane
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
    """

    def __init__(self, n_features: int, capacity: int) -> None:
        self.capacity = max(3, capacity)
        self.n_planes = 1
        self._normals, self._points = np.zeros((2, 1, n_features))
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
        """The points of the planes that carry weight."""
        return self._points[: self.n_planes][self.beta > 0]

    def add(self, normal: Vector, offset: float, point: Vector) -> None:
        """Learn a plane."""
        t = self.n_planes
        if t == len(self._normals):
            self._grow()
        self._normals[t], self._points[t], self._offsets[t] = normal, point, offset
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
        simplex_qp.solve_simplex(self._gram[:t, :t], self._offsets[:t], beta, *scratch, tol, _MAX_ROUNDS)
        w = -beta @ self.normals
        return w, float(self._offsets[:t] @ beta - 0.5 * w @ w)

    def _grow(self) -> None:
        size = 2 * len(self._normals) + 14
        for name in ("_normals", "_points", "_offsets", "_beta", "_idle"):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]))
            new[: len(old)] = old
            setattr(self, name, new)
        gram = np.zeros((size, size))
        gram[: self.n_planes, : self.n_planes] = self._gram[: self.n_planes, : self.n_planes]
        self._gram = gram


class CuttingPlaneSolver:
    """One minimisation: its planes, its best point and its lower bound.

    A round: `solve_reduced` finds a target, the caller computes its outputs, `descend` gives the new plane as weights of
    the rows, the caller sums them, `learn` takes the sum. So several minimisations share a pass over the data.

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

    def __init__(self, risk: Risk, n_features: int, C: float, *, mu: float = 0.1, capacity: int = 1000) -> None:
        self.risk = risk
        self.C = C
        self.mu = mu
        self.bundle = Bundle(risk.n_outputs * n_features, capacity)
        self.w = self.target = np.zeros((risk.n_outputs, n_features))
        self.objective, self.bound, self.step = np.inf, 0.0, 0.0
        self._outputs: Matrix | None = None
        self._plane: Plane | None = None

    @property
    def gap(self) -> float:
        """How far from the optimum the best point can be."""
        return max(self.objective - self.bound, 0.0)

    @property
    def intercept(self) -> Vector:
        """Intercepts (q,) of the best point."""
        return np.zeros(len(self.w)) if self._outputs is None else self.risk.intercept(self._outputs)

    def solve_reduced(self) -> None:
        """Find the next target, and a lower bound."""
        noise = _NOISE * abs(self.objective)
        w, bound = self.bundle.solve(self.C, max(_REDUCED_TOL * self.gap, noise))
        self.bound = max(self.bound, bound)
        self.target = w.reshape(self.w.shape)

    def descend(self, f: Matrix) -> Matrix:
        """Search along the line to the target, whose outputs are f; return the new plane's weights of the rows."""
        assert self._outputs is not None, "look at a point first"
        toward = self.target - self.w
        curvature = float(np.vdot(toward, toward))
        self.step = 0.0
        if curvature > 0.0:
            slope = float(np.vdot(self.w, toward))
            self.step = self.risk.search(self._outputs, f, curvature / self.C, slope / self.C)
        cut = self.risk.advance(self._outputs, f, self.step, self.mu)
        self.w = self.w + self.step * toward
        self.objective = self._value(self.w, cut.risk)
        near = self.w + self.mu * (self.target - self.w)
        self._plane = Plane(cut.coef, cut.offset, near.ravel())
        return cut.coef

    def look_at(self, w: Matrix, f: Matrix) -> Matrix:
        """Cut at a point, whose outputs are f; it becomes the best if it is. As `descend`."""
        cut = self.risk.advance(f, f, 0.0, 0.0)
        objective = self._value(w, cut.risk)
        if objective < self.objective:
            self.w, self._outputs, self.objective = w, f, objective
        self.step = 1.0
        self._plane = Plane(cut.coef, cut.offset, w.ravel())
        return cut.coef

    def learn(self, normal: Matrix) -> None:
        """Add the plane of the latest `descend` or `look_at`, given the weighted sum of the rows (q, n_features)."""
        assert self._plane is not None, "descend first"
        self.bundle.add(normal.ravel(), self._plane.offset, self._plane.point)
        self._plane = None

    def _value(self, w: Matrix, risk: float) -> float:
        return 0.5 * float(np.vdot(w, w)) + self.C * risk
