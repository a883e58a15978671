"""The linear systems of Newton steps: least squares of the samples, weighted, and of w.

Solve    min_(w, b)  1/2 |w - r|^2 + 1/2 sum_i c_i (g_i - <x_i, w> - b)^2 + q b        b = 0 without an intercept
Given    X (n, d); curvatures c (n,) >= 0; g (n,), r (d,) and q
Method   With d_i = c_i (g_i - <x_i, w> - b), w = r + X' d and sum(d) = q. Cholesky decomposition of C^-1 + X X' of the
         m samples with c > 0, for d and b, which the equations themselves refine; where samples are many for the
         columns, of I + X' C X, the samples centred for an intercept, for w
Returns  w, b and d
Cost     m^3 / 3 + m^2 d / 2, the latter once for all systems where n <= 1.5 d; or m d^2 / 2 + d^3 / 3
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..._native import dense
from ..._threads import ThreadTeam, cached_property
from ..._types import Array, Matrix, RowIndices, Vector
from ...data import LocalMatrix

_MOST_SIDE = 1024  # of a decomposed matrix
_MOST_WORK = 2e10  # multiply-adds of the second moments
_REFINEMENTS = 3  # of a solution by samples: a column's square that is 1e16 times another's hides it in X X'
_SAMPLES_PER_COLUMN = 1.5  # samples / columns, at most, where inner products of all samples are kept, and used


def is_small(n: int, d: int, n_bytes: int) -> bool:
    """Whether matrices of side min(n, d) are cheap, and n_bytes hold a copy of X (n, d) and three such matrices."""
    side = min(n, d)
    return side <= _MOST_SIDE and side * n * d <= _MOST_WORK and 8 * (n * d + 3 * side**2) <= n_bytes


class Decomposition(Protocol):
    """The system of some curvatures, decomposed."""

    def solve(self, g: Vector, r: Vector, q: float) -> tuple[Vector, float, Vector]:
        """w (d,), b and d (n,)."""

    def newton_step(self, r: Vector) -> Vector:
        """w (d,) for g = 0 and q = 0."""


class RidgeSystem:
    """The systems of samples X (n, d), for any curvatures c."""

    def __init__(self, X: LocalMatrix, team: ThreadTeam, *, has_intercept: bool) -> None:
        self.X = X
        self.team = team
        self.has_intercept = has_intercept

    @cached_property
    def rows(self) -> tuple[Array, RowIndices]:
        """Rows, and the place of each sample among them."""
        return self.X.gather(np.arange(self.X.shape[0]))

    @property
    def keeps_products(self) -> bool:
        """Whether samples are so few that inner products of all of them are kept, for the active ones of any step."""
        n, d = self.X.shape
        return n <= _SAMPLES_PER_COLUMN * d

    @cached_property
    def gram(self) -> Matrix:
        """Inner products of the rows, in float64."""
        rows = self.rows[0].astype(np.float64, copy=False)
        return np.asarray(rows @ rows.T)

    def decompose(self, curvatures: Vector) -> Decomposition:
        """The smaller of the two systems, of the samples that have a curvature or of the columns."""
        active, (n, d) = np.flatnonzero(curvatures), self.X.shape
        is_by_samples = len(active) <= min(n if self.keeps_products else d, _MOST_SIDE)
        return (_BySamples if is_by_samples else _ByColumns)(self, active, curvatures)


class _BySamples:
    """(C^-1 + X X') d + b 1 = g - X r,  1' d = q, of the samples `active` (m,)."""

    def __init__(self, system: RidgeSystem, active: RowIndices, curvatures: Vector) -> None:
        rows, places = system.rows[0], system.rows[1][active]
        self._system, self._active, self._curvatures = system, active, curvatures[active]
        self._rows = rows[places].astype(np.float64, copy=False)
        matrix = system.gram[np.ix_(places, places)] if system.keeps_products else self._rows @ self._rows.T
        matrix.reshape(-1)[:: len(active) + 1] += 1.0 / curvatures[active]
        self._invert = _cholesky(matrix)
        self._ones = self._invert(np.ones(len(active))) if system.has_intercept else np.zeros(len(active))

    def solve(self, g: Vector, r: Vector, q: float) -> tuple[Vector, float, Vector]:
        rows, right = self._rows, g[self._active]
        w, own, b = r, np.zeros(len(self._active)), 0.0
        for _ in range(1 + _REFINEMENTS):
            lack = right - rows @ w - own / self._curvatures - b
            change = self._invert(lack)
            if self._system.has_intercept:
                db = (float(own.sum()) + float(change.sum()) - q) / (float(self._ones.sum()) or 1.0)
                change -= db * self._ones
                b += db
            own += change
            w = r + own @ rows
        d = np.zeros(len(g))
        d[self._active] = own
        return w, b, d

    def newton_step(self, r: Vector) -> Vector:
        return self.solve(np.zeros(self._system.X.shape[0]), r, 0.0)[0]


class _ByColumns:
    """(I + X' C X) w + X' C 1 b = X' C g + r,  1' C X w + 1' C 1 b = 1' C g - q."""

    def __init__(self, system: RidgeSystem, active: RowIndices, curvatures: Vector) -> None:
        (X, n_columns), self._curvatures = (system.X, system.X.shape[1]), curvatures
        self._system, self._total = system, float(curvatures.sum())
        self._centre, hessian = np.zeros(n_columns), np.empty((n_columns, n_columns))
        if system.has_intercept:
            self._centre = X.rmatvec(curvatures[None])[0] / self._total
        rows, places = system.rows
        roots = np.sqrt(curvatures[active])
        dense.second_moments(system.team.native, rows, places[active], self._centre, roots, hessian)
        hessian.reshape(-1)[:: n_columns + 1] += 1.0
        self.newton_step = _cholesky(hessian)

    def solve(self, g: Vector, r: Vector, q: float) -> tuple[Vector, float, Vector]:
        X, weighted, at_zero = self._system.X, self._curvatures * g, 0.0
        if self._system.has_intercept:
            at_zero = (float(weighted.sum()) - q) / self._total
            weighted -= at_zero * self._curvatures
        w = self.newton_step(X.rmatvec(weighted[None])[0] + r)
        b = at_zero - float(self._centre @ w)
        return w, b, self._curvatures * (g - X.matvec(w[None])[0] - b)


def _cholesky(H: Matrix) -> Callable[[Vector], Vector]:
    """Solve with H, positive definite but for rounding: its diagonal is raised as far as needed."""
    if not len(H):
        return np.array
    scale = 1.0 / np.sqrt(np.diagonal(H))
    scaled = H * scale * scale[:, None]
    for k in range(8):  # each ten times the one before
        factor, failure = dpotrf(scaled)
        if not failure:
            break
        scaled.reshape(-1)[:: len(scaled) + 1] += 10.0**k * np.finfo(float).eps * len(H)

    def solve(b: Vector) -> Vector:
        x: Vector = scale * dpotrs(factor, scale * b)[0]
        return x

    return solve
