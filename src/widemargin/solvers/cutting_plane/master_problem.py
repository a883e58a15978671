"""The master problem: the objective with the risk R replaced by the maximum of its cutting planes.

Solve    min_w  1/2 |w|^2 + C max_j (<a_j, w> + c_j)
Given    normals a_j (t, d) and offsets c_j (t,); the first is never dropped: the zero plane, for a risk R >= 0
Returns  w = -sum_j beta_j a_j, and the dual value c' beta - 1/2 |w|^2, a lower bound of F
Cost     O(t d) and a quadratic program over the simplex, beta >= 0, sum(beta) = C, on the planes' Gram matrix
Source   Franc and Sonnenburg, ICML 2008, section 2, equation (3) ("reduced problem")
Twin     tests/naive/cutting_plane.py::ocas
"""

from __future__ import annotations

import numpy as np

from ..._native import linear
from ..._types import Matrix, Vector

IDLE_ROUNDS = 20  # drop a plane whose multiplier was 0 in more than so many rounds in a row


class MasterProblem:
    """The cutting planes known so far, the points where they touch the risk, and their multipliers beta.

    Normals have `n_weights` values, q d for q weight vectors of d features. Beyond `capacity` planes that whose
    multiplier has been 0 for longest is dropped; if none is 0, two are replaced by their mean, weighted by multiplier,
    and the bound stays. Without `keep_points`, which saves half of the memory, `binding_points` is empty. A plane is
    dropped after `idle_rounds` with multiplier 0. `first` is the normal and the offset of the first plane, which is
    never dropped; the zero plane by default.
    """

    def __init__(
        self,
        n_weights: int,
        capacity: int,
        *,
        keep_points: bool = True,
        idle_rounds: float = IDLE_ROUNDS,
        first: tuple[Vector, float] | None = None,
    ) -> None:
        self.capacity = max(3, capacity)  # the zero plane, and two to replace by their mean
        self.n_planes = 1
        self._idle_rounds = idle_rounds
        self._normals = np.zeros((1, n_weights))
        self._points = np.zeros((1, n_weights if keep_points else 0))
        self._gram = np.zeros((1, 1))
        self._offsets, self._beta, self._idle = np.zeros((3, 1))
        if first is not None:
            self._normals[0], self._offsets[0] = first
            self._gram[0, 0] = first[0] @ first[0]

    @property
    def normals(self) -> Matrix:
        """Normals (n_planes, n_weights)."""
        return self._normals[: self.n_planes]

    @property
    def offsets(self) -> Vector:
        """Offsets (n_planes,)."""
        return self._offsets[: self.n_planes]

    @property
    def beta(self) -> Vector:
        """Multipliers (n_planes,) of the planes in the latest solution; they sum to C."""
        return self._beta[: self.n_planes]

    @property
    def binding_points(self) -> Matrix:
        """The points of the planes with positive multipliers, in descending order of these."""
        order = np.argsort(-self.beta[1:], kind="stable")[: np.count_nonzero(self.beta[1:])] + 1
        return self._points[order]

    def add(self, normal: Vector, offset: float, point: Vector) -> None:
        """Add a plane that touches the risk at a point."""
        self._drop_idle()
        if self.n_planes == self.capacity:
            self._free_one_place()
        t = self.n_planes
        if t == len(self._normals):
            self._grow()
        self._normals[t], self._points[t], self._offsets[t] = normal, point[: self._points.shape[1]], offset
        self._beta[t] = self._idle[t] = 0.0
        self._gram[t, : t + 1] = self._gram[: t + 1, t] = self._normals[: t + 1] @ normal
        self.n_planes += 1

    def first_bound(self, C: float) -> float:
        """The lower bound of the objective by the first plane alone: 0 for the zero plane."""
        return C * float(self._offsets[0]) - 0.5 * C * C * float(self._gram[0, 0])

    def solve(self, C: float, tol: float) -> tuple[Vector, float]:
        """The solution w (n_weights,) for this C to a duality gap of `tol`, and its dual value.

        That is a lower bound of the objective, whatever `tol`.
        """
        t, beta = self.n_planes, self.beta
        total = beta.sum()
        beta *= (C / total) if total > 0 else 0.0
        beta[0] += C - beta.sum()
        linear.solve_simplex_qp(self._gram, self.offsets, beta, tol, 10_000)
        self._idle[:t] = np.where(beta > 0.0, 0.0, self._idle[:t] + 1.0)
        w = -beta @ self.normals
        return w, float(self.offsets @ beta - 0.5 * w @ w)

    def _grow(self) -> None:
        size = 2 * len(self._normals) + 14  # 16 at first
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
            if self._idle[j] > self._idle_rounds:
                self._drop(j)

    def _free_one_place(self) -> None:
        idlest = int(np.argmax(self._idle[1 : self.n_planes])) + 1
        if self._idle[idlest] > 0.0:
            self._drop(idlest)
        else:
            self._merge(*(np.argsort(self.beta[1:])[:2] + 1))

    def _drop(self, j: int) -> None:
        last = self.n_planes - 1
        # the last two: row j, then column j, of the Gram matrix
        for array in (self._normals, self._points, self._offsets, self._beta, self._idle, self._gram, self._gram.T):
            array[j] = array[last]
        self.n_planes = last

    def _merge(self, i: int, j: int) -> None:
        """Replace planes i and j by their mean, weighted by beta: a plane below the risk, with the same solution.

        Of two planes with multiplier 0, j is dropped.
        """
        total = self._beta[i] + self._beta[j]
        if total == 0.0:
            return self._drop(j)
        share, other = self._beta[i] / total, self._beta[j] / total
        # the last two: row i, then column i, of the Gram matrix
        for array in (self._normals, self._points, self._offsets, self._gram, self._gram.T):
            array[i] = share * array[i] + other * array[j]
        self._beta[i] = total
        self._drop(j)
