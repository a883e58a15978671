"""What pyarrow reads: delimited text with declared types, Parquet, Arrow and Feather files, in batches."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np

from widemargin.datasets.columns import Batch, Column, Words, largest_size, numbered
from widemargin.datasets.compressed import opened
from widemargin.datasets.files import PathLike, file_error, is_number, labels_of, quoted
from widemargin.datasets.layouts import (
    BOOLEAN,
    BOOLEANS,
    CATEGORY,
    DATE,
    LABEL,
    MISSING,
    NUMBER,
    Layout,
    TableOptions,
    place,
)
from widemargin.datasets.rows import Dialect

_BLOCK_BYTES = 2**20
_BATCH_ROWS = 2**14
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # as the name of a folder


class DeclinedError(Exception):
    """pyarrow does not read a text as our rules do, or cannot be sure to: the strict reader decides."""


def has_pyarrow() -> bool:
    """Whether the extra `tables` is installed, without the time of its import."""
    return find_spec("pyarrow") is not None


def release_blocks() -> None:
    """Give back the memory of blocks that were read: labels and frames are made in it."""
    if pyarrow := sys.modules.get("pyarrow"):
        pyarrow.default_memory_pool().release_unused()


# Delimited text -------------------------------------------------------------------------------------------------------


class _Counted:
    """A file for pyarrow, whose line ends are counted: a row of several lines, or none, shows in the sum."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.n_lines, self._last = file, 0, b"\n"

    def read(self, n: int = -1) -> bytes:
        data = self._file.read(n)
        if data:
            self.n_lines, self._last = self.n_lines + data.count(b"\n"), data[-1:]
        return data

    def total(self) -> int:
        return self.n_lines + (self._last != b"\n")

    def close(self) -> None:
        pass

    readable = seekable = writable = lambda self: False


def delimited_batches(
    path: PathLike, dialect: Dialect, layout: Layout, n_header: int, options: TableOptions, words: Words
) -> Iterator[Batch]:
    """Typed columns of blocks of a text below its header of `n_header` lines.

    A DeclinedError ends them wherever the strict reader may find a fault, or other values.
    """
    import pyarrow as pa
    from pyarrow import csv

    if dialect.delimiter == " " or options.thousands or (options.decimal == "," and layout.target is None):
        raise DeclinedError
    types = {NUMBER: pa.float64(), BOOLEAN: pa.bool_(), DATE: pa.timestamp("us")}
    text = pa.dictionary(pa.int32(), pa.string())
    used, width = list(dict.fromkeys(layout.used)), layout.width + dialect.has_last
    names = [str(k) for k in range(width)]
    with opened(path) as file:
        counted = _Counted(file)
        try:
            reader = csv.open_csv(
                counted,
                read_options=csv.ReadOptions(
                    block_size=_BLOCK_BYTES, skip_rows=dialect.n_skipped + n_header, column_names=names
                ),
                parse_options=csv.ParseOptions(delimiter=dialect.delimiter),
                convert_options=csv.ConvertOptions(
                    column_types={
                        **dict.fromkeys(names, pa.string()),
                        **{str(k): types.get(layout.kinds[k], text) for k in used},
                    },
                    include_columns=[str(k) for k in used],
                    null_values=sorted(MISSING | set(options.missing)),
                    strings_can_be_null=False,
                    true_values=[word for word, value in BOOLEANS.items() if value],
                    false_values=[word for word, value in BOOLEANS.items() if not value],
                    decimal_point=options.decimal,
                    timestamp_parsers=[csv.ISO8601],
                ),
            )
            n_rows = 0
            for batch in reader:
                n_rows += len(batch)
                yield [
                    _column(layout, k, column, options, words) for k, column in zip(used, batch.columns, strict=True)
                ]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, UnicodeError) as error:
            raise DeclinedError from error
        if n_rows != counted.total() - dialect.n_skipped - n_header:
            raise DeclinedError


def _column(layout: Layout, position: int, column: Any, options: TableOptions, words: Words) -> Column:
    """An Arrow array of text as a column."""
    kind = layout.kinds[position]
    if kind in (CATEGORY, LABEL):
        found = [word.strip() for word in column.dictionary.to_pylist()]
        if any('"' in word or "\n" in word or "\r" in word for word in found):
            raise DeclinedError
        return _renumbered(column, found, words.setdefault(position, {}), None if kind == LABEL else options)
    if kind == DATE:
        return column.to_numpy(zero_copy_only=False).astype("datetime64[us]")
    values = _floats(column)
    # whole numbers beyond 2**53 may have lost digits; NaN without a null is a cell that is no missing word
    if not largest_size(values) < 2.0**53 or np.count_nonzero(np.isnan(values)) > column.null_count:
        raise DeclinedError
    return values


def _renumbered(column: Any, found: list[str | None], known: dict[str, int], options: TableOptions | None) -> Column:
    """The numbers of an Arrow array's words in the numbering of the table."""
    numbers = np.array([*numbered(found, known, options), -1], dtype=np.int32)
    indices = column.indices.fill_null(len(found)) if column.null_count else column.indices
    return numbers[indices.to_numpy(zero_copy_only=False)]


def _floats(column: Any) -> Column:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


# Parquet, Arrow, Feather ----------------------------------------------------------------------------------------------


@contextmanager
def _faults_named(path: PathLike) -> Iterator[None]:
    """Raise pyarrow's errors again as ValueErrors that name the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        reason = " ".join(str(error).split())
        raise file_error(path, f"truncated or damaged file, or another format ({reason[:200]})") from error


class ArrowFiles:
    """Files of typed columns, of one schema; folders named ``key=value`` are categories before the other columns."""

    def __init__(self, paths: list[str], root: PathLike, form: str, options: TableOptions) -> None:
        if not has_pyarrow():
            raise file_error(paths[0], "this format needs pyarrow: pip install widemargin[tables]")
        self._form, self._options = form, options
        self._folders = {path: folders_of(path, root) for path in paths}
        first = self._folders[paths[0]]
        if unlike := [path for path in paths if self._folders[path].keys() != first.keys()]:
            raise file_error(unlike[0], f"its folders are named unlike those of {paths[0]}")
        schema = self._schema(paths[0])
        types = {field.name: field.type for field in schema}
        if len(types) < len(schema):
            twice = Counter(schema.names).most_common(1)[0][0]
            raise file_error(paths[0], f"several columns are named {quoted(twice)}")
        for path in paths[1:]:
            other = {field.name: field.type for field in self._schema(path)}
            for name in [*types, *other]:
                if types.get(name) != other.get(name):
                    raise file_error(
                        path, f"column {quoted(name)} has another type than in {paths[0]}, or is in one alone"
                    )
        saved = (schema.pandas_metadata or {}).get("index_columns", ())
        index = [name for name in saved if isinstance(name, str)]
        reason = f"pandas' index was left out: {', '.join(map(quoted, index))}; reset_index() before saving keeps it"
        notes = (reason,) if index else ()
        folders = {name: _kind_of_folders([own.get(name) for own in self._folders.values()]) for name in first}
        names = [*folders, *(name for name in types if name not in index)]
        kinds = {k: folders[name] if name in folders else _kind_of(types[name]) for k, name in enumerate(names)}
        self.layout = place(Layout(os.fspath(root), 0, len(names), names, kinds=kinds, notes=notes), options, [])
        for k in self.layout.used:
            if not kinds[k] or (k == self.layout.target and kinds[k] == DATE):
                raise file_error(root, f"{self.layout.describe(k)} holds {types[names[k]]}: --drop it, or drop=")
        self._words = [name for name in types if _kind_of(types[name]) == CATEGORY]

    def _schema(self, path: str) -> Any:
        import pyarrow.parquet as pq

        with _faults_named(path):
            if self._form == "parquet":
                return pq.read_schema(path)
            with _opened_ipc(path) as (schema, _):
                return schema

    def batches(self, words: Words) -> Iterator[Batch]:
        """Typed columns of blocks of rows."""
        import pyarrow.parquet as pq

        names = self.layout.names or []
        for path, folders in self._folders.items():
            columns = [names[k] for k in self.layout.used if names[k] not in folders]
            with _faults_named(path):
                if self._form == "parquet":
                    with pq.ParquetFile(path, read_dictionary=self._words, buffer_size=2**20) as file:
                        yield from self._converted(file.iter_batches(_BATCH_ROWS, columns=columns), folders, words)
                else:
                    with _opened_ipc(path) as (_, batches):
                        yield from self._converted((batch.select(columns) for batch in batches), folders, words)

    def _converted(self, batches: Any, folders: dict[str, str | None], words: Words) -> Iterator[Batch]:
        names, kinds, constant = self.layout.names or [], self.layout.kinds, dict[int, Any]()
        for k in self.layout.used:
            if names[k] in folders:
                word = folders[names[k]]
                is_number_ = kinds[k] == NUMBER
                code = numbered([word], words.setdefault(k, {}), None)[0] if not is_number_ else 0
                constant[k] = np.float64(word or "nan") if is_number_ else np.int32(code)
        for batch in batches:
            if len(batch):
                yield [
                    np.full(len(batch), constant[k])
                    if k in constant
                    else self._column(k, batch.column(names[k]), words)
                    for k in self.layout.used
                ]

    def _column(self, position: int, column: Any, words: Words) -> Column:
        import pyarrow as pa

        kind, layout, kept = self.layout.kinds[position], self.layout, column.type
        if kind == DATE:
            unit = pa.duration("us") if pa.types.is_duration(kept) else pa.timestamp("us")
            return column.cast(unit, safe=False).to_numpy(zero_copy_only=False)
        is_whole = pa.types.is_integer(kept) or pa.types.is_boolean(kept)
        if position == layout.target and is_whole and not column.null_count and not self._options.missing:
            return column.to_numpy(zero_copy_only=False)
        if kind in (CATEGORY, LABEL):
            if not pa.types.is_dictionary(kept):
                column = column.cast(pa.string()).dictionary_encode()
            found = column.dictionary.cast(pa.string()).to_pylist()
            return _renumbered(column, found, words.setdefault(position, {}), None if kind == LABEL else self._options)
        try:
            values = _floats(column)
        except pa.ArrowInvalid:
            reason = (
                f"{layout.describe(position)} has whole numbers beyond 2**53, of which float64 loses digits: an id?"
            )
            raise layout.error(f"{reason} --drop, or drop=, leaves it out; --one-hot, or text=, keeps it") from None
        if np.isinf(values).any():
            raise layout.error(f"{layout.describe(position)} has infinite values: write them as missing ones")
        absent = [float(word) for word in self._options.missing if is_number(word)]
        return np.where(np.isin(values, absent), np.nan, values) if absent else values


@contextmanager
def _opened_ipc(path: str) -> Iterator[Any]:
    """The schema and the batches of an Arrow file or stream."""
    import pyarrow as pa

    with pa.memory_map(path) as source:
        try:
            reader = pa.ipc.open_file(source)
            yield reader.schema, (reader.get_batch(k) for k in range(reader.num_record_batches))
            return
        except pa.ArrowInvalid as error:
            if "not an arrow file" not in str(error).lower():
                raise
        source.seek(0)
        reader = pa.ipc.open_stream(source)
        yield reader.schema, reader


def folders_of(path: str, root: PathLike) -> dict[str, str | None]:
    """The names and values of folders ``key=value`` between a root and a file, as Hive and Spark write them."""
    top = root if os.path.isdir(root) else os.path.dirname(re.split(r"[*?[]", os.fspath(root))[0])
    pairs = [part.split("=", 1) for part in os.path.relpath(path, top or ".").split(os.sep)[:-1] if "=" in part]
    return {unquote(key): None if value == _NO_VALUE else unquote(value) for key, value in pairs}


def _kind_of_folders(words: list[str | None]) -> str:
    """Values of folders are numbers where that loses nothing."""
    values = labels_of({word for word in words if word is not None})
    return NUMBER if values.dtype.kind in "if" and np.abs(values).max() < 2**53 else CATEGORY


def _kind_of(arrow: Any) -> str:
    """The kind of a column by its declared type; empty for what no machine reads."""
    import pyarrow.types as types

    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow):
        return NUMBER
    if types.is_boolean(arrow):
        return BOOLEAN
    if types.is_dictionary(arrow):
        return CATEGORY if _kind_of(arrow.value_type) == CATEGORY else ""
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return CATEGORY
    if types.is_null(arrow):
        return NUMBER
    return DATE if types.is_temporal(arrow) and not types.is_time(arrow) else ""
