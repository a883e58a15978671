"""Single figures of claims: one value of a results file, or the least, largest or mean of a column."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from statistics import fmean, geometric_mean, median
from typing import Any

from evidence._derived import OF_PAPERS
from measuring import report

Row = dict[str, Any]

_CONDITION = re.compile(r"(.+?)(!=|=|>|<)(.*)")
_OF_MANY: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "mean": fmean,
    "gmean": geometric_mean,
    "median": median,
    "count": len,
    "sum": sum,
}


def look_up(name: str, asked: str) -> str:
    """Return the figure `asked` for (as `figure` takes it) of a results file, or of rows derived from one."""
    return figure(rows_of(name), asked)


def rows_of(name: str) -> list[Row]:
    """Return the rows of a results file, or those derived from one under this name."""
    file, derived = OF_PAPERS.get(name, (name, None))
    rows = report.results(file)
    return derived(rows) if derived else rows


def figure(rows: Sequence[Row], asked: str) -> str:
    """Return one figure as text.

    Parameters
    ----------
    rows : sequence of dict
        Of the results file.
    asked : str
        The column, conditions `column=value` (also !=, >, <), one of min, max, mean, gmean, median, sum and count where
        there may be several rows, and a format. ``seconds set=a9a machine="DC-SVM" .2f``

    Raises
    ------
    ValueError
        If no row is left, or several and no function of them is named.
    """
    column, *words = shlex.split(asked)
    form = words.pop()
    of_many = _OF_MANY[words.pop()] if words and words[-1] in _OF_MANY else None
    chosen = [row for row in rows if column in row and all(_holds(row, word) for word in words)]
    if not chosen or (of_many is None and len(chosen) > 1):
        raise ValueError(f"{asked!r} is about {len(chosen)} rows")
    values = [row[column] for row in chosen]
    return format(of_many(values) if of_many else values[0], form).replace("e+0", "e").replace("e-0", "e-")


def _holds(row: Row, condition: str) -> bool:
    match = _CONDITION.fullmatch(condition)
    if match is None:
        raise ValueError(f"{condition!r} is no condition")
    column, sign, text = match.groups()
    value = row.get(column, "")
    if sign in "<>":
        return value != "" and (float(value) > float(text)) == (sign == ">") and float(value) != float(text)
    same = float(value) == float(text) if _is_number(value) and _is_number(text) else str(value) == text
    return same == (sign == "=")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
