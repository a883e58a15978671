"""Rows that a results file has not got itself, for figures in sentences: quotients as a table shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks._pages.peers import kernel_svm_quotients, tuning_quotients

Rows = list[dict[str, Any]]


def _times_sklearn(rows: Rows) -> Rows:
    """A row for each set: the time of scikit-learn's `SVC` divided by that of our machine of that file."""
    seconds = {(row["set"], row["competitor"]): row["seconds"] for row in rows if "seconds" in row}
    names = dict.fromkeys(name for name, _ in seconds)
    return [{"set": name, "fit": seconds[name, "sklearn"] / seconds[name, "widemargin"]} for name in names]


def _times_libsvm(rows: Rows) -> Rows:
    """Timed machines, with LIBSVM's time at 1e-3 on their set divided by theirs; its limit where it was ended."""
    libsvm = {
        row["set"]: row.get("seconds", row.get("over_limit"))
        for row in rows
        if row["machine"] == "LIBSVM" and row["tol"] == 1e-3
    }
    return [row | {"times_libsvm": libsvm[row["set"]] / row["seconds"]} for row in rows if "seconds" in row]


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
    "papers_dc_svm/table2/times": ("papers_dc_svm/table2", _times_libsvm),
    "papers_dc_svm/figure4/times": ("papers_dc_svm/figure4", _times_libsvm),
    "tuning/quotients": ("tuning", tuning_quotients),
    "memory/above": ("memory", _above_budget),
}
