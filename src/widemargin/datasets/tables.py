"""Tables: one row per sample, one column of labels, numbers or text in all others."""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from widemargin.datasets.delimited import opened_rows
from widemargin.datasets.files import Dataset, FloatType, PathLike, file_error, is_number, labels_of, quoted
from widemargin.datasets.layouts import (
    MISSING,
    Columns,
    Names,
    TableOptions,
    is_missing,
    limit_of,
    line_of,
    read_columns,
    text_columns,
)
from widemargin.datasets.precision import read_as_needed

_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")


def load_csv(
    path: PathLike,
    *,
    target: int | str | None = -1,
    delimiter: str | None = None,
    header: bool | Literal["auto"] = "auto",
    decimal: Literal[".", ","] = ".",
    drop: Names = (),
    text: Names | Literal["auto"] = (),
    may_lack_values: bool = False,
    unlabelled: Literal["raise", "drop", "keep"] = "raise",
    dtype: FloatType | None = None,
) -> Dataset:
    r"""Read delimited text: plain, or compressed as ``.gz``, ``.bz2``, ``.xz``, ``.zst`` or ``.zip``.

    Parameters
    ----------
    path : str or path-like
        The file, in UTF-8. Blank lines are skipped, and so is what follows a delimiter at the end of every line. The
        index that pandas writes, a first column of whole numbers without a name, is dropped with a warning.
    target : int, str or None, default=-1
        The column of labels: its position, counted from 0 or, if negative, from the end; or its name in the header.
        None: no labels, all columns are features.
    delimiter : str, default=None
        One character. None takes that of a first line ``sep=;``, or the first of tab, semicolon and comma by which
        most of the first lines have the same number of fields.
    header : bool or "auto", default="auto"
        Whether the first line names the columns. "auto": it does if none of its features is a number, if its label
        is not a number and the next line's label is, or if it counts the columns (0, 1, 2, ...; with a warning).
    decimal : {".", ","}, default="."
        The mark before decimals.
    drop : sequence of int or str, default=()
        Columns to leave out, by position or name.
    text : sequence of int or str, or "auto", default=()
        Columns of text: for a `OneHotEncoder`, say. "auto": those of which a tenth of the cells, those that are missing
        aside, is no number.
    may_lack_values : bool, default=False
        Whether features may be missing: an empty cell, ``NA``, ``NaN``, ``null``, ``?`` or ``-``. They become NaN, and
        empty strings in columns of text.
    unlabelled : {"raise", "drop", "keep"}, default="raise"
        What becomes of a row whose label is missing: an error, nothing, or a row whose label is NaN, or empty
        among labels that are text.
    dtype : {numpy.float32, numpy.float64}, default=None
        Type of X: kernels are computed in it. None: float32, which keeps seven digits; float64 where rounding to them
        moves a value by more than 1e-5 of its column's standard deviation (with a warning).

    Returns
    -------
    Dataset
        X is an ndarray of shape (n_samples, n_features) and the given dtype; with columns of text, of objects: floats
        and strings. y is int64 where all labels are whole numbers, float64 where all are numbers, otherwise strings,
        as numbers with leading zeros are; None without a target.

    Raises
    ------
    ValueError
        ``FILE:LINE: reason`` for the first row with another number of fields than the first, a feature that is not a
        finite number, or no label; for an empty file, an unknown column and damaged compression.

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
    return read_table(
        path,
        TableOptions(target, delimiter, header, decimal, drop, text, may_lack_values, unlabelled, dtype),
    ).data


def load_arff(path: PathLike, **options: Any) -> Dataset:
    """Read an ARFF file, dense: a table whose header are its attributes.

    Parameters
    ----------
    path : str or path-like
        The file.
    **options
        Those of `load_csv` but for `delimiter`, `header` and `decimal`. Nominal and string attributes are text.

    Returns
    -------
    Dataset
        As `load_csv` returns it.

    Raises
    ------
    ValueError
        As `load_csv`; for sparse rows, dates and relational attributes.
    """
    return read_table(path, TableOptions(arff=True, **options)).data


class Table(NamedTuple):
    """The samples of a table, and its layout."""

    data: Dataset
    columns: Columns


def read_table(path: PathLike, options: TableOptions) -> Table:
    """Read a table as `load_csv` does, and warn of what was decided.

    Raises
    ------
    ValueError
        As `load_csv`.
    """
    columns = read_columns(path, options)
    for note in columns.notes:
        _warn(f"{path}: {note}")
    reader = _Reader(path, columns, options)
    if columns.text or options.dtype:
        return Table(reader.labelled(reader.samples(options.dtype or np.float64)), columns)
    X, wide = read_as_needed(reader.samples)
    if len(wide):
        which = ", ".join(columns.describe(columns.features[k]) for k in wide[:3]) + (", ..." if len(wide) > 3 else "")
        _warn(f"{path}: float32 would round {which}: read as float64")
    return Table(reader.labelled(X), columns)


class _Reader:
    """Reads the samples of a table, and then knows their labels."""

    def __init__(self, path: PathLike, columns: Columns, options: TableOptions) -> None:
        self._path, self._columns, self._options = path, columns, options
        self._limit = limit_of(options.dtype)
        self._labels: list[str] = []

    def samples(self, dtype: FloatType) -> NDArray[Any]:
        """X of shape (n_samples, n_features): of this dtype, or of objects with columns of text."""
        self._labels, n_features = [], len(self._columns.features)
        if self._columns.text:
            rows = list(self._rows())
            X = np.empty((len(rows), n_features), dtype=object)
            X[:] = rows
        else:
            values = array("f" if dtype is np.float32 else "d")
            for row in self._rows():
                values.extend(row)
            X = np.frombuffer(values, dtype=dtype).reshape(-1, n_features)
        if len(X) == 0:
            raise file_error(self._path, "the file has a header and no samples")
        return X

    def labelled(self, X: NDArray[Any]) -> Dataset:
        """X and its labels; without a target, and where no row has a label, with None."""
        if self._columns.target is None:
            return Dataset(X, None)
        labels = self._labels if self._options.decimal == "." else _with_points(self._labels)
        missing = _missing_labels(labels)
        if not missing:
            return Dataset(X, labels_of(labels))
        has_label = np.array([label not in missing for label in labels])
        if self._options.unlabelled == "raise":
            row = int(np.argmin(has_label))
            reason = f"the label is missing ({quoted(labels[row])})"
            remedy = "--unlabelled drop, or unlabelled='drop', leaves such rows out"
            raise file_error(self._path, f"{reason}; {remedy}", line_of(self._path, row, self._options))
        present = labels_of([label for label in labels if label not in missing])
        if self._options.unlabelled == "keep":
            return Dataset(X, _filled(present, has_label) if len(present) else None)
        if not len(present):
            raise file_error(self._path, "no row has a label")
        _warn(f"{self._path}: rows without a label, left out: {len(X) - len(present)}")
        return Dataset(X[has_label], present)

    def _rows(self) -> Iterator[list[Any]]:
        """The features of each row; its label is appended to the labels."""
        columns, features = self._columns, self._columns.features
        takes_all = features == tuple(range(columns.width))
        with opened_rows(self._path, self._options.delimiter, arff=self._options.arff) as rows:
            for line, row in islice(rows, int(columns.names is not None), None):
                if len(row) != columns.width:
                    raise file_error(self._path, f"{len(row)} fields where the first row has {columns.width}", line)
                if columns.target is not None:
                    self._labels.append(row[columns.target].strip())
                yield self._values(line, row if takes_all else [row[k] for k in features])

    def _values(self, line: int, cells: list[str]) -> list[Any]:
        texts = self._columns.text
        if texts:
            return [
                ("" if is_missing(cell) else cell.strip()) if k in texts else self._numbers(line, [cell], k)[0]
                for k, cell in zip(self._columns.features, cells, strict=True)
            ]
        return self._numbers(line, cells)

    def _numbers(self, line: int, cells: list[str], position: int | None = None) -> list[float]:
        """The cells as numbers: of all features, or of the one at this position."""
        if self._options.decimal == ",":
            cells = _with_points(cells)
        try:
            values = list(map(float, cells))
        except ValueError:
            values = []
        # False for NaN as well as for infinity and for what would become infinite in float32. `float` would take an
        # underscore for a mark between digits.
        is_valid = values and all(-self._limit <= value <= self._limit for value in values)
        if is_valid and "_" not in "".join(cells):
            return values
        places = self._columns.features if position is None else (position,)
        return [self._number(line, k, cell) for k, cell in zip(places, cells, strict=True)]

    def _number(self, line: int, position: int, cell: str) -> float:
        """One cell as a number, NaN if it is missing; an error that names it if it is none."""
        if is_missing(cell):
            if self._options.may_lack_values:
                return float("nan")
            self._refuse(line, position, f"is missing ({quoted(cell.strip())})" if cell.strip() else "is empty")
        if not is_number(cell):
            self._refuse(line, position, f"is {quoted(cell)}, which is not a number")
        if not -self._limit <= float(cell) <= self._limit:
            self._refuse(line, position, f"is {quoted(cell)}, which is not finite or too large for the dtype")
        return float(cell)

    def _refuse(self, line: int, position: int, reason: str) -> NoReturn:
        message = f"{self._columns.describe(position)} {reason}"
        raise file_error(self._path, message + self._remedy(position, reason), line)

    def _remedy(self, position: int, reason: str) -> str:
        """The end of a message: which option reads such a cell."""
        columns, options = self._columns, self._options
        if "missing" in reason or "empty" in reason:
            return "; --impute median, or may_lack_values=True, reads tables with missing values"
        if "not a number" not in reason:
            return ""
        cell = reason.split("'")[1]
        if _THOUSANDS.fullmatch(cell):
            return "; if the commas divide thousands, remove them; --decimal , or decimal=',' reads decimal commas"
        if options.decimal == "." and is_number(cell.replace(",", ".")):
            return "; --decimal , or decimal=',' reads decimal commas"
        found = [k for k in text_columns(self._path, columns, options) if k not in columns.text]
        if position not in found:  # a mistake
            return ""
        names = ", ".join(quoted(columns.names[k]) if columns.names else str(k) for k in found[:10])
        more = f", ... ({len(found)} in all)" if len(found) > 10 else ""
        return f"; columns with text: {names}{more}; --one-hot auto, or text='auto', takes these as categories"


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=2)


def _missing_labels(labels: list[str]) -> set[str]:
    """Those of the labels that say there is none. A minus sign does, unless others are a plus sign."""
    distinct = set(labels)
    return distinct & (MISSING if "+" in distinct else MISSING | {"-"})


def _filled(present: NDArray[Any], has_label: NDArray[np.bool_]) -> NDArray[Any]:
    """Labels for all rows: NaN where one is missing, or an empty text among texts."""
    is_text = present.dtype.kind == "U"
    y = np.full(len(has_label), "" if is_text else np.nan, dtype=present.dtype if is_text else np.float64)
    y[has_label] = present
    return y


def _with_points(cells: list[str]) -> list[str]:
    return [cell.replace(",", ".") for cell in cells]
