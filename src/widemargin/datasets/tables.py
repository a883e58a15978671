"""Tables of all formats as typed columns: `load_table`."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from widemargin._output_files import open_named
from widemargin.datasets.arff import ArffFile
from widemargin.datasets.arrays import load_npz, load_svmlight
from widemargin.datasets.arrow import ArrowFile, DeclinedError, delimited_batches, has_pyarrow
from widemargin.datasets.columns import Batch, Column, Words, collect, converted, frame_of, labels_in, noteworthy
from widemargin.datasets.files import PathLike, compression_of, file_error, is_read_once
from widemargin.datasets.layouts import Names, Row, TableOptions, decide
from widemargin.datasets.rows import delimited_rows, dialect_of, json_rows, sheet_rows

FORMATS = {  # and the suffixes of each; files of any other suffix, or none, are svmlight's: a9a, a9a.t, letter.scale
    "csv": (".csv", ".tsv", ".tab", ".dat"),
    "arff": (".arff",),
    "json": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".feather", ".arrow", ".ipc"),
    "xlsx": (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"),
    "npz": (".npz",),
    "svmlight": (),
}
ARRAYS = ("npz", "svmlight")  # formats of matrices, not of tables
_SAVE = "save it as .csv or .parquet"
_NOT_READ = {
    (".h5", ".hdf5", ".mat", ".sas7bdat", ".dta", ".sav", ".rds", ".rdata"): f"this format is not read: {_SAVE}",
    (".pkl", ".pickle", ".joblib"): f"pickles are not read, as they can run code: {_SAVE}",
    (".npy",): "a .npy file has one array: save X and y by numpy.savez as .npz",
    (".tar", ".tgz", ".7z", ".rar", ".z"): "archives of this format are not read: unpack it first",
}
_HEAD_ROWS, _HEAD_CELLS = 5_000, 200_000  # on which a layout is decided
_LEAST_BYTES = 2**18  # of a text for pyarrow, whose import takes longer than to read a shorter one


class Table(NamedTuple("Table", [("X", Any), ("y", Any)])):
    """A frame and labels, ``X, y``; `sample_weight` are the weights of ARFF's instances, or None."""

    sample_weight: Any = None


def load_table(  # noqa: PLR0913 - what a table may need
    path: PathLike,
    *,
    target: int | str | None = -1,
    drop: Names = (),
    text: Names = (),
    missing: Sequence[str] = (),
    delimiter: str | None = None,
    header: bool | Literal["auto"] = "auto",
    decimal: Literal[".", ","] = ".",
    thousands: str | None = None,
    unlabelled: Literal["raise", "drop", "keep"] = "raise",
    format: str | None = None,
) -> Table:
    r"""Read a table: delimited or aligned text, Parquet, Arrow, JSON lines, a spreadsheet, ARFF, svmlight or npz.

    What is no number and no category for certain is an error that names the line and the option that reads it.

    Parameters
    ----------
    path : str or path-like
        A file, or several of one layout: a folder, or a pattern such as ``"flights/*.parquet"``. Text may be
        compressed: ``.gz``, ``.bz2``, ``.xz``, ``.zst``, ``.zip``.
    target : int, str or None, default=-1
        The column of labels: its position, counted from 0 or, if negative, from the end; or its name. None: no labels.
    drop, text : sequence of int or str, default=()
        Columns to leave out, and columns taken as categories whatever their cells are, by position or name.
    missing : sequence of str, default=()
        Further words for missing values: an empty cell, ``NA``, ``NaN``, ``null``, ``?``, ``\N`` are some, and among
        numbers ``-`` and ``.``.
    delimiter : str, default=None
        One character, a blank stands for any number. None takes the first of tab, semicolon, comma, ``|`` and blanks
        that gives most of the first lines the same number of fields.
    header : bool or "auto", default="auto"
        Whether the first line names the columns.
    decimal, thousands : str, default="." and None
        The mark before decimals, ``"."`` or ``","``, and one between thousands.
    unlabelled : {"raise", "drop", "keep"}, default="raise"
        What becomes of a row without a label: an error, nothing, or a row whose label is NaN, or empty among text.
    format : str, default=None
        One of "csv", "arff", "json", "parquet", "arrow", "xlsx", "npz", "svmlight"; None: by the suffix.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        Of float64, NaN where a value is missing, categories and dates. Without pandas an array; of svmlight a
        csr_matrix, of npz what is in the file.
    y : ndarray of shape (n_samples,), or None
        int64 where all labels are whole numbers, float64 where all are numbers, otherwise strings, as numbers with
        leading zeros are. What is returned also has the attribute `sample_weight`: weights of ARFF's instances.

    Raises
    ------
    ValueError
        ``FILE:LINE: reason``; or the number of rows that fit if the table exceeds the configured ``memory_budget``.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "irises.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("length;width;kind\n5.1;3.5;setosa\n7.0;;versicolor\n")
    ...     X, y = load_table(path)
    >>> X.to_numpy().tolist(), y.tolist()
    ([[5.1, 3.5], [7.0, nan]], ['setosa', 'versicolor'])
    """
    options = TableOptions(target, drop, text, missing, delimiter, header, decimal, thousands, unlabelled)
    if format not in (None, *FORMATS):
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, or None, got {format!r}")
    with copied(path, os.fspath(path)) if is_read_once(path) else nullcontext(os.fspath(path)) as file:
        form = format or format_of(file)
        if form in ARRAYS:
            key = target if isinstance(target, str) else "y"
            data = load_npz(file, target=key) if form == "npz" else load_svmlight(file)
            return Table(data.X, data.y)
        source = TableSource(file, options, form)
        columns, y, weight = source.read()
        table = Table(frame_of(source.layout, columns), y)
        table.sample_weight = weight
        return table


@contextmanager
def copied(source: Any, name: str) -> Iterator[str]:
    """The path of a temporary copy of a pipe, of a device, or of an open stream: files are read more than once.

    ValueErrors of the block have the name in place of the copy's.
    """
    is_stream = hasattr(source, "read")
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "input" + ("" if is_stream else "".join(Path(source).suffixes)))
        with (
            open_named(copy, f"the copy in {tempfile.gettempdir()}") as target,
            nullcontext(source) if is_stream else open(source, "rb") as file,
        ):
            shutil.copyfileobj(file, target)
        try:
            yield copy
        except ValueError as error:
            raise ValueError(str(error).replace(copy, name)) from error


def format_of(path: PathLike) -> str:
    """The format of a file, by its suffix without that of a compression; of a folder or pattern that of its files.

    A ValueError says what to do with a format that is not read, such as ``.h5``.
    """
    if os.path.isdir(path) or glob.has_magic(os.fspath(path)):
        path = files_of(path)[0]
    plain = Path(path).with_suffix("") if compression_of(path) else Path(path)
    suffix = plain.suffix.lower()
    for suffixes, reason in _NOT_READ.items():
        if suffix in suffixes:
            raise file_error(path, reason)
    return next((form for form, suffixes in FORMATS.items() if suffix in suffixes), "svmlight")


def files_of(path: PathLike) -> list[str]:
    """The files of a folder or a pattern in alphabetic order; another path itself. Hidden files are none."""
    path = os.fspath(path)
    if os.path.isfile(path):
        return [path]
    pattern = os.path.join(glob.escape(path), "**", "*") if os.path.isdir(path) else path
    found = sorted(name for name in glob.glob(pattern, recursive=True) if os.path.isfile(name))
    visible = [name for name in found if not os.path.basename(name).startswith((".", "_"))]
    if not visible:
        raise FileNotFoundError(2, "No files in this folder" if os.path.isdir(path) else "No such file", path)
    return visible


class TableSource:
    """A table whose `layout` is known, and whose rows can be read any number of times."""

    def __init__(self, path: PathLike, options: TableOptions, form: str) -> None:
        paths = files_of(path)
        options = replace(options, declared=form in ("arff", "parquet", "arrow"))
        file_of_table = ArrowFile if form in ("parquet", "arrow") else _TextFile
        first = file_of_table(paths[0], options, form)
        self._files, self.layout = [first], first.layout
        layout = self.layout
        if not options.declared:  # other files have the kinds of the first, whatever their cells are
            kinds = {k if layout.names is None else layout.names[k]: kind for k, kind in layout.kinds.items()}
            options = replace(options, kinds=kinds)
        for other in paths[1:]:
            file = file_of_table(other, options, form)
            if (file.layout.names, file.layout.width) != (layout.names, layout.width):
                raise file.layout.error(f"its columns are others than those of {paths[0]}")
            unlike = [k for k in layout.used if file.layout.kinds.get(k) != layout.kinds[k]]
            if options.declared and unlike:
                raise file.layout.error(f"{layout.describe(unlike[0])} has another type than in {paths[0]}")
            own = file.layout
            file.layout = replace(layout, path=own.path, line=own.line, has_header=own.has_header)
            self._files.append(file)
        notes = layout.notes
        if any("=" in part for other in paths for part in Path(os.path.relpath(other, path)).parts):
            notes += ("its folders named key=value are no columns: add such a column to each file",)
        self.layout = replace(layout, path=os.fspath(path), notes=notes)

    def read(self, folder: str | None = None) -> tuple[dict[int, Column], Any, Any]:
        """The features by position, the labels, and the weights, of all rows, within the memory budget of `collect`.

        Then the levels of the layout are the words of all categories, in the order of their numbers.
        """
        layout = self.layout
        columns = self._collect(folder, is_strict=not has_pyarrow()) or self._collect(folder, is_strict=True)
        if pyarrow := sys.modules.get("pyarrow"):  # labels and frames are made in the memory of its blocks
            pyarrow.default_memory_pool().release_unused()
        words = {k: list(known) for k, known in self._words.items() if layout.kinds.get(k) in ("category", "label")}
        notes = [*layout.notes, *noteworthy(layout, columns, words)]
        weight = None if layout.weight is None else columns.pop(layout.weight)
        y = kept = None
        if (target := layout.target) is not None:
            y, kept, more = labels_in(layout, columns.pop(target), words.get(target), self.error_at)
            notes += more
        for note in notes:
            warnings.warn(f"{layout.path}: {note}", stacklevel=3)
        self.layout = replace(layout, levels=words)
        if kept is not None:
            n_kept = int(np.count_nonzero(kept))
            for k, column in columns.items():  # in place: they may be memory maps
                column[:n_kept] = column[kept]
                columns[k] = column[:n_kept]
            weight = None if weight is None else weight[kept]
        return columns, y, weight

    def _collect(self, folder: str | None, *, is_strict: bool) -> dict[int, Column]:
        """All columns, by position; none if pyarrow declines one."""
        declared = self.layout.levels.items()
        self._words: Words = {k: {word: code for code, word in enumerate(words)} for k, words in declared}
        batches = (batch for file in self._files for batch in file.batches(self._words, is_strict=is_strict))
        try:
            return collect(batches, self.layout, folder)
        except DeclinedError:
            return {}

    def place_of(self, row: int) -> tuple[str, int | None]:
        """The file and the line of a row, counted from 0 over all files; of unlabelled rows dropped, the file alone."""
        for file in self._files if self.layout.options.unlabelled != "drop" else ():
            for line, _ in file.rows():
                if row == 0:
                    return file.layout.path, line
                row -= 1
        return self.layout.path, None

    def error_at(self, row: int, reason: str) -> ValueError:
        """An error that names the file and the line of a row."""
        path, line = self.place_of(row)
        return file_error(path, reason, line)


class _TextFile:
    """One file of text, JSON or a spreadsheet, with its layout."""

    def __init__(self, path: str, options: TableOptions, form: str) -> None:
        self._dialect = dialect_of(path, options.delimiter) if form == "csv" else None
        if form == "arff":
            arff = ArffFile(path, options)
            self.layout, self._all_rows = arff.layout, arff.rows
            return
        if self._dialect:
            self._all_rows = partial(delimited_rows, path, self._dialect)
        else:
            self._all_rows = partial(json_rows if form == "json" else sheet_rows, path)
        rows = islice(self._all_rows(), _HEAD_ROWS)
        head = list(islice(rows, 1))
        head += islice(rows, _HEAD_CELLS // len(head[0][1])) if head else []
        options = replace(options, header=True) if form == "json" else options
        self.layout = decide(path, head, options, self._dialect.names if self._dialect else None)

    def rows(self) -> Iterator[Row]:
        """The rows below the header."""
        return islice(self._all_rows(), int(self.layout.has_header), None)

    def batches(self, words: Words, *, is_strict: bool) -> Iterator[Batch]:
        """Typed columns of blocks of rows: by pyarrow, where that pays and the strict reader is not asked for."""
        if self._dialect and not is_strict and os.path.getsize(self.layout.path) >= _LEAST_BYTES:
            yield from delimited_batches(self._dialect, self.layout, words)
        else:
            yield from converted(self.rows(), self.layout, words)
