"""Exact, early and linear machines of the whole covtype by the number of rows, and of two larger sets.

::

    python benchmarks/scale.py                                  # minutes
    python benchmarks/scale.py --rows 20000 60000 --rival-rows 0
    python benchmarks/scale.py --machines linear                # others' rows stay as they are
    python benchmarks/scale.py --set noisy --rows 1000000 --machines exact "early, auto" --to larger_sets.csv

covtype: class 2 against the rest with C = gamma = 32, columns scaled to [0, 1]; a fifth of the 581,012 rows is for
tests. Each fit has a process of its own; `memory` is its largest size less that before it, with the data. The linear
machine has C = 1 and one thread, and its seconds are processor time. The machine "paper" is Algorithm 1 as published:
four levels, kernel k-means, no intercept. Exact machines stop after 600 seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import process, report
from measuring.problems import load_problem
from widemargin import DCSVMClassifier, OCASClassifier

ROWS = 20_000, 60_000, 116_202, 232_405, 464_810

Row = dict[str, Any]


def _intelex(C: float, gamma: float) -> Any:
    from sklearnex.svm import SVC

    return SVC(C=C, gamma=gamma, cache_size=1000)


_PAPER = {"n_levels": 4, "branching": 4, "n_sample": 1000, "partition": "kernel", "fit_intercept": False}
MACHINES: dict[str, Callable[[float, float], Any]] = {  # of C and gamma
    "exact": lambda C, gamma: DCSVMClassifier(C=C, gamma=gamma, max_time=600),
    "early": lambda C, gamma: DCSVMClassifier(C=C, gamma=gamma, stop_level=3),
    "early, auto": lambda C, gamma: DCSVMClassifier(C=C, gamma=gamma, stop_level="auto"),
    "intelex": _intelex,
    "linear": lambda C, gamma: OCASClassifier(n_jobs=1),
    "paper": lambda C, gamma: DCSVMClassifier(C=C, gamma=gamma, **_PAPER),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="covtype")
    parser.add_argument("--to", default="scale.csv", help="the file of results, in which other rows stay")
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument(
        "--rival-rows", type=int, default=116_202, help="largest number of rows of scikit-learn-intelex"
    )
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=["exact", "early", "intelex", "linear"])
    options = parser.parse_args(arguments)
    replaced = {(options.set, machine, n) for machine in options.machines for n in options.rows}
    path = report.RESULTS / options.to
    rows = report.read_csv(path) if path.exists() else []
    rows = [row for row in rows if (row["set"], row["machine"], row["rows"]) not in replaced]
    for n in options.rows:
        for name in options.machines:
            if name != "intelex" or n <= options.rival_rows:
                rows.append(process.run_apart(measure, options.set, name, n))
                print(report.format_table(rows, list(rows[0])), flush=True)
                report.write_csv(path, rows)


def measure(name: str, machine: str, n: int) -> Row:
    """The row of one machine of n rows: of the second of two fits where one takes less than ten seconds."""
    problem = load_problem(name, n_rows=n * 5 // 4 if name == "noisy" else n)  # a fifth is for tests
    X, y, make = problem.X, problem.y, partial(MACHINES[machine], problem.C, problem.gamma)
    make().fit(X[:1000], y[:1000]).predict(X[:100])  # libraries are loaded
    process.reset_peak()
    before, seconds = process.resident_bytes(), 0.0
    clock = time.process_time if machine == "linear" else time.perf_counter
    for _ in range(2):
        model, start = make(), clock()
        model.fit(X, y)
        seconds = clock() - start
        if seconds > 10:
            break
    row: Row = {"set": name, "machine": machine, "rows": len(y), "seconds": seconds}
    row |= {"memory": process.peak_bytes() - before}
    row |= {"support_vectors": len(model.support_)} if machine != "linear" else {}
    row |= {"relative_gap": float(getattr(model, "relative_gap_", np.nan))}
    start = time.perf_counter()
    model.decision_function(X)
    row["decision_seconds"] = time.perf_counter() - start
    return row | {"accuracy": 100 * float(np.mean(model.predict(problem.X_test) == problem.y_test))}


if __name__ == "__main__":
    main()
