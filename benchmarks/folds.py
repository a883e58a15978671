"""Searches of C on all rows of covtype in ten folds, each cell to a gap of `tol`: seconds by the number of rows.

Class 2 against the rest, gamma = 32, Cs from 2^-6 to 2^8, columns scaled to [0, 1]; a fifth of the rows is for tests.
A cell is a C and a fold. `share` is its seconds divided by those of one exact fit with C = 32, to a violation of `tol`.
`memory` is the search's largest size less that before it, with the data. `gap` is the largest relative gap of ten cells
of a random fold, recomputed by `measuring.recompute`. `race_...` are of the default search of the same cells, with the
machine that it fits at the end: it also scales the columns, for which another C may be best. `regret` is what that C
loses in all folds, without scales; `race_accuracy` is that of the test rows, in %.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from measuring import process, recompute
from measuring.experiment import Experiment, Row, Run
from measuring.problems import Problem, load_problem
from widemargin import DCSVMClassifier, DCSVMClassifierCV
from widemargin.algorithms.held_out import HeldOutSolver

_CERTIFIED = 10  # cells, at most


def measure(n: int, run: Run) -> Row:
    """The row of n rows."""
    problem = load_problem("covtype", n_rows=n)
    X, y, gamma = problem.X, problem.y, problem.gamma
    DCSVMClassifier(C=problem.C, gamma=gamma).fit(X[:1000], y[:1000])  # libraries are loaded
    start = time.perf_counter()
    model = DCSVMClassifier(C=problem.C, gamma=gamma).fit(X, y)
    exact = time.perf_counter() - start
    settings: dict[str, Any] = {
        "Cs": 2.0 ** np.linspace(-6, 8, run.Cs),
        "gammas": [gamma],
        "kernels": "rbf",
        "cv": StratifiedKFold(run.folds, shuffle=True, random_state=0),
    }
    search = DCSVMClassifierCV(**settings, exhaustive=True, refit=False, verbose=1)
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(run.Cs, min(_CERTIFIED, run.Cs), replace=False))
    process.reset_peak()
    before = process.resident_bytes()
    (_, test) = list(settings["cv"].split(X, y))[rng.integers(run.folds)]
    with _kept_cells(test, chosen) as cells:
        start = time.perf_counter()
        search.fit(X, y)
        seconds = time.perf_counter() - start
    row: Row = {"rows": n, "Cs": run.Cs, "folds": run.folds, "exact_seconds": exact, "seconds": seconds}
    row |= {"share": seconds / (run.Cs * run.folds) / exact, "memory": process.peak_bytes() - before}
    row |= {"C": search.C_, "score": 100 * search.best_score_, "exact_gap": model.relative_gap_}
    row["gap"] = max(_gap(problem, test, beta, settings["Cs"][c]) for c, beta in cells.items())
    return row | _race(DCSVMClassifierCV(**settings), search, problem)


@contextmanager
def _kept_cells(test: NDArray[np.intp], chosen: NDArray[np.intp]) -> Iterator[dict[int, NDArray[np.float64]]]:
    """By the number of a C: the coefficients (n,) of the cells of one fold, as a search finds them."""
    cells: dict[int, NDArray[np.float64]] = {}
    values, number = HeldOutSolver._values, count()

    def keep(whole: Any, rows: Any, fold: Any, results: Any) -> Any:
        if np.array_equal(fold.test, test):
            cells.update((c, result.scale * result.beta) for result in results if (c := next(number)) in chosen)
        return values(whole, rows, fold, results)

    HeldOutSolver._values = staticmethod(keep)  # type: ignore[method-assign]
    try:
        yield cells
    finally:
        HeldOutSolver._values = staticmethod(values)  # type: ignore[method-assign]


def _gap(problem: Problem, test: NDArray[np.intp], beta: NDArray[np.float64], C: float) -> float:
    """The relative gap of a fold's machine on its training rows."""
    training = np.delete(np.arange(len(beta)), test)
    own = beta[training]
    machine = SimpleNamespace(support_=np.flatnonzero(own), dual_coef_=own[own != 0.0])
    X, y = problem.X[training], problem.y[training]
    certificate = recompute.certify(X, y, machine, C=C, gamma=problem.gamma, intercept=True)
    return certificate.gap / abs(certificate.primal)


def _race(race: DCSVMClassifierCV, search: DCSVMClassifierCV, problem: Problem) -> Row:
    """What the default search of the same cells takes and finds."""
    start = time.perf_counter()
    race.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    scores = dict(zip(search.cv_results_["param_C"], search.cv_results_["mean_test_score"], strict=True))
    found = {"race_C": race.C_, "race_accuracy": 100 * race.score(problem.X_test, problem.y_test)}
    return {"race_seconds": seconds, **found, "regret": 100 * (search.best_score_ - scores[race.C_])}


FOLDS = Experiment(
    "folds",
    (20_000, 60_000, 116_202, 232_405, 464_810),
    ("rows",),
    measure,
    seconds={20_000: 120.0, 60_000: 300.0, 116_202: 700.0, 232_405: 1800.0, "": 4800.0},
    settings={"Cs": 50, "folds": 10},
    quick={"cells": (5000,), "Cs": 3, "folds": 3},
)
