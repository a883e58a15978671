"""Many classes of three rows each: seconds and accuracy of every classifier.

Rows of 20 columns around a centre for each class. `accuracy` is on other rows.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import widemargin as wm
from measuring.experiment import Experiment, Row

N_CLASSES = 50, 200, 600
ESTIMATORS: dict[str, Any] = {
    "DCSVMClassifier": wm.DCSVMClassifier(),
    "OCASClassifier": wm.OCASClassifier(),
    "OCASClassifier, Crammer-Singer": wm.OCASClassifier(multi_class="crammer_singer"),
    "BSGDClassifier": wm.BSGDClassifier(random_state=0),
    "DCPredClassifier": wm.DCPredClassifier(random_state=0),
}


def problem(k: int) -> tuple[Any, Any, Any]:
    """Rows (3 k, 20) for training, as many others, and the labels of both."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(k), 3)
    centres = rng.standard_normal((k, 20))[y]
    train, test = (centres + 0.3 * rng.standard_normal(centres.shape) for _ in range(2))
    return train, test, y


def measure(case: str, run: Any = None) -> list[Row]:
    """One fit, after one of three classes that loads the libraries."""
    name, _, count = case.rpartition(": ")
    X, T, y = problem(int(count))
    warnings.simplefilter("ignore")
    model = ESTIMATORS[name]
    model.fit(X[:9], y[:9])
    begin = time.perf_counter()
    accuracy = model.fit(X, y).score(T, y)
    return [{"case": case, "seconds": time.perf_counter() - begin, "accuracy": accuracy, "outcome": "ok"}]


CASES = [f"{name}: {k}" for name in ESTIMATORS for k in N_CLASSES]


TINY_CLASSES = Experiment("tiny_classes", CASES, ("case",), measure, seconds=20.0, has_outcomes=True)
