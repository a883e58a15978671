"""Kernel entries and rounds of exact fits, with and without rounds on the near rows alone.

::

    python benchmarks/shrinking.py --sets codrna ijcnn1 letter kddcup99_10 patches:50000 patches:200000

Entries are divided by (support vectors) x rows, the least that an exact solution needs. The counts do not depend on the
machine or its load. "rows of n": entries of kernel rows that update decision values; "active": entries of the active
sets' matrices.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import report
from measuring.problems import load_problem
from widemargin import DCSVMClassifier
from widemargin.kernels import active_matrix, boxed_rows
from widemargin.solvers.dual import solver

_COLUMNS = ["set", "rows", "levels", "shrinking", "support_vectors", "rows of n", "active", "rounds", "working sets"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["patches:20000"], metavar="SET[:ROWS]")
    options = parser.parse_args(arguments)
    rows = []
    for name in options.sets:
        for levels in ("auto", 0):
            for shrinking in (True, False):
                rows.append(measure(name, levels, shrinking))
                print(report.format_table(rows[-1:], _COLUMNS))
                report.write_csv(report.RESULTS / "shrinking.csv", rows)


def measure(name: str, levels: int | str, shrinking: bool) -> dict[str, Any]:
    """The counts of one fit."""
    base, _, n_rows = name.partition(":")
    problem = load_problem(base, n_rows=int(n_rows) if n_rows else None)
    share = solver._UNSHRUNK_SHARE if shrinking else 0.0
    with counted() as counts, mock.patch.object(solver, "_UNSHRUNK_SHARE", share):
        model = DCSVMClassifier(C=problem.C, gamma=problem.gamma, n_levels=levels).fit(problem.X, problem.y)
    least = len(model.support_) * len(problem.X)
    return {
        "set": base,
        "rows": len(problem.X),
        "levels": levels,
        "shrinking": shrinking,
        "support_vectors": len(model.support_),
        "rows of n": counts["rows"] / least,
        "active": counts["active"] / least,
        "rounds": counts["rounds"],
        "working sets": model.n_iter_,
    }


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count kernel entries and rounds meanwhile."""
    counts: Counter[str] = Counter()

    def watch(place: Any, function: str, key: str, size: Callable[..., int]) -> Any:
        original = getattr(place, function)

        def watched(*arguments: Any, **options: Any) -> Any:
            counts[key] += size(*arguments)
            return original(*arguments, **options)

        return mock.patch.object(place, function, watched)

    with (
        watch(boxed_rows, "add_kernel_product", "rows", lambda kernel, A, coef, B, *rest: len(A) * len(B)),
        watch(active_matrix, "fill_gram", "active", lambda kernel, A, *rest: len(A) ** 2),
        watch(active_matrix, "fill_with_transpose", "active", lambda kernel, A, B, *rest: 2 * len(A) * len(B)),
        watch(solver.DualSolver, "_choose_active", "rounds", lambda *arguments: 1),
    ):
        yield counts


if __name__ == "__main__":
    main()
