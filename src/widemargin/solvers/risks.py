"""What a linear machine pays for its outputs: the risks that a cutting plane solver can minimise.

A risk is a convex function of the outputs f (q, n) of q vectors on n rows. It knows its subgradients as weights of the
rows, and how to go down along a line. It never sees the rows themselves.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._jit import elementwise, linesearch, profile
from .._jit.workspace import Rows as RowArrays
from .._parallel import ThreadTeam, Turn, row_blocks
from .coordinate import CoordinateAscent

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_ROWS = 65_536  # of a block: fewer take less time than to ask a thread
_TAKEN = 2**13  # that a thread takes at a time, in compiled code
_FEW = 4096  # rows of which no sample is taken
_SAMPLE = 2048
_CHORDS = 8
_BALANCE_ROUNDS, _BALANCE_TOL = 60, 1e-9  # of the weights: the rest is shared out
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


class _Scratch(threading.local):
    """Arrays of one block's length for each thread, kept: fresh memory would cost more than most of what is done."""

    def __init__(self) -> None:
        self.values, self.weights = np.empty((2, _ROWS))
        self.order = np.empty(_ROWS, np.int64)


_scratch = _Scratch()


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
        self._blocks = row_blocks(self.n_rows, _ROWS)
        parts = (signed[rows] for rows in self._blocks)
        self._total = sum(float(np.abs(part, out=_scratch.values[: len(part)]).sum()) for part in parts)
        self._sample = slice(None, None, max(1, self.n_rows // min(_SAMPLE, 1 + self.n_rows // 8)))

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
        for lo, hi in (self._bracket(line, curvature, slope), (0.0, _FAR)):
            change, keys, jumps = self._scan(line, lo, hi)
            at_lo = curvature * lo + slope + change
            is_inside = (lo == 0.0 or at_lo < 0.0) and curvature * hi + slope + change + jumps.sum() >= 0.0
            if is_inside:
                break
        return float(linesearch.find_root(keys, jumps, curvature, slope + change, lo))

    def _bracket(self, line: Line, curvature: float, slope: float) -> tuple[float, float]:
        """Where a sample of the rows has its minimum, and a twentieth of its breakpoints to either side."""
        if self.n_rows < _FEW:
            return 0.0, _FAR
        f, target, shifts = line
        signed = self.signed[self._sample].copy()
        keys, jumps = np.empty((2, len(signed)))
        ends = f[self._sample].copy(), target[self._sample].copy()
        change, count = linesearch.scan_hinges(
            *ends, shifts, signed, 0.0, _FAR, keys, jumps, np.empty(len(signed), np.int64)
        )
        share = float(np.abs(signed).sum()) / self._total
        step = linesearch.find_root(keys[:count], jumps[:count], curvature * share, slope * share + change, 0.0)
        near = min(count, len(signed) // 20)
        if not near:
            return 0.0, _FAR
        width = float(np.partition(np.abs(keys[:count] - step), near - 1)[near - 1])
        return max(0.0, step - width), step + width

    def _scan(self, line: Line, lo: float, hi: float) -> tuple[float, Vector, Vector]:
        """The risk's derivative just after lo, and where it jumps before hi, and by how much."""
        f, target, shifts = line

        def scan(rows: slice) -> tuple[float, Vector, Vector]:
            keys, jumps, order = _scratch.values, _scratch.weights, _scratch.order
            change, count = linesearch.scan_hinges(
                f[rows], target[rows], shifts, self.signed[rows], lo, hi, keys, jumps, order
            )
            return change, keys[:count].copy(), jumps[:count].copy()

        changes, keys, jumps = zip(*self.team.map(scan, self._blocks), strict=True)
        return sum(changes), np.concatenate(keys), np.concatenate(jumps)

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """One pass over the outputs."""
        coef = np.empty((1, self.n_rows))
        risk, offset = self._sums(
            2,
            lambda turn, sums: linesearch.all_advance_hinges(
                f[0], target[0], self.signed, step, mu, _TAKEN, turn, coef[0], sums
            ),
        )
        return Cut(risk, coef, offset)

    def rounded(self, f: Matrix, width: float) -> Rounded | None:
        """Rows whose margin is within a width of 1 are on the corner, where the curvature is s / (2 width).

        None if numbers are too large for it.
        """
        return self._rounded(f, width, 0.0, (1.0, 1.0))

    def _rounded(self, f: Matrix, width: float, shift: float, shares: tuple[float, float]) -> Rounded:
        coef = np.empty_like(f)
        value, offset, loss, risk = self._sums(
            4,
            lambda turn, sums: linesearch.all_rounded_hinges(
                f[0], shift, self.signed, width, *shares, _TAKEN, turn, coef[0], sums
            ),
        )
        return Rounded(value, coef, offset, loss, shift, risk)

    def corner(self, f: Matrix, shift: float, width: float) -> Indices:
        """The rows whose margin is within a width of 1, in ascending order."""
        rows, counts = np.empty(self.n_rows, np.int64), np.empty(-(-self.n_rows // _TAKEN), np.int64)
        self.team.together(
            lambda turn: linesearch.all_near_corner(f[0], shift, self.signed, width, _TAKEN, turn, rows, counts)
        )
        return np.concatenate([rows[k * _TAKEN :][:count] for k, count in enumerate(counts)])

    def _sums(self, k: int, add: Callable[[Turn, Matrix], None]) -> list[float]:
        """The totals of k sums of each block, in their order."""
        sums = np.empty((-(-self.n_rows // _TAKEN), k))
        self.team.together(lambda turn: add(turn, sums))
        totals: list[float] = sums.sum(axis=0).tolist()
        return totals

    def distance(self, f: Matrix, other: Matrix) -> float:
        """The root of the mean square, over a sample of the rows."""
        return float(np.linalg.norm(change := other[0, self._sample] - f[0, self._sample])) / math.sqrt(len(change))

    def part(self, chosen: Indices, factor: float = 1.0, pull: float = 0.0) -> HingeRisk:
        """The same kind of risk; `pull` is what other rows' lines have of an intercept, per unit: nothing here."""
        return HingeRisk(self._some(chosen, factor), self.team)

    def _some(self, chosen: Indices, factor: float) -> Vector:
        signed = self.signed[chosen]
        signed *= factor
        return signed

    def nearest(self, f: Matrix, wanted: int) -> tuple[Indices, float]:
        """About as many rows as are wanted, in ascending order: those whose margin is nearest to 1; and how near."""
        b = float(self.intercept(f)[0])
        signs = np.sign(self.signed[self._sample])
        far = np.abs(1.0 - signs * (f[0, self._sample] + b))[signs != 0.0]
        distance = float(np.partition(far, k)[k]) if (k := len(far) * wanted // self.n_rows) < len(far) else math.inf
        return self.corner(f, b, distance), distance


class ProfileRisk(HingeRisk):
    """Sum of weighted hinges at the intercept that is best for them, min_b sum_i s_i max(0, 1 - y_i (f_i + b)).

    Parameters
    ----------
    signed : ndarray of shape (n,)
        s_i y_i.
    team : ThreadTeam
    pull : float
        Beside the hinges, a part -pull b of what is minimised over b.
    near : float
        A guess of the best intercept.
    """

    has_intercept = True

    def __init__(self, signed: Vector, team: ThreadTeam, pull: float = 0.0, near: float = 0.0) -> None:
        super().__init__(signed, team)
        self._pull = pull
        self._level = 0.5 * (self._total + float(signed.sum())) + pull  # of positive rows, and the pull
        self._values = np.empty(self.n_rows)
        self._reach = 1.0
        self._rounded_intercept = near
        self._known: tuple[Matrix | None, float] = None, 0.0  # outputs last advanced, and their best intercept

    def intercept(self, f: Matrix) -> Vector:
        """A weighted quantile of y - f."""
        return np.array([self._known[1] if self._known[0] is f else self._quantile(f[0], f[0], 0.0)])

    def search(self, f: Matrix, target: Matrix, curvature: float, slope: float) -> float:
        """Exact on a chord: the intercept goes straight from its best value here to its best value at about the step.

        Each further chord ends where the step on the last one did, and so its step is at least as good.
        """
        here = float(self.intercept(f)[0])
        reach = self._reach
        for _ in range(_CHORDS):
            turn = (self._quantile(f[0], target[0], reach) - here) / reach
            step = self._search((f[0], target[0], (here, here + turn)), curvature, slope - self._pull * turn)
            if 0.25 * reach <= step <= 4.0 * reach:
                break
            reach = step or 0.125 * reach
        self._reach = step or 1.0
        return step

    def advance(self, f: Matrix, target: Matrix, step: float, mu: float) -> Cut:
        """The plane's weights sum to zero, so that it holds for every intercept."""
        coef = np.empty_like(f)
        best = self._quantile(f[0], target[0], step)
        near = self._quantile(f[0], target[0], step + mu * (1.0 - step))

        def advance(rows: slice) -> tuple[float, ...]:
            sums: tuple[float, ...] = profile.advance_profile(
                f[0, rows], target[0, rows], self.signed[rows], step, best, self._values[rows], near, coef[0, rows]
            )
            return sums

        parts = self.team.map(advance, self._blocks)
        risk, offset, excess, plus, minus = _totals(parts)
        self._known = f, best
        on_plus, on_minus = _border_shares(excess + self._pull, plus, minus)
        for rows, (*_, on_border, also) in zip(self._blocks, parts, strict=True):
            if on_border + also > 0.0:
                profile.share_border(self._values[rows], self.signed[rows], near, on_plus, on_minus, coef[0, rows])
        return Cut(risk - self._pull * best, coef, offset + on_plus * plus + on_minus * minus)

    def rounded(self, f: Matrix, width: float) -> Rounded | None:
        """At its best intercept; the plane's weights sum to what the pull asks for."""
        shift, (plus, minus) = self._balance(f, width)
        shares = min(1.0, (minus - self._pull) / (plus or 1.0)), min(1.0, (plus + self._pull) / (minus or 1.0))
        if not min(shares) >= 0.0:
            return None
        rounded = self._rounded(f, width, shift, shares)
        beside = self._pull * shift
        return rounded._replace(value=rounded.value - beside, risk=rounded.risk - beside)

    def distance(self, f: Matrix, other: Matrix) -> float:
        """But for what the intercept takes up."""
        return float(np.std(other[0, self._sample] - f[0, self._sample]))

    def part(self, chosen: Indices, factor: float = 1.0, pull: float = 0.0) -> ProfileRisk:
        """The same kind of risk, beside other rows' lines."""
        return ProfileRisk(self._some(chosen, factor), self.team, pull, self._known[1])

    def _balance(self, f: Matrix, width: float) -> tuple[float, tuple[float, float]]:
        """The best intercept of the rounded hinges, and the slopes of positive and of negative rows there.

        Newton's method, and bisection where that leaves the bracket.
        """
        lo, hi, stride = -math.inf, math.inf, width
        b = self._rounded_intercept
        for _ in range(_BALANCE_ROUNDS):
            plus, minus, rate = self._sides(f, width, b)
            excess = plus - minus + self._pull
            if abs(excess) <= _BALANCE_TOL * self._total:
                break
            lo, hi = (b, hi) if excess > 0.0 else (lo, b)
            ahead = b + excess / rate if rate > 0.0 else math.inf
            if not lo < ahead < hi:
                ahead = lo + stride if hi == math.inf else hi - stride if lo == -math.inf else 0.5 * (lo + hi)
                stride *= 2.0
            b = ahead
        else:
            plus, minus, _ = self._sides(f, width, b)
        self._rounded_intercept = b
        return b, (plus, minus)

    def _sides(self, f: Matrix, width: float, b: float) -> tuple[float, float, float]:
        parts = self.team.map(
            lambda rows: linesearch.rounded_sides(f[0, rows], b, self.signed[rows], width), self._blocks
        )
        plus, minus, rate = _totals(parts)
        return plus, minus, rate

    def _quantile(self, f: Vector, target: Vector, k: float) -> float:
        """The best intercept at f + k (target - f): a value of y - f, which are left behind for the plane."""
        for lo, hi in (self._enclose(f[self._sample], target[self._sample], k), (-math.inf, math.inf)):
            below, upto, kept, weights = self._between(f, target, k, lo, hi)
            if below < self._level <= upto and len(kept):
                break
        return float(profile.find_quantile(kept, weights, self._level - below))

    def _enclose(self, f: Vector, target: Vector, k: float) -> tuple[float, float]:
        """Where a sample has its best intercept, and four standard errors to either side."""
        if self.n_rows < _FEW:
            return -math.inf, math.inf
        signed = self.signed[self._sample]
        values, weights = np.sign(signed) - (f + k * (target - f)), np.abs(signed)
        pull = self._pull * float(weights.sum()) / self._total
        level, margin = np.maximum(signed, 0.0).sum() + pull, 4.0 * 0.5 * float(np.linalg.norm(signed))
        lo = profile.find_quantile(values, weights, level - margin) if level > margin else -math.inf
        hi = profile.find_quantile(values, weights, level + margin) if level + margin < weights.sum() else math.inf
        return float(lo), float(hi)

    def _between(
        self, f: Vector, target: Vector, k: float, lo: float, hi: float
    ) -> tuple[float, float, Vector, Vector]:
        """The weight of values below lo and of those up to hi; the values in between, and their weights."""

        def collect(rows: slice) -> tuple[float, float, Vector, Vector]:
            kept, weights = _scratch.values, _scratch.weights
            count, below, upto = profile.values_between(
                f[rows], target[rows], k, self.signed[rows], lo, hi, self._values[rows], kept, weights
            )
            return below, upto, kept[:count].copy(), weights[:count].copy()

        below, upto, kept, weights = zip(*self.team.map(collect, self._blocks), strict=True)
        return sum(below), sum(upto), np.concatenate(kept), np.concatenate(weights)


def sign_weights(y: NDArray[np.integer], positive: int, s: Vector | None, team: ThreadTeam) -> Vector:
    """The weights s, by default 1, of the rows of one class, -s of the others: for a `HingeRisk`."""
    signed = np.empty(len(y))
    team.together(lambda turn: elementwise.sign_rows(y, positive, _TAKEN, turn, signed))
    if s is not None:
        signed *= s
    return signed


def _totals(parts: Sequence[tuple[float, ...]]) -> Iterator[float]:
    """The sums of what the blocks give, in their order."""
    return (sum(part) for part in zip(*parts, strict=True))


def _border_shares(excess: float, plus: float, minus: float) -> tuple[float, float]:
    """Which part of the positive and of the negative rows on the border counts as violating, so that all balance."""
    if excess < 0.0:
        return (min(1.0, -excess / plus), 0.0) if plus > 0.0 else (0.0, 0.0)
    return (0.0, min(1.0, excess / minus)) if minus > 0.0 else (0.0, 0.0)
