"""Searches of C on all rows of covtype in ten folds, every cell solved to `tol`: seconds by the number of rows.

::

    python benchmarks/folds.py                                # an hour
    python benchmarks/folds.py --rows 20000 60000 --Cs 10

Class 2 against the rest, gamma = 32, Cs from 2^-6 to 2^8, columns scaled to [0, 1]; a fifth of the rows is for tests.
`share` is the seconds of a cell, which is a C and a fold, divided by those of one exact fit with C = 32 to the same
tolerance. `memory` is the search's largest size less that before it, with the data. Each number of rows has a process
of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import process, report
from measuring.experiment import joined
from measuring.problems import load_problem
from widemargin import DCSVMClassifier, DCSVMClassifierCV

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[20_000, 60_000, 116_202, 232_405])
    parser.add_argument("--Cs", type=int, default=50, help="how many")
    parser.add_argument("--folds", type=int, default=10)
    options = parser.parse_args(arguments)
    path = report.RESULTS / "folds.csv"
    rows = report.read_csv(path)
    for n in options.rows:
        row = process.run_apart(measure, n, options.Cs, options.folds)
        rows = joined(rows, [row], ["rows", "Cs", "folds"])
        print(report.format_table(rows, list(rows[0])), flush=True)
        report.write_csv(path, rows)


def measure(n: int, n_costs: int, n_folds: int) -> Row:
    """The row of n rows."""
    problem = load_problem("covtype", n_rows=n)
    X, y, gamma = problem.X, problem.y, problem.gamma
    DCSVMClassifier(C=problem.C, gamma=gamma).fit(X[:1000], y[:1000])  # libraries are loaded
    start = time.perf_counter()
    model = DCSVMClassifier(C=problem.C, gamma=gamma).fit(X, y)
    exact = time.perf_counter() - start
    search = DCSVMClassifierCV(
        Cs=2.0 ** np.linspace(-6, 8, n_costs),
        gammas=[gamma],
        kernels="rbf",
        cv=StratifiedKFold(n_folds, shuffle=True, random_state=0),
        exhaustive=True,
        refit=False,
    )
    process.reset_peak()
    before, start = process.resident_bytes(), time.perf_counter()
    search.fit(X, y)
    seconds = time.perf_counter() - start
    row: Row = {"rows": n, "Cs": n_costs, "folds": n_folds, "exact_seconds": exact, "seconds": seconds}
    row |= {"share": seconds / (n_costs * n_folds) / exact, "memory": process.peak_bytes() - before}
    row |= {"C": search.C_, "score": 100 * search.best_score_, "exact_gap": model.relative_gap_}
    return row


if __name__ == "__main__":
    main()
