"""Fits that are stopped, saved, loaded and gone on with: each model after the one before.

Every estimator with `warm_start`, in the forms that take another way to their model. A case is fitted once without a
limit, and then four times by another model with a limit of a part of the seconds that took; between two fits the model
goes through a pickle. A fifth fit, without a limit, ends it. `rise` is how much the objective is above that of the fit
before, relative to it; `score` is accuracy on other rows (R^2 of regressors, concordant pairs of rankers, the share of
other rows inside of one-class models). A model got `worse` where the objective rose by more than `tol` allows. The
objective of an early model is that of its clusters: it is compared with none of another level.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import widemargin as wm
from measuring.experiment import Experiment, Row

PART = 0.3  # seconds of a limited fit / of one without a limit
FITS = 4
TOLERANCE = 2e-3  # by which the objective of a converged model may be above that of one that was stopped
_N_TEST = 2000

_SVC = partial(wm.DCSVMClassifier, C=10.0)
_ONE = partial(wm.DCOneClassSVM, nu=0.1)
# rows of training, the kind of targets, and the estimator
CASES: dict[str, tuple[int, str, Callable[..., Any]]] = {
    "DCSVMClassifier": (8000, "halves", _SVC),
    "DCSVMClassifier, no levels": (8000, "halves", partial(_SVC, n_levels=0)),
    "DCSVMClassifier, early": (16_000, "halves", partial(_SVC, stop_level="auto")),
    "DCSVMClassifier, pairs": (4000, "eighths", _SVC),
    "DCSVMClassifier, early pairs": (8000, "eighths", partial(_SVC, stop_level="auto")),
    "DCSVMRegressor": (6000, "number", wm.DCSVMRegressor),
    "DCSVMRegressor, squared losses": (4000, "number", partial(wm.DCSVMRegressor, loss="squared_epsilon_insensitive")),
    "DCSVMRegressor, targets": (3000, "numbers", wm.DCSVMRegressor),
    "DCOneClassSVM": (8000, "none", _ONE),
    "DCOneClassSVM, early": (8000, "none", partial(_ONE, stop_level="auto")),
    "OCASClassifier": (20_000, "halves", wm.OCASClassifier),
    "OCASClassifier, classes": (8000, "eighths", wm.OCASClassifier),
    "OCASRegressor": (20_000, "number", wm.OCASRegressor),
    "OCASRanker": (1000, "queries", wm.OCASRanker),
}


def problem(n: int, kind: str) -> tuple[Any, ...]:
    """X, and targets of this kind: patches of two photographs, and the eighth of them that each is from."""
    X, y = wm.datasets.load_patches(n + _N_TEST, task="quadrant", random_state=0)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    eighth = np.unique(y, return_inverse=True)[1]
    numbers = np.column_stack([eighth % 4, eighth // 4]) + X[:, :2]
    targets = {
        "halves": (eighth % 2,),
        "eighths": (eighth,),
        "number": (numbers[:, 0],),
        "numbers": (numbers,),
        "queries": (numbers[:, 0], np.arange(len(X)) // 20),
        "none": (),
    }
    return X, *targets[kind]


def measure(case: str, run: Any = None) -> list[Row]:
    """The fit without a limit, and those that go on from one another."""
    n, kind, make = CASES[case]
    data = problem(n, kind)
    train, test = [array[:n] for array in data], [array[n:] for array in data]

    def row_of(model: Any, fit: str, last: float = np.inf, level: int = 0) -> Row:
        begin = time.perf_counter()
        model.fit(*train)
        seconds, objective = time.perf_counter() - begin, model.objective_
        is_other = getattr(model, "early_level_", 0) != level
        rise = 0.0 if np.isinf(last) or is_other else (objective - last) / abs(last)
        score = np.mean(model.predict(test[0]) > 0) if kind == "none" else model.score(*test)
        return {
            "case": case,
            "rows": n,
            "fit": fit,
            "seconds": seconds,
            "objective": objective,
            "relative_gap": model.relative_gap_,
            "score": float(score),
            "rise": rise,
            "outcome": "worse" if rise > (TOLERANCE if model.converged_ else 1e-9) else "ok",
        }

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        make(max_time=0.0).fit(*(array[:500] for array in train))  # imports
        whole = row_of(make(), "whole")
        model, rows, last = make(warm_start=True, max_time=PART * whole["seconds"]), [whole], (np.inf, 0)
        for k in range(FITS + 1):
            model = pickle.loads(pickle.dumps(model))
            if k == FITS:
                model.set_params(max_time=None)
            rows.append(row_of(model, str(k + 1) if k < FITS else "last", *last))
            last = rows[-1]["objective"], getattr(model, "early_level_", 0)
    return rows


RESUMED = Experiment("resumed", tuple(CASES), ("case",), measure)
