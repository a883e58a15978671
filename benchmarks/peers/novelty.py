"""Novelty detection without a choice of gamma: DCOneClassSVM's gamma="near" and "scale" beside an isolation forest.

::

    WIDEMARGIN_DATA=/path/to/data python benchmarks/peers/novelty.py

Machines learn from at most 3,000 rows of one class, and order other rows of it and rows of the others, at most 3,000 of
each. `auc` is the area under the ROC curve; `rejected` the share of new rows of the class that `predict` puts outside.
nu = 0.05; columns of breast_cancer, covtype and kddcup99_10 are standardised, mnist is divided by 255. The share of the
rows by which gamma="near" is defined was chosen on the tasks of `is_chosen_on`, and on other classes of the other sets.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from measuring import report
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
_COLUMNS = ["set", "inside", "n", "is_chosen_on", "machine", "auc", "rejected", "seconds"]

Row = dict[str, Any]


class Task(NamedTuple):
    """Rows of which some are inside."""

    name: str
    inside: str
    X: Any
    is_inside: NDArray[np.bool_]
    is_scaled: bool
    is_chosen_on: bool


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", help="by default all")
    parser.add_argument("--output", type=Path, default=report.RESULTS / "novelty.csv")
    options = parser.parse_args(arguments)
    rows = [row for task in tasks(options.sets) for row in compare(task)]
    report.write_csv(options.output, rows)
    print(report.format_table(rows, _COLUMNS))


def tasks(names: Sequence[str] | None) -> Iterator[Task]:
    """The tasks of these sets, or of all."""

    def is_wanted(name: str) -> bool:
        return names is None or name in names

    if is_wanted("breast_cancer"):
        X, y = load_breast_cancer(return_X_y=True)
        yield Task("breast_cancer", "benign", X, y == 1, True, True)
    for name, places in _CLASSES.items():
        if is_wanted(name):
            X, y, _, _ = load_benchmark(name)
            for c in np.unique(y)[list(places)]:
                yield Task(name, f"{c:g}", X / 255 if name == "mnist" else X, y == c, False, False)
    if is_wanted("covtype"):
        X, y, _, _ = load_benchmark("covtype")
        for inside, outside, is_chosen_on in ((2, 4, True), (1, 7, False)):
            rows = np.flatnonzero((y == inside) | (y == outside))
            yield Task("covtype", f"{inside}, not {outside}", X[rows], y[rows] == inside, True, is_chosen_on)
    if is_wanted("kddcup99_10"):
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


if __name__ == "__main__":
    main()
