"""Warnings of machines that have learned nothing: one class for all rows, or a constant for all targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Labels, RowIndices, Vector
from ..algorithms.trained_machines import TrainedMachine, TrainedMachines
from ..data import take_rows
from ..data.labels import class_pairs
from ._estimator import warn_user
from ._predictor import argmax_classes
from ._validation import shown

PROBE_ROWS = 1000  # training rows that are looked at where all take too long: predictions, range and scale
_KERNEL_REMEDY = "C or gamma", "DCSVMClassifierCV chooses C and gamma"
_BOUNDED_SHARE, _FLAT = 0.9, 0.25  # rows at a bound, and std(f) / std(y), of a regressor that C holds down


def warn_of_one_class(
    classes: NDArray[Any], predicted: Labels, n_rows: str = "all training rows", *, is_linear: bool = False
) -> None:
    """Warn where all of the predicted class numbers are one."""
    if len(predicted) and (predicted == predicted[0]).all():
        only = shown(classes[predicted[0]])
        larger, search = ("C", "OCASClassifierCV chooses C") if is_linear else _KERNEL_REMEDY
        warn_user(
            f"the machine predicts the class {only} for {n_rows}: it has learned nothing else. Try a larger {larger}, "
            "class_weight='balanced' if the classes are unequal, and columns of equal scale "
            f"(sklearn.preprocessing.StandardScaler); {search}",
            UserWarning,
        )


def warn_of_one_class_on_probe(model: Any, X: Any, y: Labels, classes: NDArray[Any], **how: Any) -> None:
    """`warn_of_one_class` of a kernel machine, one for two classes or one for each, by some rows of each class."""
    rows = rows_of_each_class(y, len(classes))
    predicted = argmax_classes(model.decision_values(X[rows], **how))
    warn_of_one_class(classes, predicted, f"all of {len(rows):,} training rows")


def warn_of_one_class_of_linear(
    model: Any, X: Any, number_rows: Callable[[], Labels], classes: NDArray[Any], max_bytes: int, **how: Any
) -> None:
    """`warn_of_one_class_on_probe` of a linear machine: rows have class numbers only where it is in doubt."""
    few = np.arange(0, X.shape[0], -(-X.shape[0] // PROBE_ROWS))
    for rows in (lambda: few, lambda: rows_of_each_class(number_rows(), len(classes))):
        predicted = argmax_classes(model.decision_values(take_rows(X, rows(), max_bytes), **how))
        if (predicted != predicted[0]).any():
            return
    warn_of_one_class(classes, predicted, f"all of {len(predicted):,} training rows", is_linear=True)


def rows_of_each_class(y: Labels, n_classes: int) -> RowIndices:
    """Up to 1,000 rows, equally many of each class where there are."""
    most = max(1, PROBE_ROWS // n_classes)
    order = np.argsort(y, kind="stable")
    ends = np.cumsum(np.bincount(y, minlength=n_classes))
    starts = np.concatenate([[0], ends[:-1]])
    spread = [np.linspace(a, b - 1, min(most, b - a)).astype(np.intp) for a, b in zip(starts, ends, strict=True)]
    return np.sort(order[np.concatenate(spread)])


def predicted_classes(machines: TrainedMachines, n_classes: int) -> Labels:
    """Class numbers that stand for what the pairs' machines predict for their own rows: one number if they are one.

    A class is predicted alone where each of its pairs decides for it on all of its rows.
    """
    is_positive, results = _decision_values(machines) > 0, machines.results
    if len(machines) == 1:
        return is_positive.astype(np.intp)
    n_positive, sizes = results.sums(is_positive), results.starts[1:] - results.starts[:-1]
    first, second = class_pairs(n_classes)
    winners = np.concatenate([first[n_positive == sizes], second[n_positive == 0]])
    alone = np.flatnonzero(np.bincount(winners, minlength=n_classes) == n_classes - 1)
    return alone if len(alone) else np.arange(n_classes)


def _decision_values(machines: TrainedMachines) -> Vector:
    """K beta + b (N,) of the machines' own rows; of early machines with the intercepts of their clusters."""
    results, labels = machines.results, 0 if machines.division is None else machines.division.labels[machines.rows]
    return np.asarray(results.decision + machines.intercepts[results.numbers, labels])


def warn_of_targets(targets: Vector, upper: Vector, C: float, epsilon: float, machines: TrainedMachines) -> None:
    """Warn, once, where C or epsilon leaves next to nothing to a regression's machines.

    Parameters
    ----------
    targets : ndarray of shape (n_targets, n)
    upper : ndarray of shape (n,)
        C times the rows' weights.
    C, epsilon : float
    machines : TrainedMachines
        One for each target.
    """
    for y, machine in zip(targets, machines, strict=True):
        if len(y) < 10 or not y.std():  # too few to be judged
            continue
        if problem := _describe_targets(y, upper, C, epsilon, machine):
            warn_user(
                f"{problem}. Scale y (sklearn.compose.TransformedTargetRegressor), or let DCSVMRegressorCV choose, "
                f"which does; for y as it is, C={y.std():.2g} and epsilon={0.1 * y.std():.2g} make sense",
                UserWarning,
            )
            return


def _describe_targets(y: Vector, upper: Vector, C: float, epsilon: float, machine: TrainedMachine) -> str:
    """In words, if a constant is within epsilon of all targets, or C holds the machine to one; else ""."""
    spread = float(np.ptp(y))
    if epsilon >= 0.5 * spread:
        return (
            f"epsilon={epsilon:g} is at least half of the spread of y ({spread:.3g}): no row has a loss to learn from"
        )
    bounded = float(np.mean(np.abs(machine.result.beta) >= upper * (1 - 1e-9)))
    if bounded >= _BOUNDED_SHARE and machine.result.decision.std() < _FLAT * y.std():
        return (
            f"C={C:g} is too small for y, whose standard deviation is {y.std():.3g}: {bounded:.0%} of the rows are at "
            "the bound C, and the machine is nearly constant"
        )
    return ""
