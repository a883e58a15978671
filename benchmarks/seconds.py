"""Seconds of exact fits by kind of work, with the kernel entries computed and the memory pages touched first.

`--label before`, with PYTHONPATH of an earlier version, measures that beside. Each set is fitted three times in one
process: "first" touches memory that the process has not had yet; of the other two the faster counts. Calls made by one
of several threads count as their share of the seconds.

    clustering    the division of the rows
    kernel rows   products with kernel rows, for the decision values of rows outside an active set
    matrices      kernel matrices of clusters and active sets
    copies        of these matrices' rows, when the active set changes
    working sets  steps of dual variables, and the updates of decision values in memory
    choices       certificates, and the choice of active sets and near rows
    other         the rest: validation, sorting, copies of rows and vectors
"""

from __future__ import annotations

import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from benchmarks.shrinking import counted
from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import DCSVMClassifier
from widemargin._native import dual
from widemargin._threads import effective_n_jobs
from widemargin.algorithms import dc_svm_levels as dc_svm
from widemargin.kernels import active_matrix, boxed_rows
from widemargin.kernels.active_matrix import ActiveMatrix
from widemargin.solvers.dual import solver
from widemargin.solvers.dual.solver import DualSolver

_CALLS: list[tuple[str, Any, str]] = [
    ("clustering", dc_svm, "divide_rows"),
    ("cluster", dc_svm.DCSVMTraining, "_solve_cluster"),
    ("kernel rows", boxed_rows, "add_kernel_product"),
    ("matrices", active_matrix, "fill_gram"),
    ("matrices", active_matrix, "fill_with_transpose"),
    ("matrices", dc_svm, "fill_gram"),
    ("copies", ActiveMatrix, "_compact"),
    ("copies", ActiveMatrix, "_widen"),
    ("working sets", dual, "solve_working_sets"),
    ("working sets", dual, "solve_from_rows"),
    ("choices", solver, "certify"),
    ("choices", DualSolver, "choose_active"),
    ("choices", DualSolver, "_rows_left_by_shrinking"),
]
_KINDS = ["clustering", "kernel rows", "matrices", "copies", "working sets", "choices", "other"]


def measure(base: str, n_rows: int, levels: str, run: Run) -> list[Row]:
    """One set's row of the table."""
    if not run.wants(set=base, rows=n_rows, levels=levels, label=run.label):
        return []
    problem = load_problem(base, n_rows=n_rows)
    model = DCSVMClassifier(C=problem.C, gamma=problem.gamma, n_levels="auto" if levels == "auto" else 0)
    measured = []
    for _ in range(3):
        faults, begin = _touched_pages(), time.perf_counter()
        with timed() as seconds:
            model.fit(problem.X, problem.y)
        total = time.perf_counter() - begin
        named = {kind: seconds[kind] for kind in _KINDS[:-1]}
        measured.append((total, named | {"other": total - sum(named.values())}, _touched_pages() - faults))
    total, seconds_of, _ = min(measured[1:])
    with counted() as counts:
        model.fit(problem.X, problem.y)
    row = {
        "label": run.label,
        "set": base,
        "rows": len(problem.y),
        "n_features": problem.X.shape[1],
        "levels": levels,
        "support_vectors": len(model.support_),
        "first": measured[0][0],
        "seconds": total,
        **seconds_of,
        "entries": sum(counts.values()) / (len(model.support_) * len(problem.y)),
        "touched_mb": measured[0][2] * resource.getpagesize() / 1e6,
    }
    return [row]


def _touched_pages() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@contextmanager
def timed() -> Iterator[Counter[str]]:
    """Seconds of each kind of work meanwhile, without those of the kinds that it calls.

    Clusters are solved by all threads at once: of a second of one of them counts its share.
    """
    seconds: Counter[str] = Counter()
    lock, local, in_level = threading.Lock(), threading.local(), threading.Event()

    def watch(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            state = local.__dict__
            inner, share = state.get("inner", 0.0), state.get("share", 1.0)
            state["inner"], begin = 0.0, time.perf_counter()
            if kind == "cluster" and in_level.is_set():
                state["share"] = 1.0 / effective_n_jobs(None)
            try:
                return original(*arguments, **options)
            finally:
                total = time.perf_counter() - begin
                with lock:
                    seconds[kind] += (total - state["inner"]) * state.get("share", 1.0)
                state["inner"], state["share"] = inner + total, share

        return watched

    def watch_level(fit: Any, *arguments: Any) -> Any:
        in_level.set()
        try:
            return solve_level(fit, *arguments)
        finally:
            in_level.clear()

    solve_level = dc_svm.DCSVMTraining.solve_level
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(dc_svm.DCSVMTraining, "solve_level", watch_level))
        for kind, place, function in _CALLS:
            stack.enter_context(mock.patch.object(place, function, watch(kind, getattr(place, function))))
        yield seconds


SECONDS = Experiment(
    "seconds",
    [
        ("a9a", 32_561, "auto"),
        ("codrna", 47_628, "auto"),
        ("covtype_20k", 16_000, "auto"),
        ("ijcnn1", 39_992, "auto"),
        ("letter", 15_000, "auto"),
        ("one_hot", 9_000, "auto"),
        ("patches", 50_000, "auto"),
        ("usps", 7_291, "auto"),
    ],
    ("set", "rows", "levels", "label"),
    measure,
    seconds=30.0,
    settings={"label": "now"},
    parts=True,
    quick={"cells": [("patches", 3000, "auto")]},
)
