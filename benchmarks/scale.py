"""Exact, early and linear machines of the whole covtype by the number of rows, and of two larger sets.

covtype: class 2 against the rest with C = gamma = 32, columns scaled to [0, 1]; a fifth of the 581,012 rows is for
tests. `memory` is its largest size less that before it, with the data. The linear machine has C = 1 and one thread, and
its seconds are processor time. The machine "paper" is Algorithm 1 as published: four levels, kernel k-means, no
intercept. `larger_sets` are 500,000 patches and 1,000,000 noisy rows. Exact machines stop after 600 seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from measuring import process
from measuring.experiment import Experiment, Row
from measuring.problems import load_problem
from widemargin import DCSVMClassifier, OCASClassifier

ROWS = 20_000, 60_000, 116_202, 232_405, 464_810
_MOST_OF_RIVAL = 60_000  # rows: it takes minutes with twice as many


def _intelex(C: float, gamma: float) -> Any:
    from sklearnex.svm import SVC

    return SVC(C=C, gamma=gamma, cache_size=1000)


_PAPER = {"n_levels": 4, "branching": 4, "n_sample": 1000, "partition": "kernel", "fit_intercept": False}
MACHINES: dict[str, Callable[[float, float], Any]] = {  # of C and gamma
    "exact": lambda C, gamma: DCSVMClassifier(C=C, gamma=gamma, max_time=600),
    "early": lambda C, gamma: DCSVMClassifier(C=C, gamma=gamma, stop_level=3),
    "early, auto": lambda C, gamma: DCSVMClassifier(C=C, gamma=gamma, stop_level="auto"),
    "intelex": _intelex,
    "linear": lambda C, gamma: OCASClassifier(n_jobs=1),
    "paper": lambda C, gamma: DCSVMClassifier(C=C, gamma=gamma, **_PAPER),
}


def measure(name: str, machine: str, n: int, run: Any = None) -> Row:
    """The row of one machine of n rows: of the second of two fits where one takes less than ten seconds."""
    problem = load_problem(name, n_rows=n * 5 // 4 if name == "noisy" else n)  # a fifth is for tests
    X, y, make = problem.X, problem.y, partial(MACHINES[machine], problem.C, problem.gamma)
    make().fit(X[:1000], y[:1000]).predict(X[:100])  # libraries are loaded
    process.reset_peak()
    before, seconds = process.resident_bytes(), 0.0
    clock = time.process_time if machine == "linear" else time.perf_counter
    for _ in range(2):
        model, start = make(), clock()
        model.fit(X, y)
        seconds = clock() - start
        if seconds > 10:
            break
    row: Row = {"set": name, "machine": machine, "rows": len(y), "seconds": seconds}
    row |= {"memory": process.peak_bytes() - before}
    row |= {"support_vectors": len(model.support_)} if machine != "linear" else {}
    row |= {"relative_gap": float(getattr(model, "relative_gap_", np.nan))}
    start = time.perf_counter()
    model.decision_function(X)
    row["decision_seconds"] = time.perf_counter() - start
    return row | {"accuracy": 100 * float(np.mean(model.predict(problem.X_test) == problem.y_test))}


SCALE = Experiment(
    "scale",
    [
        ("covtype", machine, n)
        for n in ROWS
        for machine in ("exact", "early", "intelex", "linear")
        if machine != "intelex" or n <= _MOST_OF_RIVAL
    ],
    ("set", "machine", "rows"),
    measure,
    seconds=20.0,
    quick={"cells": [("covtype", "early", 5000)]},
)
LARGER = SCALE._replace(
    results="larger_sets",
    cells=[
        ("patches", "exact", 500_000),
        ("patches", "early, auto", 500_000),
        ("covtype", "paper", 464_810),
        ("noisy", "early, auto", 1_000_000),
        ("noisy", "exact", 1_000_000),
    ],
    seconds=120.0,
)
