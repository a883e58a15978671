"""A risk that is given as a function of w: its value and a subgradient at any point are all that is known of it.

Here the decision values of w are w itself (`IdentityMatrix`), a subgradient is the plane's normal, and each evaluation
gives a plane. The line search evaluates the search point and at most three points before it, so that the best point is
always one that was evaluated.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..._types import Matrix, RowIndices, Vector
from .losses import Loss, RiskAndPlane
from .master_problem import MasterProblem

_SLOPE_LEFT = 0.6  # derivative at the step found / at 0, at most: on hinges 0.1 takes a fifth more evaluations


class Risk(Protocol):
    """A convex function R of w (n_features,)."""

    def value_and_subgradient(self, w: Vector, /) -> tuple[float, ArrayLike]:
        """R(w), and a vector a (n_features,) with R(v) >= R(w) + <a, v - w> for all v."""


class WrongSubgradientError(ValueError):
    """A plane lies above the risk: a subgradient is none, or the risk is not convex."""


class Evaluation(NamedTuple):
    """R and a subgradient (n_features,) at a point (n_features,)."""

    point: Vector
    value: float
    subgradient: Vector

    @property
    def offset(self) -> float:
        """The plane is <subgradient, w> + offset."""
        return self.value - float(self.subgradient @ self.point)


class GivenRisk:
    """A risk as a `Loss` of decision values w (1, n_features); values are compared with the planes of `master`."""

    n_outputs = 1
    hinge = None
    accelerations: frozenset[str] = frozenset()

    def __init__(self, risk: Risk, n_features: int) -> None:
        self.n_rows = n_features
        self.master: MasterProblem | None = None
        self._risk = risk
        self._best: Evaluation | None = None
        self._on_line: list[tuple[float, Evaluation]] = []  # steps and evaluations of the latest line search
        self._best = self._evaluate(np.zeros(n_features))

    @property
    def first_plane(self) -> tuple[Vector, float]:
        """The plane at w = 0: the risk may be negative, and the zero plane above it."""
        assert self._best is not None
        return self._best.subgradient, self._best.offset

    def intercept(self, f: Matrix) -> Vector:
        """Zero."""
        return np.zeros(1)

    def find_step(self, f: Matrix, f_end: Matrix, curvature: float, slope: float) -> float:
        """The best of the steps evaluated: 1, and up to three before it if the objective rises there; 0 if none is."""
        here, toward = self._at(f[0]), f_end[0] - f[0]

        def derivative(k: float, at: Evaluation) -> float:
            return curvature * k + slope + float(at.subgradient @ toward)

        def value(k: float, at: Evaluation) -> float:
            return 0.5 * curvature * k * k + slope * k + at.value

        self._on_line = [(1.0, self._evaluate(f_end[0]))]
        lo, at_lo, hi, at_hi = 0.0, derivative(0.0, here), 1.0, derivative(*self._on_line[0])
        first = at_lo
        for _ in range(3):  # evaluations between best point and search point, at most
            k = (lo * at_hi - hi * at_lo) / (at_hi - at_lo) if at_lo < 0.0 < at_hi else lo
            if not lo < k < hi:
                break
            self._on_line.append((k, self._evaluate(f[0] + k * toward)))
            at_k = derivative(*self._on_line[-1])
            if abs(at_k) <= _SLOPE_LEFT * abs(first):
                break
            lo, at_lo, hi, at_hi = (k, at_k, hi, at_hi) if at_k < 0.0 else (lo, at_lo, k, at_k)
        step, best = min(self._on_line, key=lambda found: value(*found))
        return step if value(step, best) < value(0.0, here) else 0.0

    def advance(self, f: Matrix, f_end: Matrix, step: float, mu: float) -> RiskAndPlane:
        """The plane at the best point, and those of all other evaluations."""
        f += step * (f_end - f)
        found = [evaluation for _, evaluation in self._on_line]
        best = next((own for k, own in self._on_line if k == step), None) or self._at(f[0])
        self._on_line, self._best = [], best
        return RiskAndPlane(best.value, *_plane(best)[:2], [_plane(other) for other in found if other is not best])

    def restrict(self, chosen: RowIndices, factor: float = 1.0) -> Loss:
        """There are no samples."""
        raise NotImplementedError

    def _at(self, w: Vector) -> Evaluation:
        """The evaluation at w, known or new."""
        known = self._best
        return known if known is not None and np.array_equal(known.point, w) else self._evaluate(w)

    def _evaluate(self, w: Vector) -> Evaluation:
        value, subgradient = self._risk.value_and_subgradient(w.copy())
        found = Evaluation(w.copy(), _checked_value(value), _checked_subgradient(subgradient, len(w)))
        self._check_planes(found)
        return found

    def _check_planes(self, new: Evaluation) -> None:
        """Raise an error if a known plane is above the new value, or the new plane above that of the best point."""
        if self.master is not None:
            normals, offsets = self.master.normals, self.master.offsets
            terms = np.abs(normals) @ np.abs(new.point) + np.abs(offsets)
            _check_below(normals @ new.point + offsets, terms, new.value)
        if self._best is not None:
            change = self._best.point - new.point
            terms = np.abs(new.subgradient[None]) @ np.abs(change) + abs(new.value)
            _check_below(new.value + new.subgradient[None] @ change, terms, self._best.value)


def _plane(evaluation: Evaluation) -> tuple[Matrix, float, Vector]:
    return evaluation.subgradient[None], evaluation.offset, evaluation.point


def _checked_value(value: Any) -> float:
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"risk.value_and_subgradient must return a finite value, got {number}")
    return number


def _checked_subgradient(subgradient: Any, n_features: int) -> Vector:
    checked: Vector = np.array(subgradient, np.float64)
    if checked.shape != (n_features,):
        shape = f"({n_features},)"
        raise ValueError(f"risk.value_and_subgradient must return a subgradient of shape {shape}, got {checked.shape}")
    if not np.isfinite(checked).all():
        raise ValueError("risk.value_and_subgradient must return finite subgradients, got NaN or infinity")
    return checked


def _check_below(planes: Vector, terms: Vector, value: float) -> None:
    excess = planes - value - 1e-8 * (terms + abs(value))  # rounding in the risk
    if excess.max() > 0.0:
        worst = float(planes[excess.argmax()])
        raise WrongSubgradientError(
            f"a cutting plane of the risk has the value {worst:.6g} at a point where the risk is {value:.6g}: then the "
            "lower bound proves nothing. value_and_subgradient must return a subgradient, and the risk be convex"
        )
