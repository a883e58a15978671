"""Warnings: the model predicts one class or a constant for all rows, or a few targets are far from all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import AnyArray, Labels, Matrix, RowIndices, Rows, Vector
from ..algorithms.trained_machines import TrainedMachines
from ..data import take_rows
from ..data.labels import class_pairs
from ..data.rows import spread_rows
from ._estimator import warn_user
from ._predictor import argmax_classes
from ._validation import shown

PROBE_ROWS = 1000  # training rows that are looked at where all take too long: predictions, range and scale
_KERNEL_REMEDY = "C or gamma", "DCSVMClassifierCV chooses C and gamma"
_BINDING, _FLAT = 0.85, 0.25  # how far C alone holds a regressor down, least, and std(f) / std(y), most
_WILD = 10.0  # distance of a wild target from the median / that of any other row
_FEW, _WILD_SHARE, _VARYING_SHARE = 3, 0.05, 0.1  # of the rows: wild ones, at most; not at the median, at least
_SHOWN = 5  # wild rows that a message names


def warn_of_one_class(
    classes: AnyArray, predicted: Labels, n_rows: str = "all training rows", *, is_linear: bool = False
) -> None:
    """Warn where all of the predicted class numbers are one."""
    if len(predicted) and (predicted == predicted[0]).all():
        only = shown(classes[predicted[0]])
        larger, search = ("C", "OCASClassifierCV chooses C") if is_linear else _KERNEL_REMEDY
        warn_user(
            f"the model predicts the class {only} for {n_rows}: it has learned nothing else. Try a larger {larger}, "
            "class_weight='balanced' if the classes are unequal, and columns of equal scale "
            f"(sklearn.preprocessing.StandardScaler); {search}",
            UserWarning,
        )


def warn_of_one_class_on_probe(model: Any, X: Rows, y: Labels, classes: AnyArray, **how: Any) -> None:
    """`warn_of_one_class` of a kernel machine, one for two classes or one for each, by some rows of each class."""
    rows = rows_of_each_class(y, len(classes))
    predicted = argmax_classes(model.decision_values(X[rows], **how))
    warn_of_one_class(classes, predicted, f"all of {len(rows):,} training rows")


def warn_of_one_class_of_linear(
    model: Any, X: Rows, number_rows: Callable[[], Labels], classes: AnyArray, max_bytes: int, **how: Any
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
    is_positive, results = decision_values(machines) > 0, machines.results
    if len(machines) == 1:
        return is_positive.astype(np.intp)
    n_positive, sizes = results.sums(is_positive), results.starts[1:] - results.starts[:-1]
    first, second = class_pairs(n_classes)
    winners = np.concatenate([first[n_positive == sizes], second[n_positive == 0]])
    (alone,) = (np.bincount(winners, minlength=n_classes) == n_classes - 1).nonzero()
    return alone if len(alone) else np.arange(n_classes)


def decision_values(machines: TrainedMachines) -> Vector:
    """Decision values K beta + b (N,) of the machines on their training rows; b is that of a row's cluster."""
    results, labels = machines.results, 0 if machines.division is None else machines.division.labels[machines.rows]
    return np.asarray(results.decision + machines.intercepts[results.numbers, labels])


def wild_rows(y: Matrix) -> RowIndices:
    """The rows whose target, of y (n,) or (n, n_targets), is ten times as far from the median as any other row's.

    They are at most 5 % of the rows, or three, of less than thirty a tenth.
    """
    most = max(int(_WILD_SHARE * len(y)), min(_FEW, len(y) // 10))
    wild = np.zeros(len(y), np.bool_)
    for target in y.reshape(len(y), -1).T if most else ():
        few = np.sort(target[spread_rows(len(target), PROBE_ROWS)])
        low, centre, high = few[len(few) // 10], few[len(few) // 2], few[-1 - len(few) // 10]
        if max(target.max() - centre, centre - target.min()) <= _WILD * min(high - centre, centre - low):
            continue  # at no more expense than this
        distance = np.abs(target - np.median(target))
        far = np.argpartition(distance, -most - 1)[-most - 1 :]
        far = far[np.argsort(distance[far])]
        is_gap = distance[far[1:]] > _WILD * distance[far[:-1]]
        if is_gap.any() and np.count_nonzero(distance) >= most + _VARYING_SHARE * len(y):
            wild[far[1 + is_gap.argmax() :]] = True
    return np.flatnonzero(wild)


def warn_of_wild_targets(y: Matrix, numbers: RowIndices, advice: str) -> None:
    """Warn of wild rows of y, (n,) or (n, n_targets), which have these numbers in the user's data, if there are any."""
    wild = wild_rows(y)
    if len(wild):
        warn_user(f"y has {describe_wild_targets(y[wild], numbers[wild])}. {advice}", UserWarning)


def describe_wild_targets(y: Matrix, numbers: RowIndices) -> str:
    """Wild targets y and their rows' numbers in words."""
    named = ", ".join(f"{shown(value)} in row {k}" for value, k in zip(y[:_SHOWN], numbers.tolist(), strict=False))
    more = f" and {len(y) - _SHOWN} more" if len(y) > _SHOWN else ""
    return f"values ten times and more as far from the median as all others: {named}{more}"


def warn_of_squares(y: Matrix, numbers: RowIndices, remedy: str) -> None:
    """`warn_of_wild_targets` of a machine of squared losses."""
    advice = f"Squared losses follow them at the cost of all other rows: drop them if they are errors, or take {remedy}"
    warn_of_wild_targets(y, numbers, advice)


def warn_of_target(
    y: Vector, decision: Vector, C: float, epsilon: float, binding: Callable[[], float], search: str
) -> bool:
    """Warn if a constant is within epsilon of all targets y (n,), or C holds a machine to one; whether it did.

    `decision` are decision values of all rows or of some, `binding` returns how far C alone holds the machine down,
    from 0 to 1, and `search` is the estimator that chooses.
    """
    if len(y) < 10 or (
        epsilon < 0.5 * np.ptp(y) and decision.std() >= _FLAT * y.std()
    ):  # too few to be judged, or well
        return False
    ordinary = np.delete(y, wild_rows(y))
    deviation, spread = float(ordinary.std()), float(np.ptp(ordinary))
    if not deviation:
        return False
    if epsilon >= 0.5 * spread:
        problem = (
            f"epsilon={epsilon:g} is at least half of the spread of y ({spread:.3g}): no row has a loss to learn from"
        )
    elif decision.std() < _FLAT * deviation and binding() >= _BINDING:
        problem = (
            f"C={C:g} is too small for y, whose standard deviation is {deviation:.3g}: the model is nearly constant"
        )
    else:
        return False
    makes_sense = f"and epsilon={0.1 * deviation:.2g} make sense" if epsilon else "makes sense"
    warn_user(
        f"{problem}. Scale y (sklearn.compose.TransformedTargetRegressor), or let {search} choose, "
        f"which does; for y as it is, C={deviation:.2g} {makes_sense}",
        UserWarning,
    )
    return True
