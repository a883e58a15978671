"""Tables of results in Markdown. Below each stand the machine, the commits and the days of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from measuring.load import QUIET, is_quiet

Row = dict[str, Any]
Rows = list[Row]
Form = str | Callable[[Row], Any]  # a format of a row's columns, "{n:,}", or a function of the row


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def listed(columns: Mapping[str, Form]) -> Callable[[Rows], str]:
    """Return the function of rows that makes a table of a line for each, with these headers and cells."""

    def table(rows: Rows) -> str:
        return markdown(list(columns), ([cell(form, row) for form in columns.values()] for row in rows))

    return table


def cell(form: Form, row: Row | None) -> str:
    """Return one cell: nothing where there is no row, or a column of the format is absent."""
    if row is None:
        return ""
    try:
        return str(form.format_map(row) if isinstance(form, str) else form(row))
    except KeyError:
        return ""


def pivot(rows: Rows, lines: Sequence[str], column: str, form: Form, otherwise: str = "") -> str:
    """Return a table of a line for each combination of values of `lines`, and a column for each value of `column`."""
    values = list(dict.fromkeys(row[column] for row in rows))
    found = []
    for key, mine in by(rows, *lines).items():
        cells = {row[column]: cell(form, row) for row in mine}
        found.append([*(short(part) for part in key), *(cells.get(value, otherwise) for value in values)])
    names = ["model" if name == "machine" else name for name in lines]
    return markdown([*names, *(short(value) for value in values)], found)


def by(rows: Sequence[Row], *columns: str) -> dict[tuple[Any, ...], Rows]:
    """Return the rows with equal values of some columns, in order of appearance."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(column) for column in columns), []).append(row)
    return groups


def named(rows: Rows, group: str, name: str) -> dict[Any, dict[Any, Row]]:
    """Return the rows of each value of `group` by their values of `name`."""
    groups: dict[Any, dict[Any, Row]] = {}
    for row in rows:
        groups.setdefault(row.get(group), {})[row.get(name)] = row
    return groups


def mean(values: Iterable[float], form: str = ".2f") -> str:
    """Return the geometric mean, in bold."""
    return f"**{geometric_mean(list(values)):{form}}**"


def short(value: Any) -> str:
    """Return a value of a key: numbers with commas, or four digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def star(row: Row, column: str = "others") -> str:
    """Return a star where other processes took more than `QUIET` of a core."""
    return "*" * (float(row.get(column) or 0.0) > QUIET)


def of_one_run(rows: Rows) -> Rows:
    """Return of each set, whose rows a table compares, those of the run with the most."""
    chosen: Rows = []
    for mine in by(rows, "set").values():
        chosen += max(by(mine, "commit", "machine_card").values(), key=len)
    return chosen


def source(rows: Rows, settings: str = "") -> str:
    """Return the line below a table: its settings, machines, commits, days, threads, load, a mark if it is mixed."""
    parts = [_distinct(rows, "machine_card"), "commit " + _distinct(rows, "commit"), _distinct(rows, "date")]
    if any("threads" in row for row in rows):
        parts.append(_distinct(rows, "threads") + " threads")
    busy = sum(not is_quiet(row) for row in rows)
    unknown = sum("others" not in row for row in rows)
    if busy:
        parts.append(f"{busy} of {len(rows)} rows beside other processes on more than {QUIET} of a core")
    if unknown:
        parts.append(f"load beside {unknown} of {len(rows)} rows unknown")
    mark = "**Rows of several runs: read the order, not the ratios.** " * (len(of_one_run(rows)) < len(rows))
    return "\n" + " ".join(filter(None, [settings, f"*{mark}{'; '.join(parts)}.*"])) + "\n"


def _distinct(rows: Rows, column: str) -> str:
    values = sorted({str(row.get(column, "unknown")) for row in rows})
    return ", ".join(values) if len(values) < 5 else f"{values[0]} and {len(values) - 1} others"
