"""The scales that e1071's `write.svm` puts beside a model."""

from __future__ import annotations

import os
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..datasets.files import PathLike
from .lines import lines_of
from .machines import ImportedRegressor


def scaled(machine: Any, scale: Any) -> Any:
    """A machine that takes rows as they were before they were scaled, and predicts values in their own units.

    Parameters
    ----------
    machine : ImportedMachine
    scale : path-like, pair of path-likes, or array-like of shape (d, 2)
        The centre and the spread of each column, and of y.
    """
    columns, target = scale if _are_paths(scale) else (scale, None)
    if target is not None:
        if not isinstance(machine, ImportedRegressor):
            raise ValueError(f"scale has a file of y, {os.fspath(target)}, but the model is no regressor")
        ((centre, spread),) = _read(target, 1)
        intercept = machine.intercept_ * spread + centre
        machine.take(machine.support_vectors_, machine.dual_coef_ * spread, intercept)
    table = _read(columns, None) if isinstance(columns, str | os.PathLike) else np.array(columns, np.float64)
    if not table.size:
        return machine  # e1071 scaled nothing
    if table.ndim != 2 or table.shape[1] != 2 or not (np.isfinite(table).all() and (table[:, 1] > 0).all()):
        raise ValueError(f"scale must have a centre and a spread above 0 for each column, got shape {table.shape}")
    d = machine.n_features_in_
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


def _are_paths(scale: Any) -> bool:
    return isinstance(scale, list | tuple) and len(scale) == 2 and all(isinstance(p, str | os.PathLike) for p in scale)


def _read(path: PathLike, n_lines: int | None) -> NDArray[np.float64]:
    """Lines of a centre and a spread above 0: (n_lines, 2)."""
    values = array("d")
    with lines_of(path) as lines:
        for text in lines.raw():
            pair = lines.numbers(text.encode(), "a line of centre and spread", 2)
            if pair[1] <= 0:
                raise lines.error(f"the spread must be above 0, got {pair[1]:g}")
            values.frombytes(pair.tobytes())
        if n_lines is not None and len(values) != 2 * n_lines:
            raise lines.error(f"there must be {n_lines} line of centre and spread, got {len(values) // 2}")
    return np.frombuffer(values).reshape(-1, 2)
