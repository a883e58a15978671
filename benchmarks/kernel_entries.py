"""Nanoseconds of a kernel entry on one thread: in a kernel matrix, one with its transpose, and a weighted sum of rows.

::

    python benchmarks/kernel_entries.py --sets a9a codrna letter patches:20000
    PYTHONPATH=EARLIER/src python benchmarks/kernel_entries.py --sets a9a codrna letter patches:20000 --label before
    python benchmarks/kernel_entries.py --laplacian --sets codrna letter covtype_20k a9a

Rows with another label, or of other sets, stay in the file: the second command measures an earlier version. The third
one alternates between the Laplacian kernel and RBF, on dense rows and on CSR rows, and has a file of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import report
from measuring.problems import load_problem
from widemargin._threads import ThreadTeam
from widemargin.data.samples import Samples, make_samples
from widemargin.kernels.functions import RBF, Kernel, Laplacian
from widemargin.kernels.tiles import add_kernel_product, fill_gram, fill_with_transpose

_OLD_ROWS, _NEW_ROWS, _MOST = 4000, 3000, 20_000
_REPEATS = 9
_COLUMNS = ["label", "set", "n_features", "rows", "kernel", "matrix", "with transpose", "sum"]
_KEYS = ("label", "set", "rows", "kernel")

Case = tuple[dict[str, Any], Kernel, Samples]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["patches:20000"], metavar="SET[:ROWS]")
    parser.add_argument("--label", default="now")
    parser.add_argument("--laplacian", action="store_true", help="the Laplacian kernel beside RBF, by kinds of rows")
    options = parser.parse_args(arguments)
    path = report.RESULTS / ("laplacian_entries.csv" if options.laplacian else "kernel_entries.csv")
    for name in options.sets:
        rows = [{"label": options.label, **row} for row in measure(cases(name, has_laplacian=options.laplacian))]
        print(report.format_table(rows, _COLUMNS), flush=True)
        mine = {tuple(row.get(key) for key in _KEYS) for row in rows}
        others = [row for row in report.read_csv(path) if tuple(row.get(key) for key in _KEYS) not in mine]
        report.write_csv(path, [*others, *rows])


def cases(name: str, *, has_laplacian: bool) -> list[Case]:
    """RBF on the rows as it holds them, or both kernels on dense rows and on CSR rows; with columns of the table."""
    base, _, n_rows = name.partition(":")
    problem = load_problem(base, n_rows=int(n_rows) if n_rows else None)
    X, known = problem.X[:_MOST], {"set": base, "n_features": problem.X.shape[1]}
    rbf = RBF(problem.gamma)
    if not has_laplacian:
        return [(known, rbf, make_samples(X, "distances"))]
    return [
        ({**known, "rows": form, "kernel": type(kernel).__name__.lower()}, kernel, make_samples(rows))
        for form, rows in (("dense", X), ("CSR", sp.csr_array(X)))
        for kernel in (rbf, Laplacian(problem.gamma))
    ]


def measure(compared: list[Case]) -> list[dict[str, Any]]:
    """A row of the table for each case: the least of nine runs of each kind, in turns."""
    best: list[dict[str, float]] = [{} for _ in compared]
    K = np.empty((_OLD_ROWS + _NEW_ROWS, _OLD_ROWS + _NEW_ROWS + 500), np.float32)
    with threadpool_limits(1):
        for _ in range(_REPEATS):
            for (_, kernel, samples), least in zip(compared, best, strict=True):
                for kind, nanoseconds in _run(kernel, samples, K).items():
                    least[kind] = min(nanoseconds, least.get(kind, np.inf))
    return [{**known, **least} for (known, _, _), least in zip(compared, best, strict=True)]


def _run(kernel: Kernel, samples: Samples, K: NDArray[np.float32]) -> dict[str, float]:
    """Nanoseconds of an entry, by kind; matrices are parts of K."""
    old, new = samples.take(slice(0, _OLD_ROWS)), samples.take(slice(_OLD_ROWS, _OLD_ROWS + _NEW_ROWS))
    left, below, above = K[:_OLD_ROWS, :_OLD_ROWS], K[_OLD_ROWS:, :_OLD_ROWS], K[:_OLD_ROWS, _OLD_ROWS:][:, : len(new)]
    below, coef, sums, team = below[: len(new)], np.ones((1, len(old))), np.zeros((1, len(samples))), ThreadTeam(1)
    return {
        "matrix": _nanoseconds(lambda: fill_gram(kernel, old, left, team), left.size),
        "with transpose": _nanoseconds(
            lambda: fill_with_transpose(kernel, new, old, below, above, team), below.size + above.size
        ),
        "sum": _nanoseconds(
            lambda: add_kernel_product(kernel, old, coef, samples, sums, team), len(old) * len(samples)
        ),
    }


def _nanoseconds(call: Callable[[], None], n_entries: int) -> float:
    begin = time.process_time()  # not that of other processes
    call()
    return 1e9 * (time.process_time() - begin) / n_entries


if __name__ == "__main__":
    main()
