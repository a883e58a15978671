"""Kernel entries and rounds of exact fits, with and without rounds on the near rows alone.

Entries are divided by (support vectors) x rows, the least that an exact solution needs. The counts do not depend on the
machine or its load. "rows of n": entries of kernel rows that update decision values; "active": entries of the active
sets' matrices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from measuring.experiment import Experiment, Row
from measuring.problems import load_problem
from widemargin import DCSVMClassifier
from widemargin.kernels import active_matrix, boxed_rows
from widemargin.solvers.dual import solver


def measure(base: str, n_rows: int, levels: int | str, shrinking: bool, run: Any = None) -> Row:
    """The counts of one fit."""
    problem = load_problem(base, n_rows=n_rows)
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
        watch(solver.DualSolver, "choose_active", "rounds", lambda *arguments: 1),
    ):
        yield counts


SHRINKING = Experiment(
    "shrinking",
    [
        (*which, levels, shrinking)
        for which in (
            ("a9a", 32_561),
            ("codrna", 47_628),
            ("ijcnn1", 39_992),
            ("letter", 15_000),
            ("kddcup99_10", 395_217),
            ("patches", 50_000),
            ("patches", 200_000),
        )
        for levels in ("auto", 0)
        for shrinking in (True, False)
    ],
    ("set", "rows", "levels", "shrinking"),
    measure,
    seconds=30.0,
    quick={"cells": [("patches", 5000, 0, True)]},
)
