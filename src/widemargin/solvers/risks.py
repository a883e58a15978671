"""What a linear machine pays for its outputs: the risks that a cutting plane solver can minimise.

A risk is a convex function of the outputs f (q, n) of q vectors on n rows. It knows its subgradients as weights of the
rows, and how to go down along a line. It never sees the rows themselves.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._jit import linesearch, profile
from .._parallel import ThreadTeam, row_blocks

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_ROWS = 65_536  # of a block
_SAMPLE = 4096


class Cut(NamedTuple):
    """A new best point and the cutting plane near it."""

    risk: float  # at the best point, whose outputs have been written in place
    coef: Matrix  # (q, n): the plane's normal is the sum of the rows, so weighted
    offset: float


class Risk(Protocol):
    """A convex function of the outputs."""

    n_outputs: int
    n_rows: int

    def intercept(self, f: Matrix) -> Vector:
        """The best intercepts (q,); zeros where there are none."""

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """The k >= 0 that minimises ``curvature k^2 / 2 + slope k + risk(f + k (target - f))``."""

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """Move f to ``f + step (target - f)`` in place, and cut at ``(1 - mu) f + mu target``."""


class HingeRisk:
    """Sum of weighted hinges, s_i max(0, 1 - y_i f_i).

    Parameters
    ----------
    signed : ndarray of shape (n,)
        s_i y_i, none of them zero.
    team : ThreadTeam
    """

    n_outputs = 1

    def __init__(self, signed: Vector, team: ThreadTeam) -> None:
        self.signed = signed
        self.n_rows = len(signed)
        self._team = team
        self._blocks = row_blocks(self.n_rows, _ROWS)
        self._keys, self._jumps = np.empty((2, self.n_rows + 1))

    def intercept(self, f: Matrix) -> Vector:
        """None."""
        return np.zeros(1)

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """The paper's exact line search, with selection instead of a sort."""
        total, _, count = linesearch.scan_hinges(f[0], target[0], self.signed, 0.0, np.inf, self._keys, self._jumps)
        return float(linesearch.find_root(self._keys[:count], self._jumps[:count], curvature, slope + total, 0.0))

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """One pass over the outputs."""
        coef = np.empty((1, self.n_rows))

        def advance(rows: slice) -> tuple[float, float]:
            risk, offset = linesearch.advance_hinges(
                f[0, rows], target[0, rows], self.signed[rows], step, mu, coef[0, rows]
            )
            return risk, offset

        risks, offsets = zip(*self._team.map(advance, self._blocks), strict=True)
        return Cut(sum(risks), coef, sum(offsets))


class ProfileRisk:
    """Sum of weighted hinges at the intercept that is best for them, min_b sum_i s_i max(0, 1 - y_i (f_i + b)).

    Parameters
    ----------
    signed : ndarray of shape (n,)
        s_i y_i, none of them zero.
    """

    n_outputs = 1

    def __init__(self, signed: Vector) -> None:
        self.signed = signed
        self.n_rows = len(signed)
        self._level = float(np.maximum(signed, 0.0).sum())
        self._total = float(np.abs(signed).sum())
        self._y = np.where(signed > 0, 1.0, -1.0)
        self._scratch = np.empty((2, self.n_rows))
        self._pool = np.empty((2, self.n_rows + 1))

    def intercept(self, f: Matrix) -> Vector:
        """A weighted quantile of y - f."""
        return np.array([self._intercept(self._y - f[0])])

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """A bracketing search on the derivative."""
        v, dv = self._y - f[0], f[0] - target[0]
        guess, stride = 1.0, self.n_rows // _SAMPLE
        if stride >= 8:
            scale = float(np.abs(self.signed[::stride]).sum())
            scale = self._total / scale
            lines = v[::stride].copy(), dv[::stride].copy(), self.signed[::stride] * 1.0
            guess = self._search(lines, curvature / scale, slope / scale, 0.0, 1.0)
        lo, hi = 0.9 * guess, 1.1 * guess or 1.0
        return self._search((v, dv, self.signed.copy()), curvature, slope, lo, hi)

    def _search(
        self, lines: tuple[Vector, Vector, Vector], curvature: float, slope: float, lo: float, hi: float
    ) -> float:
        level = float(np.maximum(lines[2], 0.0).sum())
        return float(profile.search_profile(*lines, level, curvature, slope, lo, hi, *self._scratch, self._pool))

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """The plane's weights sum to zero, so that it holds for every intercept."""
        f += step * (target - f)
        coef = np.empty_like(f)
        best = self._y - f[0]
        near = best - mu * (target[0] - f[0])
        risk, _ = profile.cut_profile(best, self.signed, self._intercept(best), coef[0])
        _, offset = profile.cut_profile(near, self.signed, self._intercept(near), coef[0])
        return Cut(risk, coef, offset)

    def _intercept(self, v: Vector) -> float:
        return float(profile.best_intercept(v, self.signed, self._level, self._scratch[1], self._pool))
