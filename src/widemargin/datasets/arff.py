"""ARFF files of Weka and R: declared columns, quoted words, sparse rows, weights of instances."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from widemargin.datasets.files import PathLike, file_error, quoted
from widemargin.datasets.layouts import CATEGORY, DATE, NUMBER, Cell, Layout, Row, TableOptions, place
from widemargin.datasets.rows import opened_text

_WORD = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"@attribute\s+({_WORD}|[^\s{{]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
_LEVELS = re.compile(rf"\{{((?:{_WORD}|[^'\"}}])*)\}}\s*(?:%.*)?", re.DOTALL)
_SPARSE = re.compile(rf"\{{((?:{_WORD}|[^'\"}}])*)\}}\s*(?:,?\s*\{{\s*([^}}]*?)\s*\}})?\s*(?:%.*)?", re.DOTALL)
_FIELD = re.compile(rf"\s*(?:({_WORD})|(\{{[^}}]*\}})|([^\s,{{}}'\"%][^\s,{{}}%]*)|(?=,|$|%))\s*")
_TYPES = {"numeric": NUMBER, "real": NUMBER, "integer": NUMBER, "string": CATEGORY, "date": DATE}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class ArffFile:
    """The declared columns and the rows of a file; in `layout` weights of instances are a further column."""

    def __init__(self, path: PathLike, options: TableOptions) -> None:
        self._path, self._n_head = path, 0
        self._names, self._kinds, self._levels = list[str](), dict[int, str](), dict[int, list[str]]()
        with opened_text(path) as text:
            for self._n_head, line in enumerate(text, start=1):
                if line.strip().lower().startswith("@data"):
                    break
                if line.strip().lower().startswith("@attribute"):
                    self._declare(self._n_head, line.strip())
            else:
                raise file_error(path, "an ARFF file needs a line @data")
        if not self._names:
            raise file_error(path, "no @attribute stands before @data")
        self._has_weights = any(weight is not None for _, _, weight in islice(self._rows(), 10_000))
        names, kinds, width = list(self._names), dict(self._kinds), len(self._names)
        weight, notes = None, tuple[str, ...]()
        if self._has_weights:
            names, kinds[width], weight = [*names, "instance weight"], NUMBER, width
            notes = ("its rows have weights: they are the table's sample_weight",)
        layout = Layout(str(path), 1, width, names, weight=weight, kinds=kinds, levels=self._levels, notes=notes)
        self.layout = replace(place(layout, options, []), width=len(names))

    def _declare(self, line: int, text: str) -> None:
        found = _NAME.fullmatch(text)
        if not found:
            raise file_error(self._path, f"{quoted(text)} is no attribute", line)
        position, kind = len(self._names), found[2].strip()
        self._names.append(_unquoted(found[1]))
        declared = next((own for name, own in _TYPES.items() if kind.lower().startswith(name)), None)
        if levels := _LEVELS.fullmatch(kind):
            self._levels[position] = [cell for cell in self._fields(line, levels[1]) if cell is not None]
        elif declared is None:
            reason = f"attributes of the type {quoted(kind)} are not read: convert it to numbers"
            raise file_error(self._path, reason, line)
        self._kinds[position] = declared or CATEGORY

    def rows(self) -> Iterator[Row]:
        """The rows; a quoted question mark is a word, another a missing value."""
        for number, row, weight in self._rows():
            if weight is not None and not self._has_weights:
                raise file_error(self._path, "the first rows have no weights, and this one has", number)
            yield number, [*row, weight or "1"] if self._has_weights else row

    def _rows(self) -> Iterator[tuple[int, list[Cell], str | None]]:
        """The rows below ``@data``, each with its line, and its weight if it has one."""
        with opened_text(self._path) as text:
            for number, line in enumerate(text, start=1):
                stripped = line.strip()
                if number <= self._n_head or not stripped or stripped.startswith("%"):
                    continue
                row, weight = self._sparse(number, stripped) if stripped[0] == "{" else self._dense(number, stripped)
                for k, levels in self._levels.items():
                    if (cell := row[k]) is not None and cell not in levels:
                        reason = f"{quoted(cell)} is no declared value of {quoted(self._names[k])}"
                        raise file_error(self._path, reason, number)
                yield number, row, weight

    def _dense(self, line: int, text: str) -> tuple[list[Cell], str | None]:
        cells = self._fields(line, text)
        weight = cells.pop() if len(cells) > 1 and isinstance(cells[-1], _Weight) else None
        if len(cells) != len(self._names):
            raise file_error(self._path, f"{len(cells)} fields where {len(self._names)} are declared", line)
        return cells, weight

    def _sparse(self, line: int, text: str) -> tuple[list[Cell], str | None]:
        """A row of pairs "position value": what is omitted is 0, or the first declared value."""
        row: list[Cell] = ["0" if kind == NUMBER else None for kind in self._kinds.values()]
        for k, levels in self._levels.items():
            row[k] = levels[0] if levels else None
        found = _SPARSE.fullmatch(text)
        cells = self._fields(line, found[1]) if found and found[1].strip() else []
        is_pair = len(cells) % 2 == 0 and all(cell and cell.isdecimal() and int(cell) < len(row) for cell in cells[::2])
        if not found or not is_pair:
            raise file_error(self._path, f"{quoted(text)} is no row of pairs: position, from 0, and value", line)
        for position, value in zip(cells[::2], cells[1::2], strict=True):
            row[int(position or 0)] = value
        return row, found[2]

    def _fields(self, line: int, text: str) -> list[Cell]:
        """The fields of a line, divided by commas or blanks, up to a comment."""
        cells: list[Cell] = []
        at, was_comma = 0, True
        while at < len(text) and text[at] != "%":
            found = _FIELD.match(text, at)
            if not found:
                raise file_error(self._path, f"a quote or brace is not closed in {quoted(text[at:])}", line)
            at = found.end()
            if found[1] is not None:
                cells.append(_unquoted(found[1]))
            elif found[2] is not None:
                cells.append(_Weight(found[2][1:-1].strip()))
            elif found[3] is not None:
                cells.append(None if found[3] == "?" else found[3])
            elif was_comma:
                raise file_error(self._path, "a field is empty: ? stands for a missing value", line)
            was_comma = at < len(text) and text[at] == ","
            at += was_comma
        return cells


class _Weight(str):
    """The text of an instance weight."""


def _unquoted(text: str) -> str:
    if text[:1] not in "'\"":
        return text
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1])
