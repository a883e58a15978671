"""Tables of the campaigns of reliability: how often each situation ended how."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from measuring.tables import Rows, markdown


def _offsets(rows: Rows) -> str:
    """A line for each estimator: how many of its fits came out right, warned, were refused, or were silently wrong."""
    ends = "ok", "warned", "refused", "wrong"
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["estimator"]][str(row["outcome"]).partition(":")[0]] += 1
    lines = [[name, ends_of.total(), *(ends_of[end] for end in ends)] for name, ends_of in counts.items()]
    return markdown(["fit", "fits", *ends], lines)


def _shares(rows: Rows) -> str:
    """A line for each case: its seconds and score without a limit, the scores with each, the most seconds over one."""
    factors = list(dict.fromkeys(row["factor"] for row in rows if row["factor"] != "none"))
    lines = []
    for case, cells in _by(rows, "case", "factor").items():
        whole, limited = cells["none"], [cells[k] for k in factors]
        scores = [f"{row['score']:.3f}" + ("" if row["cut"] else " (whole)") for row in limited]
        late = max(row["over"] for row in limited)
        head = [case, whole["parts"], f"{whole['seconds']:.1f}", f"{whole['score']:.3f}"]
        lines.append([*head, *scores, f"{late:.2f}"])
    header = [
        "fit",
        "parts",
        "seconds",
        "score",
        *(f"of {k:g} × the seconds" for k in factors),
        "most seconds late",
    ]
    return markdown(header, lines)


def _processes(rows: Rows) -> str:
    """A line for each situation: how its processes ended."""
    ends = "equal", "different", "crashed", "hung"
    lines = [[row["case"], row["repeats"], *(row[end] for end in ends)] for row in rows]
    return markdown(["situation", "processes", *ends], lines)


def _wide_rows(rows: Rows) -> str:
    """A line for each estimator: the outcome and the peak for each number of columns."""
    widths = list(dict.fromkeys(row["columns"] for row in rows if "columns" in row))
    lines = []
    for case, cells in _by(rows, "case", "columns").items():
        only = cells.get(None)  # of a process that crashed or hung
        shown = [f"{row['outcome']}, {row['peak']:.0f} MB" for row in cells.values() if row is not only]
        lines.append([case, *shown] if only is None else [case, only["outcome"], *[""] * (len(widths) - 1)])
    return markdown(["fit and predict", *(f"{width:,} columns" for width in widths)], lines)


def _tiny_classes(rows: Rows) -> str:
    """A line for each estimator: seconds and accuracy for each number of classes."""
    split = [(*str(row["case"]).rpartition(": ")[::2], row) for row in rows]
    counts = list(dict.fromkeys(count for _, count, _ in split))
    cells = {(name, count): row for name, count, row in split}
    lines = [
        [name, *(_seconds_and_accuracy(cells[name, count]) for count in counts)]
        for name in dict.fromkeys(name for name, _, _ in split)
    ]
    return markdown(["fit", *(f"{count} classes" for count in counts)], lines)


def _seconds_and_accuracy(row: dict[str, Any]) -> str:
    return f"{row['seconds']:.1f} s, {row['accuracy']:.3f}" if row["outcome"] == "ok" else str(row["outcome"])


def _foreign_files(rows: Rows) -> str:
    """A line for each library: how many files had each outcome."""
    libraries = list(dict.fromkeys(row["library"] for row in rows))
    counts = {name: Counter(row["outcome"] for row in rows if row["library"] == name) for name in libraries}
    lines = [[name, *(str(counts[name][letter]) for letter in "RTSLE")] for name in libraries]
    return markdown([f"{len({row['case'] for row in rows})} files", *"RTSLE"], lines)


def _by(rows: Rows, outer: str, inner: str) -> dict[Any, dict[Any, dict[str, Any]]]:
    """The rows by two of their columns, in order."""
    groups: dict[Any, dict[Any, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        groups[row[outer]][row.get(inner)] = row
    return groups


TABLES: dict[str, Callable[[Rows], str]] = {
    "offsets": _offsets,
    "shares": _shares,
    "processes": _processes,
    "wide_rows": _wide_rows,
    "tiny_classes": _tiny_classes,
    "foreign_files": _foreign_files,
}
