"""Searches of ours beside gradient boosting, xRFM and TorchKM: ten tables, one time limit, two threads.

Ours, xRFM and TorchKM get standardised columns. Ours and xRFM choose their settings within the limit; TorchKM chooses C
by five folds, from 5,000 rows on with 2,000 landmarks, and has no limit of its own: it is ended after two. Standard
errors are those of 100 samples of the test rows. It needs the packages xrfm and torchkm (and torch, for the CPU).
"""

from __future__ import annotations

import subprocess
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torchkm
import xrfm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from measuring import process
from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import DCSVMClassifierCV

_MACHINES = ("DCSVMClassifierCV", "HistGradientBoosting", "xRFM", "TorchKM")
_TEST_ROWS, _SAMPLES, _LANDMARKS = 20_000, 100, 5000
_OVERHEAD = 60.0  # seconds: imports, reading, a first small fit, prediction
_SLEEP = {"OMP_WAIT_POLICY": "passive"}  # threads that spin would take each other's cores


def _measure(name: str, options: Run) -> Iterator[Row]:
    for machine in _MACHINES:
        if options.wants(machine, set=name, machine=machine):
            row: Row = {"set": name, "machine": machine, "limit": options.limit}
            try:
                given = name, machine, options.limit, options.rows
                row |= process.run_apart(fit, *given, environment=_SLEEP, timeout=2 * options.limit + _OVERHEAD)
            except subprocess.TimeoutExpired:
                row |= {"why": f"more than {2 * options.limit + _OVERHEAD:g} s with all that is not training"}
            except RuntimeError as error:
                row |= {"why": str(error).splitlines()[-1]}
            yield row


def fit(name: str, machine: str, limit: float, n_rows: int | None) -> Row:
    """In a process of its own: train and score one machine."""
    problem = load_problem(name, n_rows=n_rows)
    X, y = problem.X, (problem.y > 0).astype(np.int64)
    X_test, y_test = problem.X_test[:_TEST_ROWS], (problem.y_test[:_TEST_ROWS] > 0).astype(np.int64)
    if not machine.startswith("Hist"):
        scaler = StandardScaler().fit(X)
        X, X_test = (scaler.transform(rows).astype(np.float32) for rows in (X, X_test))
    train = _TRAINERS[machine]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(X[:500], y[:500], 2.0)(X_test[:100])  # loads libraries and starts threads
        process.reset_peak()
        start = time.perf_counter()
        score = train(X, y, limit)
        seconds = time.perf_counter() - start
        values = score(X_test)
    return {
        "n": len(y),
        "n_features": X.shape[1],
        "seconds": seconds,
        "peak_mb": process.peak_bytes() / 1e6,
        **_scores(values, y_test),
    }


def _scores(values: Any, y: Any) -> Row:
    """Accuracy, balanced accuracy and AUC of decision values, each with its standard error."""
    rng, found = np.random.default_rng(0), {}
    samples = [rng.integers(len(y), size=len(y)) for _ in range(_SAMPLES)]
    for key, metric, given in (
        ("accuracy", accuracy_score, values > 0),
        ("balanced", balanced_accuracy_score, values > 0),
        ("auc", roc_auc_score, values),
    ):
        found[key] = float(metric(y, given))
        found[f"{key}_error"] = float(np.std([metric(y[rows], given[rows]) for rows in samples]))
    return found


def _ours(X: Any, y: Any, limit: float) -> Any:
    return DCSVMClassifierCV(max_time=limit, random_state=0).fit(X, y).decision_function


def _trees(X: Any, y: Any, limit: float) -> Any:
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    return lambda rows: model.predict_proba(rows)[:, 1] - 0.5


def _xrfm(X: Any, y: Any, limit: float) -> Any:
    parts = train_test_split(X, y, test_size=0.2, random_state=0)
    X, X_held, y, y_held = (torch.as_tensor(part) for part in parts)
    model = xrfm.xRFM(device="cpu", time_limit_s=limit, n_threads=2, random_state=0, verbose=False)
    model.fit(X, y, X_held, y_held)
    return lambda rows: np.asarray(model.predict_proba(torch.as_tensor(rows)))[:, 1] - 0.5


def _torchkm(X: Any, y: Any, limit: float) -> Any:
    torch.set_num_threads(2)
    model = torchkm.TorchKMSVC(device="cpu", random_state=0, nC=5, low_rank=len(y) > _LANDMARKS)
    return model.fit(X, y).decision_function


_TRAINERS = {"DCSVMClassifierCV": _ours, "HistGradientBoosting": _trees, "xRFM": _xrfm, "TorchKM": _torchkm}

REFEREES = Experiment(  # AUC, balanced accuracy, standard errors and memory, beside trees and two kernel libraries
    "dc_svm/referees",
    ("pendigits", "usps", "letter", "covtype_20k", "a9a", "ijcnn1", "codrna", "one_hot", "kddcup99_10", "covtype"),
    ("set", "machine"),
    _measure,
    settings={"rows": None, "limit": 6.0},
    parts=True,
    seconds={"pendigits": 40.0, "usps": 40.0, "letter": 55.0, "covtype_20k": 60.0, "": 125.0},
)
