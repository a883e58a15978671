"""Searches of C on all rows of covtype in ten folds, every cell solved to `tol`: seconds by the number of rows.

Class 2 against the rest, gamma = 32, Cs from 2^-6 to 2^8, columns scaled to [0, 1]; a fifth of the rows is for tests.
`share` is the seconds of a cell, which is a C and a fold, divided by those of one exact fit with C = 32 to the same
tolerance. `memory` is the search's largest size less that before it, with the data.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.model_selection import StratifiedKFold

from measuring import process
from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import DCSVMClassifier, DCSVMClassifierCV


def measure(n: int, run: Run) -> Row:
    """The row of n rows."""
    problem = load_problem("covtype", n_rows=n)
    X, y, gamma = problem.X, problem.y, problem.gamma
    DCSVMClassifier(C=problem.C, gamma=gamma).fit(X[:1000], y[:1000])  # libraries are loaded
    start = time.perf_counter()
    model = DCSVMClassifier(C=problem.C, gamma=gamma).fit(X, y)
    exact = time.perf_counter() - start
    search = DCSVMClassifierCV(
        Cs=2.0 ** np.linspace(-6, 8, run.Cs),
        gammas=[gamma],
        kernels="rbf",
        cv=StratifiedKFold(run.folds, shuffle=True, random_state=0),
        exhaustive=True,
        refit=False,
    )
    process.reset_peak()
    before, start = process.resident_bytes(), time.perf_counter()
    search.fit(X, y)
    seconds = time.perf_counter() - start
    row: Row = {"rows": n, "Cs": run.Cs, "folds": run.folds, "exact_seconds": exact, "seconds": seconds}
    row |= {"share": seconds / (run.Cs * run.folds) / exact, "memory": process.peak_bytes() - before}
    return row | {"C": search.C_, "score": 100 * search.best_score_, "exact_gap": model.relative_gap_}


FOLDS = Experiment(
    "folds",
    (20_000, 60_000, 116_202, 232_405),
    ("rows",),
    measure,
    seconds={20_000: 120.0, 60_000: 700.0, "": 2400.0},
    settings={"Cs": 50, "folds": 10},
    quick={"cells": (5000,), "Cs": 3, "folds": 3},
)
