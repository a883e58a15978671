"""Sparse rows of very many columns, few of them with values: peak memory of fit and predict beside `memory_budget`.

60 rows with values in 40 of 2^20 to 2^27 columns. Every estimator has a process of its own, with a first fit on the 40
columns alone, which loads the libraries. `peak` are the resident bytes, in MB, above those before. `outcome` is "ok";
"refused" by a ValueError about `memory_budget`, whose words are kept; "exceeded": more than 1.1 times the budget and 10
MB; or "error", with its words.
"""

from __future__ import annotations

import gc
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

import widemargin as wm
from measuring import process
from measuring.experiment import Experiment, Row

WIDTHS = 2**20, 2**22, 2**24, 2**27
N, USED = 60, 40
MB = 10**6
BUDGET = 100  # MB
ESTIMATORS: dict[str, Any] = {
    "DCSVMClassifier": wm.DCSVMClassifier(gamma=0.5),
    "DCSVMClassifier, linear": wm.DCSVMClassifier(kernel="linear"),
    "DCSVMClassifier, early": wm.DCSVMClassifier(gamma=0.5, n_levels=1, stop_level=1, random_state=0),
    "DCSVMRegressor": wm.DCSVMRegressor(gamma=0.5),
    "DCOneClassSVM": wm.DCOneClassSVM(gamma=0.5),
    "DCSVMClassifierCV": wm.DCSVMClassifierCV(Cs=2, gammas=2, cv=2),
    "DCPredClassifier": wm.DCPredClassifier(gamma=0.5, random_state=0),
    "DCPredRegressor": wm.DCPredRegressor(gamma=0.5, random_state=0),
    "OCASClassifier": wm.OCASClassifier(),
    "OCASClassifier, Crammer-Singer": wm.OCASClassifier(multi_class="crammer_singer"),
    "OCASClassifierCV": wm.OCASClassifierCV(Cs=2, cv=2),
    "BSGDClassifier": wm.BSGDClassifier(gamma=0.5, budget=20, random_state=0),
    "BSGDClassifier, removal": wm.BSGDClassifier(gamma=0.5, budget=20, maintenance="removal", random_state=0),
    "LandmarkNystroem": wm.LandmarkNystroem(10, gamma=0.5, random_state=0),
    "TwoStepKernelKMeans": wm.TwoStepKernelKMeans(3, gamma=0.5, random_state=0),
    "RelevanceScaler": wm.RelevanceScaler(random_state=0),
    "compress": None,
}


def rows() -> tuple[Any, Any, Any]:
    """Rows (60, 40), the numbers of these columns among 2^20, and labels of three classes."""
    rng = np.random.default_rng(0)
    X = sp.random_array((N, USED), density=0.2, rng=rng, format="csr", dtype=np.float64).astype(np.float32)
    return X, np.sort(rng.choice(WIDTHS[0], USED, replace=False)), rng.integers(3, size=N)


def use(name: str, X: Any, y: Any) -> None:
    """Fit, or compress, and predict, or transform."""
    if name == "compress":
        machine = wm.DCSVMClassifier(gamma=0.5, memory_budget=BUDGET * MB).fit(X, y)
        model = wm.compress(machine, X, memory_budget=BUDGET * MB, random_state=0)
    else:
        model = ESTIMATORS[name]
        if "memory_budget" in model.get_params():
            model.set_params(memory_budget=BUDGET * MB)
        model.fit(X, y)
    getattr(model, "predict", getattr(model, "transform", None))(X)


def measure(case: str, run: Any = None) -> list[Row]:
    """A fit and predict for each width."""
    warnings.simplefilter("ignore")
    X, columns, y = rows()
    use(case, X, y)
    return [measure_width(case, X, columns, y, d) for d in WIDTHS]


def measure_width(case: str, X: Any, columns: Any, y: Any, d: int) -> Row:
    """A fit and predict on rows of d columns, the last of which has values."""
    spread = columns * (d // WIDTHS[0])
    spread[-1] = d - 1
    wide = sp.csr_array((X.data, spread[X.indices].astype(np.int32), X.indptr), shape=(N, d))
    gc.collect()
    process.reset_peak()
    before, begin, outcome, words = process.peak_bytes(), time.perf_counter(), "ok", ""
    try:
        use(case, wide, y)
    except (ValueError, MemoryError) as error:
        words = f"{type(error).__name__}: {error}"
        outcome = "refused" if "memory_budget" in words else "error"
    peak = (process.peak_bytes() - before) / MB
    outcome = "exceeded" if peak > 1.1 * BUDGET + 10 else outcome
    row = {"case": case, "columns": d, "budget": BUDGET, "peak": peak, "seconds": time.perf_counter() - begin}
    return {**row, "outcome": outcome, "words": words}


WIDE_ROWS = Experiment("wide_rows", tuple(ESTIMATORS), ("case",), measure, seconds=40.0, has_outcomes=True)
