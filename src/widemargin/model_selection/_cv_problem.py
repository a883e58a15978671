"""What a search trains and scores: duals for pairs of classes, or for targets, and estimators of held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import _num_samples

from .._types import AnyArray, Given, Matrix, Model, RowIndices, Vector
from ..estimators._predictor import OneVsOnePredictor
from ..estimators._regression_loss import targets_and_slopes
from ..estimators._row_function import Response
from ..estimators._training_warnings import rows_of_each_class, wild_rows
from ..estimators._validation import class_factors, shown
from ..solvers.dual.problem import DualProblem, pair_problem, regression_problem, svm_problem
from ..solvers.quantile import midpoint_quantile

_UNEQUAL = 0.4  # weight of the smallest class / that of equal ones, below which it is rare


def is_unequal(totals: Vector) -> bool:
    """Whether a class is so rare that accuracy says little; `totals` (n_classes,) are its rows, or their weights."""
    return bool(len(totals) and totals.min() * len(totals) < _UNEQUAL * totals.sum())


@dataclass(frozen=True)
class Classification:
    """A machine for every pair of classes; for two classes one whose positive class is the second."""

    y: AnyArray
    classes: AnyArray
    has_intercept: bool
    class_weight: Given
    decision_function_shape: str
    break_ties: bool

    @property
    def machines(self) -> list[RowIndices]:
        """The rows of each machine, in ascending order: all, or those of each pair of classes."""
        return [np.flatnonzero((self.y == a) | (self.y == b)) for a, b in self._pairs]

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.classes)), 2))

    def duals(self, weights: Vector, epsilon: float) -> list[DualProblem]:
        """Each machine's dual at C = 1, for weights (n,) of the rows: 0 for rows that are held out.

        A pair with a class of no weight has no bounds and no intercept: its values are 0, which is no vote.
        """
        upper = weights * class_factors(self.class_weight, self.classes, self.y, weights)[self.y]
        if len(self.classes) == 2:
            return [svm_problem(np.where(self.y > 0, 1.0, -1.0), upper, has_intercept=self.has_intercept)]
        has_rows = self._total_weights(weights) > 0
        return [self._pair_dual(pair, upper, is_trained=bool(has_rows[list(pair)].all())) for pair in self._pairs]

    def _pair_dual(self, pair: tuple[int, int], upper: Vector, *, is_trained: bool) -> DualProblem:
        upper = upper if is_trained else np.zeros(len(upper))
        return pair_problem(self.y, upper, *pair, has_intercept=self.has_intercept and is_trained)[1]

    def _total_weights(self, weights: Vector) -> Vector:
        """The sum of the weights (n,) of each class's rows."""
        return np.bincount(self.y, weights, minlength=len(self.classes)).astype(np.float64)

    def held_out_estimator(self, values: Matrix) -> Model:
        """A classifier that predicts held-out rows from their decision values (n_test, n_machines)."""
        return HeldOutClassifier(values, self.classes, self.decision_function_shape, self.break_ties)

    def constant_values(self, n: int, weights: Vector) -> Matrix:
        """The values (n, n_machines) of machines that predict for n rows the class of the largest weight."""
        largest = int(np.argmax(self._total_weights(weights)))
        if len(self.classes) == 2:
            return np.full((n, 1), 2.0 * largest - 1.0)
        return np.tile([float(a == largest) - float(b == largest) for a, b in self._pairs], (n, 1))

    def take(self, rows: RowIndices) -> Classification:
        """The same classes on some of the rows."""
        return replace(self, y=self.y[rows])

    def few(self, rows: RowIndices) -> RowIndices:
        """Up to 1,000 of the rows, equally many of each class where there are."""
        return rows[rows_of_each_class(self.y[rows], len(self.classes))]

    def find_fault(self, weights: Vector) -> str | None:
        """Why rows of these weights (n,) cannot be trained on: they have fewer than two classes. None if they can."""
        totals = self._total_weights(weights)
        if np.count_nonzero(totals > 0) > 1:
            return None
        return f"rows of fewer than two classes: no row of class {shown(self.classes[np.argmin(totals)])}"


@dataclass(frozen=True)
class Regression:
    """A machine for each target, in units of its spread: C and epsilon mean the same for dollars and for millions.

    Attributes
    ----------
    y : ndarray of shape (n,) or (n, n_targets)
        (targets - mean) / spread.
    slopes : sequence of tuple of float
        Of the losses of each target, above and below it, or of all targets.
    has_intercept : bool
    mean, spread : ndarray of shape () or (n_targets,)
        Of the targets, each row counted by its weight, and wild ones not. The mean is 0 without an intercept.
    """

    y: Vector
    slopes: Sequence[tuple[float, float]]
    has_intercept: bool
    mean: Any
    spread: Any

    @classmethod
    def of_targets(
        cls, targets: Vector, weights: Vector, slopes: Sequence[tuple[float, float]], *, has_intercept: bool
    ) -> Regression:
        """The problem of targets (n,) or (n, n_targets) in their own units; a ValueError if they do not vary."""
        if not np.isfinite(targets).all():
            raise ValueError(f"y must be finite, got {shown(targets[~np.isfinite(targets)].flat[0])}")
        wild = wild_rows(targets)
        counted, weights = np.delete(targets, wild, axis=0), np.delete(weights, wild)
        largest = np.maximum(np.abs(counted).max(axis=0), np.finfo(np.float64).tiny)
        unit = counted / largest  # squares of large targets would overflow
        mean = np.average(unit, axis=0, weights=weights)
        deviation = np.sqrt(np.average((unit - mean) ** 2, axis=0, weights=weights))
        spread = np.where(np.ptp(counted, axis=0) > 0, deviation, 1.0 / largest) * largest
        mean = mean * largest if has_intercept else np.zeros_like(mean)
        return cls((targets - mean) / spread, slopes, has_intercept, mean, spread)

    @property
    def machines(self) -> list[RowIndices]:
        """All rows, once for each target."""
        n_targets = 1 if self.y.ndim == 1 else self.y.shape[1]
        return [np.arange(len(self.y))] * n_targets

    def duals(self, weights: Vector, epsilon: float) -> list[DualProblem]:
        """Each target's dual at C = 1, for weights (n,) of the rows: 0 for rows that are held out."""
        return [
            regression_problem(target, weights, epsilon, slopes, has_intercept=self.has_intercept)
            for target, slopes in targets_and_slopes(self.y, self.slopes)
        ]

    def held_out_estimator(self, values: Matrix) -> Model:
        """A regressor that predicts held-out rows by their decision values (n_test, n_targets), in the user's units."""
        return HeldOutRegressor((values[:, 0] if self.y.ndim == 1 else values) * self.spread + self.mean)

    def constant_values(self, n: int, weights: Vector) -> Matrix:
        """The values (n, n_machines) of machines that predict a constant for n rows: 0 without an intercept.

        Of symmetric losses it is the mean, of others a quantile.
        """
        values = np.zeros((n, len(self.machines)))
        for k, (target, (above, below)) in enumerate(targets_and_slopes(self.y, self.slopes)):
            if self.has_intercept and above != below:
                values[:, k] = midpoint_quantile(target, weights, above / (above + below) * float(weights.sum()))
        return values

    def take(self, rows: RowIndices) -> Regression:
        """The same targets on some of the rows."""
        return replace(self, y=self.y[rows])

    def few(self, rows: RowIndices) -> RowIndices:
        """Up to 1,000 of the rows, evenly spread."""
        return rows[rows_of_each_class(np.zeros(len(rows), np.intp), 1)]

    def find_fault(self, weights: Vector) -> str | None:
        """Why rows of these weights (n,) cannot be trained on: no weight is positive. None if they can."""
        return None if weights.any() else "no positive weight"


CVProblem = Classification | Regression


class HeldOutClassifier(ClassifierMixin, OneVsOnePredictor, BaseEstimator):
    """A classifier for scorers: it predicts the held-out rows, from their decision values (n_test, n_machines)."""

    def __init__(self, values: Matrix, classes: AnyArray, decision_function_shape: str, break_ties: bool) -> None:
        self.values = values
        self.classes = self.classes_ = classes
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties

    def _decision_values(self, X: Given, convert: Response | None = None) -> AnyArray:
        _check_rows(X, self.values)
        return self.values if convert is None else convert(self.values)

    def score(self, X: Given, y: Given, sample_weight: Given = None) -> float:
        """The accuracy on the held-out rows."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))


class HeldOutRegressor(RegressorMixin, BaseEstimator):
    """A regressor for scorers: it predicts the held-out rows, by their values (n_test,) or (n_test, n_targets)."""

    def __init__(self, values: Vector) -> None:
        self.values = values
        self.fitted_ = True

    def predict(self, X: Given) -> Vector:
        """The values of the held-out rows."""
        _check_rows(X, self.values)
        return self.values


def _check_rows(X: Given, values: Vector) -> None:
    if (n := _num_samples(X)) != len(values):
        raise ValueError(
            f"scoring wants predictions of {n} rows: a search has those of the {len(values)} held-out rows"
        )
