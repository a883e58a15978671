"""What the columns of a table are: the label, features that are numbers or text, and those that are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from typing import Literal, TypeAlias

import numpy as np

from widemargin.datasets.delimited import Row, opened_rows
from widemargin.datasets.files import FloatType, PathLike, file_error, is_number, quoted

Names: TypeAlias = "Sequence[int | str]"

_LEAST_TEXT = 0.1  # cells that are no numbers / cells that are not missing, of a column of text
_INDEX_NAMES = ("", "Unnamed: 0")  # of the index that pandas writes as the first column
# As pandas has them, and the question mark of the UCI repository; a minus sign is one beside numbers alone
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL", "Null", "?")
)


@dataclass(frozen=True)
class TableOptions:
    """How a table is read: the arguments of `load_csv`, and the format.

    Attributes
    ----------
    unlabelled : {"raise", "drop", "keep"}
        What becomes of rows without a label: an error, nothing, or rows whose label is NaN, or empty among text.
    arff : bool
    """

    target: int | str | None = -1
    delimiter: str | None = None
    header: bool | Literal["auto"] = "auto"
    decimal: Literal[".", ","] = "."
    drop: Names = ()
    text: Names | Literal["auto"] = ()
    may_lack_values: bool = False
    unlabelled: Literal["raise", "drop", "keep"] = "raise"
    dtype: FloatType | None = None
    arff: bool = False

    def number(self, cell: str) -> str:
        """A cell with a point before its decimals."""
        return cell.replace(",", ".") if self.decimal == "," else cell


@dataclass(frozen=True)
class Columns:
    """Layout of a table.

    Attributes
    ----------
    line : int
        Number of the first line that is not blank.
    width : int
        Number of fields of a row.
    target : int or None
        Position of the label.
    names : list of str, or None
        Of all columns, where the first line names them.
    features : tuple of int
        Positions of the features.
    text : frozenset of int
        Those of features that are kept as text.
    notes : tuple of str
        What was decided, and is not obvious.
    """

    line: int
    width: int
    target: int | None
    names: list[str] | None
    features: tuple[int, ...] = ()
    text: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, where there is a header."""
        return None if self.names is None else [self.names[k] for k in self.features]

    def describe(self, position: int) -> str:
        """A column, for a message: its number, from 1, and its name."""
        return f"column {position + 1}" + (f" ({quoted(self.names[position])})" if self.names else "")


def read_columns(path: PathLike, options: TableOptions) -> Columns:
    """The layout of a file that is read with these options.

    Raises
    ------
    ValueError
        As `load_csv`, for the first two rows; for unknown names of columns.
    """
    with opened_rows(path, options.delimiter, arff=options.arff) as rows:
        columns = _layout_of(path, list(islice(rows, 2)), options)
    return replace(columns, text=_text_positions(path, columns, options))


def line_of(path: PathLike, row: int, options: TableOptions) -> int:
    """The number of the line on which a sample, counted from 0, ends."""
    place = row + (read_columns(path, replace(options, text=())).names is not None)
    with opened_rows(path, options.delimiter, arff=options.arff) as rows:
        return next(islice(rows, place, None))[0]


def text_columns(path: PathLike, columns: Columns, options: TableOptions) -> list[int]:
    """Positions of the features of which a tenth of the cells, those that are missing aside, is no number.

    With fewer, such cells are rather mistakes. One pass over the file.
    """
    n_text, n_present = Counter[int](), Counter[int]()
    with opened_rows(path, options.delimiter, arff=options.arff) as rows:
        for _, row in islice(rows, int(columns.names is not None), None):
            present = [k for k in columns.features if k < len(row) and not is_missing(row[k])]
            n_present.update(present)
            n_text.update(k for k in present if not is_number(options.number(row[k])))
    return [k for k in columns.features if n_text[k] and n_text[k] >= _LEAST_TEXT * n_present[k]]


def is_missing(cell: str) -> bool:
    """Whether a feature's cell says that there is no value."""
    stripped = cell.strip()
    return stripped in MISSING or stripped == "-"


def _text_positions(path: PathLike, columns: Columns, options: TableOptions) -> frozenset[int]:
    if options.text == "auto":
        return frozenset(text_columns(path, columns, options))
    return frozenset(positions_of(path, columns, options.text)) & set(columns.features)


def positions_of(path: PathLike, columns: Columns, wanted: Iterable[int | str]) -> list[int]:
    """The positions of columns given by name or by position.

    Raises
    ------
    ValueError
        For one that the table does not have, with the most similar name.
    """
    names, width, found = columns.names, columns.width, []
    for one in wanted:
        if isinstance(one, str) and (names is None or one not in names):
            known = suggestion(one, names) if names else ": the file has no header, give its position, from 0"
            raise file_error(path, f"no column is named {quoted(one)}{known}", columns.line)
        if not isinstance(one, str) and not -width <= one < width:
            raise file_error(path, f"there is no column {one}: a row has {width}", columns.line)
        same = range(width) if isinstance(one, str) else [one % width]
        found += [k for k in same if not isinstance(one, str) or (names and names[k] == one)]
    return found


def _layout_of(path: PathLike, head: list[Row], options: TableOptions) -> Columns:
    """Decide from the first two rows which column is the label and whether there is a header."""
    if not head:
        raise file_error(path, "the file is empty")
    (line, first), target = head[0], options.target
    width = len(first)
    if target is not None and width < 2 and len(head) > 1 and len(head[1][1]) > 1:
        raise file_error(path, f"1 field where the next row has {len(head[1][1])}: a title? Remove the line", line)
    if target is not None and width < 2:
        reason = (
            "one column only: is the delimiter neither comma, semicolon nor tab? --delimiter, or delimiter=, names it"
        )
        raise file_error(path, reason, line)
    names = [cell.strip() for cell in first]
    named = Columns(line, width, None, names)
    place = None if target is None else positions_of(path, named, [target])[0]
    plain = replace(named, target=place, names=None, features=tuple(k for k in range(width) if k != place))
    is_named = options.arff or isinstance(target, str) or _names_columns(options)
    has_header, note = (is_named, "") if is_named else _has_header(head, plain, options)
    columns = replace(plain, names=names if has_header else None, notes=(note,) if note else ())
    return _without_dropped(path, head, columns, options)


def _names_columns(options: TableOptions) -> bool:
    """Whether the options need a header: they ask for one, or name a column."""
    return options.header is True or any(isinstance(one, str) for one in (*options.drop, *_given(options.text)))


def _given(text: Names | Literal["auto"]) -> Names:
    return () if text == "auto" else text


def _has_header(head: list[Row], columns: Columns, options: TableOptions) -> tuple[bool, str]:
    """Whether the first row names the columns, and what is to be said about this decision."""
    first = head[0][1]
    if options.header != "auto":
        return bool(options.header), ""
    if not any(is_number(options.number(first[k])) for k in columns.features):
        return True, ""
    if _is_numbered(first, columns):
        note = "the first row counts the columns, 0, 1, 2, ..., and was taken for a header"
        return True, f"{note}; --header no, or header=False, takes it as a sample"
    if columns.target is None or len(head) < 2 or len(head[1][1]) != columns.width:
        return False, ""
    is_name = not is_number(options.number(first[columns.target]))
    return is_name and is_number(options.number(head[1][1][columns.target])), ""


def _is_numbered(first: list[str], columns: Columns) -> bool:
    """Whether the first row counts at least three features, as the header of a frame without names does."""
    cells = [first[k].strip() for k in columns.features]
    cells = cells[1:] if cells[0] in _INDEX_NAMES else cells
    label = "" if columns.target is None else first[columns.target].strip()
    cells = cells[:-1] if columns.target is None and cells and not is_number(cells[-1]) else cells  # perhaps a label
    counts = cells == [str(k) for k in range(len(cells))]
    return counts and len(cells) >= 3 and (not is_number(label) or label == str(len(cells)))


def _without_dropped(path: PathLike, head: list[Row], columns: Columns, options: TableOptions) -> Columns:
    """The layout without the columns to be dropped, and without an index that pandas wrote."""
    dropped = set(positions_of(path, columns, options.drop))
    notes = columns.notes
    if 0 not in dropped | {columns.target} and _is_index(head, columns):
        notes += (f"{columns.describe(0)} counts the rows and was dropped; give it a name to keep it",)
        dropped.add(0)
    features = tuple(k for k in columns.features if k not in dropped)
    if not features:
        raise file_error(path, "no column is left as a feature", columns.line)
    return replace(columns, features=features, notes=notes)


def _is_index(head: list[Row], columns: Columns) -> bool:
    """Whether the first column has no name, and a whole number in the first row below."""
    cells = head[1][1] if len(head) > 1 else [""]
    return columns.names is not None and columns.names[0] in _INDEX_NAMES and cells[0].strip().isdecimal()


def suggestion(name: str, names: list[str]) -> str:
    """The end of a message: the column with the most similar name, if there is one, and the names of the columns."""
    meant = "".join(f": did you mean {quoted(near)}?" for near in get_close_matches(name, names, 1))
    more = f", ... ({len(names)} in all)" if len(names) > 20 else ""
    return f"{meant or ';'} the columns are {', '.join(map(quoted, names[:20]))}{more}"


def limit_of(dtype: FloatType | None) -> float:
    """The largest magnitude that a cell may have."""
    return float(np.finfo(dtype or np.float64).max)
