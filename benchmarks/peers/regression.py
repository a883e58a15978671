"""DCSVMRegressor and DCOneClassSVM beside scikit-learn's and scikit-learn-intelex's machines, in one process run.

Columns of X and y are standardised, X is float32, tol = 1e-3, epsilon = 0.1, gamma = 1 / d. Machines alternate; times
are medians. `ratio` is the rival's time divided by ours: above 1, ours is faster. `rmse` is that of test rows in units
of the spread of y. scikit-learn's machines run once, and not on the generated set of 100,000 rows.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, OneClassSVM

from measuring import process
from measuring.experiment import Experiment, Row, Run
from widemargin import DCOneClassSVM, DCSVMRegressor
from widemargin.datasets import load_benchmark

_GENERATED = "friedman1"
_SETS = ("cadata", "census_house8L", "cpusmall", _GENERATED)
_ROWS = 100_000  # of the generated set
_NU = 0.1


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """Standardised training and test rows: a fifth of them are test rows."""
    if name == _GENERATED:
        X, y = make_friedman1(_ROWS + _ROWS // 4, 10, noise=1.0, random_state=0)
    else:
        X, y, _, _ = load_benchmark(name)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [len(y) // 5])
    scaler = StandardScaler().fit(X[train])
    spread, mean = y[train].std(), y[train].mean()
    parts = [scaler.transform(X[rows]).astype(np.float32) for rows in (train, test)]
    targets = [(y[rows] - mean) / spread for rows in (train, test)]
    return parts[0], targets[0], parts[1], targets[1]


def measure(name: str, run: Run) -> Iterator[list[Row]]:
    """The rows of a set: regression for each C, and novelty detection."""
    warnings.simplefilter("ignore")
    X, y, X_test, y_test = load(name)
    X, y = X[: run.rows], y[: run.rows]
    for C in run.Cs:
        yield regression(name, (X, y, X_test, y_test), C, run)
    yield novelty(name, X, run)


def regression(name: str, data: tuple[Any, Any, Any, Any], C: float, run: Run) -> list[Row]:
    """One row for each regressor; ratios to our exact one."""
    X, y, X_test, y_test = data
    common = {"C": C, "gamma": 1.0 / X.shape[1], "epsilon": 0.1}
    machines = {
        "widemargin": DCSVMRegressor(**common),
        "widemargin early": DCSVMRegressor(**common, stop_level=2),
        **intelex("SVR", common),
        "scikit-learn": SVR(**common),
    }
    rows = []
    for machine, (model, seconds) in alternate(machines, (X, y), name, run):
        row: Row = {"set": name, "n": len(y), "C": C, "machine": f"{machine} SVR", "seconds": seconds}
        row["rmse"] = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
        row["n_support"] = len(model.support_)
        if hasattr(model, "objective_"):
            row |= {"objective": model.objective_, "relative_gap": model.relative_gap_}
        rows.append(row)
    return with_ratios(rows)


def novelty(name: str, X: Any, run: Run) -> list[Row]:
    """One row for each one-class machine."""
    common = {"nu": _NU, "gamma": 1.0 / X.shape[1]}
    machines = {"widemargin": DCOneClassSVM(**common), "scikit-learn": OneClassSVM(**common)}
    rows, labels = [], None
    for machine, (model, seconds) in alternate(machines, (X,), name, run):
        predicted = model.predict(X)
        labels = predicted if labels is None else labels
        row = {"set": name, "n": len(X), "C": "", "machine": f"{machine} one-class", "seconds": seconds}
        row |= {"n_support": len(model.support_), "equal_labels": float(np.mean(predicted == labels))}
        rows.append(row)
    return with_ratios(rows)


def intelex(kind: str, parameters: dict[str, Any]) -> Row:
    """scikit-learn-intelex's machine, where it is installed."""
    try:
        import sklearnex.svm
    except ImportError:
        return {}
    return {"scikit-learn-intelex": getattr(sklearnex.svm, kind)(**parameters)}


def alternate(
    machines: dict[str, Any], data: tuple[Any, ...], name: str, run: Run
) -> Iterator[tuple[str, tuple[Any, float]]]:
    """Each machine, fitted, and the median of its seconds; forwards and backwards in turn."""
    machines = {key: machine for key, machine in machines.items() if run.asks(key)}
    if name == _GENERATED:
        machines.pop("scikit-learn", None)
    seconds: dict[str, list[float]] = {key: [] for key in machines}
    for repeat in range(run.repeats):
        for key in list(machines)[:: -1 if repeat % 2 else 1]:
            if key == "scikit-learn" and repeat:
                continue
            process.touch_memory(len(data[0]))
            begin = time.perf_counter()
            machines[key].fit(*data)
            seconds[key].append(time.perf_counter() - begin)
    for key, machine in machines.items():
        yield key, (machine, statistics.median(seconds[key]))


def with_ratios(rows: list[Row]) -> list[Row]:
    """Add each row's time divided by the first one's."""
    return [{**row, "ratio": row["seconds"] / rows[0]["seconds"]} for row in rows]


REGRESSION = Experiment(
    "regression",
    _SETS,
    ("set", "C", "machine"),
    measure,
    seconds=180.0,
    settings={"Cs": (1.0,), "repeats": 3, "rows": None},
    quick={"cells": ["cpusmall"], "repeats": 1, "rows": 1000},
)
