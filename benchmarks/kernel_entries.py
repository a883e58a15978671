"""Nanoseconds of a kernel entry on one thread: in a kernel matrix, one with its transpose, and a weighted sum of rows.

::

    python benchmarks/kernel_entries.py --sets a9a codrna letter patches:20000
    PYTHONPATH=EARLIER/src python benchmarks/kernel_entries.py --sets a9a codrna letter patches:20000 --label before

Rows with another label, or of other sets, stay in the file: the second command measures an earlier version.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import _report
from benchmarks._problems import load_problem
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF
from widemargin.kernels.tiles import add_kernel_product, fill_gram, fill_with_transpose

_OLD_ROWS, _NEW_ROWS, _MOST = 4000, 3000, 20_000
_REPEATS = 5
_COLUMNS = ["label", "set", "n_features", "matrix", "with transpose", "sum"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["patches:20000"], metavar="SET[:ROWS]")
    parser.add_argument("--label", default="now")
    options = parser.parse_args(arguments)
    path = _report.RESULTS / "kernel_entries.csv"
    for name in options.sets:
        row = {"label": options.label, **measure(name)}
        print(_report.format_table([row], _COLUMNS), flush=True)
        others = [other for other in _report.read_csv(path) if any(other[key] != row[key] for key in ("label", "set"))]
        _report.write_csv(path, [*others, row], _report.run_card())


def measure(name: str) -> dict[str, Any]:
    """One set's row of the table: the least of five runs of each kind."""
    base, _, n_rows = name.partition(":")
    problem = load_problem(base, n_rows=int(n_rows) if n_rows else None)
    kernel, samples = RBF(problem.gamma), make_samples(problem.X[:_MOST], "distances")
    old, new = samples.take(slice(0, _OLD_ROWS)), samples.take(slice(_OLD_ROWS, _OLD_ROWS + _NEW_ROWS))
    K = np.empty((_OLD_ROWS + _NEW_ROWS, _OLD_ROWS + _NEW_ROWS + 500), np.float32)
    left, below, above = K[:_OLD_ROWS, :_OLD_ROWS], K[_OLD_ROWS:, :_OLD_ROWS], K[:_OLD_ROWS, _OLD_ROWS:][:, : len(new)]
    below, coef, sums, team = below[: len(new)], np.ones((1, len(old))), np.zeros((1, len(samples))), ThreadTeam(1)
    with threadpool_limits(1):
        return {
            "set": base,
            "n_features": problem.X.shape[1],
            "matrix": _nanoseconds(lambda: fill_gram(kernel, old, left, team), left.size),
            "with transpose": _nanoseconds(
                lambda: fill_with_transpose(kernel, new, old, below, above, team), below.size + above.size
            ),
            "sum": _nanoseconds(
                lambda: add_kernel_product(kernel, old, coef, samples, sums, team), len(old) * len(samples)
            ),
        }


def _nanoseconds(call: Callable[[], None], n_entries: int) -> float:
    times = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e9 * min(times) / n_entries


if __name__ == "__main__":
    main()
