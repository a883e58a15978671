"""The master problem: a convex risk, replaced by the maximum of the planes known.

    minimise  1/2 |w|^2 + C max_j (<a_j, w> + b_j)

It is a quadratic program over the simplex: its value is a lower bound of the objective that the planes are of.

Source: Franc and Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, section 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._native import linear

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_MAX_ROUNDS = 10_000
_PATIENCE = 20  # rounds that a plane stays without weight


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
        """Weights of the planes in the latest master problem."""
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
        linear.solve_simplex_qp(self._gram, self._offsets[:t], beta, tol, _MAX_ROUNDS)
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
