"""Linear machines of other losses: seconds to 1.001 times the optimum, beside LIBLINEAR's and scikit-learn's solvers.

Processor seconds on one thread, float64, columns (and targets) of mean 0 and variance 1, without an intercept. A solver
is run with smaller and smaller tolerances, until its objective 1/2 |w|^2 + C sum of losses is at most 1.001 times the
optimum, that of `OCASClassifier` or `OCASRegressor` at tol=1e-6; the seconds are those of the last run, infinite where
none of 5 seconds comes there. `rival` is the fastest of the others.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR
from threadpoolctl import threadpool_limits

from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import OCASClassifier, OCASRegressor
from widemargin.datasets import load_benchmark

CLASSES, NUMBERS = ("a9a", "codrna", "ijcnn1", "pendigits", "letter"), ("cadata", "census_house8L", "cpusmall")
_CS, _TOLS, _MOST_SECONDS, _EPSILON = (0.01, 1.0, 100.0), [10.0**-k for k in range(1, 8)], 5.0, 0.1

_POINTWISE: dict[str, Callable[[Any, Any], Any]] = {  # of labels or targets, and values
    "squared_hinge": lambda y, f: np.maximum(0, 1 - y * f) ** 2,
    "logistic": lambda y, f: np.logaddexp(0, -y * f),
    "epsilon_insensitive": lambda y, f: np.maximum(0, np.abs(y - f) - _EPSILON),
    "squared_epsilon_insensitive": lambda y, f: np.maximum(0, np.abs(y - f) - _EPSILON) ** 2,
}


def measure(X: Any, y: Any, loss: str, C: float) -> Row:
    """Seconds of ours, and of the fastest rival."""

    def objective(w: Any) -> float:
        return float(0.5 * w @ w + C * _POINTWISE[loss](y, X @ w).sum())

    best = objective(np.ravel(_ours(loss, C, 1e-6).fit(X, y).coef_))
    seconds = _seconds(partial(_ours, loss, C), X, y, objective, best)
    found = {name: _seconds(make, X, y, objective, best) for name, make in _rivals(loss, C)}
    rival = min(found, key=lambda name: found[name])
    n, d = X.shape
    row = {"n": n, "n_features": d, "loss": loss, "C": C, "seconds": seconds}
    return row | {"rival": rival, "rival_seconds": found[rival]}


def _seconds(make: Callable[[float], Any], X: Any, y: Any, objective: Callable[[Any], float], best: float) -> float:
    """Processor seconds of the first run that comes to 1.001 times the optimum; the least of three short ones."""
    for tol in _TOLS:
        times: list[float] = []
        while len(times) < 3 and sum(times) < 0.5:
            start = time.process_time()
            model = make(tol).fit(X, y)
            times.append(time.process_time() - start)
        if objective(np.ravel(model.coef_)) <= 1.001 * best:
            return min(times)
        if min(times) > _MOST_SECONDS:
            break
    return np.inf


def _ours(loss: str, C: float, tol: float) -> Any:
    kind = OCASClassifier if loss in ("squared_hinge", "logistic") else OCASRegressor
    epsilon = {} if kind is OCASClassifier else {"epsilon": _EPSILON}
    return kind(C=C, loss=loss, tol=tol, fit_intercept=False, n_jobs=1, max_time=_MOST_SECONDS, **epsilon)


def _rivals(loss: str, C: float) -> Iterator[tuple[str, Callable[[float], Any]]]:
    """Names, and functions of a tolerance that make an estimator of the loss."""
    common: dict[str, Any] = {"C": C, "fit_intercept": False, "max_iter": 1000}
    if loss == "logistic":
        for solver in ("lbfgs", "newton-cholesky", "liblinear"):
            yield solver, lambda tol, solver=solver: LogisticRegression(solver=solver, tol=tol, **common)
    for dual in (False, True):
        name = f"LIBLINEAR, {'dual' if dual else 'primal'}"
        if loss == "squared_hinge":
            yield name, lambda tol, dual=dual: LinearSVC(dual=dual, tol=tol, **common)
        elif loss != "logistic" and (dual or loss.startswith("squared")):
            options = {"epsilon": _EPSILON, "loss": loss, "dual": dual}
            yield name, lambda tol, options=options: LinearSVR(tol=tol, **options, **common)


def _load(name: str, n_rows: int | None) -> tuple[Any, Any]:
    """Standardised rows, and labels -1 and 1 or standardised targets."""
    if name in CLASSES:
        problem = load_problem(name, n_rows=n_rows)
        return StandardScaler().fit_transform(problem.X.astype(np.float64)), problem.y.astype(np.float64)
    X, y, _, _ = load_benchmark(name)
    X, y = np.asarray(X[:n_rows], np.float64), np.asarray(y[:n_rows], np.float64)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def _all(name: str, run: Run) -> Iterator[Row]:
    warnings.simplefilter("ignore")  # of runs that a tolerance ends early
    X, y = _load(name, run.rows)
    with threadpool_limits(1):
        for loss in _POINTWISE:
            if (name in CLASSES) == (loss in ("squared_hinge", "logistic")):
                yield from ({"set": name, **measure(X, y, loss, C)} for C in _CS)


LOSSES = Experiment(
    "losses",
    (*CLASSES, *NUMBERS),
    ("set", "loss", "C"),
    _all,
    seconds=60.0,
    settings={"rows": None},
    quick={"cells": ["cpusmall"], "rows": 300},
)
