"""Time limits below and above what a fit of several parts needs: what each part still gets.

Parts are pairs of classes, classes, targets, leaves, folds or candidates. Each case is fitted without a limit, then
with limits of a quarter to four times the seconds that took. `score` is accuracy on other rows (R^2 of regressors,
equal labels of `compress`), `over` the seconds by which a fit exceeded its limit, `cut` whether it warned that it was
stopped. Needs a machine that does nothing else: what the limits cut off depends on how long each part takes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import widemargin as wm
from measuring.experiment import Experiment, Row

_N_TEST = 2000


@cache
def problem(n: int, *, is_regression: bool) -> tuple[Any, Any]:
    """Patches of two photographs and the eighth of them that each is from; as targets, one 0 or 1 for each eighth."""
    X, y = wm.datasets.load_patches(n + _N_TEST, task="quadrant", random_state=0)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    return X, (np.unique(y, return_inverse=True)[1][:, None] == np.arange(8)).astype(float) if is_regression else y


@cache
def machine(n: int) -> Any:
    """What `compress` is given."""
    X, y = problem(n, is_regression=False)
    return wm.DCSVMClassifier(C=10).fit(X[:n], y[:n])


def _fit(kind: type, **parameters: Any) -> Callable[[float | None, Any, Any], Any]:
    return lambda limit, X, y: kind(max_time=limit, **parameters).fit(X, y)


def _compress(limit: float | None, X: Any, y: Any) -> Any:
    return wm.compress(machine(len(X)), X, max_time=limit, random_state=0)


# the parts, rows of training, and a fit within a limit
CASES: dict[str, tuple[str, int, Callable[[float | None, Any, Any], Any]]] = {
    "DCSVMClassifier": ("pairs", 8000, _fit(wm.DCSVMClassifier, C=10.0)),
    "DCSVMRegressor": ("targets", 2000, _fit(wm.DCSVMRegressor)),
    "OCASClassifier": ("classes", 8000, _fit(wm.OCASClassifier, C=0.1)),
    "OCASClassifierCV": ("folds", 2000, _fit(wm.OCASClassifierCV, Cs=4)),
    "BSGDClassifier": ("classes", 8000, _fit(wm.BSGDClassifier, C=10.0, budget=200, n_epochs=5, random_state=0)),
    "DCPredClassifier": ("leaves", 16_000, _fit(wm.DCPredClassifier, C=10.0, random_state=0)),
    "DCPredRegressor": ("leaves", 16_000, _fit(wm.DCPredRegressor, random_state=0)),
    "DCSVMClassifierCV": ("folds", 1000, _fit(wm.DCSVMClassifierCV)),
    "compress": ("candidates", 2000, _compress),
}


def measure(case: str, run: Any) -> list[Row]:
    """A fit without a limit, and those with limits."""
    parts, n, fit = CASES[case]
    X, y = problem(n, is_regression=case.endswith("Regressor"))
    if case == "compress":
        machine(n)
    fit(5.0, X[:500], y[:500]) if case != "compress" else None  # imports

    def one(limit: float | None) -> Row:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            begin = time.perf_counter()
            model = fit(limit, X[:n], y[:n])
            seconds = time.perf_counter() - begin
        words = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
        truth = machine(n).predict(X[n:]) if case == "compress" else y[n:]
        score = float(model.score(X[n:], truth) if hasattr(model, "score") else np.mean(model.predict(X[n:]) == truth))
        return {"seconds": seconds, "score": score, "cut": any("max_time" in word for word in words)}

    whole = one(None)
    need = whole["seconds"]
    head = {"case": case, "parts": parts, "rows": n}
    limited = [(factor, one(factor * need)) for factor in run.factors]
    return [
        {**head, "factor": "none", **whole},
        *({**head, "factor": k, **row, "over": row["seconds"] - k * need} for k, row in limited),
    ]


SHARES = Experiment(
    "shares", tuple(CASES), ("case",), measure, settings={"factors": (0.25, 0.5, 2.0, 4.0)}, quick={"factors": (2.0,)}
)
