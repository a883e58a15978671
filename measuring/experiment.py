"""An experiment: a declaration of cells, and of the function that measures one; `measuring.command` runs it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from measuring import tables
from measuring.plots import Panel, Surface

Row = dict[str, Any]


class Experiment(NamedTuple):
    """A file of results.

    Attributes
    ----------
    results : str
        The name of the file: ``NAME`` in benchmarks/results, ``PAPER/NAME`` in evidence/results.
    cells : sequence of str or of tuple
        What is measured, each in a process of its own: values of the first of `keys`.
    keys : tuple of str
        Columns that identify rows: those of an earlier run with equal values are replaced.
    measure : callable
        From the values of a cell and the `Run` to its rows: one, a list, or each yielded once measured (rows that are
        replaced together as a list). It must be in the module of the experiment.
    seconds : float or dict
        Of a cell, or of the cells with this first value ("" for the others), on two idle cores. A cell that takes
        five times as long is ended.
    settings : dict
        What the command line can change, with the values it has otherwise.
    quick : dict
        Other settings, and ``cells``, of a trial in seconds; without them it is the first cell.
    parts : bool
        Whether `measure` leaves out what `Run.wants` does not name.
    has_outcomes : bool
        Whether the row of a cell that crashes or is ended has an `outcome`, which tables show; else it is left out.
    tables : callable
        From all rows to further tables, by name, each written to a file of its own.
    panels : callable, optional
        From all rows to the panels of the plot beside the file.
    draw : callable, optional
        Draws other pictures of all rows.
    """

    results: str
    cells: Sequence[Any]
    keys: tuple[str, ...]
    measure: Callable[..., Any]
    seconds: float | Mapping[Any, float] = 60.0
    settings: Mapping[str, Any] = {}
    quick: Mapping[str, Any] = {}
    parts: bool = False
    has_outcomes: bool = False
    tables: Callable[[Sequence[Row]], Mapping[str, list[Row]]] = lambda rows: {}
    panels: Callable[[Sequence[Row]], Sequence[Panel | Surface]] | None = None
    draw: Callable[[list[Row]], None] | None = None

    def budget(self, cell: tuple[Any, ...]) -> float:
        """Seconds of a cell."""
        if isinstance(self.seconds, Mapping):
            return float(self.seconds.get(cell[0], self.seconds.get("", 60.0)))
        return self.seconds

    def named(self, cell: tuple[Any, ...]) -> Row:
        """A cell with the names of its columns."""
        return dict(zip(self.keys, cell, strict=False))


class Axes(NamedTuple):
    """Two columns as the axes of a panel, and which of them are logarithmic: "x", "y" or "xy"."""

    x: str
    xlabel: str
    y: str
    ylabel: str
    logarithmic: str = ""


class Run(SimpleNamespace):
    """Settings of a run as attributes, and what is to be measured: `only` competitors, and no cell that is `done`."""

    only: Sequence[str] = ()
    known: Sequence[Row] = ()

    def asks(self, competitor: str) -> bool:
        """Whether ``--only`` includes a competitor; without it every one is."""
        return not self.only or any(text.lower() in competitor.lower() for text in self.only)

    def wants(self, competitor: str = "", /, **cell: Any) -> bool:
        """Whether to measure a cell, given by some of its keys: one that has no rows, or a row that is not done."""
        rows = [row for row in self.known if is_of(row, cell)]
        return self.asks(competitor) and not (rows and all(row["done"] for row in rows))


def is_of(row: Row, cell: Row) -> bool:
    """Whether a row is of a cell, given by some of its keys."""
    return all(_text(row.get(key, "")) == _text(value) for key, value in cell.items())


def joined(old: Sequence[Row], new: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """The new rows, and the old ones whose values of `keys` no new row has."""

    def cell_of(row: Row) -> tuple[str, ...]:
        return tuple(_text(row.get(key, "")) for key in keys)

    measured = {cell_of(row) for row in new}
    return [row for row in old if cell_of(row) not in measured] + list(new)


def repeated(seconds: Sequence[float]) -> Row:
    """The columns of several timings: their median, their number, and (largest - least) / median."""
    middle = statistics.median(seconds)
    spread = (max(seconds) - min(seconds)) / middle if len(seconds) > 1 else None
    return {"seconds": middle, "repeats": len(seconds), "spread": spread}


def panels_of(
    rows: Sequence[Row], by: Sequence[str], series: Sequence[str], *axes: Axes, lines: bool = True
) -> list[Panel]:
    """A panel for each combination of values of `by` and each pair of axes; a curve for each of `series`."""
    panels = []
    for names, mine in tables.by(rows, *by).items():
        for pair in axes:
            points = [row for row in mine if pair.x in row and pair.y in row]
            curves = {
                ", ".join(map(str, key)): tuple(zip(*sorted((row[pair.x], row[pair.y]) for row in some), strict=True))
                for key, some in tables.by(points, *series).items()
            }
            if curves:
                title = ", ".join(map(str, names))
                panels.append(Panel(title, pair.xlabel, pair.ylabel, curves, pair.logarithmic, lines))
    return panels


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float | int) else str(value)
