"""Early machines of millions of sparse rows: seconds, memory, accuracy.

Rows have 10 dense columns and 10 categories of 50 levels as 500 columns of zeros and ones, in CSR float32; the label is
a smooth function of 5 columns and the effects of 4 categories, one in 20 is flipped. Each fit has a process of its own;
`memory` is its largest size less that before the fit, with the data: what `memory_budget` limits, and the machine.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from measuring import process
from measuring.experiment import Experiment, Row
from widemargin import DCSVMClassifier

ROWS = 500_000, 3_000_000
_TEST_ROWS, _BUDGET = 100_000, 10**9
_N_DENSE, _N_CATEGORIES, _N_LEVELS = 10, 10, 50


def make_rows(n: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray[Any, Any]]:
    """Rows (n, 510) and labels 0 and 1."""
    rng, effects = np.random.default_rng(seed), np.random.default_rng(1).standard_normal((_N_CATEGORIES, _N_LEVELS))
    Z = rng.standard_normal((n, _N_DENSE), dtype=np.float32)
    levels = np.floor(rng.random((n, _N_CATEGORIES)) ** 2 * _N_LEVELS).astype(np.int32)  # some are rare
    columns = np.empty((n, _N_DENSE + _N_CATEGORIES), np.int32)
    columns[:, :_N_DENSE] = np.arange(_N_DENSE)
    columns[:, _N_DENSE:] = _N_DENSE + _N_LEVELS * np.arange(_N_CATEGORIES) + levels
    values = np.ones(columns.shape, np.float32)
    values[:, :_N_DENSE] = Z
    starts = np.arange(0, columns.size + 1, columns.shape[1], dtype=np.int32)
    X = sp.csr_array((values.ravel(), columns.ravel(), starts), (n, _N_DENSE + _N_CATEGORIES * _N_LEVELS))
    f = 2 * np.sin(1.5 * Z[:, 0]) + 1.5 * Z[:, 1] * Z[:, 2] + np.cos(2 * Z[:, 3]) + Z[:, 4]
    f += 0.7 * sum(effects[j][levels[:, j]] for j in range(4))
    return X, ((f > np.median(f)) ^ (rng.random(n) < 0.05)).astype(np.int64)


def measure(n: int, run: Any = None) -> Row:
    """The row of an early machine of n rows."""
    X, y = make_rows(n + min(n, _TEST_ROWS))
    X_test, y_test, X, y = X[n:], y[n:], X[:n], y[:n]
    model = DCSVMClassifier(C=4, gamma=0.05, stop_level="auto", memory_budget=_BUDGET)
    process.reset_peak()
    before, start, cpu = process.resident_bytes(), time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    memory = process.peak_bytes() - before
    level = model.levels_[0]
    row: Row = {"rows": n, "clusters": level["n_clusters"], "seconds": seconds, "cpu_seconds": cpu_seconds}
    row |= {"clustering_seconds": level["clustering_seconds"], "support_vectors": len(model.support_)}
    row |= {"data": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, "memory": memory, "budget": _BUDGET}
    start = time.perf_counter()
    accuracy = 100 * model.score(X_test, y_test)
    return row | {"accuracy": accuracy, "predict_us": 1e6 * (time.perf_counter() - start) / len(y_test)}


EARLY_MILLIONS = Experiment(
    "early_millions",
    [(500_000,), (3_000_000,)],
    ("rows",),
    measure,
    seconds={500_000: 60.0, 3_000_000: 420.0},
    quick={"cells": [(20_000,)]},
)
