"""DCSVMClassifier beside scikit-learn-intelex's SVC on many classes: a machine for each pair of them.

Classes are normal distributions of 20 columns around normal centres, float32; C = 10, gamma = 0.05, tol = 1e-3.
Machines alternate; times are medians. `ratio` is the rival's time divided by ours: above 1, ours is faster.
`equal_labels` is the share of 2,000 other rows to which both give the same label.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numpy as np

from measuring import process
from measuring.experiment import Experiment, Row, Run
from widemargin import DCSVMClassifier

_N_FEATURES = 20
_TEST_ROWS = 2000
_SPREAD = 0.7  # of a class / distance of the centres


def measure(n_classes: int, n: int, run: Run) -> list[Row]:
    """A row for each machine."""
    from sklearnex.svm import SVC

    X, y = generate(n_classes, n + _TEST_ROWS)
    common = {"C": 10.0, "gamma": 0.05}
    machines: dict[str, Any] = {"widemargin": DCSVMClassifier(**common), "scikit-learn-intelex": SVC(**common)}
    fits = {name: partial(machine.fit, X[:n], y[:n]) for name, machine in machines.items()}
    machines, seconds = process.in_turns(fits, run.repeats, n)
    labels = {name: machine.predict(X[n:]) for name, machine in machines.items()}
    ours = statistics.median(seconds["widemargin"])
    return [
        {
            "classes": n_classes,
            "n": n,
            "machine": name,
            "seconds": statistics.median(seconds[name]),
            "ratio": statistics.median(seconds[name]) / ours,
            "repeats": run.repeats,
            "n_support": len(machine.support_),
            "accuracy": float(np.mean(labels[name] == y[n:])),
            "equal_labels": float(np.mean(labels[name] == labels["widemargin"])),
        }
        for name, machine in machines.items()
    ]


def generate(n_classes: int, n: int) -> tuple[Any, Any]:
    """Rows (n, 20), float32, and their classes (n,)."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, _N_FEATURES))
    y = rng.integers(0, n_classes, n)
    return (centres[y] + _SPREAD * rng.standard_normal((n, _N_FEATURES))).astype(np.float32), y


MANY_CLASSES = Experiment(
    "many_classes",
    [(10, 100_000), (100, 20_000)],
    ("classes", "n", "machine"),
    measure,
    seconds=240.0,
    settings={"repeats": 3},
    quick={"cells": [(10, 2000)], "repeats": 1},
)
