"""Our estimator as the experiments use it."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from measuring.linear_problems import Linear, Matrix, objective
from widemargin import OCASClassifier

OCAS, PLAIN, CPA = "OCAS", "OCAS, plain", "CPA"
WAYS: dict[str, dict[str, Any]] = {  # PLAIN is Algorithm 1 of the paper as it is
    OCAS: {},
    PLAIN: {"acceleration": None},
    CPA: {"line_search": False},
}
MANY = 10**6
SETTINGS: dict[str, Any] = {
    "rows": None,
    "C": (),  # the experiment's own
    "limit": 10.0,  # seconds after which a single fit is given up
    "reference": 10.0,  # seconds at most for the fit that finds F*
    "factor": 5.0,  # a rival that takes so many times Algorithm 1's time is given up
}


def fit(problem: Linear, C: float, **parameters: Any) -> tuple[OCASClassifier, float]:
    """Return a fitted machine without an intercept, and the seconds of its `fit`."""
    model = OCASClassifier(C=C, fit_intercept=False, **{"max_iter": MANY, **parameters})
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped on purpose
        model.fit(problem.X, problem.labels)
    return model, time.perf_counter() - start


def repeat(train: Callable[[], Any], most: int = 5, long: float = 2.0) -> tuple[Any, list[float]]:
    """Return what the last call returns, and the seconds of each: at most so many, or until they took so long."""
    seconds: list[float] = []
    while len(seconds) < most and sum(seconds) < long:
        start = time.perf_counter()
        found = train()
        seconds.append(time.perf_counter() - start)
    return found, seconds


def timed(problem: Linear, C: float, *, repeats: int = 3, **parameters: Any) -> tuple[float, Matrix]:
    """Return the median seconds of some fits (one where it takes long), and the weights of the last."""
    (model, _), seconds = repeat(lambda: fit(problem, C, **parameters), repeats, 5.0)
    return statistics.median(seconds), model.coef_


def warm_up(problem: Linear) -> None:
    """Load libraries and start threads: a few iterations on the same kind of rows."""
    fit(problem, 1.0, max_iter=3)


def reference(problem: Linear, C: float, limit: float) -> tuple[float, float]:
    """Return the least objective that a long fit finds, recomputed, and its proven lower bound."""
    model, _ = fit(problem, C, tol=1e-6, max_time=limit)
    return objective(problem, model.coef_, C), model.objective_ - model.dual_gap_
