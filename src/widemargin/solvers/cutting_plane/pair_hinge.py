"""The pairwise hinge of rankings, and sums over pairs of samples in O(n log n).

    R(f) = sum of s_i s_j max(0, 1 - (f_i - f_j)) over the pairs of a group with y_i > y_j

Sorted by decision value, the partners of a sample are those in a range of places whose y is below its own. Their
weights are summed for all samples at once, one binary digit of the ranks of y after the other: at each digit samples
are parted, in order, into those with 0 and with 1, and prefix sums say how many of a range went where.

Sources: Joachims, Training Linear SVMs in Linear Time, KDD 2006 (planes without a sum over pairs); Grossi, Gupta,
Vitter, High-order entropy-compressed text indexes, SODA 2003 (wavelet trees).
"""

from __future__ import annotations

import numpy as np

from ..._types import Labels, Matrix, RowIndices, Vector
from .derivative_zeros import minimise_on_line
from .losses import Loss, RiskAndPlane

_PRECISION = 1e-4  # gain left / curvature k^2, at most, of a line search: each of its steps sorts the samples


class RankedPairs:
    """The pairs of samples of one group with different y, the higher one first; pairs' weights are products of s."""

    def __init__(self, y: Vector, groups: Labels, s: Vector) -> None:
        self.s = s
        self._groups = groups
        self._ranks = np.unique(y, return_inverse=True)[1]
        self._n_digits = int(self._ranks.max() + 1).bit_length()
        order = np.argsort(groups, kind="stable")
        ends = np.cumsum(np.bincount(groups))
        self._start, self._end = np.append(0, ends)[groups[order]], ends[groups[order]]  # of each place's group

    @property
    def total(self) -> float:
        """The sum of the weights of all pairs."""
        order = np.argsort(self._groups, kind="stable")
        return float(self.s[order] @ self._sum_below(order, self._start, self._end, self._ranks[order]))

    def violations(self, f: Vector, margin: float) -> tuple[Vector, Vector]:
        """The weights (n,) of each sample's lower partners with f_j > f_i - margin; of its higher ones likewise."""
        order = np.lexsort((f, self._groups))
        first = self._first_above(f[order] - margin, f[order])
        last = np.searchsorted(first, np.arange(len(f)), side="right")  # places whose partners begin at or before these
        ranks = self._ranks[order]
        lo = np.concatenate([first, self._start, self._start])
        hi = np.concatenate([self._end, last, last])
        below, upto, whole = np.split(
            self._sum_below(order, lo, hi, np.concatenate([ranks, ranks + 1, np.full(len(f), ranks.max() + 1)])), 3
        )
        lower, higher = np.empty((2, len(f)))
        lower[order], higher[order] = below, whole - upto
        return lower, higher

    def _first_above(self, bounds: Vector, f: Vector) -> RowIndices:
        """The first place of each group with f above the bound; all of them (n,) in the order of places."""
        n = len(f)
        is_bound = np.repeat([0, 1], n)
        merged = np.lexsort((is_bound, np.concatenate([f, bounds]), np.tile(self._start, 2)))
        n_before = np.cumsum(is_bound[merged] == 0)
        found = np.empty(2 * n, np.intp)
        found[merged] = n_before
        return found[n:]

    def _sum_below(self, order: RowIndices, lo: RowIndices, hi: RowIndices, bound: RowIndices) -> Vector:
        """Sums (m,) of the weights of samples order[lo:hi] whose rank is below the bound, for m ranges and bounds."""
        total = np.zeros(len(lo))
        for digit in reversed(range(self._n_digits)):
            is_one = (self._ranks[order] >> digit & 1).astype(np.bool_)
            n_zeros = np.append(0, np.cumsum(~is_one))
            weights = np.append(0.0, np.cumsum(np.where(is_one, 0.0, self.s[order])))
            takes_zeros = (bound >> digit & 1).astype(np.bool_)
            total += np.where(takes_zeros, weights[hi] - weights[lo], 0.0)
            lo, hi = (np.where(takes_zeros, n_zeros[-1] + at - n_zeros[at], n_zeros[at]) for at in (lo, hi))
            order = np.concatenate([order[~is_one], order[is_one]])
        return total


class PairHingeLoss:
    """The hinge of all `RankedPairs`, without an intercept: it would cancel."""

    n_outputs = 1
    hinge = first_plane = None
    accelerations: frozenset[str] = frozenset()

    def __init__(self, pairs: RankedPairs) -> None:
        self.n_rows = len(pairs.s)
        self._pairs = pairs
        self._latest_step = 1.0

    def intercept(self, f: Matrix) -> Vector:
        """Zero."""
        return np.zeros(1)

    def find_step(self, f: Matrix, f_end: Matrix, curvature: float, slope: float) -> float:
        """A bracketing search for the zero of the derivative, from half to twice the latest step."""
        line, latest = _PairLine(self, f, f_end), self._latest_step
        step = minimise_on_line(line, curvature, slope, 0.5 * latest, 2.0 * latest, precision=_PRECISION)
        self._latest_step = step or 1.0
        return step

    def advance(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> RiskAndPlane:
        """A sample's coefficient is s_i times the weights of violating higher partners, less those of lower ones."""
        f += step * (f_end - f)
        coef, offset = self.plane(f)
        risk = offset + float(np.vdot(coef, f))
        return RiskAndPlane(risk, *((coef, offset) if mu == 0.0 else self.plane(f + mu * (f_end - f))))

    def restrict(self, chosen: RowIndices, factor: float = 1.0) -> Loss:
        """Some of the samples have few of the pairs: there is no such loss."""
        raise NotImplementedError

    def plane(self, f: Matrix) -> tuple[Matrix, float]:
        """Coefficients (1, n) and offset of the plane at decision values f: the sum of its violating pairs' weights."""
        lower, higher = self._pairs.violations(f[0], 1.0)
        s = self._pairs.s
        return (s * (higher - lower))[None], float(s @ lower)


class _PairLine:
    """The loss along the line from f to f_end."""

    def __init__(self, loss: PairHingeLoss, f: Matrix, f_end: Matrix) -> None:
        self._loss = loss
        self._f, self._rate = f, f_end - f

    def slope(self, k: float) -> float:
        """A derivative at k."""
        return float(np.vdot(self._loss.plane(self._f + k * self._rate)[0], self._rate))

    def drop_linear_rows(self, lo: float, hi: float) -> None:
        """None are: a sample has many partners."""
