"""Counts of exact fits with smaller and larger values of the dual solver's constants, one at a time.

::

    python benchmarks/constants.py
    python benchmarks/constants.py --only _ROUND_TOL _NEAR_MARGIN

Counted are kernel entries (of rows and of active sets' matrices) and working sets: they do not depend on the machine or
its load. "change" is the one that differs more, divided by the count with the value as it is, less 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import _report
from benchmarks._problems import load_problem
from benchmarks.shrinking import counted
from widemargin import DCSVMClassifier

_SETS: dict[str, tuple[int, dict[str, Any]]] = {
    "codrna": (12_000, {}),
    "ijcnn1": (12_000, {}),
    "a9a": (8_000, {}),
    "letter": (8_000, {"memory_budget": "48MB"}),
    "mnist": (3_000, {"memory_budget": "64MB"}),
}
_CONSTANTS: list[tuple[str, str, tuple[Any, Any]]] = [
    ("solvers.dual.solver", "_TOL_MARGIN", (2.0, 8.0)),
    ("solvers.dual.stopping", "_CERTAIN", (10.0, 40.0)),
    ("solvers.dual.solver", "_NEW_SHARE", (0.25, 1.0)),
    ("solvers.dual.solver", "_NEW_VIOLATORS_FROM_ZERO", (1024, 4096)),
    ("solvers.dual.solver", "_FIRST_ROUND_SHARE", (0.125, 0.5)),
    ("solvers.dual.solver", "_LEAST_VIOLATION", (0.015, 0.06)),
    ("solvers.dual.solver", "_NEAR_MARGIN", ((256, 1024), (1024, 4096))),
    ("solvers.dual.solver", "_CHANGE_QUANTILE", (0.9, 0.975)),
    ("solvers.dual.solver", "_NEAR_SHARE", (0.25, 0.7)),
    ("solvers.dual.solver", "_ROUND_TOL", (0.05, 0.2)),
    ("kernels.active_matrix", "_MAX_UNUSED", (0.15, 0.6)),
    ("algorithms.dc_svm", "START_TOL", (0.05, 0.2)),
    ("algorithms.dc_svm", "_CLUSTER_ROWS", (1000, 4000)),
]
_COLUMNS = ["constant", "value", "set", "entries", "working sets", "change"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    names = [name for _, name, _ in _CONSTANTS]
    parser.add_argument("--only", nargs="+", default=names, choices=names, metavar="CONSTANT")
    options = parser.parse_args(arguments)
    rows = []
    for name in _SETS:
        problem = load_problem(name, n_rows=_SETS[name][0])
        usual = measure(name, problem)
        for module, constant, values in _CONSTANTS:
            for value in values if constant in options.only else ():
                with mock.patch.object(import_module(f"widemargin.{module}"), constant, value):
                    counts = measure(name, problem)
                change = max((counts[key] / usual[key] - 1 for key in usual), key=abs)
                rows.append({"constant": constant, "value": str(value), "set": name, **counts, "change": change})
        print(_report.format_table([row for row in rows if row["set"] == name], _COLUMNS), flush=True)
        _report.write_csv(_report.RESULTS / "constants.csv", rows, _report.run_card())


def measure(name: str, problem: Any) -> dict[str, int]:
    """The counts of one fit."""
    with counted() as counts:
        model = DCSVMClassifier(C=problem.C, gamma=problem.gamma, **_SETS[name][1]).fit(problem.X, problem.y)
    return {"entries": counts["rows"] + counts["active"], "working sets": model.n_iter_}


if __name__ == "__main__":
    main()
