"""Delimited text: one row per sample, one column of labels, numbers in all others."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from widemargin.datasets.files import Dataset, FloatType, PathLike, file_error, integers_if_whole, opened, quoted

_Row: TypeAlias = tuple[int, list[str]]


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
    with opened(path) as binary:
        try:
            text = io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
            rows = _rows(text, delimiter)
            return _collect(path, rows, target, header, dtype)
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


class _Columns(NamedTuple):
    """Layout of a table: number of fields of a row, position of the label, names of the columns or None."""

    width: int
    target: int | None
    names: list[str] | None

    def features_of(self, row: list[str]) -> list[str]:
        """The row without its label."""
        return row if self.target is None else row[: self.target] + row[self.target + 1 :]

    def describe(self, feature: int) -> str:
        """The column of a feature, for a message: its number from 1, the label's column counted, and its name."""
        column = feature + (self.target is not None and feature >= self.target)
        name = f" ({quoted(self.names[column])})" if self.names else ""
        return f"column {column + 1}{name}"


def _collect(
    path: PathLike, rows: Iterator[_Row], target: int | str | None, header: bool | str, dtype: FloatType
) -> Dataset:
    head = [row for _, row in zip(range(2), rows, strict=False)]
    if not head:
        raise file_error(path, "the file is empty")
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


def _layout_of(path: PathLike, head: list[_Row], target: int | str | None, header: bool | str) -> _Columns:
    """Decide from the first two rows which column is the label and whether there is a header."""
    line, first = head[0]
    width = len(first)
    if target is not None and width < 2:
        raise file_error(path, "one column only: is the delimiter neither comma, semicolon nor tab?", line)
    names = [cell.strip() for cell in first]
    if isinstance(target, str):
        if target not in names:
            raise file_error(
                path, f"no column is named {target!r}; the columns are {', '.join(map(quoted, names[:20]))}", line
            )
        return _Columns(width, names.index(target), names)
    if target is not None and not -width <= target < width:
        raise file_error(path, f"there is no column {target}: a row has {width}", line)
    column = None if target is None else target % width
    has_header = _looks_like_header(head, _Columns(width, column, None)) if header == "auto" else bool(header)
    return _Columns(width, column, names if has_header else None)


def _looks_like_header(head: list[_Row], columns: _Columns) -> bool:
    first = head[0][1]
    if not any(_is_number(cell) for cell in columns.features_of(first)):
        return True
    if columns.target is None or len(head) < 2 or len(head[1][1]) != columns.width:
        return False
    return not _is_number(first[columns.target]) and _is_number(head[1][1][columns.target])


def _check_row(path: PathLike, line: int, row: list[str], columns: _Columns) -> None:
    if len(row) != columns.width:
        raise file_error(path, f"{len(row)} fields where the first row has {columns.width}", line)
    if columns.target is not None and row[columns.target].strip().lower() in ("", "nan"):
        raise file_error(path, "the label is missing", line)


def _numbers(path: PathLike, line: int, row: list[str], columns: _Columns, limit: float) -> list[float]:
    cells = columns.features_of(row)
    try:
        values = list(map(float, cells))
    except ValueError:
        _raise_cell_fault(path, line, cells, columns, limit)
    # False for NaN as well as for infinity and for what would become infinite in float32.
    if not all(-limit <= value <= limit for value in values):
        _raise_cell_fault(path, line, cells, columns, limit)
    return values


def _raise_cell_fault(path: PathLike, line: int, cells: list[str], columns: _Columns, limit: float) -> NoReturn:
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
    return True


def _as_labels(labels: list[str]) -> NDArray[Any]:
    try:
        numbers = np.array(labels, dtype=np.float64)
    except ValueError:
        return np.array(labels)
    return integers_if_whole(numbers) if np.isfinite(numbers).all() else np.array(labels)
