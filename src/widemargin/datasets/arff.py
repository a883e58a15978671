"""ARFF files of Weka and R: declared columns, quoted words, sparse rows, weights of instances."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from widemargin.datasets.files import file_error, quoted
from widemargin.datasets.layouts import Cell, Layout, Row, TableOptions, place
from widemargin.datasets.rows import opened_text

# A word in quotes, another word, a mark, or a comment
_TOKEN = re.compile(
    r"""\s*(?:('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|([^\s,{}'"%][^\s,{}%]*)|([,{}])|(?:%.*)?\Z)""", re.DOTALL
)
_TYPES = {"numeric": "number", "real": "number", "integer": "number", "string": "category", "date": "date"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class ArffFile:
    """The declared columns and the rows of a file; in `layout` weights of instances are a further column."""

    def __init__(self, path: str, options: TableOptions) -> None:
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
            names, kinds[width], weight = [*names, "instance weight"], "number", width
            notes = ("its rows have weights: they are the table's sample_weight",)
        layout = Layout(path, 1, width, options, names, weight=weight, kinds=kinds, levels=self._levels, notes=notes)
        self.layout = replace(place(layout, []), width=len(names))

    def _declare(self, line: int, text: str) -> None:
        words, braced = self._parsed(line, text)
        position, kind = len(self._names), str(words[2]) if len(words) > 2 else ""
        if len(words) < 2 or not (kind or braced):
            raise file_error(self._path, f"{quoted(text)} is no attribute", line)
        declared = next((own for name, own in _TYPES.items() if kind.lower().startswith(name)), None)
        if braced:
            self._levels[position] = [cell for cell in braced[0] if cell is not None]
        elif declared is None:
            reason = f"attributes of the type {quoted(kind)} are not read: convert it to numbers"
            raise file_error(self._path, reason, line)
        self._names.append(words[1] or "?")
        self._kinds[position] = declared or "category"

    def rows(self) -> Iterator[Row]:
        """The rows; a quoted question mark is a word, another a missing value."""
        for number, row, weight in self._rows():
            if weight is not None and not self._has_weights:
                raise file_error(self._path, "the first rows have no weights, and this one has", number)
            yield number, [*row, weight or "1"] if self._has_weights else row

    def _rows(self) -> Iterator[tuple[int, list[Cell], Cell]]:
        """The rows below ``@data``, each with its line, and its weight if it has one.

        Of sparse rows, pairs of a position and its value in braces, what is omitted is 0 or the first declared value.
        """
        first = {k: levels[0] for k, levels in self._levels.items() if levels}
        omitted = [first.get(k, "0" if kind == "number" else None) for k, kind in self._kinds.items()]
        with opened_text(self._path) as text:
            for number, line in islice(enumerate(text, start=1), self._n_head, None):
                row, braced = self._parsed(number, line)
                if not row and braced:
                    row, pairs = omitted.copy(), braced.pop(0)
                    is_place = (cell is not None and cell.isdecimal() and int(cell) < len(row) for cell in pairs[::2])
                    if len(pairs) % 2 or not all(is_place) or len({*pairs[::2]}) < len(pairs) // 2:
                        reason = f"{quoted(line.strip())} is no row of pairs: position, from 0, once, and value"
                        raise file_error(self._path, reason, number)
                    for position, value in zip(pairs[::2], pairs[1::2], strict=True):
                        row[int(position or 0)] = value
                elif not row:
                    continue
                if len(row) != len(self._names):
                    raise file_error(self._path, f"{len(row)} fields where {len(self._names)} are declared", number)
                if list(map(len, braced)) not in ([], [1]):
                    raise file_error(self._path, "a row has one weight, in braces at its end", number)
                for k, levels in self._levels.items():
                    if (cell := row[k]) is not None and cell not in levels:
                        reason = f"{quoted(cell)} is no declared value of {quoted(self._names[k])}"
                        raise file_error(self._path, reason, number)
                yield number, row, braced[0][0] if braced else None

    def _parsed(self, line: int, text: str) -> tuple[list[Cell], list[list[Cell]]]:
        """The fields of a line, divided by commas or blanks up to a comment: those in no braces, and of each braces."""
        outside, braced = list[Cell](), list[list[Cell]]()
        cells, at, is_field = outside, 0, False
        while at < len(text):
            found = _TOKEN.match(text, at)
            mark = found[3] if found else None
            if not found or (mark in ("{", "}") and (mark == "{") != (cells is outside)):
                raise file_error(self._path, f"a quote or brace is not closed in {quoted(text[at:].strip())}", line)
            if mark == "," and not is_field:
                raise file_error(self._path, "a field is empty: ? stands for a missing value", line)
            if found[1]:
                cells.append(re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), found[1][1:-1]))
            elif found[2]:
                cells.append(None if found[2] == "?" else found[2])
            elif mark == "{":
                braced.append(cells := [])
            elif mark == "}":
                cells = outside
            at, is_field = found.end(), mark in (None, "}")
        if cells is not outside:
            raise file_error(self._path, f"a quote or brace is not closed in {quoted(text.strip())}", line)
        return outside, braced
