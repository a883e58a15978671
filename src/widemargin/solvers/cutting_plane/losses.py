"""What a linear machine pays for its outputs: the risks that a cutting plane solver can minimise.

A risk is a convex function of the outputs f (q, n) of q vectors on n rows. It knows its subgradients as weights of the
rows, and how to go down along a line. It never sees the rows themselves.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._native import hinge
from ..._threads import ThreadTeam
from ...data import RowArrays
from ...data.probe import spread_rows
from .dual_coordinate_ascent import CoordinateAscent

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

FEW = 4096  # rows of which no sample is taken
_SAMPLE = 2048
_FAR = 1e300  # beyond every breakpoint that matters

Indices = NDArray[np.int64]
Line = tuple[Vector, Vector, tuple[float, float]]  # the outputs at both ends, and the intercepts there


class Cut(NamedTuple):
    """A new best point and the cutting plane near it."""

    risk: float  # at the best point, whose outputs have been written in place
    coef: Matrix  # (q, n): the plane's normal is the sum of the rows, so weighted
    offset: float


class Rounded(NamedTuple):
    """A risk whose corners are rounded, at a point."""

    value: float
    coef: Matrix  # (1, n): weights of the rows, of a plane below the risk itself
    offset: float
    loss: float  # by how much that plane is below the risk at this point
    shift: float  # the best intercept
    risk: float  # the risk itself, at that intercept


class Risk(Protocol):
    """A convex function of the outputs."""

    n_outputs: int
    n_rows: int

    def intercept(self, f: Matrix) -> Vector:
        """The best intercepts (q,); zeros where there are none."""

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """The k >= 0 that minimises ``curvature k^2 / 2 + slope k + risk(f + k (target - f))``."""

    def ascent(self, arrays: RowArrays, n_features: int) -> CoordinateAscent | None:
        """Another source of planes on the same rows, if there is one for this risk."""

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """Move f to ``f + step (target - f)`` in place, and cut at ``(1 - mu) f + mu target``."""

    def part(self, chosen: Indices, factor: float = 1.0) -> Risk:
        """The risk of some rows, their weights times a factor."""


class HingeRisk:
    """Sum of weighted hinges, s_i max(0, 1 - y_i f_i).

    Parameters
    ----------
    signed : ndarray of shape (n,)
        s_i y_i.
    team : ThreadTeam
    """

    n_outputs = 1
    has_intercept = False

    def __init__(self, signed: Vector, team: ThreadTeam) -> None:
        self.signed = signed
        self.n_rows = len(signed)
        self.team = team
        self._total: float = hinge.absolute_sum(team.native, signed)

    @cached_property
    def _sample(self) -> Indices:
        """At least 2,048 rows spread over all; of few rows, one in eight."""
        return spread_rows(self.n_rows, min(_SAMPLE, 1 + self.n_rows // 8))

    def ascent(self, arrays: RowArrays, n_features: int) -> CoordinateAscent:
        """Dual coordinate ascent."""
        return CoordinateAscent(arrays, self.signed, n_features, has_intercept=self.has_intercept)

    def intercept(self, f: Matrix) -> Vector:
        """None."""
        return np.zeros(1)

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """The paper's exact line search, with selection instead of a sort."""
        return self._search((f[0], target[0], (0.0, 0.0)), curvature, slope)

    def _search(self, line: Line, curvature: float, slope: float) -> float:
        f, target, shifts = line
        for lo, hi in (self._bracket(line, curvature, slope), (0.0, _FAR)):
            change, keys, jumps = hinge.scan_breakpoints(self.team.native, f, target, *shifts, self.signed, lo, hi)
            at_lo = curvature * lo + slope + change
            is_inside = (lo == 0.0 or at_lo < 0.0) and curvature * hi + slope + change + jumps.sum() >= 0.0
            if is_inside:
                break
        root: float = hinge.find_root(keys, jumps, curvature, slope + change, lo)
        return root

    def _bracket(self, line: Line, curvature: float, slope: float) -> tuple[float, float]:
        """Where a sample of the rows has its minimum, and a twentieth of its breakpoints to either side."""
        if self.n_rows < FEW:
            return 0.0, _FAR
        f, target, shifts = line
        signed = self.signed[self._sample]
        ends = f[self._sample], target[self._sample]
        change, keys, jumps = hinge.scan_breakpoints(self.team.native, *ends, *shifts, signed, 0.0, _FAR)
        share = float(np.abs(signed).sum()) / self._total
        step = hinge.find_root(keys, jumps, curvature * share, slope * share + change, 0.0)
        near = min(len(keys), len(signed) // 20)
        if not near:
            return 0.0, _FAR
        width = float(np.partition(np.abs(keys - step), near - 1)[near - 1])
        return max(0.0, step - width), step + width

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """One pass over the outputs."""
        coef = np.empty((1, self.n_rows))
        risk, offset = hinge.advance(self.team.native, f[0], target[0], self.signed, step, mu, coef[0])
        return Cut(risk, coef, offset)

    def rounded(self, f: Matrix, width: float) -> Rounded | None:
        """Rows whose margin is within a width of 1 are on the corner, where the curvature is s / (2 width).

        None if numbers are too large for it.
        """
        return self._rounded(f, width, 0.0, (1.0, 1.0))

    def _rounded(self, f: Matrix, width: float, shift: float, shares: tuple[float, float]) -> Rounded:
        coef = np.empty_like(f)
        sums = hinge.smoothed_hinges(self.team.native, f[0], shift, self.signed, width, *shares, coef[0])
        value, offset, loss, risk = sums
        return Rounded(value, coef, offset, loss, shift, risk)

    def corner(self, f: Matrix, shift: float, width: float) -> Indices:
        """The rows whose margin is within a width of 1, in ascending order."""
        rows: Indices = hinge.rows_near_kink(self.team.native, f[0], shift, self.signed, width)
        return rows

    def pick(self, values: Matrix, chosen: Indices) -> Matrix:
        """Some columns of what there is one of for each row (1, n)."""
        some = np.empty((1, len(chosen)))
        hinge.gather(self.team.native, values[0], chosen, some[0])
        return some

    def distance(self, f: Matrix, other: Matrix) -> float:
        """The root of the mean square, over a sample of the rows."""
        return float(np.linalg.norm(change := other[0, self._sample] - f[0, self._sample])) / math.sqrt(len(change))

    def part(self, chosen: Indices, factor: float = 1.0, pull: float = 0.0) -> HingeRisk:
        """The same kind of risk; `pull` is what other rows' lines have of an intercept, per unit: nothing here."""
        return HingeRisk(self._some(chosen, factor), self.team)

    def _some(self, chosen: Indices, factor: float) -> Vector:
        signed: Vector = self.pick(self.signed[None], chosen)[0]
        signed *= factor
        return signed

    def nearest(self, f: Matrix, wanted: int) -> tuple[Indices, float]:
        """About as many rows as are wanted, in ascending order: those whose margin is nearest to 1; and how near."""
        b = float(self.intercept(f)[0])
        signs = np.sign(self.signed[self._sample])
        far = np.abs(1.0 - signs * (f[0, self._sample] + b))[signs != 0.0]
        distance = float(np.partition(far, k)[k]) if (k := len(far) * wanted // self.n_rows) < len(far) else math.inf
        return self.corner(f, b, distance), distance


def sign_weights(y: NDArray[np.integer], positive: int, s: Vector | None, team: ThreadTeam) -> Vector:
    """The weights s, by default 1, of the rows of one class, -s of the others: for a `HingeRisk`."""
    signed = np.empty(len(y))
    hinge.one_vs_rest_signs(team.native, y, positive, signed)
    if s is not None:
        signed *= s
    return signed
