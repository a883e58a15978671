"""Default searches of kernel machines beside scikit-learn's gradient-boosted trees, on real tables.

Searches are `DCSVMClassifierCV()` and `DCSVMRegressorCV()` behind `StandardScaler` (`MaxAbsScaler` for sparse rows),
trees are `HistGradientBoosting...` by default, and with 500 iterations of 63 leaves. Test rows are those of the set, or
a fifth of it. `error` is 1 - accuracy or 1 - R^2 of the test rows; `seconds` are those of `fit`, the search included.
Above 1, `error_ratio` (the trees' error / ours) and `seconds_ratio` (our seconds / theirs) say how much better we are,
and how much faster they are. A classifier without errors counts as one with half an error.

Every machine has a process of its own, and a first small fit: threads of another library that spin in wait for work
would take its cores. Trees are fitted with OpenMP threads that spin and with threads that sleep; the faster counts.
Short fits are repeated, and the median counts. `boosting_ablation` has searches without one of their parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn.datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from measuring import process
from measuring.experiment import Experiment, Row, Run
from widemargin import DCSVMClassifierCV, DCSVMRegressorCV, RelevanceDisplay
from widemargin.datasets import load_benchmark

_BUNDLED: dict[str, Callable[..., Any]] = {
    "breast_cancer": sklearn.datasets.load_breast_cancer,
    "digits": sklearn.datasets.load_digits,
    "wine": sklearn.datasets.load_wine,
    "diabetes": sklearn.datasets.load_diabetes,
}
_CLASSES = ("a9a", "ijcnn1", "codrna", "letter", "usps", "pendigits", "covtype_20k", "breast_cancer", "digits", "wine")
_VALUES = ("cadata", "census_house8L", "cpusmall", "diabetes")
_PANEL = (*_CLASSES, *_VALUES)
_ABLATED = ("usps", "covtype_20k", "pendigits", "cadata", "cpusmall", "diabetes")
_MOST_DENSE = 1000  # columns of sparse rows that are made dense
_LARGE_TREES = {"max_iter": 500, "max_leaf_nodes": 63}
_WAITS: tuple[dict[str, str], ...] = ({}, {"OMP_WAIT_POLICY": "passive"})
_CS, _GAMMAS = [1.0, 8.0, 64.0], 5  # of fixed grids
_BUDGETS, _COUNTS, _LEAVES = (30, 60, 120), (100, 300, 1000), 127  # on covtype: seconds; trees, and their leaves
_IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
_COVTYPE_NAMES = [
    *("Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology", "Vertical_Distance_To_Hydrology"),
    *("Horizontal_Distance_To_Roadways", "Hillshade_9am", "Hillshade_Noon", "Hillshade_3pm"),
    "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area_{k}" for k in range(4)),
    *(f"Soil_Type_{k}" for k in range(40)),
]


class Machine(NamedTuple):
    """What is fitted: "search" or "trees", and its parameters."""

    kind: str
    parameters: dict[str, Any]


# --- tables ---


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """Training and test rows, their targets: X, X_test, y, y_test; not scaled. Of covtype, whether it is class 2."""
    if name in _BUNDLED:
        X, y = _BUNDLED[name](return_X_y=True)
        return tuple(train_test_split(X, y, test_size=0.2, random_state=0))  # type: ignore[return-value]
    X, y, X_test, y_test = load_benchmark(name)
    if name == "covtype":
        y = (y == 2).astype(np.int8)
    if X_test is None:
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    return _dense(X), _dense(X_test), y, y_test


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) and X.shape[1] <= _MOST_DENSE else X


# --- one fit, in a process of its own ---


def fit(name: str, kind: str, parameters: dict[str, Any]) -> Row:
    """Seconds of a fit, its error on the test rows, and of a search what it chose."""
    X, X_test, y, y_test = load(name)
    types = _types(name)
    make: Callable[..., Any] = types[kind == "trees"]
    if kind == "trees":
        X, X_test = (rows.toarray() if sp.issparse(rows) else rows for rows in (X, X_test))
        model = make(random_state=0, **parameters)
    else:
        scaler = MaxAbsScaler() if sp.issparse(X) else StandardScaler()
        model = make_pipeline(scaler, make(random_state=0, **parameters))
    _fit_small(make, kind)
    seconds = _seconds(lambda: model.fit(X, y), len(y))
    row = {"n": len(y), "n_features": X.shape[1], "n_test": len(y_test), "seconds": seconds}
    row["error"] = 1.0 - float(model.score(X_test, y_test))
    return row if kind == "trees" else row | _chosen(model[-1])


def _seconds(call: Callable[[], Any], n_rows: int) -> float:
    """The median of as many calls as two seconds hold, one at least and five at most."""
    times: list[float] = []
    while not times or (sum(times) < 2 and len(times) < 5):
        process.touch_memory(n_rows)
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


def _types(name: str) -> tuple[Any, Any]:
    if name in _VALUES:
        return DCSVMRegressorCV, HistGradientBoostingRegressor
    return DCSVMClassifierCV, HistGradientBoostingClassifier


def _fit_small(make: Callable[..., Any], kind: str) -> None:
    """Load libraries and start threads."""
    X, y = sklearn.datasets.make_moons(2000, noise=0.2, random_state=0)
    make(**({"max_iter": 5} if kind == "trees" else {"Cs": [1.0], "gammas": [1.0]})).fit(X, y)


def _chosen(search: Any) -> Row:
    factors = search.relevance_
    return {
        "kernel": search.kernel_,
        "C": float(search.C_),
        "gamma": float(search.gamma_),
        **({"epsilon": float(search.epsilon_)} if hasattr(search, "epsilon_") else {}),
        "early_level": int(search.early_level_),
        "cells": len(search.history_["time"]),
        "relevance": [] if factors is None else [float(factor) for factor in factors],
    }


def _measure(name: str, label: str, machine: Machine) -> Row:
    """A row of a machine: of trees, the faster of two fits."""
    waits = _WAITS if machine.kind == "trees" else _WAITS[:1]
    found = [process.run_apart(fit, name, *machine, environment=wait) for wait in waits]
    return {"set": name, "machine": label, **min(found, key=lambda row: float(row["seconds"]))}


# --- what is compared ---


def _panel(max_time: float) -> dict[str, Machine]:
    return {
        "search": Machine("search", {"max_time": max_time or None}),
        "trees": Machine("trees", {}),
        "trees, 500 × 63 leaves": Machine("trees", _LARGE_TREES),
    }


def _ablations(name: str, max_time: float) -> dict[str, Machine]:
    """The default search, and searches without one of its parts each."""
    is_regression = name in _VALUES
    grid: dict[str, Any] = {"Cs": _CS, "gammas": _GAMMAS} | ({"epsilons": [0.1]} if is_regression else {})
    changes: dict[str, dict[str, Any]] = {
        "search": {},
        "RBF alone": {"kernels": "rbf"},
        "no relevance": {"relevance": False},
        "exact cells of a grid": {"search": "exact", **grid},
        "early cells of a grid": {"search": "early", **grid},
    }
    if is_regression:
        spread = float(np.std(load(name)[2]))
        changes["epsilon 0.1 in units of y"] = {"epsilons": [0.1 / spread]}
    return {label: Machine("search", {"max_time": max_time or None, **change}) for label, change in changes.items()}


def _covtype() -> dict[str, Machine]:
    trees = {"max_leaf_nodes": _LEAVES, "early_stopping": False}
    return {
        **{f"search, {seconds} s": Machine("search", {"max_time": seconds}) for seconds in _BUDGETS},
        **{f"trees, {count:,}": Machine("trees", {"max_iter": count, **trees}) for count in _COUNTS},
    }


def _rows(name: str, machines: Mapping[str, Machine]) -> list[Row]:
    """The rows of a set, with ratios to the search's."""
    rows = [_measure(name, label, machine) for label, machine in machines.items()]
    rows = [row | ({"relevance": bool(row["relevance"])} if "relevance" in row else {}) for row in rows]
    return compared(rows)


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows of a set with their ratios to the default search."""
    ours = next(row for row in rows if row["machine"] == "search")
    least = 0.5 / ours["n_test"]
    errors = [max(float(row["error"]), least) / max(float(ours["error"]), least) for row in rows]
    return [
        row | {"error_ratio": error, "seconds_ratio": float(ours["seconds"] / row["seconds"])}
        for row, error in zip(rows, errors, strict=True)
    ]


def _compare(name: str, run: Run) -> list[Row]:
    return _rows(name, _panel(run.max_time))


def _ablate(name: str, run: Run) -> list[Row]:
    return _rows(name, _ablations(name, run.max_time))


def _compare_by_time(name: str, label: str, run: Run) -> Row:
    """A row of covtype; the relevance of the columns as text."""
    row = _measure(name, label, _covtype()[label])
    return row | ({"relevance": " ".join(map(str, row["relevance"]))} if "relevance" in row else {})


def _draw_relevance(rows: Sequence[Row]) -> None:
    """The relevance of the columns of covtype of the longest search that scaled them."""
    import matplotlib

    matplotlib.use("Agg")
    factors = [float(factor) for row in rows for factor in str(row.get("relevance", "")).split()]
    names = [name.replace("_", " ") for name in _COVTYPE_NAMES]
    display = RelevanceDisplay(factors[-len(names) :], names).plot(n_columns=15)
    display.figure_.set_size_inches(6.0, 3.6)
    display.figure_.savefig(_IMAGES / "covtype_relevance.png", dpi=90)


BOOSTING = Experiment(
    "boosting",
    _PANEL,
    ("set", "machine"),
    _compare,
    seconds=30.0,
    settings={"max_time": 0.0},
    quick={"cells": ["wine"], "max_time": 1.0},
)
ABLATION = BOOSTING._replace(results="boosting_ablation", cells=_ABLATED, measure=_ablate, seconds=60.0)
COVTYPE = BOOSTING._replace(
    results="boosting_covtype",
    cells=[("covtype", label) for label in _covtype()],
    measure=_compare_by_time,
    seconds=110.0,
    settings={},
    draw=_draw_relevance,
)
