"""Dual coordinate ascent beside cutting planes: a dual point is a plane too.

    maximise  D(a) = sum a_i - 1/2 |sum a_i y_i x_i|^2      0 <= a_i <= C s_i   (and sum a_i y_i = 0 with an intercept)

Each hinge lies above the part a_i / (C s_i) of its line, so the plane with the rows' weights -a_i y_i / C lies below
the risk. In the master problem it is worth D(a), alone; together with other planes, more.

Source: Hsieh, Chang, Lin, Keerthi, Sundararajan, A Dual Coordinate Descent Method for Large-scale Linear SVM, ICML
2008.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._native import linear
from ...data import RowArrays

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_EPOCH, _EPOCH_ROW = 5.0, 8.0  # operations of an epoch for a value and a row: one thread, no order in memory
_ROUND, _ROUND_ROW, _ROUND_COLUMN = 2e5, 8.0, 60.0  # of a round, for a row and a column, beside 1 for a value
_PLANE = 2.0  # of a round, for a plane's column
_ROUNDS = 2.0  # rounds alone that a column is trusted to need at most
_FIRST, _FIRST_SHARE = 4.0, 0.1  # the first turn: visits of each row, and what part of the trust, at most
_MOST_VISITS = 8.0  # of each row in a round
_SIGMA = 0.03  # the intercept's step as a part of the rows' mean squared length; 0.01 and 0.1 are about as good
_RUN = 16  # rows that stay together in an order: neighbours in memory
_TURN, _TRY = 0.4, 0.1  # of all work so far: a turn of the better, and of the other when it has less than that
_HOPE = 0.5  # of the logarithm of the gap: what another try is expected to bring, for all work so far
_LEAP = 1.0  # times the latest change at least: a shorter way is not worth a pass
_PROGRESS = 7.0  # of the logarithm of the gap, from start to end


class Turns:
    """Whether to go on with epochs or with rounds alone: whichever has lately shrunk the gap more for its work.

    The first turn is the epochs'. Rounds alone shrink the gap late, and then fast: until they have had the work that
    they are trusted to need, they count as if they were to be done with it.

    Parameters
    ----------
    first : float
        Work of the first turn.
    trust : float
        Work that rounds alone are trusted to need.

    Attributes
    ----------
    has_epochs : bool
        Whether the next round begins with epochs.
    """

    def __init__(self, first: float, trust: float) -> None:
        self.has_epochs = True
        self._trust = trust
        self._rates = {True: math.inf, False: 0.0}
        self._work = {True: 0.0, False: 0.0}
        self._now, self._goal, self._gap = 0.0, first, math.inf

    @property
    def goal(self) -> float:
        """Work that is left of this turn."""
        return self._goal - self._now

    def spend(self, work: float, gap: float) -> None:
        """A round is over. At the end of a turn, choose who is next."""
        if not math.isfinite(self._gap):  # the first round is yet to come
            self._gap = gap
            return
        self._now += work
        if self.goal > 0.0:
            return
        mine = self.has_epochs
        self._rates[mine] = math.log(max(self._gap, 1e-300) / max(gap, 1e-300)) / self._now
        self._work[mine] += self._now
        self._now, self._gap = 0.0, gap
        self._choose()

    def _choose(self) -> None:
        total = sum(self._work.values())
        trusted = _PROGRESS / self._trust if self._work[False] < self._trust else 0.0
        ahead = self._rates[True] >= max(self._rates[False], trusted)
        has_hope = ahead or max(self._rates[True], _HOPE / total) >= trusted  # where the trust is long, it is no reason
        is_tried = self._work[not ahead] < _TRY * total and has_hope
        self.has_epochs = ahead != is_tried
        self._goal = (_TRY if is_tried else _TURN) * total


class CoordinateAscent:
    """A dual point of a machine with hinges, and how many epochs a round are worth their time.

    Parameters
    ----------
    arrays : RowArrays
    signed : ndarray of shape (n,)
        s_i y_i.
    n_features : int
    has_intercept : bool
        An unregularised one. It follows from the epoch before, by the method of multipliers.
    """

    def __init__(self, arrays: RowArrays, signed: Vector, n_features: int, *, has_intercept: bool) -> None:
        self._arrays = arrays
        self._signed = signed
        self._C = 1.0
        n = len(signed)
        self._sigma = _SIGMA * _mean_square(arrays, n) if has_intercept else 0.0
        self._alpha, self._w = np.zeros(n), np.zeros(n_features + 1)
        self._rng = np.random.default_rng(0)
        self._shrink = math.inf, -math.inf  # at a bound, rows with projected gradients beyond are set aside
        size = linear.count_values(arrays)
        self._epoch = _EPOCH * size + _EPOCH_ROW * n
        self._round = _ROUND + size + _ROUND_ROW * n + _ROUND_COLUMN * n_features
        self.turns = self._new_turns()
        self._visits = 0.0
        self._active = np.arange(n)  # rows that may still move

    def weigh(self, C: float) -> None:
        """Go on with another weight of the risk: the plane stays, and epochs are worth a new try."""
        factor, self._C = C / self._C, C
        self._alpha *= factor
        np.minimum(self._alpha, C * np.abs(self._signed), out=self._alpha)
        self._w[:-1] *= factor
        self._shrink = math.inf, -math.inf
        self._active = np.arange(len(self._alpha))
        self.turns = self._new_turns()

    def ascend(self) -> None:
        """This round's epochs, on the rows that may still move."""
        n, alpha, w = len(self._signed), self._alpha.copy(), self._w.copy()
        goal = min(self.turns.goal / self._epoch, _MOST_VISITS)
        while len(self._active) > 0 and (self._visits == 0.0 or self._visits < goal):
            order = _shuffled_runs(self._active, self._rng)
            self._w[-1] += self._sigma * self._imbalance()
            self._visits += len(order) / n
            kept, *shrink = linear.ascent_epoch(
                self._arrays, self._signed, self._C, self._sigma, self._alpha, self._w, order, *self._shrink
            )
            self._shrink = shrink[0], shrink[1]
            self._active = order[:kept]
        if not self._sigma and alpha.any():
            self._leap(self._alpha - alpha, self._w - w)

    def _leap(self, change: Vector, turn: Vector) -> None:
        """Go on in the direction of the latest change, as far as the dual rises, and then back into the box."""
        rise, curvature = change.sum() - float(self._w @ turn), float(turn @ turn)
        if not rise > _LEAP * curvature:
            return
        alpha = np.clip(self._alpha + rise / max(curvature, 1e-300) * change, 0.0, self._C * np.abs(self._signed))
        w = self._w.copy()
        linear.add_rows(self._arrays, (alpha - self._alpha) * np.sign(self._signed), w)
        gain = (alpha - self._alpha).sum() - 0.5 * float((w - self._w) @ (w + self._w))
        if gain > 0.0:
            self._alpha, self._w = alpha, w

    def observe(self, f: Vector) -> None:
        """The outputs f (n,) of the dual's point say which rows may still move; all, if that is none."""
        grad = np.sign(self._signed) * (f + self._w[-1]) - 1.0
        is_done = (self._alpha == 0.0) & (grad > self._shrink[0])
        is_done |= (self._alpha == self._C * np.abs(self._signed)) & (grad < self._shrink[1])
        self._active = np.flatnonzero(is_done == is_done.all())

    def plane(self) -> tuple[Matrix, float, Vector]:
        """The dual point as a plane: the rows' weights (1, n), its offset, and the point that it leads to.

        With an intercept, the side with the larger sum gives way until both are equal: it holds for every intercept.
        """
        weights = self._alpha / self._C
        if self._sigma:
            excess, heavy = self._imbalance() / self._C, self._signed > 0
            heavy = heavy if excess > 0 else ~heavy
            weights[heavy] *= max(0.0, 1.0 - abs(excess) / max(float(weights[heavy].sum()), 1e-300))
        return -(weights * np.sign(self._signed))[None], float(weights.sum()), self._w[:-1].copy()

    @property
    def normal(self) -> Vector | None:
        """The sum of the rows with the plane's weights; with an intercept it takes a pass over the data."""
        return None if self._sigma else -self._w[:-1] / self._C

    def judge(self, gap: float, n_planes: int) -> None:
        """After a round, with what it has come to, choose what the next one begins with."""
        self.turns.spend(self._round + _PLANE * n_planes * len(self._w) + self._epoch * self._visits, gap)
        self._visits = 0.0

    def _new_turns(self) -> Turns:
        trust = _ROUNDS * len(self._w) * self._round
        return Turns(min(_FIRST * self._epoch, _FIRST_SHARE * trust), trust)

    def _imbalance(self) -> float:
        return float(np.vdot(self._alpha, np.sign(self._signed))) if self._sigma else 0.0


def _mean_square(arrays: RowArrays, n: int) -> float:
    """Mean squared length of n rows; 1 if that is zero or beyond float64."""
    square = linear.squared_norm(arrays) / max(n, 1)
    return square if 0.0 < square < math.inf else 1.0


def _shuffled_runs(rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The same rows, in short runs whose order is random; what is left over comes last."""
    runs, order = rows[: len(rows) // _RUN * _RUN].reshape(-1, _RUN), rows.copy()
    np.take(runs, rng.permutation(len(runs)), 0, order[: runs.size].reshape(-1, _RUN), "clip")  # straight into place
    return order
