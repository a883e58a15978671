"""Tables of seconds by the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks._pages.peers import markdown

Rows = list[dict[str, Any]]


def _scale(rows: Rows) -> str:
    """A line for each number of rows: the exact machine, the early one, and scikit-learn-intelex's."""
    header = ["training rows", "exact", "support vectors", "relative gap", "decision values of all rows", "accuracy"]
    header += ["early", "accuracy", "scikit-learn-intelex", "its fit ÷ exact"]
    lines = []
    for n, found in _by_rows(rows).items():
        exact, early, rival = (found.get(name) for name in ("exact", "early", "intelex"))
        cells = [f"{n:,}"]
        cells += (
            [
                f"{exact['seconds']:.2g} s",
                f"{exact['support_vectors']:,}",
                f"{exact['relative_gap']:.1e}",
                f"{exact['decision_seconds']:.2g} s",
                f"{exact['accuracy']:.2f} %",
            ]
            if exact
            else ["-"] * 5
        )
        cells += [f"{early['seconds']:.2g} s", f"{early['accuracy']:.2f} %"] if early else ["-"] * 2
        ratio = f"{rival['seconds'] / exact['seconds']:.1f}" if rival and exact else "-"
        lines.append([*cells, f"{rival['seconds']:.3g} s" if rival else "-", ratio])
    return markdown(header, lines)


def _how_long(rows: Rows) -> str:
    """A line for each number of rows: seconds and accuracy of the early and the exact machine, seconds of the rival."""
    lines = []
    for n, found in _by_rows(rows).items():
        cells = [cell for name in ("early", "exact") for cell in _fit(found[name])]
        rival = f"{found['intelex']['seconds']:.3g} s" if "intelex" in found else "-"
        lines.append([f"{n:,}", *cells, rival])
    return markdown(["training rows", "early machine", "accuracy", "exact", "accuracy", "scikit-learn-intelex"], lines)


def _fit(row: dict[str, Any]) -> tuple[str, str]:
    return f"{row['seconds']:.2g} s", f"{row['accuracy']:.1f} %"


def _by_rows(rows: Rows) -> dict[int, dict[str, dict[str, Any]]]:
    found: dict[int, dict[str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["rows"], {})[row["machine"]] = row
    return found


FILES = {"how_long": "scale"}  # of tables that are not named after their file

TABLES: dict[str, Callable[[Rows], str]] = {"scale": _scale, "how_long": _how_long}
