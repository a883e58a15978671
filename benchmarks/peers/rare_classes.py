"""Default searches by ranking scores beside gradient-boosted trees and logistic regression, on tables of a rare class.

::

    export WIDEMARGIN_DATA=/path/to/data
    python benchmarks/peers/rare_classes.py             # rare_classes.csv: what it does not have yet
    python benchmarks/peers/rare_classes.py --again     # all of it

Searches are `DCSVMClassifierCV(scoring="roc_auc")` and `"average_precision"` behind `StandardScaler`; their rivals are
`HistGradientBoostingClassifier()`, and `LogisticRegression` behind `StandardScaler`. A table has up to 5,000 training
rows, and up to 15,000 test rows: the score of a few hundred positive rows is too uncertain to compare by. `error` is
1 - AUC or 1 - average precision of the test rows; `error_ratio` is ours / that of the better rival: below 1, we are
better.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from measuring import report
from widemargin import DCSVMClassifierCV
from widemargin.datasets import load_benchmark

_ROWS, _TRAINING_ROWS = 20_000, 5000
_METRICS = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}
_COLUMNS = ["table", "n", "positive", "n_test", "scoring", "machine", "seconds", "error", "error_ratio", "kernel"]

Row = dict[str, Any]


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


def measure(table: str, known: Sequence[Row]) -> Iterator[Row]:
    """A row for each machine and score that is not known."""
    X, y = TABLES[table]()
    size = min(_TRAINING_ROWS, len(y) // 2)
    X, X_test, y, y_test = train_test_split(X, y, train_size=size, random_state=0, stratify=y)
    facts = {"table": table, "n": len(y), "positive": float(y.mean()), "n_test": len(y_test)}
    rows = list(known)
    if not rows:
        rivals = {
            "trees": HistGradientBoostingClassifier(random_state=0),
            "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        }
        for name, model in rivals.items():
            values = model.fit(X, y).predict_proba(X_test)[:, 1]
            errors = {scoring: 1 - float(metric(y_test, values)) for scoring, metric in _METRICS.items()}
            rows += [facts | {"scoring": scoring, "machine": name, "error": error} for scoring, error in errors.items()]
        yield from rows
    for scoring, metric in _METRICS.items():
        found = {row["machine"]: row["error"] for row in rows if row["scoring"] == scoring}
        if "search" not in found:
            model = make_pipeline(StandardScaler(), DCSVMClassifierCV(scoring=scoring, random_state=0))
            begin = time.perf_counter()
            model.fit(X, y)
            row = facts | {"scoring": scoring, "machine": "search", "seconds": time.perf_counter() - begin}
            error = 1 - float(metric(y_test, model.decision_function(X_test)))
            yield row | {"error": error, "error_ratio": error / min(found.values()), "kernel": model[-1].kernel_}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the file does not have, and write it after each row: a run that was stopped goes on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--again", action="store_true", help="also the rows of these tables that the file has")
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="folder of the file")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    path = options.results / "rare_classes.csv"
    rows = [row for row in report.read_csv(path) if not (options.again and row["table"] in options.tables)]
    for table in options.tables:
        for row in measure(table, [row for row in rows if row["table"] == table]):
            rows.append(row)
            report.write_csv(path, rows)
            print(report.format_table([row], _COLUMNS), flush=True)
    for scoring in _METRICS:
        ratios = [row["error_ratio"] for row in rows if row["scoring"] == scoring and row["machine"] == "search"]
        print(f"{scoring}: {geometric_mean(ratios):.2f} in the geometric mean, {max(ratios):.2f} at most")


if __name__ == "__main__":
    main()
