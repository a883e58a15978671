"""Rows computed from the results of the papers' experiments, for figures in sentences and for claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rows = list[dict[str, Any]]


def _times_libsvm(rows: Rows) -> Rows:
    """Timed machines, with LIBSVM's time at 1e-3 on their set divided by theirs; its limit where it was ended."""
    libsvm = {
        row["set"]: row.get("seconds", row.get("over_limit"))
        for row in rows
        if row["machine"] == "LIBSVM" and row["tol"] == 1e-3
    }
    timed = [row for row in rows if "seconds" in row and row["set"] in libsvm]
    return [row | {"times_libsvm": libsvm[row["set"]] / row["seconds"]} for row in timed]


def _lead(rows: Rows, keys: tuple[str, ...], ours: str, rivals: tuple[str, ...]) -> Rows:
    """A row for each cell of `keys`: how far the best accuracy of ours is above the rivals' best one."""
    cells: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        cells.setdefault(tuple(row[key] for key in keys), []).append(row)
    found = []
    for cell, mine in cells.items():
        best, rival = ([row["accuracy"] for row in mine if row["machine"] in who] for who in ((ours,), rivals))
        if best and rival:
            commits = {str(row["commit"]) for row in mine if "commit" in row}
            lead = {"lead": max(best) - max(rival), "commit": ", ".join(sorted(commits))}
            found.append(dict(zip(keys, cell, strict=True)) | lead)
    return found


def _early_lead(rows: Rows) -> Rows:
    """Early prediction's accuracy less that of the better of naive and committee prediction; its speed over naive's."""
    keys = ("set", "partition", "clusters")
    us = {(*(row[key] for key in keys), row["machine"]): row["predict_us"] for row in rows}
    leads = _lead(rows, keys, "early", ("naive", "bcm"))
    cells = [tuple(row[key] for key in keys) for row in leads]
    return [row | {"faster": us[*cell, "naive"] / us[*cell, "early"]} for row, cell in zip(leads, cells, strict=True)]


def _ldkl_lead(rows: Rows) -> Rows:
    """For each set, ours less LDKL in accuracy, of all machines of at most 20 inner products, LDKL's most."""
    few = [row for row in rows if row["operations"] <= 20]
    return _lead(few, ("set",), "DC-Pred++", ("LDKL",))


def _random_parts(rows: Rows) -> Rows:
    """Differences in the dual of random parts divided by those of kernel k-means."""
    keys = ("set", "C", "clusters")
    random = {tuple(row[k] for k in keys): row["difference"] for row in rows if row["partition"] == "random"}
    return [
        row | {"times_random": random[tuple(row[k] for k in keys)] / row["difference"]}
        for row in rows
        if row["partition"] == "kernel k-means" and tuple(row[k] for k in keys) in random
    ]


def _times_rule(rows: Rows) -> Rows:
    """Of look-ups, what they save of `gss-paper`'s merger in percent, and what they lose in accuracy as published."""
    known = {(row["set"], row["budget"], row["rule"]): row for row in rows}
    found = []
    for (name, budget, rule), row in known.items():
        paper = known.get((name, budget, rule.replace("lookup-wd", "gss-paper")))
        if rule == "lookup-wd" and paper:
            found.append(row | {"merger saved %": 100 * (1 - row["merger ns"] / paper["merger ns"])})
        elif rule == "lookup-wd, last step" and paper:
            found.append(row | {"accuracy lost %": paper["accuracy %"] - row["accuracy %"]})
    return found


OF_PAPERS: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "dc_svm/table2/times": ("dc_svm/table2", _times_libsvm),
    "dc_svm/figure4/times": ("dc_svm/figure4", _times_libsvm),
    "dc_svm/table1/lead": ("dc_svm/table1", _early_lead),
    "dc_svm/figure1/random": ("dc_svm/figure1", _random_parts),
    "dc_pred/figure2/lead": ("dc_pred/figure2", _ldkl_lead),
    "bsgd/tables/saved": ("bsgd/tables", _times_rule),
}
