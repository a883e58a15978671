"""What pyarrow reads: delimited text with declared types, Parquet, Arrow and Feather files, in batches."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, BinaryIO

import numpy as np

from widemargin.datasets.columns import Batch, Column, Words, largest_size, numbered
from widemargin.datasets.files import file_error, is_number, opened, quoted
from widemargin.datasets.layouts import BOOLEANS, MISSING, Layout, Row, TableOptions, place, too_long
from widemargin.datasets.rows import Dialect

_BLOCK_BYTES = 2**20
_BATCH_ROWS = 2**15


class DeclinedError(Exception):
    """pyarrow does not read a text as our rules do, or cannot be sure to: the strict reader decides."""


def has_pyarrow() -> bool:
    """Whether the extra `tables` is installed, without the time of its import."""
    return find_spec("pyarrow") is not None


# Delimited text -------------------------------------------------------------------------------------------------------


class _Counted(io.RawIOBase):
    """A file for pyarrow, whose line ends are counted: a row of several lines, or none, shows in the sum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._n_lines, self._last = file, 0, b"\n"

    def readable(self) -> bool:
        return True

    def read(self, n: int = -1) -> bytes:
        data = self._file.read(n)
        if data:
            self._n_lines, self._last = self._n_lines + data.count(b"\n"), data[-1:]
        return data

    def total(self) -> int:
        return self._n_lines + (self._last != b"\n")


def delimited_batches(dialect: Dialect, layout: Layout, words: Words) -> Iterator[Batch]:
    """Typed columns of blocks of a text below its header.

    A DeclinedError ends them wherever the strict reader may find a fault, or other values.
    """
    import pyarrow as pa
    from pyarrow import csv

    options = layout.options
    if dialect.delimiter == " " or options.thousands:
        raise DeclinedError
    types = {"number": pa.float64(), "boolean": pa.bool_(), "date": pa.timestamp("us")}
    text = pa.dictionary(pa.int32(), pa.string())
    used, names = list(dict.fromkeys(layout.used)), [str(k) for k in range(max(layout.width, dialect.full_width))]
    n_skipped = layout.line if layout.has_header else dialect.n_skipped  # the header may have several lines
    with opened(layout.path) as file:
        counted = _Counted(file)
        try:
            reader = csv.open_csv(
                counted,
                read_options=csv.ReadOptions(block_size=_BLOCK_BYTES, skip_rows=n_skipped, column_names=names),
                parse_options=csv.ParseOptions(delimiter=dialect.delimiter),
                convert_options=csv.ConvertOptions(
                    column_types={str(k): types.get(layout.kinds[k], text) for k in used},
                    include_columns=[str(k) for k in used],
                    null_values=sorted(MISSING | set(options.missing)),
                    true_values=[word for word, value in BOOLEANS.items() if value],
                    false_values=[word for word, value in BOOLEANS.items() if not value],
                    decimal_point=options.decimal,
                ),
            )
            n_rows = 0
            for batch in reader:
                n_rows += len(batch)
                columns = zip(used, batch.columns, strict=True)
                yield [_column_of_text(layout, k, column, words) for k, column in columns]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, UnicodeError) as error:
            raise DeclinedError from error
        if n_rows != counted.total() - n_skipped:
            raise DeclinedError


def _column_of_text(layout: Layout, position: int, column: Any, words: Words) -> Column:
    kind = layout.kinds[position]
    if kind in ("category", "label"):
        found = [word.strip() for word in column.dictionary.to_pylist()]
        if any('"' in word or "\n" in word or "\r" in word for word in found):
            raise DeclinedError
        return _renumbered(layout, position, column, found, words)
    if kind == "date":
        return column.to_numpy(zero_copy_only=False).astype("datetime64[us]")
    values = _floats(column)
    # whole numbers beyond 2**53 may have lost digits; NaN without a null is a cell that is no missing word
    if not largest_size(values) < 2.0**53 or np.count_nonzero(np.isnan(values)) > column.null_count:
        raise DeclinedError
    return values


def _renumbered(layout: Layout, position: int, column: Any, found: list[str | None], words: Words) -> Column:
    """The numbers of an Arrow array's words in the numbering of the table."""
    numbers = np.array([*numbered(layout, position, found, words), -1], dtype=np.int32)
    indices = column.indices.fill_null(len(found)) if column.null_count else column.indices
    return numbers[indices.to_numpy(zero_copy_only=False)]


def _floats(column: Any) -> Column:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


# Parquet, Arrow, Feather ----------------------------------------------------------------------------------------------


class ArrowFile:
    """One file of typed columns, with its layout."""

    def __init__(self, path: str, options: TableOptions, form: str) -> None:
        if not has_pyarrow():
            raise file_error(path, "this format needs pyarrow: pip install pyarrow")
        self._path, self._form, self._categories = path, form, list[str]()
        with self._opened() as (schema, _):
            types = {field.name: field.type for field in schema}
        if len(types) < len(schema):
            twice = Counter(schema.names).most_common(1)[0][0]
            raise file_error(path, f"several columns are named {quoted(twice)}")
        index = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
        reason = f"pandas' index was left out: {', '.join(map(quoted, index))}; reset_index() before saving keeps it"
        names = [name for name in types if name not in index]
        kinds = {k: _kind_of(types[name]) for k, name in enumerate(names)}
        self._categories = [name for name in types if _kind_of(types[name]) == "category"]
        notes = (reason,) if index else ()
        self.layout = place(Layout(path, 0, len(names), options, names, kinds=kinds, notes=notes), [])
        for k in self.layout.used:
            if not kinds[k] or (k == self.layout.target and kinds[k] == "date"):
                raise self.layout.error(f"{self.layout.describe(k)} holds {types[names[k]]}: --drop it, or drop=")

    def rows(self) -> Iterator[Row]:
        """None: its rows have no lines."""
        return iter(())

    def batches(self, words: Words, *, is_strict: bool) -> Iterator[Batch]:
        """Typed columns of blocks of rows."""
        names = [self.layout.names[k] for k in self.layout.used] if self.layout.names else []
        with self._opened() as (_, batches):
            for batch in batches(names):
                if len(batch):
                    columns = zip(self.layout.used, map(batch.column, names), strict=True)
                    yield [self._column(k, column, words) for k, column in columns]

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """The schema, and a function that gives batches of some columns; errors of the block name the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            if self._form == "parquet":
                with pq.ParquetFile(self._path, read_dictionary=self._categories, buffer_size=2**20) as file:
                    yield file.schema_arrow, lambda names: file.iter_batches(_BATCH_ROWS, columns=names)
                return
            with pa.memory_map(self._path) as source:
                is_stream = source.read(6) != b"ARROW1"
                source.seek(0)
                reader = pa.ipc.open_stream(source) if is_stream else pa.ipc.open_file(source)
                batches = reader if is_stream else map(reader.get_batch, range(reader.num_record_batches))
                yield reader.schema, lambda names: (batch.select(names) for batch in batches)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise
            reason = " ".join(str(error).split())
            raise file_error(self._path, f"truncated or damaged file, or another format ({reason[:200]})") from error

    def _column(self, position: int, column: Any, words: Words) -> Column:
        import pyarrow as pa

        kind, layout, kept = self.layout.kinds[position], self.layout, column.type
        missing = layout.options.missing
        if kind == "date":
            unit = pa.duration("us") if pa.types.is_duration(kept) else pa.timestamp("us")
            return column.cast(unit, safe=False).to_numpy(zero_copy_only=False)
        is_whole = pa.types.is_integer(kept) or pa.types.is_boolean(kept)
        if position == layout.target and is_whole and not column.null_count and not missing:
            return column.to_numpy(zero_copy_only=False)
        if kind in ("category", "label"):
            if not pa.types.is_dictionary(kept):
                column = column.cast(pa.string()).dictionary_encode()
            found = column.dictionary.cast(pa.string()).to_pylist()
            return _renumbered(layout, position, column, found, words)
        try:
            values = _floats(column)
        except pa.ArrowInvalid:
            raise too_long(layout, position) from None
        if np.isinf(values).any():
            raise layout.error(f"{layout.describe(position)} has infinite values: write them as missing ones")
        absent = [float(word) for word in missing if is_number(word)]
        return np.where(np.isin(values, absent), np.nan, values) if absent else values


def _kind_of(arrow: Any) -> str:
    """The kind of a column by its declared type; empty for what no machine reads."""
    import pyarrow.types as types

    if types.is_dictionary(arrow):
        return "category" if _kind_of(arrow.value_type) == "category" else ""
    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow) or types.is_null(arrow):
        return "number"
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return "category"
    if types.is_temporal(arrow) and not types.is_time(arrow):
        return "date"
    return "boolean" if types.is_boolean(arrow) else ""
