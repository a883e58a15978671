"""Losses of linear machines, as cutting planes minimise them.

A loss is a convex function R of the decision values f (q, n) of q weight vectors on n samples. It gives
coefficients of subgradients, and minimises along a line. A new loss is one class with the members of `Loss`: it gets
Algorithm 1, and of the accelerations those that it names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..._native import hinge as compiled
from ..._threads import ThreadTeam, cached_property
from ..._types import Labels, Matrix, RowIndices, Vector
from ...data.rows import spread_rows
from .derivative_zeros import INFINITE_STEP

# least number of sampled rows, and of active ones: of fewer than twice (intercepts: four times) as many all are read
SAMPLE_ROWS = 2048
Segment = tuple[Vector, Vector, tuple[float, float]]  # decision values (n,) at steps 0 and 1, and the intercepts there

_DUALS = frozenset({"at_once", "dual_epochs", "dual_alone"})
_HINGES = _DUALS | {"interior_point", "sample_start", "active_rows", "smoothed_newton"}


class RiskAndPlane(NamedTuple):
    """R at the best point that `Loss.advance` moved to, and a cutting plane that touches R at or near that point."""

    risk: float  # R at the best point
    coef: Matrix  # subgradient coefficients (q, n): the plane's normal is coef X
    offset: float
    # coef, offset and point of other planes; None: the search point
    further: Sequence[tuple[Matrix, float, Vector | None]] = ()


class Smoothed(NamedTuple):
    """A smoothed hinge risk at a point, and the plane below the hinges that its gradient gives."""

    value: float  # of the smoothed risk
    coef: Matrix  # subgradient coefficients (1, n): gradient and plane normal are coef X
    offset: float
    plane_gap: float  # by how much the plane is below the hinges at this point
    intercept: float  # optimal for the smoothed risk
    risk: float  # of the hinges at that intercept


class Loss(Protocol):
    """A convex function R of decision values f (n_outputs, n_rows). On a line, k = 1 is the point of values f_end."""

    n_outputs: int
    n_rows: int

    @property
    def accelerations(self) -> frozenset[str]:
        """The fields of `Accelerations` that may be used for this loss."""

    @property
    def hinge(self) -> HingeLoss | None:
        """This loss, if it is a sum of weighted hinges; None for other losses."""

    @property
    def first_plane(self) -> tuple[Vector, float] | None:
        """Normal and offset of a plane below R; None for the zero plane, which is below what is never negative."""

    def intercept(self, f: Matrix) -> Vector:
        """Optimal intercepts (q,); zeros for a loss without."""

    def find_step(self, f: Matrix, f_end: Matrix, curvature: float, slope: float) -> float:
        """A k >= 0 where ``curvature k^2 / 2 + slope k + R(f + k (f_end - f))`` is no larger than at 0.

        The minimiser, for losses without an intercept.
        """

    def advance(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> RiskAndPlane:
        """Move f to ``f + step (f_end - f)`` in place; the plane touches R at ``(1 - mu) f + mu f_end``."""

    def restrict(self, chosen: RowIndices, factor: float = 1.0) -> Loss:
        """The same loss on some of the samples, their weights multiplied by a factor."""


class HingeLoss:
    """Weighted hinges without an intercept, R(f) = sum_i s_i max(0, 1 - y_i f_i), of signed weights s_i y_i (n,).

    `shift` (n,) is that of the design matrix: f = X w + shift. The offsets of planes of w are <coef, shift> larger
    then.
    """

    n_outputs = 1
    has_intercept = False
    first_plane = None

    def __init__(self, signed_weights: Vector, team: ThreadTeam, *, shift: Vector | None = None) -> None:
        self.signed_weights = signed_weights
        self.shift = shift
        self.n_rows = len(signed_weights)
        self.team = team
        self._total = float(np.abs(signed_weights).sum())

    @property
    def hinge(self) -> HingeLoss:
        """This loss."""
        return self

    @property
    def accelerations(self) -> frozenset[str]:
        """All; with a shift none of the duals."""
        return _HINGES if self.shift is None else _HINGES - _DUALS

    @cached_property
    def _sampled_rows(self) -> RowIndices:
        """Rows spread over all: 2,048 to 4,095; of few, at least one in eight."""
        return spread_rows(self.n_rows, min(SAMPLE_ROWS, 1 + self.n_rows // 8))

    def intercept(self, f: Matrix) -> Vector:
        """Zero."""
        return np.zeros(1)

    def least_intercept(self, f: Matrix) -> float:
        """The least of the optimal intercepts: zero."""
        return 0.0

    def find_step(self, f: Matrix, f_end: Matrix, curvature: float, slope: float) -> float:
        """The paper's exact line search (appendix A), with selection instead of its sort: O(n) expected."""
        return self._find_step((f[0], f_end[0], (0.0, 0.0)), curvature, slope)

    def _find_step(self, segment: Segment, curvature: float, slope: float) -> float:
        """The zero of the derivative: in `_bracket` or, where that has none, among all steps k >= 0."""
        f, f_end, intercepts = segment
        for lo, hi in (self._bracket(segment, curvature, slope), (0.0, INFINITE_STEP)):
            change, breakpoints, jumps = compiled.scan_breakpoints(
                self.team.native, f, f_end, *intercepts, self.signed_weights, lo, hi
            )
            at_lo = curvature * lo + slope + change
            is_inside = (lo == 0.0 or at_lo < 0.0) and curvature * hi + slope + change + jumps.sum() >= 0.0
            if is_inside:
                break
        root: float = compiled.find_root(breakpoints, jumps, curvature, slope + change, lo)
        return root

    def _bracket(self, segment: Segment, curvature: float, slope: float) -> tuple[float, float]:
        """An interval of steps about the best one for the m sampled rows, up to its (m / 20)-th nearest breakpoint."""
        if self.n_rows < 2 * SAMPLE_ROWS or self._total == 0.0:
            return 0.0, INFINITE_STEP
        f, f_end, intercepts = segment
        signed_weights = self.signed_weights[self._sampled_rows]
        ends = f[self._sampled_rows], f_end[self._sampled_rows]
        change, breakpoints, jumps = compiled.scan_breakpoints(
            self.team.native, *ends, *intercepts, signed_weights, 0.0, INFINITE_STEP
        )
        share = float(np.abs(signed_weights).sum()) / self._total
        step = compiled.find_root(breakpoints, jumps, curvature * share, slope * share + change, 0.0)
        n_near = min(len(breakpoints), len(signed_weights) // 20)
        if not n_near:
            return 0.0, INFINITE_STEP
        width = float(np.partition(np.abs(breakpoints - step), n_near - 1)[n_near - 1])
        return max(0.0, step - width), step + width

    def advance(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> RiskAndPlane:
        """The plane's coefficients are -s_i y_i on samples within the margin, else 0; one pass over f."""
        coef = np.empty((1, self.n_rows))
        risk, offset = compiled.advance(self.team.native, f[0], f_end[0], self.signed_weights, step, mu, coef[0])
        return RiskAndPlane(risk, coef, offset + self._shift_of(coef))

    def smoothed(self, f: Matrix, width: float) -> Smoothed | None:
        """The Huberised hinges: quadratic where |1 - y f| < width, with curvature s / (2 width).

        None only for a loss with an intercept.
        """
        return self._smoothed(f, width, 0.0, (1.0, 1.0))

    def _smoothed(self, f: Matrix, width: float, intercept: float, factors: tuple[float, float]) -> Smoothed:
        coef = np.empty_like(f)
        value, offset, plane_gap, risk = compiled.smoothed_hinges(
            self.team.native, f[0], intercept, self.signed_weights, width, *factors, coef[0]
        )
        return Smoothed(value, coef, offset + self._shift_of(coef), plane_gap, intercept, risk)

    def plane_offset(self, coef: Matrix) -> float:
        """The offset of the plane of coefficients (1, n) between 0 and -s y."""
        return float(np.abs(coef).sum()) + self._shift_of(coef)

    def _shift_of(self, coef: Matrix) -> float:
        return 0.0 if self.shift is None else float(coef[0] @ self.shift)

    def rows_near_kink(self, f: Matrix, intercept: float, width: float) -> RowIndices:
        """The samples with weight where |1 - y (f + intercept)| <= width, in ascending order."""
        rows: RowIndices = compiled.rows_near_kink(self.team.native, f[0], intercept, self.signed_weights, width)
        return rows

    def rms_change(self, f: Matrix, other: Matrix) -> float:
        """Root mean square of other - f, over the sampled rows."""
        change = other[0, self._sampled_rows] - f[0, self._sampled_rows]
        return float(np.linalg.norm(change)) / math.sqrt(len(change))

    def restrict(self, chosen: RowIndices, factor: float = 1.0, plane_balance: float = 0.0) -> HingeLoss:
        """The hinges of some samples; `plane_balance` is for losses with an intercept."""
        return HingeLoss(self._restricted_weights(chosen, factor), self.team, shift=self._restricted_shift(chosen))

    def _restricted_shift(self, chosen: RowIndices) -> Vector | None:
        return None if self.shift is None else self.shift[chosen]

    def _restricted_weights(self, chosen: RowIndices, factor: float) -> Vector:
        return np.asarray(factor * self.signed_weights[chosen])

    def nearest_rows(self, f: Matrix, wanted: int) -> tuple[RowIndices, float]:
        """About `wanted` samples whose margins are nearest to 1, in ascending order, and the largest |1 - margin|."""
        b = self.least_intercept(f)
        signs = np.sign(self.signed_weights[self._sampled_rows])
        distances = np.abs(1.0 - signs * (f[0, self._sampled_rows] + b))[signs != 0.0]
        k = len(self._sampled_rows) * wanted // self.n_rows
        distance = float(np.partition(distances, k)[k]) if k < len(distances) else math.inf
        return self.rows_near_kink(f, b, distance), distance


def risk_and_plane(loss: Loss, f: Matrix) -> RiskAndPlane:
    """The risk of decision values f (n_outputs, n_rows), and the cutting plane that touches R there."""
    return loss.advance(f, f, 0.0, 0.0)


def one_vs_rest_weights(y: Labels, positive: int, s: Vector | None = None) -> Vector:
    """Signed weights (n,) of one class against the rest, for `HingeLoss`: s (default 1) in its rows, -s in others."""
    signs = np.where(y == positive, 1.0, -1.0)
    return signs if s is None else signs * s
