"""Delimited text: one row per sample, one column of labels, numbers in all others."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from widemargin.datasets.files import Dataset, FloatType, PathLike, file_error, integers_if_whole, opened, quoted

_Row: TypeAlias = tuple[int, list[str]]

_SHOWN_NAMES = 20  # columns, in the message for one that does not exist


def load_csv(
    path: PathLike,
    *,
    target: int | str | None = -1,
    delimiter: str | None = None,
    header: bool | Literal["auto"] = "auto",
    dtype: FloatType = np.float32,
) -> Dataset:
    r"""Read delimited text: plain, or compressed as ``.gz`` or ``.bz2``.

    Parameters
    ----------
    path : str or path-like
        The file, in UTF-8. Blank lines are skipped.
    target : int, str or None, default=-1
        The column of labels: its position, counted from 0 or, if negative, from the end; or its name in the header.
        None: no labels, all columns are features.
    delimiter : str, default=None
        One character. None takes the first of tab, semicolon and comma that the first line has.
    header : bool or "auto", default="auto"
        Whether the first line names the columns. "auto": it does if none of its features is a number, or if its label
        is not a number and the next line's label is.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of X: kernels are computed in it. Float32 keeps seven digits.

    Returns
    -------
    Dataset
        X is an ndarray of shape (n_samples, n_features) and the given dtype. y is int64 where all labels are
        whole numbers, float64 where all are numbers, otherwise strings; None without a target.

    Raises
    ------
    ValueError
        ``FILE:LINE: reason`` for the first row with another number of fields than the first, a feature that is not a
        finite number, or no label; for an empty file, an unknown target and damaged compression.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "irises.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("length;width;kind\n5.1;3.5;setosa\n7.0;3.2;versicolor\n")
    ...     data = load_csv(path)
    >>> data.X
    array([[5.1, 3.5],
           [7. , 3.2]], dtype=float32)
    >>> data.y.tolist()
    ['setosa', 'versicolor']
    """
    with _opened_rows(path, delimiter) as rows:
        return _collect(path, rows, target, header, dtype)


class Columns(NamedTuple):
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
    """

    line: int
    width: int
    target: int | None
    names: list[str] | None

    def features_of(self, row: list[str]) -> list[str]:
        """The row without its label."""
        return row if self.target is None else row[: self.target] + row[self.target + 1 :]

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, where there is a header."""
        return None if self.names is None else self.features_of(self.names)

    def number(self, feature: int) -> int:
        """The number of a feature's column, from 1, the label's column counted."""
        return feature + (self.target is not None and feature >= self.target) + 1

    def describe(self, feature: int) -> str:
        """The column of a feature, for a message: its number, and its name."""
        number = self.number(feature)
        return f"column {number}" + (f" ({quoted(self.names[number - 1])})" if self.names else "")


def read_columns(path: PathLike, *, target: int | str | None = -1) -> Columns:
    """The layout that `load_csv` finds in a file with this target.

    Raises
    ------
    ValueError
        As `load_csv`, for the first two rows.
    """
    with _opened_rows(path) as rows:
        return _layout_of(path, list(islice(rows, 2)), target, "auto")


def line_of(path: PathLike, row: int, *, target: int | str | None = -1) -> int:
    """The number of the line on which a sample, counted from 0, ends."""
    place = row + (read_columns(path, target=target).names is not None)
    with _opened_rows(path) as rows:
        return next(islice(rows, place, None))[0]


@contextmanager
def _opened_rows(path: PathLike, delimiter: str | None = None) -> Iterator[Iterator[_Row]]:
    """The rows of a file. A ValueError that names the file if it is no text in UTF-8, or no table."""
    with opened(path) as binary:
        try:
            with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
                yield _rows(text, delimiter)
        except UnicodeDecodeError as error:
            raise file_error(path, f"not a text file in UTF-8 ({error.reason} at byte {error.start})") from error
        except csv.Error as error:
            raise file_error(path, f"not delimited text ({error})") from error


def _rows(text: io.TextIOWrapper, delimiter: str | None) -> Iterator[_Row]:
    """Yield the rows that are not blank, each with the number of the line on which it ends."""
    if delimiter is None:
        first = next(filter(str.strip, text), "")
        delimiter = next((mark for mark in "\t;," if mark in first), ",")
        text.seek(0)
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        if row and (len(row) > 1 or row[0].strip()):
            yield reader.line_num, row


def _collect(
    path: PathLike, rows: Iterator[_Row], target: int | str | None, header: bool | str, dtype: FloatType
) -> Dataset:
    head = list(islice(rows, 2))
    columns = _layout_of(path, head, target, header)
    values = array("f" if dtype is np.float32 else "d")
    labels: list[str] = []
    limit = float(np.finfo(dtype).max)
    for line, row in chain(head[1:] if columns.names else head, rows):
        _check_row(path, line, row, columns)
        values.extend(_numbers(path, line, row, columns, limit))
        if columns.target is not None:
            labels.append(row[columns.target].strip())
    n_features = columns.width - (columns.target is not None)
    X = np.frombuffer(values, dtype=dtype).reshape(-1, n_features)
    if len(X) == 0:
        raise file_error(path, "the file has a header and no samples")
    return Dataset(X, None if columns.target is None else _as_labels(labels))


def _layout_of(path: PathLike, head: list[_Row], target: int | str | None, header: bool | str) -> Columns:
    """Decide from the first two rows which column is the label and whether there is a header."""
    if not head:
        raise file_error(path, "the file is empty")
    line, first = head[0]
    width = len(first)
    if target is not None and width < 2:
        raise file_error(path, "one column only: is the delimiter neither comma, semicolon nor tab?", line)
    names = [cell.strip() for cell in first]
    if isinstance(target, str):
        if target not in names:
            raise file_error(path, f"no column is named {target!r}{suggestion(target, names)}", line)
        return Columns(line, width, names.index(target), names)
    if target is not None and not -width <= target < width:
        raise file_error(path, f"there is no column {target}: a row has {width}", line)
    column = None if target is None else target % width
    has_header = _looks_like_header(head, Columns(line, width, column, None)) if header == "auto" else bool(header)
    return Columns(line, width, column, names if has_header else None)


def suggestion(name: str, names: list[str]) -> str:
    """The end of a message: the column with the most similar name, if there is one, and the names of the columns."""
    meant = "".join(f": did you mean {quoted(near)}?" for near in get_close_matches(name, names, 1))
    more = f", ... ({len(names)} in all)" if len(names) > _SHOWN_NAMES else ""
    return f"{meant or ';'} the columns are {', '.join(map(quoted, names[:_SHOWN_NAMES]))}{more}"


def _looks_like_header(head: list[_Row], columns: Columns) -> bool:
    first = head[0][1]
    if not any(_is_number(cell) for cell in columns.features_of(first)):
        return True
    if columns.target is None or len(head) < 2 or len(head[1][1]) != columns.width:
        return False
    return not _is_number(first[columns.target]) and _is_number(head[1][1][columns.target])


def _check_row(path: PathLike, line: int, row: list[str], columns: Columns) -> None:
    if len(row) != columns.width:
        raise file_error(path, f"{len(row)} fields where the first row has {columns.width}", line)
    if columns.target is not None and row[columns.target].strip().lower() in ("", "nan"):
        raise file_error(path, "the label is missing", line)


def _numbers(path: PathLike, line: int, row: list[str], columns: Columns, limit: float) -> list[float]:
    cells = columns.features_of(row)
    if "_" in "".join(cells):  # `float` would take it for a mark between digits
        _raise_cell_fault(path, line, cells, columns, limit)
    try:
        values = list(map(float, cells))
    except ValueError:
        _raise_cell_fault(path, line, cells, columns, limit)
    # False for NaN as well as for infinity and for what would become infinite in float32.
    if not all(-limit <= value <= limit for value in values):
        _raise_cell_fault(path, line, cells, columns, limit)
    return values


def _raise_cell_fault(path: PathLike, line: int, cells: list[str], columns: Columns, limit: float) -> NoReturn:
    for feature, cell in enumerate(cells):
        place = columns.describe(feature)
        if not cell.strip():
            raise file_error(path, f"{place} is empty", line)
        if not _is_number(cell):
            raise file_error(path, f"{place} is {quoted(cell)}, which is not a number", line)
        if not -limit <= float(cell) <= limit:
            raise file_error(path, f"{place} is {quoted(cell)}, which is not finite or too large for the dtype", line)
    raise AssertionError("called for a row without a fault")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _as_labels(labels: list[str]) -> NDArray[Any]:
    try:
        numbers = np.array(labels, dtype=np.float64)
    except ValueError:
        return np.array(labels)
    are_numbers = np.isfinite(numbers).all() and "_" not in "".join(labels)
    return integers_if_whole(numbers) if are_numbers else np.array(labels)
