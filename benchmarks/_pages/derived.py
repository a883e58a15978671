"""Figures in sentences: of results files, and of rows computed from them, such as quotients as a table shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import _report
from benchmarks._pages.figures import figure
from benchmarks._pages.peers import kernel_svm_quotients, tuning_quotients
from evidence._derived import OF_PAPERS

Rows = list[dict[str, Any]]


def look_up(name: str, asked: str) -> str:
    """Return the figure `asked` for (as `figure` takes it) of a results file, or of rows derived from one."""
    return figure(rows_of(name), asked)


def rows_of(name: str) -> Rows:
    """Return the rows of a results file, or those derived from one under this name."""
    file, derived = DERIVED.get(name, (name, None))
    rows = _report.results(file)
    return derived(rows) if derived else rows


def _times_sklearn(rows: Rows) -> Rows:
    """A row for each set: the time of scikit-learn's `SVC` divided by that of our machine of that file."""
    seconds = {(row["set"], row["competitor"]): row["seconds"] for row in rows if "seconds" in row}
    names = dict.fromkeys(name for name, _ in seconds)
    return [{"set": name, "fit": seconds[name, "sklearn"] / seconds[name, "widemargin"]} for name in names]


def _above_budget(rows: Rows) -> Rows:
    """One row: in words, what has taken more memory than it may."""
    cells = (
        f"{max(row['fit'], row['predict']):.0f} MB (`{row['case']}`, {row['layout']}, {int(row['classes'])} classes)"
        for row in rows
        if "fit" in row and str(row["kept"]) != "True"
    )
    return [{"cells": " and ".join(cells) or "none"}]


DERIVED: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "kernel_svm/quotients": ("kernel_svm", kernel_svm_quotients),
    "kernel_svm_sklearn/quotients": ("kernel_svm_sklearn", _times_sklearn),
    "tuning/quotients": ("tuning", tuning_quotients),
    "memory/above": ("memory", _above_budget),
    **OF_PAPERS,
}
