"""Tables of the default searches beside gradient-boosted trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from measuring.tables import markdown

Rows = list[dict[str, Any]]

_MEAN = "geometric mean"


def _boosting(rows: Rows) -> str:
    """A line for each set: error and seconds of each machine; below, means of the ratios and how many sets were won."""
    sets = _by_set(rows)
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    means = {row["machine"]: row for row in sets.pop(_MEAN, {}).values()}
    header = ["set", "rows × features"]
    for machine in machines:
        header += [f"{machine}: error", "seconds"]
    lines = [[name, _shape(found), *_cells(found, machines)] for name, found in sets.items()]
    if means:
        lines.append(["its error ÷ ours, our seconds ÷ its", "", *_mean_cells(means, machines)])
        lines.append(["sets with more, fewer errors than ours", "", *_won_cells(means, machines)])
    return markdown(header, lines)


def _by_set(rows: Rows) -> dict[str, dict[str, dict[str, Any]]]:
    sets: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        sets[row["set"]][row["machine"]] = row
    return sets


def _shape(found: dict[str, dict[str, Any]]) -> str:
    row = next(iter(found.values()))
    return f"{row['n']:,} × {row['n_features']:,}"


def _cells(found: dict[str, dict[str, Any]], machines: list[str]) -> list[str]:
    rows = [found.get(machine) for machine in machines]
    return [cell for row in rows for cell in ((f"{_error(row):.4f}", f"{row['seconds']:.2g}") if row else ("-", "-"))]


def _error(row: dict[str, Any]) -> float:
    return float(row["error"] if "error" in row else 1.0 - row["score"])


def _mean_cells(means: dict[str, dict[str, Any]], machines: list[str]) -> list[str]:
    rows = [means.get(machine) for machine in machines]
    pairs = (
        (f"**{row['error_ratio']:.2f}**", f"**{row['seconds_ratio']:.2g}**") if row else ("**1**", "**1**")
        for row in rows
    )
    return [cell for pair in pairs for cell in pair]


def _won_cells(means: dict[str, dict[str, Any]], machines: list[str]) -> list[str]:
    rows = [means.get(machine) for machine in machines]
    return [cell for row in rows for cell in (f"{row['wins']}, {row['losses']}" if row else "", "")]


def _ablation(rows: Rows) -> str:
    """A line for each set: the error of the whole search, and how many times that it is without a part."""
    machines = [machine for machine in dict.fromkeys(row["machine"] for row in rows) if machine != "search"]
    lines = []
    for name, found in _by_set(rows).items():
        error = f"{found['search']['error']:.4f}" if "search" in found else ""
        ratios = [f"{found[machine]['error_ratio']:.2f}" if machine in found else "-" for machine in machines]
        lines.append([name, error, *ratios])
    return markdown(["set", "error of the search", *machines], lines)


def _covtype(rows: Rows) -> str:
    """A line for each machine."""
    lines = [[row["machine"], f"{row['seconds']:.0f}", f"{1 - row['error']:.2%}"] for row in rows]
    return markdown(["model", "seconds", "accuracy"], lines)


TABLES: dict[str, Callable[[Rows], str]] = {
    "boosting": _boosting,
    "boosting_ablation": _ablation,
    "boosting_covtype": _covtype,
}
