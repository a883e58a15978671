"""Exact, early and linear machines of the whole covtype by the number of rows, beside scikit-learn-intelex.

::

    python benchmarks/scale.py                                  # minutes
    python benchmarks/scale.py --rows 20000 60000 --rival-rows 0
    python benchmarks/scale.py --machines linear                # others' rows stay as they are

Class 2 against the rest with C = gamma = 32, columns scaled to [0, 1]; a fifth of the 581,012 rows is for tests. Each
fit has a process of its own; `memory` is its largest size less that before the fit, with the data. The linear machine
has C = 1 and one thread, and its seconds are processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import _process, _report
from benchmarks._problems import load_problem
from widemargin import DCSVMClassifier, OCASClassifier

ROWS = 20_000, 60_000, 116_202, 232_405, 464_810
_RESULT = _report.RESULTS / "scale.csv"

Row = dict[str, Any]


def _exact() -> Any:
    return DCSVMClassifier(C=32, gamma=32)


def _early() -> Any:
    return DCSVMClassifier(C=32, gamma=32, stop_level=3)


def _intelex() -> Any:
    from sklearnex.svm import SVC

    return SVC(C=32, gamma=32, cache_size=1000)


def _linear() -> Any:
    return OCASClassifier(n_jobs=1)


MACHINES: dict[str, Callable[[], Any]] = {"exact": _exact, "early": _early, "intelex": _intelex, "linear": _linear}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument(
        "--rival-rows", type=int, default=116_202, help="largest number of rows of scikit-learn-intelex"
    )
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(measure(options.child[0], int(options.child[1]))))
        return
    rows = [row for row in _report.read_csv(_RESULT) if row["machine"] not in options.machines]
    for n in options.rows:
        for name in options.machines:
            if name != "intelex" or n <= options.rival_rows:
                rows.append(_process.run_child([__file__, "--child", name, str(n)]))
                print(_report.format_table(rows, list(rows[0])), flush=True)
                _report.write_csv(_RESULT, rows, _report.run_card())


def measure(name: str, n: int) -> Row:
    """The row of one machine of n rows: of the second of two fits where one takes less than ten seconds."""
    problem = load_problem("covtype", n_rows=n)
    X, y = problem.X, problem.y
    MACHINES[name]().fit(X[:1000], y[:1000]).predict(X[:100])  # libraries are loaded
    _process.reset_peak()
    before, seconds = _process.resident_bytes(), 0.0
    clock = time.process_time if name == "linear" else time.perf_counter
    for _ in range(2):
        model, start = MACHINES[name](), clock()
        model.fit(X, y)
        seconds = clock() - start
        if seconds > 10:
            break
    row: Row = {"machine": name, "rows": len(y), "seconds": seconds, "memory": _process.peak_bytes() - before}
    row |= {"support_vectors": len(model.support_)} if name != "linear" else {}
    row |= {"relative_gap": float(getattr(model, "relative_gap_", np.nan))}
    start = time.perf_counter()
    model.decision_function(X)
    row["decision_seconds"] = time.perf_counter() - start
    return row | {"accuracy": 100 * float(np.mean(model.predict(problem.X_test) == problem.y_test))}


if __name__ == "__main__":
    main()
