"""Many classes of three rows each: seconds and accuracy of every classifier.

::

    python benchmarks/reliability/tiny_classes.py

Rows of 20 columns around a centre for each class. `accuracy` is on other rows. Every case has a process of its own, and
a minute.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import widemargin as wm
from measuring import campaign

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


def measure(case: str) -> campaign.Rows:
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

if __name__ == "__main__":
    campaign.run(__doc__, "tiny_classes", CASES, measure, limit=60.0)
