"""Typed columns: cells converted block by block, collected within the memory budget; labels; frames."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin._config import resolve_memory_budget
from widemargin._types import AnyArray
from widemargin.datasets.files import is_exact, is_number, labels_of, merged_labels, plain_numbers, quoted
from widemargin.datasets.layouts import BEYOND, BOOLEANS, ISO_DATE, Cell, Layout, Row, refusal, remedy

_BLOCK_CELLS = 100_000


Column = Any  # NDArray of float64, of dates, of labels; of words their numbers, int32, and -1 where one is missing
Batch = list[Column]  # of the columns that a layout uses, in their order
Words = dict[int, dict[str, int]]  # of a column, by its position, the number of each word: one numbering for a table


# Cells to columns -----------------------------------------------------------------------------------------------------


def converted(rows: Iterable[Row], layout: Layout, words: Words) -> Iterator[Batch]:
    """Typed columns of blocks of rows: a ValueError names the line of the first cell that does not fit."""
    rows = iter(rows)
    size = max(1, _BLOCK_CELLS // layout.width)
    for block in iter(lambda: list(islice(rows, size)), []):
        for line, row in block:
            if len(row) != layout.width:
                raise layout.error(f"{len(row)} fields where the first row has {layout.width}", line)
        lines, cells = zip(*block, strict=True)
        by_column = list(zip(*cells, strict=True))
        yield [_convert(layout, k, lines, by_column[k], words) for k in layout.used]


def _convert(layout: Layout, position: int, lines: tuple[int, ...], cells: tuple[Cell, ...], words: Words) -> Column:
    kind, options = layout.kinds.get(position, "number"), layout.options
    if kind in ("category", "label"):
        stripped = {cell: None if cell is None else cell.strip() for cell in dict.fromkeys(cells)}
        number = dict(zip(stripped, numbered(layout, position, stripped.values(), words), strict=True))
        return np.array([number[cell] for cell in cells], dtype=np.int32)
    is_plain = kind == "number" and options.decimal == "." and not options.missing and not options.thousands
    if is_plain and (numbers := plain_numbers(cells)) is not None:
        return numbers
    values = [_value(layout, position, kind, line, cell) for line, cell in zip(lines, cells, strict=True)]
    return np.array(values, dtype="datetime64[us]" if kind == "date" else np.float64)


def numbered(layout: Layout, position: int, found: Iterable[str | None], words: Words) -> list[int]:
    """The numbers of a column's words, new ones too; -1 for what is missing, of features also for words that say so."""
    known, is_feature = words.setdefault(position, {}), position != layout.target
    return [
        -1 if word is None or (is_feature and layout.options.is_missing(word)) else known.setdefault(word, len(known))
        for word in found
    ]


def _value(layout: Layout, position: int, kind: str, line: int, cell: Cell) -> Any:
    options, text = layout.options, "" if cell is None else cell.strip()
    if cell is None or options.is_missing(text, number=True):
        return np.datetime64("NaT") if kind == "date" else np.nan
    if kind == "date":
        if ISO_DATE.fullmatch(text):
            try:
                moment = datetime.fromisoformat(text)
                return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
            except ValueError:
                pass
        raise layout.error(f"{layout.describe(position)} is {quoted(text)}, no date: write it as 2026-11-27", line)
    if text in BOOLEANS and kind != "number":
        return BOOLEANS[text]
    plain = options.plain(text)
    if not is_number(plain) or not is_exact(plain) or kind != "number":
        raise refusal(layout, position, line, text)
    return float(plain)


# Columns to tables ----------------------------------------------------------------------------------------------------


def collect(batches: Iterable[Batch], layout: Layout, folder: str | None) -> dict[int, Column]:
    """All rows of a table, by position.

    Features that exceed the configured ``memory_budget`` are memory maps in the folder; without one, a ValueError says
    how many rows fit.
    """
    budget, n_rows, buffers = resolve_memory_budget(), 0, list[AnyArray]()
    for batch in batches:
        start, n_rows = n_rows, n_rows + len(batch[0])
        buffers = buffers or [np.empty(0, dtype=part.dtype) for part in batch]
        n_bytes = n_rows * sum(buffer.itemsize for buffer in buffers)
        if n_bytes > budget and folder is None:
            fitting = f"about {int(n_rows * budget / n_bytes):,} would fit; --memory-budget takes more"
            streams = "train --estimator linear streams them, and OCASRegressor takes a memory map"
            raise layout.error(f"its rows exceed memory_budget, {budget} bytes: {fitting}, {streams}")
        if n_rows > len(buffers[0]):
            if n_bytes > budget and 2 * n_bytes > shutil.disk_usage(str(folder)).free:  # full disks end the process
                raise layout.error(f"its rows need {2 * n_bytes:,} bytes in {folder}: TMPDIR names a folder")
            for k, buffer in enumerate(buffers):
                path = f"{folder}/{k}" if n_bytes > budget and layout.used[k] in layout.features else None
                buffers[k] = _grown(buffer, n_rows + n_rows // 4, path)
        for k, part in enumerate(batch):
            if part.dtype != buffers[k].dtype:  # a label that is missing in later rows
                buffers[k] = buffers[k].astype(np.result_type(part, buffers[k]))
            buffers[k][start:n_rows] = part
    if not n_rows:
        raise layout.error("the file has a header and no samples" if layout.names else "the file has no samples")
    return {k: _grown(buffer, n_rows, None) for k, buffer in zip(layout.used, buffers, strict=True)}


def _grown(buffer: AnyArray, n_rows: int, path: str | None) -> AnyArray:
    """The buffer with this length, in place or in a file: parts that are joined at the end take twice the memory."""
    if path is not None:
        is_file = isinstance(buffer, np.memmap)
        grown = np.memmap(path, buffer.dtype, "r+" if is_file else "w+", shape=(n_rows,))
        if not is_file:
            grown[: len(buffer)] = buffer
        return grown
    if isinstance(buffer, np.memmap):
        return buffer[:n_rows]
    buffer.resize(n_rows, refcheck=False)
    return buffer


def noteworthy(layout: Layout, columns: dict[int, Column], words: dict[int, list[str]]) -> Iterator[str]:
    """What is to be said about features: they count the rows, are ids, or numbers that are text."""
    is_open = not layout.options.kinds
    for k in layout.features:
        column = columns[k]
        yield from _lost_digits(layout, k, column, words.get(k))
        if k in words:
            may_be_numbers = (
                is_open and not layout.options.text and k not in layout.levels and layout.kinds[k] == "category"
            )
            if may_be_numbers and words[k] and all(map(is_number, words[k])):
                yield f"{layout.describe(k)} is text, in which all cells are numbers, and was taken for categories"
        elif column.dtype.kind == "f":
            may_count = is_open and len(layout.features) > 1 and len(column) > 5
            is_count = may_count and column[0] in (0, 1) and column[5] == column[0] + 5
            if is_count and np.array_equal(column, np.arange(len(column)) + column[0]):
                yield f"{layout.describe(k)} counts the rows: --drop {layout.name(k)}, if it is an id"


def largest_size(values: NDArray[np.float64]) -> float:
    """The largest absolute value, NaN aside; 0 of none."""
    return float(max(np.fmax.reduce(values, initial=0), -np.fmin.reduce(values, initial=0)))


def _lost_digits(layout: Layout, position: int, column: Column, words: list[str] | None) -> list[str]:
    """A note if all of a column are whole numbers, and some are beyond those that float64 has all of.

    Words such as 1.23457E+17 are what spreadsheets make of them.
    """
    if words is not None:
        is_lost = any("e+" in word.lower() and is_number(word) and abs(float(word)) >= 2**53 for word in words)
    else:
        is_lost = column.dtype.kind == "f" and largest_size(column) >= 2**53 and _are_whole(column)
    lost = f"{layout.describe(position)} has whole numbers {BEYOND}, and spreadsheets 15: ids must be saved as text"
    return [lost] if is_lost else []


def _are_whole(column: NDArray[np.float64]) -> bool:
    return bool(((column == np.rint(column)) | np.isnan(column)).all())


def labels_in(
    layout: Layout,
    column: Column,
    words: list[str] | None,
    error_at: Callable[[int, str], ValueError],
) -> tuple[Any, Any, list[str]]:
    """Labels; which rows are kept, if not all; and what is to be said. `error_at` makes the error of a row."""
    assert layout.target is not None
    options = layout.options
    notes = _lost_digits(layout, layout.target, column, words)
    if words is not None:
        plain = [number if is_number(number := options.plain(word)) else word for word in words]
        others = [word for word in plain if not is_number(word)]
        are_numbers = len(others) < len(plain) and all(options.is_missing(word, number=True) for word in others)
        minus = None if "+" in plain else "-"
        is_label = [word != minus and not options.is_missing(word, number=are_numbers) for word in words]
        known = [word for word, own in zip(plain, is_label, strict=True) if own]
        values = np.array(known, dtype=str) if layout.target in layout.levels else labels_of(known)
        notes += merged_labels(known, values)
        if values.dtype.kind == "U" and known and all(remedy(word, options) for word in known):
            raise refusal(layout, layout.target, None, known[0])  # what a person takes for numbers or dates
        has_label = np.array([*is_label, False])[column]
        codes = column if has_label.all() else column[has_label]
        present = values[(np.cumsum(is_label, dtype=np.int32) - 1)[codes]] if len(values) else values
    else:
        has_label = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(len(column), dtype=bool)
        present = column[has_label]
        if present.dtype.kind == "f" and not options.kinds and len(present) and _are_whole(present):
            present = present.astype(np.int64) if np.abs(present).max() < 2**53 else present
    n_missing = int(np.count_nonzero(~has_label))
    if not n_missing:
        return present, None, notes
    if options.unlabelled == "raise":
        reason = "the label is missing; --unlabelled drop, or unlabelled='drop', leaves such rows out"
        raise error_at(int(np.argmin(has_label)), reason)
    if options.unlabelled == "keep":
        if not len(present):
            return None, None, notes
        is_text = present.dtype.kind == "U"
        y = np.full(len(has_label), "" if is_text else np.nan, present.dtype if is_text else float)
        y[has_label] = present
        return y, None, notes
    if not len(present):
        raise layout.error("no row has a label")
    return present, has_label, [*notes, f"rows without a label, left out: {n_missing}"]


def first_gaps(columns: dict[int, Column]) -> dict[int, int]:
    """The columns of numbers that lack values, and the first row of each that lacks one."""
    numbers = {k: column for k, column in columns.items() if column.dtype.kind == "f"}
    return {k: int(np.argmax(is_gap)) for k, column in numbers.items() if (is_gap := np.isnan(column)).any()}


def frame_of(layout: Layout, columns: dict[int, Column], dtype: str | None = None) -> Any:
    """The features as a pandas frame; without pandas as an array, of objects if some are no numbers.

    With a dtype, that of all numbers, columns of numbers alone become one block: an array, if they have no names.
    """
    features = [columns.pop(k) for k in layout.features]
    has_pandas, is_matrix = find_spec("pandas") is not None, all(column.dtype.kind == "f" for column in features)
    block: Any = np.empty((len(features[0]), len(features)), dtype=dtype) if dtype and is_matrix else None
    for place, (k, column) in enumerate(zip(layout.features, features, strict=True)):
        with np.errstate(over="ignore"):
            if block is not None:
                block[:, place], features[place] = column, None
            elif dtype and column.dtype.kind == "f":
                features[place] = column.astype(dtype, copy=False)
        if k in layout.levels and not has_pandas:
            features[place] = np.array([*layout.levels[k], np.nan], dtype=object)[column]
        elif column.dtype.kind in "mM" and not has_pandas:
            features[place] = column.astype(object)
    if not has_pandas or (block is not None and layout.names is None):
        return np.column_stack(features) if block is None else block
    import pandas

    for place, k in enumerate(layout.features):
        if k in layout.levels:
            features[place] = pandas.Categorical.from_codes(features[place], layout.levels[k])
    frame = pandas.DataFrame(dict(enumerate(features)) if block is None else block, copy=False)
    if layout.names is not None:
        frame.columns = pandas.Index([layout.names[k] for k in layout.features])
    return frame
