"""The rows of text formats, each with the number of its line: delimited text, JSON, spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, TextIO

from widemargin.datasets.files import PathLike, check_archive, file_error, opened, quoted
from widemargin.datasets.layouts import Cell, Row

_MARKS = "\t;,|"
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # the first line of a spreadsheet's export
_HEAD_LINES = 50


class Dialect(NamedTuple):
    """How the lines of a text become fields."""

    delimiter: str  # a blank stands for any number of blanks and tabs
    n_skipped: int  # lines before the first row: blank ones, comments, "sep=;"
    names: list[str] | None  # of the columns, where the last comment has as many fields as the rows
    full_width: int  # number of fields of rows that end with a delimiter, after which there is no field; or 0


@contextmanager
def opened_text(path: PathLike) -> Iterator[TextIO]:
    """A text in UTF-8, or in UTF-16 where its first bytes say so; a ValueError names the file of another encoding."""
    with opened(path) as file:
        head = file.peek(2) if hasattr(file, "peek") else b""
        encoding = "utf-16" if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
        if encoding == "utf-8-sig" and b"\0" in head:  # UTF-16 without its mark, among others
            raise file_error(path, "not a text file in UTF-8 (it has zero bytes): save it as such")
        limit = csv.field_size_limit(2**31 - 1)
        try:
            with io.TextIOWrapper(file, encoding=encoding, newline="") as text:
                yield text
        except UnicodeDecodeError as error:
            reason = f"not a text file in UTF-8 ({error.reason} at byte {error.start} of a part of it): save it as such"
            raise file_error(path, reason) from error
        finally:
            csv.field_size_limit(limit)


def dialect_of(path: PathLike, delimiter: str | None) -> Dialect:
    """The dialect of a file, by its first lines."""
    head: list[str] = []
    with opened_text(path) as text:
        comments, n_skipped = [], 0
        for line in text:
            declared = _SEPARATOR_LINE.fullmatch(line)
            if line.strip() and not line.startswith("#") and not declared:
                head = [line, *islice(text, _HEAD_LINES)]
                break
            delimiter = delimiter or (declared[1] if declared else None)
            comments += [line[1:].strip()] if line.startswith("#") else []
            n_skipped += 1
        delimiter = delimiter or _delimiter_of(head)
        try:
            rows = [row for row in _fields(head, delimiter) if row and (len(row) > 1 or row[0].strip())]
            names = next(_fields(comments[-1:], delimiter), None)
        except csv.Error:  # which `delimited_rows` names
            rows, names = [], None
    first, below = rows[0] if rows else [], rows[1:]
    if not names or not len(names) == len(set(names)) == len(first) > 1:
        names = None
    width = len(below[0]) if below else 0
    ends = [*below, first] if len(first) == width else below if len(first) == width - 1 else []
    has_last = width > 1 and ends and not any(row[-1].strip() for row in ends)
    return Dialect(delimiter, n_skipped, names, width if has_last else 0)


def _fields(lines: Iterable[str], delimiter: str, *, strict: bool = True) -> Any:
    if delimiter == " ":
        lines = (line.rstrip() if '"' in line else " ".join(line.split()) for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=strict)


def _delimiter_of(head: list[str]) -> str:
    """The mark by which most of these lines have one number of fields, at least two; the first such mark, or blanks."""

    def agreeing(mark: str) -> int:
        widths = Counter(len(row) for row in _fields(head, mark, strict=False) if len(row) > 1)
        return max(widths.values(), default=0)

    best = max(_MARKS, key=agreeing)
    if agreeing(best) >= max(1, len([line for line in head if line.strip()]) // 2):
        return best
    return " " if agreeing(" ") > agreeing(best) else best if agreeing(best) else ","


def delimited_rows(path: PathLike, dialect: Dialect) -> Iterator[Row]:
    """The rows of delimited text that are not blank."""
    with opened_text(path) as text:
        for _ in range(dialect.n_skipped):
            next(text)
        reader, end = _fields(text, dialect.delimiter), dialect.n_skipped
        try:
            for row in reader:
                end = dialect.n_skipped + reader.line_num
                if row and len(row) == dialect.full_width and not row[-1].strip():
                    row.pop()
                if len(row) > 1 or (row and row[0].strip()):
                    yield end, row
        except csv.Error as error:
            reason = f"not delimited text ({error})"
            if "unexpected end" in str(error) or "expected after" in str(error):
                reason = "a quote that is opened in this row is not closed where its field ends: double inner quotes"
            raise file_error(path, reason, end + 1) from error


def json_rows(path: PathLike) -> Iterator[Row]:
    """The keys of a file of JSON objects, one a line or in one list, as first row, and their values as cells."""
    names: list[str] = []
    for place, (line, record) in enumerate(_records(path)):
        if not isinstance(record, dict):
            raise file_error(path, f"not a JSON object with names and values: {quoted(json.dumps(record))}", line)
        if not place:
            names = list(record)
            yield line, list(names)
        if unknown := record.keys() - set(names):
            raise file_error(path, f"the first object has no {quoted(sorted(unknown)[0])}: give it null there", line)
        yield line, [_cell(path, line, name, record.get(name)) for name in names]


def _records(path: PathLike) -> Iterator[tuple[int, Any]]:
    with opened_text(path) as text:
        number = 0
        try:
            for number, line in enumerate(text, start=1):
                if number == 1 and line.lstrip().startswith("["):
                    yield from enumerate(json.loads(line + text.read(), parse_float=str), start=1)
                    return
                if line.strip():
                    yield number, json.loads(line, parse_float=str)  # with all digits
        except json.JSONDecodeError as error:
            raise file_error(path, f"not JSON ({error.msg} at character {error.colno})", number) from error


def _cell(path: PathLike, line: int, name: str, value: Any) -> Cell:
    """A value of JSON or a spreadsheet as text; None where it is missing."""
    if isinstance(value, dict | list):
        raise file_error(path, f"{quoted(name)} is a list or an object: give each value a name of its own", line)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        is_large = abs(value) >= 2**53  # by its form no whole number, as its last digits may be lost
        return None if value != value else f"{value:.16e}" if is_large else repr(value).removesuffix(".0")
    if value is None or value == "":
        return None
    if hasattr(value, "isoformat"):  # midnight is a date
        return str(value.isoformat()).removesuffix("T00:00:00")
    return str(value)


def sheet_rows(path: PathLike) -> Iterator[Row]:
    """The rows of the one sheet of a spreadsheet."""
    try:
        import python_calamine
    except ImportError:
        raise file_error(path, "spreadsheets need python-calamine: pip install python-calamine") from None
    check_archive(path, "save it as .csv")
    try:
        book = python_calamine.CalamineWorkbook.from_path(str(path))
        sheets = {name: book.get_sheet_by_name(name) for name in book.sheet_names}
        filled = {name: sheet for name, sheet in sheets.items() if sheet.height}
        if len(filled) > 1:
            raise file_error(path, f"several sheets have rows: {', '.join(map(quoted, filled))}: keep one")
        rows = next(iter(filled.values())).to_python(skip_empty_area=True) if filled else []
    except (python_calamine.CalamineError, OSError) as error:
        raise file_error(path, f"truncated or damaged spreadsheet ({error})") from error
    for number, row in enumerate(rows, start=1):
        if any(cell != "" for cell in row):
            yield number, [_cell(path, number, "a cell", cell) for cell in row]
