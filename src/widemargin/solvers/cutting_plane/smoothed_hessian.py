"""The curvature of hinges with a rounded corner, from a sample of the rows on it.

Rows whose margin is within a width of 1 have the curvature s / (2 width); with an intercept, less what the best one
takes out of them: their mean. Where rows are many, narrower corners have fewer rows, each of which counts for more, and
the Hessian hardly changes. So one serves for several steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from ..._native import dense
from ...data import LocalMatrix
from .losses import HingeRisk

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_PER_COLUMN, _PER_COLUMN_KEPT = 64, 128  # rows, for a Hessian; for one that is likely to be kept
_SHARP = 0.25  # width from which on it is
_FIT = 0.3  # part by which a step's gain may differ from what was promised
_JITTER, _JITTERS = 1e-12, 6  # of the diagonal, each time a hundred times as much


class CornerHessian:
    """Newton's steps for 1/2 |w|^2 + C times a rounded hinge risk.

    Parameters
    ----------
    rows : LocalMatrix
        In this process.
    risk : HingeRisk
    C : float

    Attributes
    ----------
    is_new : bool
        Whether the latest step was made with a Hessian of its own.
    """

    def __init__(self, rows: LocalMatrix, risk: HingeRisk, C: float) -> None:
        self.is_new = False
        self._rows = rows
        self._risk = risk
        self._C = C
        self._chances = np.random.default_rng(0).random(_PER_COLUMN_KEPT * rows.shape[1])
        self._kept: Matrix | None = None

    def step(self, slope: Matrix, f: Matrix, shift: float, width: float) -> Matrix:
        """To where the gradient, now `slope`, would be zero; at outputs f, less their intercept, which is shift."""
        self.is_new = self._kept is None
        if self._kept is None:
            self._kept = self._sum(f, shift, width)
        return -_solve(self._kept, slope[0])[None]

    def judge(self, gain: float, promised: float, width: float) -> None:
        """Keep the Hessian if that is likely to serve: a step at this width came to about what it promised."""
        if width > _SHARP or abs(gain - promised) > _FIT * promised:
            self.drop()

    def drop(self) -> None:
        """Have a new one for the next step."""
        self._kept = None

    def _sum(self, f: Matrix, shift: float, width: float) -> Matrix:
        """The identity, and C s / (2 width) times the second moments of rows on the corner."""
        enough = (_PER_COLUMN if width > _SHARP else _PER_COLUMN_KEPT) * self._rows.shape[1]
        chosen, every = _sample(self._risk.corner(f, shift, width), self._chances[:enough])
        weights = every * self._C / (2.0 * width) * np.abs(self._risk.signed[chosen])
        hessian = self._moments(chosen, weights, self._centre(chosen, weights))
        _diagonal(hessian)[...] += 1.0
        return hessian

    def _centre(self, chosen: Indices, weights: Vector) -> Vector:
        """What the best intercept takes out of the rows: their mean."""
        if not self._risk.has_intercept or not len(chosen):
            return np.zeros(self._rows.shape[1])
        coef = np.zeros((1, self._rows.shape[0]))
        np.add.at(coef[0], chosen, weights / weights.sum())
        mean: Vector = self._rows.rmatvec(coef)[0]
        return mean

    def _moments(self, chosen: Indices, weights: Vector, centre: Vector) -> Matrix:
        """Sum of w (x - c)(x - c)'."""
        X, places = self._rows.gather(chosen)
        total = np.empty((len(centre), len(centre)))
        dense.second_moments(self._risk.team.native, X, places, centre, np.sqrt(weights), total)
        return total


def _sample(chosen: Indices, chances: Vector) -> tuple[Indices, float]:
    """One of every so many, as many as there are chances in [0, 1) to be it: rows may come in periods."""
    every = len(chosen) / len(chances)
    if every <= 1.0:
        return chosen, 1.0
    places = (np.arange(len(chances)) + chances) * every
    return chosen[places.astype(np.int64)], every


def _solve(H: Matrix, b: Vector) -> Vector:
    """Solve H x = b, where rounding may have left H with small negative eigenvalues; zero if that is in vain."""
    scale = 1.0 / np.sqrt(np.diagonal(H))
    H = H * scale * scale[:, None]
    for k in range(_JITTERS):
        _diagonal(H)[...] += _JITTER * 100.0**k
        _, x, failure = dposv(H, scale * b)
        if not failure:
            return np.asarray(scale * x)
    return np.zeros_like(b)


def _diagonal(H: Matrix) -> Vector:
    """A view."""
    return H.reshape(-1)[:: len(H) + 1]
