"""What an experiment on a paper is, for the command line."""

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
        Columns that say what a row is about: a second run about the same replaces all rows of the first.
    columns : tuple of str
        What is printed.
    measure : callable
        From a set's name and the options to its rows, each yielded as soon as it is there.
    panels : callable
        From all rows of the CSV, old and new, to the panels of the plot.
    tables : callable
        From all rows to further tables, by name, each written to a CSV of its own.
    arguments : dict
        Options of its own: flags to what argparse wants to know.
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
    """Whether ``--only`` asks for a competitor: every one without it."""
    return not options.only or any(text.lower() in name.lower() for text in options.only)
