"""Opening files, plain or compressed, without expanding more than a bounded number of bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from widemargin.datasets.files import PathLike, file_error, quoted

_MOST_EXPANDED = 200  # expanded / compressed bytes
_ALWAYS_EXPANDED = 2**28  # bytes, however small the file
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)


def compression_of(path: PathLike) -> str:
    """The suffix of a compressed file, in small letters; empty for another file."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in _OPENERS else ""


def most_expanded(compressed: int) -> int:
    """The number of bytes to which a file of this size may expand: 256 MiB, or 200 times as many."""
    return max(_ALWAYS_EXPANDED, _MOST_EXPANDED * compressed)


def check_expansion(path: PathLike, expanded: int, compressed: int, remedy: str = "decompress it first") -> None:
    """Raise a ValueError that names the file, and what to do, if it expands to more bytes than it may."""
    limit = most_expanded(compressed)
    if expanded > limit:
        reason = f"expands to more than {limit:,} bytes, the larger of 256 MiB and {_MOST_EXPANDED} times its size"
        raise file_error(path, f"{reason}: {remedy}")


def member_of(path: PathLike) -> str:
    """The name of the one file in a .zip archive; a ValueError names its files if there are several."""
    with _damage_reported(path, ".zip"), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(names) != 1:
        found = ", ".join(map(quoted, names[:5])) + (", ..." if len(names) > 5 else "") if names else "nothing"
        raise file_error(path, f"must hold one file, but has {found}: unpack it first")
    return names[0]


@contextmanager
def opened(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for reading bytes: plain, ``.gz``, ``.bz2``, ``.xz``, ``.zst``, or the one file of a ``.zip``.

    A ValueError, also in the body of the ``with``, names a file whose compression turns out truncated or damaged, or
    which expands to far more than its size.
    """
    suffix = compression_of(path)
    if not suffix:
        with open(path, "rb") as file:
            yield file
        return
    with (
        _damage_reported(path, suffix),
        _OPENERS[suffix](path) as expanded,
        io.BufferedReader(_Bounded(path, expanded), 2**18) as file,
    ):
        yield cast(BinaryIO, file)


@contextmanager
def _damage_reported(path: PathLike, suffix: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise file_error(path, f"truncated or damaged {suffix} file ({error})") from error
    except OSError as error:
        # bz2 and pyarrow report damage as an OSError without errno; the operating system's errors have one.
        if suffix not in (".bz2", ".zst") or error.errno is not None:
            raise
        raise file_error(path, f"truncated or damaged {suffix} file ({error})") from error


class _Bounded(io.RawIOBase):
    """The expanded bytes of a file, up to the limit of `check_expansion`."""

    def __init__(self, path: PathLike, expanded: BinaryIO) -> None:
        self._path, self._expanded = path, expanded
        self._size, self._n_read = os.stat(path).st_size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._expanded.read(len(buffer))
        self._n_read += len(data)
        check_expansion(self._path, self._n_read, self._size)
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def _open_zip(path: PathLike) -> Iterator[BinaryIO]:
    name = member_of(path)
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(name).flag_bits & 1:
            raise file_error(path, f"{quoted(name)} is encrypted: unpack it first")
        with archive.open(name) as file:
            yield cast(BinaryIO, file)


@contextmanager
def _open_zstandard(path: PathLike) -> Iterator[BinaryIO]:
    """By pyarrow: the package zstandard takes the end of a truncated file for its end."""
    try:
        import pyarrow
    except ImportError:
        reason = "Zstandard files need pyarrow: pip install widemargin[tables], or decompress the file by zstd -d"
        raise file_error(path, reason) from None
    with pyarrow.input_stream(os.fspath(path), compression="zstd") as file:
        yield file


_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".lzma": lzma.open,
    ".zip": _open_zip,
    ".zst": _open_zstandard,
}
