"""Scales beside a model: the files of e1071's `write.svm`, and the range files of LIBSVM's `svm-scale`."""

from __future__ import annotations

import os
from array import array

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._types import Given, Model
from ..datasets.files import PathLike
from .lines import lines_of
from .machines import ImportedRegressor

_MOST_COLUMNS = 2**24  # of a range file, whose table is dense


def scaled(machine: Model, scale: Given) -> Model:
    """A machine that takes rows as they were before they were scaled, and predicts values in their own units.

    `scale` has the centre and the spread of each column, and of y: a path, a pair of them, or an array (d, 2).
    """
    d = machine.n_features_in_
    columns, of_y = [*scale, None][:2] if _are_paths(scale) else (scale, None)
    table, target = _read(columns, d) if isinstance(columns, str | os.PathLike) else (np.array(columns, float), None)
    if of_y is not None:
        target, _ = _read(of_y, 0)
    if target is not None:
        if not isinstance(machine, ImportedRegressor):
            raise ValueError("scale has a line for y, but the model is no regressor")
        if target.shape != (1, 2):
            raise ValueError(f"scale must have one line of centre and spread for y, got {len(target)}")
        ((centre, spread),) = target
        machine.take(machine.support_vectors_, machine.dual_coef_ * spread, machine.intercept_ * spread + centre)
    if not table.size:
        return machine  # e1071 scaled nothing
    if table.ndim != 2 or table.shape[1] != 2 or np.isnan(table).any() or not (table[:, 1] > 0).all():
        raise ValueError(f"scale must have a centre and a spread above 0 for each column, got shape {table.shape}")
    if len(table) < d:
        raise ValueError(
            f"scale has {len(table)} lines for {d} columns: e1071 lists the scaled ones alone. Give an array of shape "
            f"({d}, 2), with centre 0 and spread 1 for the columns that were not scaled"
        )
    machine.widen(len(table))
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_ = table.T.copy()
    scaler.var_, scaler.n_features_in_, scaler.n_samples_seen_ = np.square(scaler.scale_), len(table), 1
    return make_pipeline(scaler, machine)


def _are_paths(scale: Given) -> bool:
    is_short = isinstance(scale, list | tuple) and len(scale) in (1, 2)
    return is_short and all(isinstance(path, str | os.PathLike) for path in scale)


def _read(path: PathLike, d: int) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Centres and spreads of at least d columns of `svm-scale`, or of those that e1071 scaled, and of y: (n, 2)."""
    values, part, limits = array("d"), b"", None
    ranges: dict[bytes, dict[int, tuple[float, float]]] = {b"x": {}, b"y": {}}
    with lines_of(path) as lines:
        for line in lines:
            if (text := line.strip()) in ranges:
                part, limits = text, None
                continue
            size = 3 if part == b"x" and limits is not None else 2
            *index, low, high = lines.numbers(text, "a line of a scale", size)
            if not part:  # e1071's
                if high <= 0:
                    raise lines.error(f"the spread must be above 0, got {high:g}")
                values.extend((low, high))
                continue
            if low >= high:
                raise lines.error(f"the first of two limits must be below the second, got {low:g} and {high:g}")
            if limits is None:
                limits = low, high
                continue
            column = index[0] - 1 if index else 0
            if column != np.rint(column) or not 0 <= column < _MOST_COLUMNS:
                raise lines.error(f"the index of a column must be whole, and from 1, got {index[0]:g}")
            spread = (high - low) / (limits[1] - limits[0])
            ranges[part][int(column)] = low - limits[0] * spread, spread
    if not part:
        return np.frombuffer(values).reshape(-1, 2), None
    table = np.tile((0.0, np.inf), (max([d - 1, *ranges[b"x"]]) + 1, 1))  # svm-scale makes other columns 0
    for column, own in ranges[b"x"].items():
        table[column] = own
    return table, np.array([*ranges[b"y"].values()]) if ranges[b"y"] else None
