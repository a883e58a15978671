"""Novelty detection without a choice of gamma: DCOneClassSVM's gamma="near" and "scale" beside an isolation forest.

Machines learn from at most 3,000 rows of one class, and order other rows of it and rows of the others, at most 3,000 of
each. `auc` is the area under the ROC curve; `rejected` the share of new rows of the class that `predict` puts outside.
nu = 0.05; columns of breast_cancer, covtype and kddcup99_10 are standardised, mnist is divided by 255. The share of the
rows by which gamma="near" is defined was chosen on the tasks of `is_chosen_on`, and on other classes of the other sets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from measuring.experiment import Experiment, Row
from widemargin import DCOneClassSVM
from widemargin.datasets import load_benchmark

_ROWS = 3000  # of training, of the same class, of others: at most
_NU = 0.05
_CLASSES = {"pendigits": (3, 6), "letter": (10, 20), "usps": (2, 5), "mnist": (4, 9)}  # one against all others
_MACHINES: dict[str, Callable[[], Any]] = {
    "near": lambda: DCOneClassSVM(nu=_NU),
    "scale": lambda: DCOneClassSVM(nu=_NU, gamma="scale"),
    "isolation forest": lambda: IsolationForest(contamination=_NU, random_state=0),
}


class Task(NamedTuple):
    """Rows of which some are inside."""

    name: str
    inside: str
    X: Any
    is_inside: NDArray[np.bool_]
    is_scaled: bool
    is_chosen_on: bool


def measure(name: str, run: Any = None) -> list[Row]:
    """The rows of a set's tasks."""
    return [row for task in tasks(name) for row in compare(task)]


def tasks(name: str) -> Iterator[Task]:
    """The tasks of a set."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
        yield Task("breast_cancer", "benign", X, y == 1, True, True)
    if name in _CLASSES:
        X, y, _, _ = load_benchmark(name)
        for c in np.unique(y)[list(_CLASSES[name])]:
            yield Task(name, f"{c:g}", X / 255 if name == "mnist" else X, y == c, False, False)
    if name == "covtype":
        X, y, _, _ = load_benchmark("covtype")
        for inside, outside, is_chosen_on in ((2, 4, True), (1, 7, False)):
            rows = np.flatnonzero((y == inside) | (y == outside))
            yield Task("covtype", f"{inside}, not {outside}", X[rows], y[rows] == inside, True, is_chosen_on)
    if name == "kddcup99_10":
        X, y, _, _ = load_benchmark("kddcup99_10")
        yield Task("kddcup99_10", "normal", X, y == 1, True, True)


def compare(task: Task) -> list[Row]:
    """One row for each machine."""
    train, X_inside, X_outside = split(task)
    rows = []
    for name, make in _MACHINES.items():
        begin = time.perf_counter()
        model = make().fit(train)
        row: Row = {"set": task.name, "inside": task.inside, "n": len(train), "is_chosen_on": task.is_chosen_on}
        row |= {"machine": name, "seconds": time.perf_counter() - begin}
        scores = [model.score_samples(X) for X in (X_inside, X_outside)]
        row["auc"] = float(roc_auc_score(np.repeat([1, 0], list(map(len, scores))), np.concatenate(scores)))
        row["rejected"] = float(np.mean(model.predict(X_inside) == -1))
        rows.append(row)
    return rows


def split(task: Task) -> list[NDArray[np.float32]]:
    """Training rows, two thirds of those inside at most; other rows inside; rows outside."""
    rng = np.random.default_rng(0)
    inside, outside = (rng.permutation(np.flatnonzero(rows)) for rows in (task.is_inside, ~task.is_inside))
    n = min(_ROWS, len(inside) * 2 // 3)
    parts = [_dense(task.X[rows]) for rows in (inside[:n], inside[n : n + _ROWS], outside[:_ROWS])]
    if task.is_scaled:
        scaler = StandardScaler().fit(parts[0])
        parts = [scaler.transform(part) for part in parts]
    return [part.astype(np.float32) for part in parts]


def _dense(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)


NOVELTY = Experiment(
    "novelty",
    ("breast_cancer", *_CLASSES, "covtype", "kddcup99_10"),
    ("set", "inside", "machine"),
    measure,
    seconds=20.0,
)
