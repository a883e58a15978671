"""An experiment of a paper: a table or figure, as the command line runs it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks._report import Panel

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
        Columns that identify a row: a second run replaces the rows of the first with equal values.
    columns : tuple of str
        What is printed.
    measure : callable
        From a set's name and the options to its rows, each yielded once measured.
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
    measure: Callable[[str, Namespace], Iterator[Row]]
    panels: Callable[[Sequence[Row]], Sequence[Panel]]
    tables: Callable[[Sequence[Row]], Mapping[str, list[Row]]] = lambda rows: {}
    arguments: Mapping[str, Mapping[str, Any]] = {}


def grouped(rows: Sequence[Row], *columns: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Yield the values of some columns, in order of appearance, each with its rows."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[column] for column in columns)

    for value in dict.fromkeys(map(key, rows)):
        yield value, [row for row in rows if key(row) == value]


def is_asked(name: str, options: Namespace) -> bool:
    """Whether ``--only`` includes a competitor; without it every one is."""
    return not options.only or any(text.lower() in name.lower() for text in options.only)
