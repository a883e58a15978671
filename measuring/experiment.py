"""An experiment of a paper: a table or figure, as the command line runs it."""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from measuring.plots import Panel, Surface

Row = dict[str, Any]


class Experiment(NamedTuple):
    """A table or figure.

    Attributes
    ----------
    summary : str
        For ``--help``.
    sets : tuple of str
        The problems it takes unless told otherwise.
    keys : tuple of str
        Columns that identify a cell: its rows replace those of an earlier run with equal values.
    columns : tuple of str
        What is printed.
    measure : callable
        From a set's name and the options to its rows, each yielded once measured; several rows of one cell as a list.
        It leaves out the cells that `is_wanted` does not name.
    panels : callable
        From all rows of the CSV, old and new, to the panels of the plot.
    tables : callable
        From all rows to further tables, by name, each written to a CSV of its own.
    arguments : dict
        Options of its own: flags to the arguments of `add_argument`.
    """

    summary: str
    sets: tuple[str, ...]
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    measure: Callable[[str, Namespace], Iterator[Row | list[Row]]]
    panels: Callable[[Sequence[Row]], Sequence[Panel | Surface]]
    tables: Callable[[Sequence[Row]], Mapping[str, list[Row]]] = lambda rows: {}
    arguments: Mapping[str, Mapping[str, Any]] = {}


class Cells:
    """The rows known of an experiment: which of its cells are still to be measured.

    Parameters
    ----------
    rows : sequence of dict
    is_done : callable
        From a row to whether it needs no other measurement.
    """

    def __init__(self, rows: Sequence[Row], is_done: Callable[[Row], bool]) -> None:
        self._rows = rows
        self._is_done = is_done

    def wants(self, cell: Row) -> bool:
        """Whether there are no rows of a cell, given by some of its keys, or one that is not done."""
        rows = [row for row in self._rows if all(_text(row.get(key, "")) == _text(cell[key]) for key in cell)]
        return not rows or not all(map(self._is_done, rows))


def is_wanted(options: Namespace, name: str = "", /, **cell: Any) -> bool:
    """Whether to measure the cell with these values of its keys; `name` is its competitor, for ``--only``."""
    cells = getattr(options, "cells", None)
    return is_asked(name, options) and (cells is None or cells.wants(cell))


def is_asked(name: str, options: Namespace) -> bool:
    """Whether ``--only`` includes a competitor; without it every one is."""
    return not options.only or any(text.lower() in name.lower() for text in options.only)


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


def grouped(rows: Sequence[Row], *columns: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Yield the values of some columns, in order of appearance, each with its rows."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[column] for column in columns)

    for value in dict.fromkeys(map(key, rows)):
        yield value, [row for row in rows if key(row) == value]


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float | int) else str(value)
