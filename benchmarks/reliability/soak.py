"""Fit after fit in one process: equal models for all `n_jobs`, and no memory or threads left behind.

Estimator, parameters, data (dense or CSR, float32 or float64, 2 to 5 classes) and limits are drawn from the seed. Each
fit is made with one and with two threads; "different" counts those whose values of the rows are not equal to the last
bit. A tenth of the fits has a time limit of a few milliseconds, and is not compared. A row of the table is a tenth of
the run: `megabytes` is the resident memory at its end, `in_use` the part of it that malloc has given out and that is
not freed, `objects` the blocks of Python's own allocator, `threads` the number of the process's threads.
"""

from __future__ import annotations

import gc
import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import widemargin as wm
from measuring import process
from measuring.experiment import Experiment, Row

_PARTS = 10

KINDS: dict[str, Callable[[random.Random], Any]] = {
    "DCSVMClassifier": lambda draw: wm.DCSVMClassifier(
        C=10 ** draw.uniform(-2, 1), kernel=draw.choice(["rbf", "laplacian", "poly"]), fit_intercept=draw.random() < 0.5
    ),
    "DCSVMClassifier, early": lambda draw: wm.DCSVMClassifier(n_levels=1, stop_level=1, n_sample=100),
    "DCSVMRegressor": lambda draw: wm.DCSVMRegressor(C=10 ** draw.uniform(-2, 1), fit_intercept=draw.random() < 0.5),
    "DCOneClassSVM": lambda draw: wm.DCOneClassSVM(nu=draw.uniform(0.1, 0.9)),
    "DCPredClassifier": lambda draw: wm.DCPredClassifier(n_trees=draw.choice([1, 2])),
    "DCPredRegressor": lambda draw: wm.DCPredRegressor(n_trees=draw.choice([1, 2])),
    "DCSVMClassifierCV": lambda draw: wm.DCSVMClassifierCV(Cs=[0.1, 1.0], gammas=draw.choice([1, 2]), cv=2),
    "DCSVMRegressorCV": lambda draw: wm.DCSVMRegressorCV(Cs=[0.1, 1.0], gammas=draw.choice([1, 2]), cv=2),
    "OCASClassifierCV": lambda draw: wm.OCASClassifierCV(Cs=[0.1, 1.0, 10.0], cv=draw.choice([2, 3])),
    "OCASClassifier": lambda draw: wm.OCASClassifier(
        C=10 ** draw.uniform(-2, 2), multi_class=draw.choice(["ovr", "crammer_singer"])
    ),
    "BSGDClassifier": lambda draw: wm.BSGDClassifier(
        budget=30, n_epochs=2, maintenance=draw.choice(["merge", "removal", "projection"])
    ),
}


def measure(seed: int, run: Any) -> list[Row]:
    """The run of a seed."""
    return [{"seed": seed, **row} for row in soak(run.fits, seed)]


def soak(n_fits: int, seed: int) -> list[Row]:
    """`n` pairs of fits; a row for each tenth."""
    rows = []
    for part in range(_PARTS):
        start, different, limited = time.perf_counter(), 0, 0
        numbers = range(part * n_fits // _PARTS, (part + 1) * n_fits // _PARTS)
        for number in numbers:
            draw = random.Random(f"{seed}:{number}")
            same = fit_twice(draw)
            limited += same is None
            different += same is False
        gc.collect()
        rows.append(
            {
                "fits": 2 * len(numbers),
                "limited": 2 * limited,
                "different": different,
                "seconds": time.perf_counter() - start,
                "megabytes": process.resident_bytes() / 2**20,
                "in_use": process.bytes_in_use() / 2**20,
                "objects": sys.getallocatedblocks(),
                "threads": len(list(Path("/proc/self/task").iterdir())),
            }
        )
    return rows


def fit_twice(draw: random.Random) -> bool | None:
    """Whether one and two threads give the same values; None for fits that a limit stops."""
    model = KINDS[draw.choice(sorted(KINDS))](draw)
    n, d, k = draw.choice([50, 300, 1500, 5000]), draw.choice([2, 10, 60]), draw.choice([2, 2, 3, 5])
    rng = np.random.default_rng(draw.randrange(2**32))
    X = rng.standard_normal((n, d)).astype(draw.choice([np.float32, np.float64]))
    if draw.random() < 0.3:
        X = sp.csr_array(np.where(rng.random((n, d)) < 0.3, X, 0))
    y = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    limit = draw.uniform(0, 0.02) if draw.random() < 0.1 else None
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_jobs in (1, 2):
            if "random_state" in model.get_params():
                model.set_params(random_state=0)
            model.set_params(n_jobs=n_jobs, max_time=limit).fit(X, y)
            values.append(getattr(model, "decision_function", model.predict)(X[:200]))
    return None if limit is not None else bool(np.array_equal(*values))


SOAK = Experiment("soak", [(0,)], ("seed",), measure, seconds=600.0, settings={"fits": 1300}, quick={"fits": 20})
