"""Exact Shapley values beside shapiq's `ProductKernelExplainer`, and of all test rows of covtype by an early machine.

The former needs shapiq >= 1.8 (Python 3.12).

Both explain one `SVR` of scikit-learn's, of 10,000 rows of covtype with columns scaled to [0, 1]: they are all support
vectors, as epsilon is 0. Calls alternate; times are the least of three. `difference` is the largest between values.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.svm import SVR

from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import DCSVMClassifier, shapley_values

_N_POINTS, _N_ROWS = 10_000, 64


def _peer(name: str, run: Run) -> list[Row]:
    return [{"set": name, **row} for row in measure_peer(load_problem(name, n_rows=run.rows))]


def _early(name: str, run: Run) -> Row:
    return {"set": name, **measure_early(load_problem(name, n_rows=run.rows), run.stop_level)}


def measure_peer(problem: Any) -> list[Row]:
    """A row for each library, for one row and for many."""
    from shapiq.explainer import ProductKernelExplainer

    X = problem.X.astype(np.float64)
    machine = SVR(gamma=problem.gamma / 16, C=0.01, epsilon=0.0).fit(X[:_N_POINTS], problem.y[:_N_POINTS])
    explainer, rows = ProductKernelExplainer(machine), problem.X_test[:_N_ROWS].astype(np.float64)

    def of_peer() -> Any:
        found = explainer.explain_function(rows[0])
        return np.array([found[(k,)] for k in range(rows.shape[1])])

    calls: dict[tuple[str, int], Callable[[], Any]] = {
        ("shapiq", 1): of_peer,
        ("widemargin", 1): lambda: shapley_values(machine, rows[:1]).values[0],
        ("widemargin", _N_ROWS): lambda: shapley_values(machine, rows).values[0],
    }
    seconds, values = dict.fromkeys(calls, np.inf), {}
    for _ in range(3):
        for key, call in calls.items():
            start = time.perf_counter()
            values[key] = call()
            seconds[key] = min(seconds[key], time.perf_counter() - start)
    peer = ("shapiq", 1)
    return [
        {
            "machine": name,
            "rows": n,
            "ms_per_row": 1e3 * seconds[name, n] / n,
            "ratio": n * seconds[peer] / seconds[name, n],
            "difference": float(abs(values[name, n] - values[peer]).max()),
        }
        for name, n in calls
    ]


def measure_early(problem: Any, stop_level: int) -> Row:
    """The seconds of all test rows, and what values and base are off the decision values."""
    model = DCSVMClassifier(C=problem.C, gamma=problem.gamma, stop_level=stop_level, random_state=0)
    model.fit(problem.X, problem.y)
    start = time.perf_counter()
    found = shapley_values(model, problem.X_test)
    seconds = time.perf_counter() - start
    error = abs(found.values.sum(axis=1) + found.base_values - model.decision_function(problem.X_test)).max()
    row = {"rows": len(problem.X_test), "support_vectors": len(model.support_), "seconds": seconds}
    return row | {"clusters": model.levels_[-1]["n_clusters"], "off_by": float(error)}


EXPLANATIONS = Experiment(
    "explanations", ("covtype",), ("set", "machine", "rows"), _peer, seconds=300.0, settings={"rows": None}
)
OF_EARLY = EXPLANATIONS._replace(
    results="explanations_early",
    keys=("set",),
    measure=_early,
    settings={"rows": None, "stop_level": 4},
    quick={"cells": ["patches"], "rows": 2000, "stop_level": 1},
)
