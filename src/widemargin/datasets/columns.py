"""Typed columns: cells converted block by block, collected within the memory budget, and given as a frame."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin._config import resolve_memory_budget
from widemargin.datasets.files import is_number, labels_of, quoted
from widemargin.datasets.layouts import (
    BOOLEANS,
    CATEGORY,
    DATE,
    ISO_DATE,
    LABEL,
    NUMBER,
    Cell,
    Layout,
    Row,
    TableOptions,
    check_whole,
    refusal,
    remedy,
)

_BLOCK_CELLS = 100_000


class Codes(NamedTuple):
    """Categories: for each row the number of its word, -1 where it is missing."""

    codes: NDArray[np.int32]
    words: list[str]


Column = Any  # NDArray of float64, of dates, of labels; or Codes
Batch = list[Column]  # of the columns that a layout uses, in their order


# Cells to columns -----------------------------------------------------------------------------------------------------


def converted(rows: Iterable[Row], layout: Layout, options: TableOptions) -> Iterator[Batch]:
    """Typed columns of blocks of rows: a ValueError names the line of the first cell that does not fit."""
    rows = iter(rows)
    size = max(1, _BLOCK_CELLS // layout.width)
    for block in iter(lambda: list(islice(rows, size)), []):
        for line, row in block:
            if len(row) != layout.width:
                raise layout.error(f"{len(row)} fields where the first row has {layout.width}", line)
        lines, cells = zip(*block, strict=True)
        by_column = list(zip(*cells, strict=True))
        yield [_convert(layout, k, lines, by_column[k], options) for k in layout.used]


def _convert(
    layout: Layout, position: int, lines: tuple[int, ...], cells: tuple[Cell, ...], options: TableOptions
) -> Column:
    kind = layout.kinds.get(position, NUMBER)
    if kind in (CATEGORY, LABEL):
        return _coded(layout, position, cells, options)
    if kind == NUMBER and options.decimal == "." and not options.missing and not options.thousands:
        try:
            numbers = np.array(list(map(float, cells)))  # type: ignore[arg-type]
            text = "".join(cells)  # type: ignore[arg-type]
            if np.abs(numbers).max() < 2.0**53 and "_" not in text and text.isascii():
                return numbers
        except (ValueError, TypeError):
            pass
    values = [_value(layout, position, line, cell, options, kind) for line, cell in zip(lines, cells, strict=True)]
    return np.array(values, dtype="datetime64[us]" if kind == DATE else np.float64)


def _coded(layout: Layout, position: int, cells: tuple[Cell, ...], options: TableOptions) -> Codes:
    known: dict[str, int] = {}
    is_label = layout.kinds.get(position) == LABEL or position == layout.target
    numbers = {}
    for cell in dict.fromkeys(cells):  # in the order of the rows
        word = None if cell is None else cell.strip()
        is_missing = word is None or (not is_label and options.is_missing(word))
        numbers[cell] = -1 if is_missing else known.setdefault(word or "", len(known))
    return Codes(np.array([numbers[cell] for cell in cells], dtype=np.int32), list(known))


def _value(layout: Layout, position: int, line: int, cell: Cell, options: TableOptions, kind: str) -> Any:
    text = "" if cell is None else cell.strip()
    if cell is None or options.is_missing(text, number=True):
        return np.datetime64("NaT") if kind == DATE else np.nan
    if kind == DATE:
        if ISO_DATE.fullmatch(text):
            try:
                moment = datetime.fromisoformat(text)
                return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
            except ValueError:
                pass
        raise layout.error(f"{layout.describe(position)} is {quoted(text)}, which is not a date", line)
    if text in BOOLEANS and kind != NUMBER:
        return BOOLEANS[text]
    plain = options.plain(text)
    if not is_number(plain) or kind != NUMBER:
        raise refusal(layout, position, line, text, options)
    check_whole(layout, position, line, plain)
    return float(plain)


# Columns to tables ----------------------------------------------------------------------------------------------------


class Collected:
    """Columns of all batches so far, in buffers that grow. A column of words has one numbering for all batches."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.n_rows, self._capacity = layout, 0, 0
        self._buffers: list[NDArray[Any]] = []
        self.words: list[dict[str, int] | None] = [None] * len(layout.used)
        for place, k in enumerate(layout.used):
            if k in layout.levels:
                self.words[place] = {word: code for code, word in enumerate(layout.levels[k])}

    @property
    def n_bytes(self) -> int:
        """Bytes of the rows so far."""
        return self.n_rows * sum(buffer.itemsize for buffer in self._buffers)

    def add(self, batch: Batch) -> None:
        """Append a copy of the rows of a batch."""
        parts = [self.renumbered(place, one) if isinstance(one, Codes) else one for place, one in enumerate(batch)]
        if not self._buffers:
            self._buffers = [np.empty(0, dtype=part.dtype) for part in parts]
        start, self.n_rows = self.n_rows, self.n_rows + len(parts[0])
        if self.n_rows > self._capacity:
            self._capacity = max(self.n_rows, self.n_rows + self.n_rows // 4)
            for buffer in self._buffers:
                buffer.resize(self._capacity, refcheck=False)  # in place, if the system has room behind it
        for place, part in enumerate(parts):
            if part.dtype != self._buffers[place].dtype:  # a label that is missing in later rows
                self._buffers[place] = self._buffers[place].astype(np.result_type(part, self._buffers[place]))
            self._buffers[place][start : self.n_rows] = part

    def renumbered(self, place: int, column: Codes) -> NDArray[np.int32]:
        """The codes of a batch in the numbering of all."""
        known = self.words[place]
        if known is None:
            known = self.words[place] = {}
        numbers = np.array([*(known.setdefault(word, len(known)) for word in column.words), -1], dtype=np.int32)
        return numbers[column.codes]

    def columns(self) -> list[Column]:
        """The columns (n_rows,), whose buffers are given up."""
        buffers, self._buffers = self._buffers, []
        for buffer in buffers:
            buffer.resize(self.n_rows, refcheck=False)
        pairs = zip(buffers, self.words, strict=True)
        return [buffer if known is None else Codes(buffer, list(known)) for buffer, known in pairs]


def collect(batches: Iterable[Batch], layout: Layout) -> Collected:
    """All rows of a table; a ValueError says how many fit if they exceed the configured ``memory_budget``."""
    collected, budget = Collected(layout), resolve_memory_budget()
    for batch in batches:
        collected.add(batch)
        if collected.n_bytes > budget:
            fitting = int(collected.n_rows * budget / collected.n_bytes)
            raise TooLargeError(
                f"{layout.path}: its rows exceed memory_budget, {budget} bytes: about {fitting:,} would fit"
            )
    if not collected.n_rows:
        raise layout.error("the file has a header and no samples" if layout.names else "the file has no samples")
    return collected


class TooLargeError(ValueError):
    """A table does not fit into the memory budget."""


class Table(tuple):  # type: ignore[type-arg]
    """A frame and labels, ``X, y``, with what else is known of them.

    Attributes
    ----------
    X : DataFrame, ndarray or csr_matrix
    y : ndarray or None
    sample_weight : ndarray or None
        Weights of ARFF's instances.
    layout : Layout
    """

    X: Any
    y: NDArray[Any] | None
    sample_weight: NDArray[np.float64] | None
    layout: Layout

    def __new__(cls, X: Any, y: Any, sample_weight: Any = None, layout: Any = None) -> Table:
        """A pair."""
        table = super().__new__(cls, (X, y))
        table.X, table.y, table.sample_weight, table.layout = X, y, sample_weight, layout
        return table


def take_rows(columns: dict[int, Column], rows: Any) -> dict[int, Column]:
    """Some rows of columns: a mask, a slice or numbers."""
    return {k: Codes(c.codes[rows], c.words) if isinstance(c, Codes) else c[rows] for k, c in columns.items()}


def make_table(collected: Collected, options: TableOptions, *, is_frame: bool = True) -> Table:
    """The frame, the labels and the weights of collected rows; warnings say what was decided."""
    layout = collected.layout
    columns = dict(zip(layout.used, collected.columns(), strict=True))
    notes = [*layout.notes, *_noteworthy(layout, columns, options)]
    weight = None if layout.weight is None else columns.pop(layout.weight)
    y, kept = None, None
    if layout.target is not None:
        y, kept, note = labels_in(layout, columns.pop(layout.target), options)
        notes += [note] if note else []
    if kept is not None:
        columns = take_rows(columns, kept)
        weight = None if weight is None else weight[kept]
    for note in notes:
        warnings.warn(f"{layout.path}: {note}", stacklevel=3)
    return Table(frame_of(layout, columns) if is_frame else columns, y, weight, layout)


def _noteworthy(layout: Layout, columns: dict[int, Column], options: TableOptions) -> Iterator[str]:
    """What is to be said about columns: of those that count the rows, of text that looks like numbers, of weights."""
    for k in layout.features:
        column = columns[k]
        if not isinstance(column, Codes) and len(column) > 5 and column.dtype.kind == "f":
            if (
                len(layout.features) > 1
                and not options.kinds
                and column[0] in (0, 1)
                and column[5] == column[0] + 5
                and np.array_equal(column, np.arange(len(column)) + column[0])
            ):
                yield f"{layout.describe(k)} counts the rows: --drop {layout.name(k)}, if it is an id"
        elif isinstance(column, Codes) and column.words and k not in layout.levels and layout.kinds[k] == CATEGORY:
            is_asked = options.text or options.kinds
            if not is_asked and all(map(is_number, column.words)):
                yield f"{layout.describe(k)} is text, in which all cells are numbers, and was taken for categories"
    if layout.weight is not None:
        yield "its rows have weights: they are the table's sample_weight"


def labels_in(layout: Layout, column: Column, options: TableOptions) -> tuple[Any, Any, str]:
    """Labels; which rows are kept, if not all; and what is to be said."""
    if isinstance(column, Codes):
        words = [options.plain(word) if is_number(options.plain(word)) else word for word in column.words]
        minus = {"-"} if "+" not in words else set()
        has_number = any(map(is_number, words))
        are_numbers = has_number and all(is_number(w) or options.is_missing(w, number=True) for w in words)
        is_word = np.array(
            [word not in minus and not options.is_missing(word, number=are_numbers) for word in column.words] + [False]
        )
        declared = layout.target in layout.levels
        values = labels_of(word for word, fits in zip(words, is_word, strict=False) if fits and not declared)
        if declared:
            values = np.array([word for word, fits in zip(words, is_word, strict=False) if fits])
        has_label = is_word[column.codes]
        codes = column.codes if has_label.all() else column.codes[has_label]
        present = values[np.cumsum(is_word) - 1][codes] if len(values) else values
        _check_words(layout, values, options)
    else:
        has_label = ~np.isnan(column) if column.dtype.kind == "f" else ~_is_missing(column)
        present = column if has_label.all() else column[has_label]
        if present.dtype.kind == "f" and not options.kinds and len(present) and (present == np.rint(present)).all():
            present = present.astype(np.int64) if np.abs(present).max() < 2**53 else present
    n_missing = int(np.count_nonzero(~has_label))
    if not n_missing:
        return present, None, ""
    if options.unlabelled == "keep":
        if not len(present):
            return None, None, ""
        y = np.full(
            len(has_label),
            "" if present.dtype.kind == "U" else np.nan,
            present.dtype if present.dtype.kind == "U" else float,
        )
        y[has_label] = present
        return y, None, ""
    if options.unlabelled == "raise":
        raise MissingLabelError(int(np.argmin(has_label)))
    if not len(present):
        raise layout.error("no row has a label")
    return present, has_label, f"rows without a label, left out: {n_missing}"


class MissingLabelError(Exception):
    """The number of the first row that has no label."""


def _is_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    return (
        np.array([value is None for value in column]) if column.dtype == object else np.zeros(len(column), dtype=bool)
    )


def _check_words(layout: Layout, values: NDArray[Any], options: TableOptions) -> None:
    """Raise a ValueError if all labels are what a person takes for numbers or dates."""
    if values.dtype.kind == "U" and len(values) and all(remedy(word, options) for word in values.tolist()):
        assert layout.target is not None
        raise refusal(layout, layout.target, None, values[0].item(), options)


def frame_of(layout: Layout, columns: dict[int, Column]) -> Any:
    """The features as a pandas frame; without pandas as an array, of objects if some are no numbers.

    Columns of one type share one block, of which an estimator needs no copy.
    """
    names = None if layout.names is None else [layout.names[k] for k in layout.features]
    features = [columns.pop(k) for k in layout.features]
    only_numbers = all(not isinstance(column, Codes) and column.dtype.kind == "f" for column in features)
    try:
        import pandas
    except ImportError:
        return np.column_stack(features) if only_numbers else np.column_stack(list(map(_objects, features)))
    for place, column in enumerate(features):
        if isinstance(column, Codes):
            features[place] = pandas.Categorical.from_codes(column.codes, column.words)
    frame = pandas.DataFrame(dict(enumerate(features)), copy=False)
    if names is not None:
        frame.columns = pandas.Index(names)
    return frame


def _objects(column: Column) -> NDArray[Any]:
    if not isinstance(column, Codes):
        return np.asarray(column, dtype=object)
    return np.array([*column.words, np.nan], dtype=object)[column.codes]
