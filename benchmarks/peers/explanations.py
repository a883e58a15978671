"""Exact Shapley values beside shapiq's `ProductKernelExplainer`, and of all test rows of covtype by an early machine.

::

    python benchmarks/peers/explanations.py             # needs shapiq >= 1.8 (Python 3.12)
    python benchmarks/peers/explanations.py --early     # of this library alone

Both explain one `SVR` of scikit-learn's, of 10,000 rows of covtype with columns scaled to [0, 1]: they are all support
vectors, as epsilon is 0. Calls alternate; times are the least of three. `difference` is the largest between values.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from sklearn.svm import SVR

from measuring import report
from measuring.problems import load_problem
from widemargin import DCSVMClassifier, shapley_values

_N_POINTS, _N_ROWS = 10_000, 64
_COLUMNS = ["machine", "rows", "ms_per_row", "ratio", "difference"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--early", action="store_true", help="seconds of all test rows by an early machine")
    parser.add_argument("--stop-level", type=int, default=4, help="of the early machine")
    parser.add_argument("--output", type=Path, default=report.RESULTS / "explanations.csv")
    options = parser.parse_args(arguments)
    problem = load_problem("covtype")
    if options.early:
        measure_early(problem, options.stop_level)
        return
    rows = measure_peer(problem)
    print(report.format_table(rows, _COLUMNS))
    report.write_csv(options.output, rows)


def measure_peer(problem: Any) -> list[dict[str, Any]]:
    """A row for each library, for one row and for many."""
    from shapiq.explainer import ProductKernelExplainer

    X = problem.X.astype(np.float64)
    machine = SVR(gamma=problem.gamma / 16, C=0.01, epsilon=0.0).fit(X[:_N_POINTS], problem.y[:_N_POINTS])
    explainer, rows = ProductKernelExplainer(machine), problem.X_test[:_N_ROWS].astype(np.float64)

    def of_peer() -> Any:
        found = explainer.explain_function(rows[0])
        return np.array([found[(k,)] for k in range(rows.shape[1])])

    calls: dict[tuple[str, int], Callable[[], Any]] = {
        ("shapiq", 1): of_peer,
        ("widemargin", 1): lambda: shapley_values(machine, rows[:1]).values[0],
        ("widemargin", _N_ROWS): lambda: shapley_values(machine, rows).values[0],
    }
    seconds, values = dict.fromkeys(calls, np.inf), {}
    for _ in range(3):
        for key, call in calls.items():
            start = time.perf_counter()
            values[key] = call()
            seconds[key] = min(seconds[key], time.perf_counter() - start)
    peer = ("shapiq", 1)
    return [
        {
            "machine": name,
            "rows": n,
            "ms_per_row": 1e3 * seconds[name, n] / n,
            "ratio": n * seconds[peer] / seconds[name, n],
            "difference": float(abs(values[name, n] - values[peer]).max()),
        }
        for name, n in calls
    ]


def measure_early(problem: Any, stop_level: int) -> None:
    """Print the seconds of all test rows, and what values and base are off the decision values."""
    model = DCSVMClassifier(C=problem.C, gamma=problem.gamma, stop_level=stop_level, random_state=0)
    model.fit(problem.X, problem.y)
    start = time.perf_counter()
    found = shapley_values(model, problem.X_test, verbose=1)
    seconds = time.perf_counter() - start
    error = abs(found.values.sum(axis=1) + found.base_values - model.decision_function(problem.X_test)).max()
    n, clusters = len(problem.X_test), model.levels_[-1]["n_clusters"]
    print(f"{n} rows, {len(model.support_)} support vectors, {clusters} clusters: {seconds:.1f} s; off by {error:.2g}")


if __name__ == "__main__":
    main()
