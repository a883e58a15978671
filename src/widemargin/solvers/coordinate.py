"""Dual coordinate ascent beside cutting planes: a dual point is a plane too.

    maximise  D(a) = sum a_i - 1/2 |sum a_i y_i x_i|^2      0 <= a_i <= C s_i   (and sum a_i y_i = 0 with an intercept)

Each hinge lies above the part a_i / (C s_i) of its line, so the plane with the rows' weights -a_i y_i / C lies below
the risk. In the reduced problem it is worth D(a), alone; together with other planes, more.

Source: Hsieh, Chang, Lin, Keerthi, Sundararajan, A Dual Coordinate Descent Method for Large-scale Linear SVM, ICML
2008.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._jit import coordinate
from .._jit.workspace import Rows as RowArrays

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_EPOCH = 10.0, 2.0  # rounds that an epoch takes, on dense and on sparse rows: it has one thread, and no order in memory
_MOST_VISITS = 4.0  # of each row in a round
_PREFERENCE = 2.0  # for rounds alone: their planes stay, and make the next ones better
_SIGMA = 0.03  # the intercept's step as a part of the rows' mean squared length; 0.01 and 0.1 are about as good
_RUN = 16  # rows that stay together in an order: neighbours in memory
_TURN = 0.25  # of all work so far
_SHARE = 0.1  # of all work, at least, for each of the two


class Turns:
    """Whether to go on with epochs or with rounds alone: whichever has lately shrunk the gap more for its work.

    Attributes
    ----------
    has_epochs : bool
        Whether the next round begins with epochs.
    """

    def __init__(self) -> None:
        self.has_epochs = True
        self._rates = {True: math.inf, False: math.inf}
        self._work = {True: 0.0, False: 0.0}
        self._now, self._gap = 0.0, math.inf

    @property
    def goal(self) -> float:
        """Work that is left of this turn."""
        return _TURN * sum(self._work.values()) - self._now

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
        ahead = self._rates[True] >= _PREFERENCE * self._rates[False]
        is_neglected = self._work[not ahead] < _SHARE * sum(self._work.values())
        self.has_epochs = ahead != is_neglected


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
        self._sigma = _SIGMA * _mean_square(arrays.data, n) if has_intercept else 0.0
        self._alpha, self._w = np.zeros(n), np.zeros(n_features + 1)
        self._rng = np.random.default_rng(0)
        self._border = np.array([math.inf, -math.inf])
        self._random = np.ones(1, np.uint64)
        self._epoch = _EPOCH[len(arrays.starts) > 0]
        self.turns = Turns()
        self._visits = 0.0

    def weigh(self, C: float) -> None:
        """Go on with another weight of the risk: the plane stays, and epochs are worth a new try."""
        factor, self._C = C / self._C, C
        self._alpha *= factor
        np.minimum(self._alpha, C * np.abs(self._signed), out=self._alpha)
        self._w[:-1] *= factor
        self._border[:] = math.inf, -math.inf
        self.turns = Turns()

    def ascend(self) -> None:
        """This round's epochs: on all rows at first, then on those that may still move."""
        n, goal = len(self._signed), self.turns.goal / self._epoch
        active, self._visits = n, 0.0
        while self._visits == 0.0 or self._visits < min(goal, _MOST_VISITS):
            if 2 * active > n:
                order, active = _shuffled_runs(n, self._rng), n
            self._w[-1] += self._sigma * self._imbalance()
            self._visits += active / n
            active = coordinate.ascend(
                self._arrays,
                self._signed,
                self._C,
                self._sigma,
                self._alpha,
                self._w,
                order,
                active,
                self._border,
                self._random,
            )

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

    def judge(self, gap: float, n_planes: int) -> None:
        """After a round, with what it has come to, choose what the next one begins with."""
        others = 1.0 + 2.0 * n_planes * len(self._w) / max(self._arrays.data.size, 1)
        self.turns.spend(others + self._epoch * self._visits, gap)
        self._visits = 0.0

    def _imbalance(self) -> float:
        return float(np.vdot(self._alpha, np.sign(self._signed))) if self._sigma else 0.0


def _mean_square(data: NDArray[np.floating], n: int) -> float:
    """Mean squared length of n rows; 1 if that is beyond the data's precision."""
    with np.errstate(over="ignore"):
        square = float(np.vdot(data, data)) / max(n, 1)
    return square if 0.0 < square < math.inf else 1.0


def _shuffled_runs(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """0, ..., n - 1, in short runs whose order is random."""
    starts = rng.permutation(-(-n // _RUN)) * _RUN
    order = (starts[:, None] + np.arange(_RUN)).ravel()
    return order[order < n]
