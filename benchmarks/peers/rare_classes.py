"""Default searches by ranking scores beside gradient-boosted trees and logistic regression, on tables of a rare class.

Searches are `DCSVMClassifierCV(scoring="roc_auc")` and `"average_precision"` behind `StandardScaler`; their rivals are
`HistGradientBoostingClassifier()`, and `LogisticRegression` behind `StandardScaler`. A table has up to 5,000 training
rows, and up to 15,000 test rows, in each of three random splits: with a few dozen positive rows to learn from, one
split's errors differ by half from another's. `error` is the mean of 1 - AUC or 1 - average precision of the test rows;
`error_ratio` is ours / that of the better rival: below 1, we are better.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from measuring.experiment import Experiment, Row, Run
from widemargin import DCSVMClassifierCV
from widemargin.datasets import load_benchmark

_ROWS, _TRAINING_ROWS = 20_000, 5000
_METRICS = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}


def one_class(name: str, label: Any, share: float | None = None) -> tuple[Any, Any]:
    """A class of a set against the others, thinned to a share of the rows."""
    X, y, X_test, y_test = load_benchmark(name)
    if X_test is not None:
        X = sp.vstack([X, X_test]).tocsr() if sp.issparse(X) else np.vstack([X, X_test])
        y = np.concatenate([y, y_test])
    return thinned(X, np.asarray(y) == label, share)


def largest_values(name: str, share: float) -> tuple[Any, Any]:
    """Whether a target is among its largest."""
    X, y, *_ = load_benchmark(name)
    return thinned(X, y > np.quantile(y, 1 - share))


def thinned(X: Any, y: Any, share: float | None = None) -> tuple[Any, Any]:
    """At most 20,000 random rows, of which so many are positive."""
    rng, share = np.random.default_rng(0), share or float(y.mean())
    positive, negative = rng.permutation(np.flatnonzero(y)), rng.permutation(np.flatnonzero(~y))
    n = min(_ROWS, int(len(negative) / (1 - share)), int(len(positive) / share))
    n_positive = round(share * n)
    rows = np.concatenate([positive[:n_positive], negative[: n - n_positive]])
    chosen = X[rows]
    return np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen, np.float64), y[rows].astype(int)


def binary_columns(n_columns: int, share: float) -> tuple[Any, Any]:
    """Columns of 0 and 1, log-odds that are linear in them, and about this share of positive rows."""
    rng = np.random.default_rng(0)
    X = (rng.random((_ROWS, n_columns)) < rng.uniform(0.05, 0.5, n_columns)).astype(np.float64)
    f = X @ rng.normal(size=n_columns) * 1.5
    return X, (rng.random(_ROWS) < 1 / (1 + np.exp(np.quantile(f, 1 - share) - f))).astype(int)


def clouds(share: float, seed: int) -> tuple[Any, Any]:
    """Six Gaussian clouds, three of them positive."""
    how: dict[str, Any] = {"n_informative": 8, "n_clusters_per_class": 3, "flip_y": 0.005}
    return make_classification(_ROWS, 20, weights=[1 - share], random_state=seed, **how)  # type: ignore[no-any-return]


TABLES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "binary columns": lambda: binary_columns(39, 0.02),
    "clouds, 1 %": lambda: clouds(0.01, 3),
    "clouds, 11 %": lambda: clouds(0.11, 4),
    "covtype, class 4": lambda: one_class("covtype", 4),
    "covtype, class 7": lambda: one_class("covtype", 7),
    "a9a": lambda: one_class("a9a", 1, 0.04),
    "ijcnn1": lambda: one_class("ijcnn1", 1),
    "codrna": lambda: one_class("codrna", 1, 0.02),
    "cadata": lambda: largest_values("cadata", 0.05),
    "census_house8L": lambda: largest_values("census_house8L", 0.03),
}


def measure(table: str, run: Run) -> list[Row]:
    """A row for each score and machine: means of the splits."""
    warnings.simplefilter("ignore")
    X, y = TABLES[table]()
    size, rows = min(_TRAINING_ROWS, len(y) // 2), list[Row]()
    splits = [train_test_split(X, y, train_size=size, random_state=k, stratify=y) for k in range(run.splits)]
    facts = {"table": table, "n": size, "positive": float(y.mean()), "n_test": len(y) - size, "splits": run.splits}
    values = {name: [_values(make(), *split) for split in splits] for name, make in RIVALS.items()}
    for scoring in _METRICS:
        errors = {name: _mean_error(scoring, found, splits) for name, found in values.items()}
        rows += [facts | {"scoring": scoring, "machine": name, "error": error} for name, error in errors.items()]
        begin = time.perf_counter()
        own = [_values(_search(scoring), *split) for split in splits]
        row = facts | {"scoring": scoring, "machine": "search", "seconds": (time.perf_counter() - begin) / run.splits}
        error = _mean_error(scoring, own, splits)
        rows.append(row | {"error": error, "error_ratio": error / min(errors.values())})
    return rows


RIVALS: dict[str, Callable[[], Any]] = {
    "trees": lambda: HistGradientBoostingClassifier(random_state=0),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}


def _search(scoring: str) -> Any:
    return make_pipeline(StandardScaler(), DCSVMClassifierCV(scoring=scoring, random_state=0))


def _values(model: Any, X: Any, X_test: Any, y: Any, y_test: Any) -> Any:
    """Decision values of the test rows."""
    return model.fit(X, y).decision_function(X_test)


def _mean_error(scoring: str, values: Sequence[Any], splits: Sequence[Any]) -> float:
    """The mean of 1 - the score of the test rows over the splits."""
    labels = [y_test for *_, y_test in splits]
    return float(np.mean([1 - _METRICS[scoring](*pair) for pair in zip(labels, values, strict=True)]))


RARE_CLASSES = Experiment(
    "rare_classes",
    tuple(TABLES),
    ("table", "scoring", "machine"),
    measure,
    seconds=240.0,
    settings={"splits": 3},
    quick={"cells": ("a9a",), "splits": 1},
)
