"""DCSVMRegressor and DCOneClassSVM beside scikit-learn's and scikit-learn-intelex's machines, in one process run.

::

    WIDEMARGIN_DATA=/path/to/data python benchmarks/peers/regression.py

Columns of X and y are standardised, X is float32, tol = 1e-3, epsilon = 0.1, gamma = 1 / d. Machines alternate;
times are medians. `ratio` is the rival's time divided by ours: above 1, ours is faster. `rmse` is that of test rows in
units of the spread of y. scikit-learn's machines run once, and not on the generated set of 100,000 rows.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, OneClassSVM

from measuring import process, report
from widemargin import DCOneClassSVM, DCSVMRegressor
from widemargin.datasets import load_benchmark

_GENERATED = "friedman1"
_SETS = ("cadata", "census_house8L", "cpusmall", _GENERATED)
_ROWS = 100_000  # of the generated set
_NU = 0.1
_COLUMNS = [
    "set",
    "n",
    "C",
    "machine",
    "seconds",
    "ratio",
    "rmse",
    "n_support",
    "objective",
    "relative_gap",
    "equal_labels",
]

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=_SETS, default=list(_SETS))
    parser.add_argument("-C", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip", nargs="*", default=[], help="machines to leave out")
    parser.add_argument("--output", type=Path, default=report.RESULTS / "regression.csv")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for name in options.sets:
        X, y, X_test, y_test = load(name)
        for C in options.C:
            rows += regression(name, (X, y, X_test, y_test), C, options)
        rows += novelty(name, X, options)
        report.write_csv(options.output, [*rows, *means(rows)])
    print(report.format_table([*rows, *means(rows)], _COLUMNS))


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """Standardised training and test rows: a fifth of them are test rows."""
    if name == _GENERATED:
        X, y = make_friedman1(_ROWS + _ROWS // 4, 10, noise=1.0, random_state=0)
    else:
        X, y, _, _ = load_benchmark(name)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [len(y) // 5])
    scaler = StandardScaler().fit(X[train])
    spread, mean = y[train].std(), y[train].mean()
    parts = [scaler.transform(X[rows]).astype(np.float32) for rows in (train, test)]
    targets = [(y[rows] - mean) / spread for rows in (train, test)]
    return parts[0], targets[0], parts[1], targets[1]


def regression(name: str, data: tuple[Any, Any, Any, Any], C: float, options: argparse.Namespace) -> list[Row]:
    """One row for each regressor; ratios to our exact one."""
    X, y, X_test, y_test = data
    common = {"C": C, "gamma": 1.0 / X.shape[1], "epsilon": 0.1}
    machines = {
        "widemargin": DCSVMRegressor(**common),
        "widemargin early": DCSVMRegressor(**common, stop_level=2),
        **intelex("SVR", common),
        "scikit-learn": SVR(**common),
    }
    rows = []
    for machine, (model, seconds) in alternate(machines, (X, y), name, options):
        row: Row = {"set": name, "n": len(y), "C": C, "machine": f"{machine} SVR", "seconds": seconds}
        row["rmse"] = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
        row["n_support"] = len(model.support_)
        if hasattr(model, "objective_"):
            row |= {"objective": model.objective_, "relative_gap": model.relative_gap_}
        rows.append(row)
    return with_ratios(rows)


def novelty(name: str, X: Any, options: argparse.Namespace) -> list[Row]:
    """One row for each one-class machine."""
    common = {"nu": _NU, "gamma": 1.0 / X.shape[1]}
    machines = {"widemargin": DCOneClassSVM(**common), "scikit-learn": OneClassSVM(**common)}
    rows, labels = [], None
    for machine, (model, seconds) in alternate(machines, (X,), name, options):
        predicted = model.predict(X)
        labels = predicted if labels is None else labels
        row = {"set": name, "n": len(X), "C": "", "machine": f"{machine} one-class", "seconds": seconds}
        row |= {"n_support": len(model.support_), "equal_labels": float(np.mean(predicted == labels))}
        rows.append(row)
    return with_ratios(rows)


def intelex(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """scikit-learn-intelex's machine, where it is installed."""
    try:
        import sklearnex.svm
    except ImportError:
        return {}
    return {"scikit-learn-intelex": getattr(sklearnex.svm, kind)(**parameters)}


def alternate(
    machines: dict[str, Any], data: tuple[Any, ...], name: str, options: argparse.Namespace
) -> Iterator[tuple[str, tuple[Any, float]]]:
    """Each machine, fitted, and the median of its seconds; forwards and backwards in turn."""
    machines = {key: machine for key, machine in machines.items() if key not in options.skip}
    if name == _GENERATED:
        machines.pop("scikit-learn", None)
    seconds: dict[str, list[float]] = {key: [] for key in machines}
    for repeat in range(options.repeats):
        for key in list(machines)[:: -1 if repeat % 2 else 1]:
            if key == "scikit-learn" and repeat:
                continue
            process.touch_memory(len(data[0]))
            begin = time.perf_counter()
            machines[key].fit(*data)
            seconds[key].append(time.perf_counter() - begin)
            print(f"{name} {key} {type(machines[key]).__name__}: {seconds[key][-1]:.2f} s", flush=True)
    for key, machine in machines.items():
        yield key, (machine, statistics.median(seconds[key]))


def with_ratios(rows: list[Row]) -> list[Row]:
    """Add each row's time divided by the first one's."""
    return [{**row, "ratio": row["seconds"] / rows[0]["seconds"]} for row in rows]


def means(rows: list[Row]) -> list[Row]:
    """Geometric mean and least of the ratios of each machine."""
    found = []
    for machine in dict.fromkeys(row["machine"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["machine"] == machine]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        found += [{"set": "geometric mean", "machine": machine, "ratio": mean}]
        found += [{"set": "least", "machine": machine, "ratio": min(ratios)}]
    return found


if __name__ == "__main__":
    main()
