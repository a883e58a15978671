"""Peak memory of fit and predict beside `memory_budget`, for every estimator.

The data are made, a fit of the same kind on 200 rows, and one with clusters, load the libraries, the kernel's peak of
resident memory is reset, and `fit` and then `predict` run with the budget. `fit` and `predict` are the bytes above what
was resident before, in MB; `kept` says whether both are at most 1.1 times the budget and 10 MB. `outcome` is "ok" or
the error's words, the refusal of a budget that is too small among them.
"""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import widemargin as wm
from measuring import process
from measuring.experiment import Experiment, Row

MB = 10**6


def _compressed(budget: int, X: Any, y: Any) -> Any:
    machine = wm.DCSVMClassifier(C=10, memory_budget=budget, random_state=0).fit(X[:2000], y[:2000])
    gc.collect()
    process.reset_peak()
    return wm.compress(machine, X, memory_budget=budget, random_state=0)


def _estimator(kind: type, **parameters: Any) -> Callable[[int, Any, Any], Any]:
    return lambda budget, X, y: kind(memory_budget=budget, **parameters).fit(X, y)


def _search(kind: type, **parameters: Any) -> Callable[[int, Any, Any], Any]:
    return _estimator(kind, Cs=[0.1, 1.0], cv=2, **parameters)


CASES: dict[str, Callable[[int, Any, Any], Any]] = {
    "DCSVMClassifier": _estimator(wm.DCSVMClassifier, C=10, random_state=0),
    "DCSVMClassifier, early": _estimator(wm.DCSVMClassifier, C=10, n_levels=1, stop_level=1, random_state=0),
    "DCSVMRegressor": _estimator(wm.DCSVMRegressor, C=10),
    "DCOneClassSVM": _estimator(wm.DCOneClassSVM),
    "DCSVMClassifierCV": _search(wm.DCSVMClassifierCV, gammas=1),
    "DCSVMRegressorCV": _search(wm.DCSVMRegressorCV, gammas=1),
    "OCASClassifierCV": _search(wm.OCASClassifierCV),
    "DCPredClassifier": _estimator(wm.DCPredClassifier, random_state=0),
    "DCPredRegressor": _estimator(wm.DCPredRegressor, random_state=0),
    "OCASClassifier": _estimator(wm.OCASClassifier),
    "OCASClassifier, Crammer-Singer": _estimator(wm.OCASClassifier, multi_class="crammer_singer"),
    "BSGDClassifier": _estimator(wm.BSGDClassifier, budget=500, n_epochs=1, random_state=0),
    "BSGDClassifier, projection": _estimator(
        wm.BSGDClassifier, budget=500, n_epochs=1, maintenance="projection", random_state=0
    ),
    "compress": _compressed,
}


def problem(n: int, d: int, k: int, layout: str) -> tuple[Any, Any]:
    """Rows of noise (n, d), labelled by the quantiles of a noisy product of two columns; half of the CSR's are zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype("f4" if layout == "float32 C" else "f8")
    product = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    y = np.digitize(product, np.quantile(product, np.arange(1, k) / k))
    if layout == "csr":
        X[rng.random((n, d)) < 0.5] = 0.0
        return sp.csr_array(X), y
    return np.asarray(X, order="F" if layout.endswith("F") else "C"), y


def measure(case: str, layout: str, classes: int, budget: int, run: Any) -> Row:
    """One fit and one predict; `budget` in MB."""
    warnings.simplefilter("ignore")
    row = {"case": case, "layout": layout, "classes": classes, "rows": run.rows, "columns": run.columns}
    row |= {"budget": budget}
    X, y = problem(run.rows, run.columns, classes, layout)
    fit = CASES[case]
    small = problem(max(200, 4 * classes), run.columns, classes, layout)
    fit(budget * MB, *small).predict(X[:200])
    wm.DCSVMClassifier(n_levels=1, n_sample=100).fit(*small)  # imports k-means
    gc.collect()
    process.reset_peak()
    before = process.peak_bytes()
    try:
        model = fit(budget * MB, X, y)
    except (ValueError, MemoryError) as error:
        return row | {"outcome": f"{type(error).__name__}: {error}"}
    taken = process.peak_bytes() - before
    gc.collect()
    process.reset_peak()
    before = process.peak_bytes()
    model.predict(X)
    used = {"fit": taken / MB, "predict": (process.peak_bytes() - before) / MB}
    return row | used | {"outcome": "ok", "kept": max(used.values()) <= 1.1 * budget + 10}


MEMORY = Experiment(
    "memory",
    list(itertools.product(CASES, ("float64 C", "csr"), (2, 10), (50,))),
    ("case", "layout", "classes", "budget"),
    measure,
    seconds=40.0,
    settings={"rows": 20_000, "columns": 50},
    quick={"rows": 4000},
    has_outcomes=True,
)
