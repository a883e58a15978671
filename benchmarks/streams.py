"""Streams: the default of `lam`, and labels that change. Each chunk of 1,000 rows is predicted, then learnt.

`accuracy` is that of the predictions, in percent (prequential). Columns are scaled to [0, 1], gamma is "scale", the
budget 100. Rows come in random order, those of `kddcup99_10` also in their own, where attacks come in bursts. In
`turned` streams the labels of the second half are inverted. `fit` is the accuracy on test rows of a fit with 20 passes
(5 of mnist, 2 of kddcup99_10), in the mean over five seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import BSGDClassifier
from widemargin.datasets import load_benchmark

SETS = ("ijcnn1", "codrna", "covtype_20k", "patches", "a9a", "mnist", "kddcup99_10")
LAMS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_CHUNK = 1000


def streams(name: str, n: int = 20_000, n_own: int = 60_000) -> Iterator[tuple[str, Any, Any]]:
    """Name of the order, rows and labels 0 and 1."""
    problem = load_problem(name, n_rows=n if name == "patches" else None)
    X, y = problem.X, (np.asarray(problem.y) > 0).astype(int)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float32)
    chosen = np.random.default_rng(0).permutation(len(y))[:n]
    yield "random", MinMaxScaler().fit_transform(X[chosen]).astype(np.float32), y[chosen]
    if name == "kddcup99_10":
        own = load_benchmark(name)
        X = np.asarray(own.X[:n_own].toarray(), np.float32)
        yield "own", MinMaxScaler().fit_transform(X).astype(np.float32), (np.asarray(own.y[:n_own]) > 0).astype(int)


def compare(name: str) -> Iterator[Row]:
    """Every `lam`, the average and the last step's machine, labels that stay and labels that are inverted."""
    for order, X, y in streams(name):
        turned = np.where(np.arange(len(y)) < len(y) // 2, y, 1 - y)
        for lam in LAMS:
            for average in (True, False):
                for labels, what in ((y, "stay"), (turned, "turned")):
                    model = BSGDClassifier(lam=lam, average=average)
                    score = 100 * right_before_learnt(model, X, labels)
                    row = {"set": name, "order": order, "rows": len(y), "labels": what}
                    yield {**row, "lam": lam, "average": average, "accuracy": score}


def right_before_learnt(model: BSGDClassifier, X: Any, y: Any) -> float:
    """Share of rows whose label was predicted before they were learnt; the first chunk is not counted."""
    right = []
    for start in range(0, len(y), _CHUNK):
        rows = slice(start, start + _CHUNK)
        if start:
            right.append(model.predict(X[rows]) == y[rows])
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
    return float(np.mean(np.concatenate(right)))


def fits(name: str) -> Iterator[Row]:
    """Accuracy of `fit` on test rows, with the average and without."""
    problem = load_problem(name, n_rows=20_000 if name == "patches" else None)
    options = {"C": problem.C, "gamma": problem.gamma, "n_epochs": {"kddcup99_10": 2, "mnist": 5}.get(name, 20)}
    for average in (True, False):
        models = (BSGDClassifier(**options, average=average, random_state=seed) for seed in range(5))
        scores = [100 * model.fit(problem.X, problem.y).score(problem.X_test, problem.y_test) for model in models]
        row = {"set": name, "order": "fit", "rows": len(problem.y), "average": average}
        yield {**row, "accuracy": float(np.mean(scores)), "std": float(np.std(scores, ddof=1))}


def measure(name: str, run: Run) -> Iterator[Row]:
    """The rows of both."""
    yield from compare(name)
    yield from fits(name)


STREAMS = Experiment(
    "streams",
    SETS,
    ("set", "order", "labels", "lam", "average"),
    measure,
    seconds=180.0,
)
