"""ARFF files of Weka and R: declared columns, quoted words, sparse rows, weights of instances."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice

from widemargin.datasets.files import PathLike, file_error, quoted
from widemargin.datasets.layouts import CATEGORY, DATE, NUMBER, Cell, Layout, Row, TableOptions, place
from widemargin.datasets.rows import opened_text

_WORD = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"@attribute\s+({_WORD}|[^\s{{]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(rf"\s*(?:({_WORD})|(\{{[^}}]*\}})|([^\s,{{}}'\"%][^\s,{{}}%]*)|(?=,|$|%))\s*")
_TYPES = {"numeric": NUMBER, "real": NUMBER, "integer": NUMBER, "string": CATEGORY, "date": DATE}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_JAVA_DATES = {"yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "EEEE": "%A", "EEE": "%a", "a": "%p", "SSS": "%f"}
_JAVA_DATES |= {"Z": "%z", "XXX": "%z"}
_JAVA_DATES |= {k * n: f"%{v}" for k, v in zip("MdHhms", "mdHIMS", strict=True) for n in (1, 2)}


class ArffFile:
    """The declared columns and the rows of a file; in `layout` weights of instances are a further column."""

    def __init__(self, path: PathLike, options: TableOptions) -> None:
        self._path = path
        self._names: list[str] = []
        self._kinds: dict[int, str] = {}
        self._levels: dict[int, list[str]] = {}
        self._dates: dict[int, str] = {}
        self._read_head()
        has_weights = any(row[-1] is not None for _, row in islice(self._rows(), 10_000))
        self._has_weights, width = has_weights, len(self._names)
        names, kinds = list(self._names), dict(self._kinds)
        if has_weights:
            names, kinds = [*names, "instance weight"], {**kinds, width: NUMBER}
        notes = ("its rows have weights: they are the table's sample_weight",) if has_weights else ()
        weight = width if has_weights else None
        layout = Layout(str(path), 1, width, names, weight=weight, kinds=kinds, levels=self._levels, notes=notes)
        self.layout = replace(place(layout, options, []), width=len(names))

    def rows(self) -> Iterator[Row]:
        """The rows; a quoted question mark is a word, another a missing value."""
        for line, row in self._rows():
            if not self._has_weights and row[-1] is not None:
                raise file_error(self._path, "the first rows have no weights, and this one has", line)
            yield line, [*row[:-1], row[-1] or "1"] if self._has_weights else row[:-1]

    def _read_head(self) -> None:
        with opened_text(self._path) as text:
            for number, line in enumerate(text, start=1):
                stripped = line.strip()
                if stripped.lower().startswith("@data"):
                    break
                if stripped.lower().startswith("@attribute"):
                    self._declare(number, stripped)
            else:
                raise file_error(self._path, "an ARFF file needs a line @data")
        if not self._names:
            raise file_error(self._path, "no @attribute stands before @data")

    def _declare(self, line: int, text: str) -> None:
        found = _NAME.fullmatch(text)
        if not found:
            raise file_error(self._path, f"{quoted(text)} is no attribute", line)
        position, kind = len(self._names), found[2].strip()
        self._names.append(_unquoted(found[1]))
        word = kind.split(None, 1)[0].lower() if kind else ""
        if kind.startswith("{"):
            inner = re.sub(r"%[^'\"}]*$", "", kind).strip()
            if not inner.endswith("}"):
                raise file_error(self._path, f"{quoted(text)} has no closing brace", line)
            levels = [cell for cell in self._fields(line, inner[1:-1]) if cell is not None]
            self._kinds[position], self._levels[position] = CATEGORY, levels
        elif declared := next((own for name, own in _TYPES.items() if word.startswith(name)), None):
            self._kinds[position] = declared
            if declared == DATE:
                self._dates[position] = _strptime_of(kind[4:].split("%")[0].strip())
        else:
            raise file_error(
                self._path, f"attributes of the type {quoted(kind)} are not read: convert it to numbers", line
            )

    def _rows(self) -> Iterator[Row]:
        """The rows below ``@data``, each with its weight, or None, as a last cell."""
        with opened_text(self._path) as text:
            lines = enumerate(text, start=1)
            for _, line in lines:
                if line.strip().lower().startswith("@data"):
                    break
            for number, line in lines:
                stripped = line.strip()
                if not stripped or stripped.startswith("%"):
                    continue
                row, weight = (
                    self._sparse(number, stripped) if stripped.startswith("{") else self._dense(number, stripped)
                )
                yield number, [*(self._checked(number, k, cell) for k, cell in enumerate(row)), weight]

    def _dense(self, line: int, text: str) -> tuple[list[Cell], str | None]:
        cells = self._fields(line, text, weights=True)
        weight = cells.pop() if len(cells) > 1 and isinstance(cells[-1], _Weight) else None
        if len(cells) != len(self._names):
            raise file_error(self._path, f"{len(cells)} fields where {len(self._names)} are declared", line)
        return cells, weight

    def _sparse(self, line: int, text: str) -> tuple[list[Cell], str | None]:
        """A row of pairs "position value": what is omitted is 0, or the first declared value."""
        inner, end = _braced(text)
        row: list[Cell] = [
            self._levels[k][0] if self._levels.get(k) else "0" if kind == NUMBER else None
            for k, kind in self._kinds.items()
        ]
        cells = self._fields(line, inner) if inner.strip() else []
        if len(cells) % 2 or not all(cell and cell.isdecimal() and int(cell) < len(row) for cell in cells[::2]):
            raise file_error(self._path, f"{quoted(text)} is no row of pairs: position, from 0, and value", line)
        for place_, value in zip(cells[::2], cells[1::2], strict=True):
            row[int(place_ or 0)] = value
        after = re.match(r"\s*,?\s*\{\s*([^}]*?)\s*\}", end)
        return row, after[1] if after else None

    def _fields(self, line: int, text: str, *, weights: bool = False) -> list[Cell]:
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
            elif found[2] is not None and weights:
                cells.append(_Weight(found[2][1:-1].strip()))
            elif found[3] is not None:
                cells.append(None if found[3] == "?" else found[3])
            elif was_comma:
                raise file_error(self._path, "a field is empty: ? stands for a missing value", line)
            was_comma = at < len(text) and text[at] == ","
            at += was_comma
        return cells

    def _checked(self, line: int, position: int, cell: Cell) -> Cell:
        """A cell of the kind that is declared."""
        if cell is None or position >= len(self._names):
            return cell
        levels = self._levels.get(position)
        if levels is not None and cell not in levels:
            raise file_error(
                self._path, f"{quoted(cell)} is no declared value of {quoted(self._names[position])}", line
            )
        if self._dates.get(position):
            try:
                return datetime.strptime(cell, self._dates[position]).isoformat()
            except ValueError:
                reason = f"{quoted(cell)} is no date as declared, or in a form that is not known: write yyyy-MM-dd"
                raise file_error(self._path, reason, line) from None
        return cell


class _Weight(str):
    """The text of an instance weight."""


def _braced(text: str) -> tuple[str, str]:
    """What stands in the first braces of a text, and after them; quotes hide braces."""
    found = re.match(rf"\{{((?:{_WORD}|[^'\"}}])*)\}}(.*)", text, re.DOTALL)
    return (found[1], found[2]) if found else (text[1:], "")


def _unquoted(text: str) -> str:
    if text[:1] not in "'\"":
        return text
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1])


def _strptime_of(java: str) -> str:
    """Python's form of a Java date format; empty for ISO 8601, Weka's default."""
    form = _unquoted(java)
    if not form or form == "yyyy-MM-dd'T'HH:mm:ss":
        return ""
    return re.sub(r"'([^']*)'|([A-Za-z])\2*", lambda found: found[1] or _JAVA_DATES.get(found[0], found[0]), form)
