"""What a linear machine pays for its outputs: the risks that a cutting plane solver can minimise.

A risk is a convex function of the outputs f (q, n) of q vectors on n rows. It knows its subgradients as weights of the
rows, and how to go down along a line. It never sees the rows themselves.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._jit import linesearch, margins, profile
from .._parallel import ThreadTeam, row_blocks
from .._jit.workspace import Rows as RowArrays
from .bracket import find_step
from .coordinate import CoordinateAscent

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_ROWS = 16_384  # of a block
_SAMPLE = 4096
_ROUGH = 0.01  # precision of a step on a sample
_TRIALS = 4  # brackets to look at before all rows are
_FAR = 1e300  # beyond every breakpoint that matters


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

    def ascent(self, arrays: RowArrays, n_features: int) -> CoordinateAscent | None:
        """Another source of planes on the same rows, if there is one for this risk."""

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
        self._total = float(np.abs(signed).sum())
        self._keys, self._jumps = np.empty((2, self.n_rows))
        self._order = np.empty(self.n_rows, np.int64)

    def intercept(self, f: Matrix) -> Vector:
        """None."""
        return np.zeros(1)

    def ascent(self, arrays: RowArrays, n_features: int) -> CoordinateAscent:
        """Dual coordinate ascent."""
        return CoordinateAscent(arrays, self.signed, n_features, has_intercept=False)

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """The paper's exact line search, with selection instead of a sort."""
        for lo, hi in (self._bracket(f[0], target[0], curvature, slope), (0.0, _FAR)):
            change, keys, jumps = self._scan(f[0], target[0], lo, hi)
            at_lo = curvature * lo + slope + change
            is_inside = (lo == 0.0 or at_lo < 0.0) and curvature * hi + slope + change + jumps.sum() >= 0.0
            if is_inside:
                break
        return float(linesearch.find_root(keys, jumps, curvature, slope + change, lo))

    def _bracket(self, f: Vector, target: Vector, curvature: float, slope: float) -> tuple[float, float]:
        """Where a sample of the rows has its minimum, and a twentieth of its breakpoints to either side."""
        if self.n_rows < 8 * _SAMPLE:
            return 0.0, _FAR
        rows = slice(None, None, self.n_rows // _SAMPLE)
        signed = self.signed[rows].copy()
        keys, jumps = np.empty((2, len(signed)))
        order = np.empty(len(signed), np.int64)
        change, count = linesearch.scan_hinges(
            f[rows].copy(), target[rows].copy(), signed, 0.0, _FAR, keys, jumps, order
        )
        share = float(np.abs(signed).sum()) / self._total
        step = linesearch.find_root(keys[:count], jumps[:count], curvature * share, slope * share + change, 0.0)
        near = min(count, _SAMPLE // 20)
        if not near:
            return 0.0, _FAR
        width = float(np.partition(np.abs(keys[:count] - step), near - 1)[near - 1])
        return max(0.0, step - width), step + width

    def _scan(self, f: Vector, target: Vector, lo: float, hi: float) -> tuple[float, Vector, Vector]:
        """The risk's derivative just after lo, and where it jumps before hi, and by how much."""

        def scan(rows: slice) -> tuple[float, int]:
            block = f[rows], target[rows], self.signed[rows]
            change, count = linesearch.scan_hinges(
                *block, lo, hi, self._keys[rows], self._jumps[rows], self._order[rows]
            )
            return change, count

        changes, counts = zip(*self._team.map(scan, self._blocks), strict=True)
        heads = [slice(rows.start, rows.start + count) for rows, count in zip(self._blocks, counts, strict=True)]
        keys, jumps = (np.concatenate([kept[head] for head in heads]) for kept in (self._keys, self._jumps))
        return sum(changes), keys, jumps

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
        s_i y_i.
    team : ThreadTeam
    """

    n_outputs = 1

    def __init__(self, signed: Vector, team: ThreadTeam) -> None:
        self.signed = signed
        self.n_rows = len(signed)
        self._team = team
        self._blocks = row_blocks(self.n_rows, _ROWS)
        self._weights = np.abs(signed)
        self._total = float(self._weights.sum())
        self._level = float(np.maximum(signed, 0.0).sum())
        self._scratch = np.empty((5, self.n_rows))
        self._sample = slice(None, None, max(1, self.n_rows // _SAMPLE))

    def intercept(self, f: Matrix) -> Vector:
        """A weighted quantile of y - f."""
        return np.array([self._quantile(np.where(self.signed > 0, 1.0, -1.0) - f[0])])

    def ascent(self, arrays: RowArrays, n_features: int) -> CoordinateAscent:
        """Dual coordinate ascent, towards an intercept."""
        return CoordinateAscent(arrays, self.signed, n_features, has_intercept=True)

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """A bracketing search on the derivative; where the rows are many, first on a sample of them."""
        lo, hi = 0.9, 1.1
        if self.n_rows >= 8 * _SAMPLE:
            part = self._line(f[0, self._sample], target[0, self._sample], self.signed[self._sample])
            share = part.total / self._total
            guess = find_step(part, curvature * share, slope * share, 0.0, 1.0, precision=_ROUGH)
            lo, hi = 0.5 * guess, 1.7 * guess or 0.1
            for _ in range(_TRIALS):
                line = self._settled_line(f[0], target[0], lo, hi)
                if line is None:
                    break
                if lo > 0.0 and curvature * lo + slope + line.slope(lo) >= 0.0:
                    lo, hi = 0.0, lo
                elif curvature * hi + slope + line.slope(hi) < 0.0:
                    lo, hi = hi, 4.0 * hi
                else:
                    return find_step(line, curvature, slope, lo, hi)
        return find_step(self._line(f[0], target[0], self.signed), curvature, slope, lo, hi)

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """The plane's weights sum to zero, so that it holds for every intercept."""
        best, near = self._scratch[:2]

        def move(rows: slice) -> None:
            ends = f[0, rows], target[0, rows], self.signed[rows]
            profile.advance_values(*ends, step, mu, best[rows], near[rows])

        self._team.map(move, self._blocks)
        coef = np.empty_like(f)
        return Cut(self._cut(best, coef[0])[0], coef, self._cut(near, coef[0])[1])

    def _cut(self, v: Vector, coef: Vector) -> tuple[float, float]:
        """The risk and the plane's offset at v = y - f."""
        b = self._quantile(v)

        def cut(rows: slice) -> tuple[float, ...]:
            sums: tuple[float, ...] = profile.cut_profile(v[rows], self.signed[rows], b, coef[rows])
            return sums

        sums = (sum(parts) for parts in zip(*self._team.map(cut, self._blocks), strict=True))
        risk, offset, *border = sums
        return risk, offset + float(profile.share_border(v, self.signed, b, *border, coef))

    def _quantile(self, v: Vector) -> float:
        return float(profile.find_quantile(v, self._weights, self._level, self._scratch[3:]))

    def _line(self, f: Vector, target: Vector, signed: Vector) -> _ProfileLine:
        rows = np.where(signed > 0, 1.0, -1.0) - f, f - target, signed.copy()
        return _ProfileLine(rows, (float(np.maximum(signed, 0.0).sum()), 0.0, 0.0))

    def _settled_line(self, f: Vector, target: Vector, lo: float, hi: float) -> _ProfileLine | None:
        """The rows that may change sides between lo and hi, if the guess of the intercept's range holds."""
        least, most = self._range(f[self._sample], target[self._sample], lo, hi)
        v, dv, g = self._scratch[:3]

        def settle(rows: slice) -> tuple[float, ...]:
            ends = f[rows], target[rows], self.signed[rows]
            sums: tuple[float, ...] = profile.settle_hinges(*ends, lo, hi, least, most, v[rows], dv[rows], g[rows])
            return sums

        counts, *sums = zip(*self._team.map(settle, self._blocks), strict=True)
        below, excess, slope, under, within = (sum(parts) for parts in sums)
        if not under < self._level <= within:
            return None
        heads = [slice(rows.start, rows.start + int(n)) for rows, n in zip(self._blocks, counts, strict=True)]
        kept = [np.concatenate([array[head] for head in heads]) for array in (v, dv, g)]
        return _ProfileLine((kept[0], kept[1], kept[2]), (self._level - below, excess, slope))

    def _range(self, f: Vector, target: Vector, lo: float, hi: float) -> tuple[float, float]:
        """Where a sample has its best intercept for lo <= k <= hi, and four standard errors to either side."""
        signed = self.signed[self._sample]
        v = np.where(signed > 0, 1.0, -1.0) - f
        ends = v + lo * (f - target), v + hi * (f - target)
        weights, level, margin = np.abs(signed), np.maximum(signed, 0.0).sum(), 4.0 * np.linalg.norm(signed)
        pool = np.empty((2, len(signed)))
        least = profile.find_quantile(np.minimum(*ends), weights, level - margin, pool)
        most = profile.find_quantile(np.maximum(*ends), weights, level + margin, pool)
        return float(least), float(most)


class _ProfileLine:
    """The hinges at the best intercept, along a line: rows v + k dv of weights g, permuted, and the sums of others."""

    def __init__(self, rows: tuple[Vector, Vector, Vector], settled: tuple[float, float, float]) -> None:
        self._rows = rows
        self._settled = settled
        self.total = float(np.abs(rows[2]).sum())
        self._scratch = (*np.empty((2, len(rows[0]))), np.empty((2, len(rows[0]))))

    def slope(self, k: float) -> float:
        return float(profile.profile_slope(*self._rows, k, self._settled, *self._scratch))

    def settle(self, lo: float, hi: float) -> None:
        kept, self._settled = profile.settle_profile(*self._rows, lo, hi, self._settled, *self._scratch)
        v, dv, signed = self._rows
        self._rows = v[:kept], dv[:kept], signed[:kept]


class MarginRisk:
    """Crammer and Singer's multiclass hinge, sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i).

    Parameters
    ----------
    y : ndarray of shape (n,), int64
        Classes 0, ..., n_classes - 1.
    s : ndarray of shape (n,)
        Weights.
    n_classes : int
    """

    def __init__(self, y: NDArray[np.int64], s: Vector, n_classes: int) -> None:
        self.y = y
        self.s = s
        self.n_outputs = n_classes
        self.n_rows = len(y)
        self._guess = 1.0

    def intercept(self, f: Matrix) -> Vector:
        """None."""
        return np.zeros(self.n_outputs)

    def ascent(self, arrays: RowArrays, n_features: int) -> None:
        """None."""

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """A bracketing search on the derivative."""
        line = _MarginLine((f, target, self.y, self.s))
        step = find_step(line, curvature, slope, 0.5 * self._guess, 2.0 * self._guess)
        self._guess = step or 1.0
        return step

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """One pass over the outputs."""
        coef = np.empty_like(f)
        risk, offset = margins.advance_margins(f, target, self.y, self.s, step, mu, coef)
        return Cut(risk, coef, offset)


class _MarginLine:
    """The multiclass hinge along a line: a maximum of lines for each row."""

    def __init__(self, problem: tuple[Matrix, Matrix, NDArray[np.int64], Vector]) -> None:
        self._problem = problem
        self._rows = np.arange(len(problem[2]))
        self._settled = 0.0

    def slope(self, k: float) -> float:
        return self._settled + float(margins.margin_slope(*self._problem, self._rows, k))

    def settle(self, lo: float, hi: float) -> None:
        kept, slope = margins.settle_margins(*self._problem, self._rows, lo, hi)
        self._rows = self._rows[:kept]
        self._settled += slope
