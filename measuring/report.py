"""Results of a benchmark: rows of a CSV below a machine card, and a table on the terminal."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measuring.imports import ROOT
from measuring.provenance import machine_card

RESULTS = ROOT / "benchmarks" / "results"
EVIDENCE = ROOT / "evidence" / "results"  # of the papers' experiments

Row = Mapping[str, Any]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows, all keys of all rows as columns, below the machine card as `#` lines.

    The file is written beside the old one and then takes its place: a process that is ended meanwhile leaves all
    earlier rows.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    unfinished = path.with_suffix(".csv.part")
    with unfinished.open("w", newline="") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in machine_card().items())
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _exact(value) for key, value in row.items()} for row in rows)
    unfinished.replace(path)


def results(name: str) -> list[dict[str, Any]]:
    """Return the rows of a results file, ``NAME`` or ``PAPER/NAME`` of a paper's experiment; none of an ended cell."""
    return [row for row in read_csv(results_path(name)) if "ended" not in row]


def results_path(name: str) -> Path:
    """Return where the results file of this name is."""
    return (EVIDENCE if "/" in name else RESULTS) / f"{name}.csv"


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV that `write_csv` wrote, numbers as numbers; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return [{key: _parsed(value, key) for key, value in line.items() if value != ""} for line in lines]


def _parsed(text: str, column: str) -> Any:
    if column == "commit":  # 569e37262 is no number
        return text
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _exact(value: Any) -> Any:
    return f"{value:.9g}" if isinstance(value, float) else value


def short(value: Any) -> str:
    """A value with three digits, for the terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
