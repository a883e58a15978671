"""DCSVMClassifier beside scikit-learn-intelex's SVC on many classes: a machine for each pair of them.

::

    python benchmarks/peers/many_classes.py
    python benchmarks/peers/many_classes.py --problems 100x100000 --repeats 1

Classes are normal distributions of 20 columns around normal centres, float32; C = 10, gamma = 0.05, tol = 1e-3.
Machines alternate; times are medians. `ratio` is the rival's time divided by ours: above 1, ours is faster.
`equal_labels` is the share of 2,000 other rows to which both give the same label.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from measuring import process, report
from widemargin import DCSVMClassifier

_PROBLEMS = ["10x100000", "100x20000"]
_COLUMNS = ["classes", "n", "machine", "seconds", "ratio", "repeats", "n_support", "accuracy", "equal_labels"]
_N_FEATURES = 20
_TEST_ROWS = 2000
_SPREAD = 0.7  # of a class / distance of the centres


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table; rows of other problems stay in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=_PROBLEMS, metavar="CLASSESxROWS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=report.RESULTS / "many_classes.csv")
    options = parser.parse_args(arguments)
    for name in options.problems:
        n_classes, n = map(int, name.split("x"))
        rows = measure(n_classes, n, options.repeats)
        print(report.format_table(rows, _COLUMNS), flush=True)
        others = [row for row in report.read_csv(options.output) if (row["classes"], row["n"]) != (n_classes, n)]
        report.write_csv(options.output, [*others, *rows])


def measure(n_classes: int, n: int, repeats: int) -> list[dict[str, Any]]:
    """A row for each machine."""
    from sklearnex.svm import SVC

    X, y = generate(n_classes, n + _TEST_ROWS)
    common = {"C": 10.0, "gamma": 0.05}
    machines: dict[str, Any] = {"widemargin": DCSVMClassifier(**common), "scikit-learn-intelex": SVC(**common)}
    seconds: dict[str, list[float]] = {name: [] for name in machines}
    for repeat in range(repeats):
        for name in list(machines)[:: -1 if repeat % 2 else 1]:
            process.touch_memory(n)
            begin = time.perf_counter()
            machines[name].fit(X[:n], y[:n])
            seconds[name].append(time.perf_counter() - begin)
            print(f"{n_classes} classes, {n} rows, {name}: {seconds[name][-1]:.2f} s", flush=True)
    labels = {name: machine.predict(X[n:]) for name, machine in machines.items()}
    ours = statistics.median(seconds["widemargin"])
    return [
        {
            "classes": n_classes,
            "n": n,
            "machine": name,
            "seconds": statistics.median(seconds[name]),
            "ratio": statistics.median(seconds[name]) / ours,
            "repeats": repeats,
            "n_support": len(machine.support_),
            "accuracy": float(np.mean(labels[name] == y[n:])),
            "equal_labels": float(np.mean(labels[name] == labels["widemargin"])),
        }
        for name, machine in machines.items()
    ]


def generate(n_classes: int, n: int) -> tuple[Any, Any]:
    """Rows (n, 20), float32, and their classes (n,)."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, _N_FEATURES))
    y = rng.integers(0, n_classes, n)
    return (centres[y] + _SPREAD * rng.standard_normal((n, _N_FEATURES))).astype(np.float32), y


if __name__ == "__main__":
    main()
