"""Kernel machines beside gradient-boosted trees, scikit-learn's: accuracy, and seconds to train and to predict.

::

    WIDEMARGIN_DATA=/path/to/data python benchmarks/peers/boosting.py

Classification: `DCSVMClassifier` with the C and gamma of `_problems`, float32. Regression: `DCSVMRegressor(C=10,
gamma=1/d)`, columns and y standardised. Trees have their defaults, 100 iterations, or 500. `score` is the accuracy on
test rows, or R^2. Machines are trained in turns; times are medians, those of predictions are a row's.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from benchmarks import _process, _report
from benchmarks._problems import load_problem
from benchmarks.peers.regression import load
from widemargin import DCSVMClassifier, DCSVMRegressor

_CLASSES = ("a9a", "ijcnn1", "codrna", "letter", "usps", "covtype_20k", "patches")
_VALUES = ("cadata", "census_house8L", "cpusmall")
_COLUMNS = ["set", "n", "n_features", "machine", "seconds", "predict_us", "score"]

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=(*_CLASSES, *_VALUES), default=[*_CLASSES, *_VALUES])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=_report.RESULTS / "boosting.csv")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = [row for name in options.sets for row in _measure(name, options.repeats)]
    print(_report.format_table(rows, _COLUMNS))
    _report.write_csv(options.output, rows, _report.run_card())


def _measure(name: str, repeats: int) -> list[Row]:
    """A row for each machine, trained in turns."""
    if name in _CLASSES:
        problem = load_problem(name)
        X, y, X_test, y_test = problem.X, problem.y, problem.X_test, problem.y_test
        kernel, trees = DCSVMClassifier(C=problem.C, gamma=problem.gamma), HistGradientBoostingClassifier
    else:
        X, y, X_test, y_test = load(name)
        kernel, trees = DCSVMRegressor(C=10, gamma=1 / X.shape[1]), HistGradientBoostingRegressor
    machines = {
        "kernel": kernel,
        "trees": trees(random_state=0),
        "trees, 500": trees(max_iter=500, random_state=0),
    }
    seconds: dict[str, list[float]] = {machine: [] for machine in machines}
    for _ in range(repeats):
        for machine, model in machines.items():
            _process.touch_memory(len(y))
            start = time.perf_counter()
            model.fit(X, y)
            seconds[machine].append(time.perf_counter() - start)
    shape = {"set": name, "n": len(y), "n_features": X.shape[1], "task": type(kernel).__name__}
    return [
        {**shape, "machine": machine, "seconds": median(seconds[machine]), "repeats": repeats}
        | {"predict_us": _predict_us(model, X_test, repeats), "score": float(model.score(X_test, y_test))}
        for machine, model in machines.items()
    ]


def _predict_us(model: Any, X: Any, repeats: int) -> float:
    times = []
    rows = np.resize(X, (max(len(X), 10_000), X.shape[1]))
    for _ in range(repeats):
        start = time.perf_counter()
        model.predict(rows)
        times.append(time.perf_counter() - start)
    return 1e6 * median(times) / len(rows)


if __name__ == "__main__":
    main()
