"""The table of all tables and figures of the four papers: what is measured again, and what is missing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from measuring import report
from measuring.load import is_quiet
from measuring.tables import markdown

_ITEMS = Path(__file__).resolve().parent / "evidence.toml"


def items() -> list[dict[str, str]]:
    """Return the items of evidence.toml."""
    return list(tomllib.loads(_ITEMS.read_text(encoding="utf-8"))["item"])


def table() -> str:
    """Return the table: sets, competitors, commits and load from the results, what is missing from the list."""
    header = ["paper", "table or figure", "sets", "compared", "rows", "commits", "missing"]
    return markdown(header, [_line(item) for item in items()])


def _line(item: dict[str, str]) -> list[Any]:
    rows = report.results(item["results"])
    if not rows:
        return [item["paper"], f"{item['name']}: {item['shows']}", "not measured yet", "", 0, "", item["missing"]]
    busy = sum(not is_quiet(row) for row in rows)
    count = f"{len(rows):,}" + (f", {busy:,} beside a busy process" if busy else "")
    name = f"[{item['name']}](../evidence/results/{item['results']}.csv): {item['shows']}"
    compared = _distinct(rows, item["who"]) if item["who"] else ""
    return [item["paper"], name, _distinct(rows, "set"), compared, count, _commits(rows), _missing(item, rows)]


def _missing(item: dict[str, str], rows: list[dict[str, Any]]) -> str:
    """The sets of the list without rows, the competitors without rows of a set, and what else the list says."""
    absent, _, remarks = item["missing"].partition("; ")
    who, measured = item["who"], {str(row["set"]) for row in rows}
    known = {(str(row["set"]), row[who]) for row in rows if who in row}
    everyone = dict.fromkeys(competitor for _, competitor in known)
    parts = [", ".join(name for name in absent.split(", ") if name not in measured)]
    for name in sorted(measured):
        lacking = sorted(str(competitor) for competitor in everyone if (name, competitor) not in known)
        parts += [f"{name} without {' · '.join(lacking)}"] if lacking else []
    return "; ".join(filter(None, [*parts, remarks]))


def _distinct(rows: list[dict[str, Any]], column: str) -> str:
    return "; ".join(dict.fromkeys(str(row[column]) for row in rows if column in row))


def _commits(rows: list[dict[str, Any]]) -> str:
    """The commit of the last day, and how many others there are."""
    known = dict.fromkeys(str(row["commit"]) for row in sorted(rows, key=lambda row: str(row["date"])))
    latest, others = list(known)[-1], len(known) - 1
    return latest + (f" and {others} earlier" if others else "")
