"""The rows of a table, each with the number of its line: of delimited text, and of an ARFF file."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import TypeAlias

from widemargin.datasets.compressed import opened
from widemargin.datasets.files import PathLike, file_error, quoted

Row: TypeAlias = tuple[int, list[str]]

_MARKS = "\t;,"
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # the first line of a spreadsheet's export
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s{]+)\s*(.*)", re.IGNORECASE)


@contextmanager
def opened_rows(path: PathLike, delimiter: str | None = None, *, arff: bool = False) -> Iterator[Iterator[Row]]:
    """The rows of a file that are not blank. A ValueError names the file if it is no text in UTF-8, or no table.

    Parameters
    ----------
    path : str or path-like
    delimiter : str, optional
        None: the first of tab, semicolon and comma by which most of the first lines have the same number of fields.
    arff : bool, default=False
        Whether it is an ARFF file: its first row are then the names of its attributes.
    """
    with opened(path) as binary:
        try:
            with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
                yield _arff_rows(path, text) if arff else _without_last_mark(_rows(text, delimiter))
        except UnicodeDecodeError as error:
            raise file_error(
                path, f"not a text file in UTF-8 ({error.reason} at byte {error.start}): save it as such"
            ) from error
        except csv.Error as error:
            raise file_error(path, f"not delimited text ({error})") from error


def _rows(text: Iterable[str], delimiter: str | None) -> Iterator[Row]:
    lines = iter(text)
    head = list(islice(lines, 20))
    first = next((k for k, line in enumerate(head) if line.strip()), 0)
    declared = _SEPARATOR_LINE.fullmatch(head[first]) if head else None
    if declared:
        head[first] = "\n"  # lines are counted
    delimiter = delimiter or (declared[1] if declared else _delimiter_of(head))
    reader = csv.reader(chain(head, lines), delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        if not _is_blank(row):
            yield reader.line_num, row


def _is_blank(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def _delimiter_of(head: list[str]) -> str:
    """The mark by which most of these lines have one number of fields, at least two; the first such mark."""

    def agreeing(mark: str) -> int:
        rows = csv.reader(head, delimiter=mark, skipinitialspace=True)
        widths = Counter(len(row) for row in rows if len(row) > 1)
        return max(widths.values(), default=0)

    best = max(_MARKS, key=agreeing)
    return best if agreeing(best) else ","


def _without_last_mark(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows; without their last fields, where lines end with a delimiter: no name and no value follows it."""
    head = list(islice(rows, 2))
    width = len(head[-1][1]) if len(head) == 2 else 0
    is_extra = width > 1 and not head[1][1][-1].strip()
    is_extra = is_extra and (len(head[0][1]) == width - 1 or (len(head[0][1]) == width and not head[0][1][-1].strip()))
    for line, row in chain(head, rows):
        yield line, row[:-1] if is_extra and len(row) == width and not row[-1].strip() else row


def _arff_rows(path: PathLike, text: Iterable[str]) -> Iterator[Row]:
    """The names of the attributes as a row, and the rows below ``@data``."""
    lines = enumerate(text, start=1)
    names = []
    for number, line in lines:
        stripped = line.strip()
        if stripped.lower().startswith("@data"):
            break
        if stripped.lower().startswith("@attribute"):
            names.append(_attribute_name(path, number, stripped))
    else:
        raise file_error(path, "an ARFF file needs a line @data")
    yield number, names
    for number, line in lines:
        if line.lstrip().startswith("{"):
            raise file_error(path, "sparse ARFF rows are not read: write them as svmlight, index:value", number)
        if line.strip() and not line.lstrip().startswith("%"):
            reader = csv.reader([line], quotechar="'" if "'" in line else '"', escapechar="\\", skipinitialspace=True)
            yield number, next(reader)


def _attribute_name(path: PathLike, line: int, text: str) -> str:
    found = _ATTRIBUTE.fullmatch(text)
    if not found:
        raise file_error(path, f"{quoted(text)} is no attribute", line)
    if found[2].lower().startswith(("date", "relational")):
        raise file_error(path, f"attributes of the type {quoted(found[2])} are not read: convert it to numbers", line)
    return found[1].strip("'\"").replace("\\", "")
