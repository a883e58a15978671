"""`Dataset`; files, compressed ones within a bound, and errors that name them; numbers and labels in text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from .._types import AnyArray

PathLike: TypeAlias = "str | os.PathLike[str]"

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"([+-]?[0-9]+)(\.0*)?")
_MOST_EXPANDED = 200  # expanded / compressed bytes
_ALWAYS_EXPANDED = 2**28  # bytes, however small the file
# what text models of other programs begin with, and the format, of which `interchange.read` has the reader
MODEL_STARTS = {
    b"svm_type": "LIBSVM",
    b"solver_type": "LIBLINEAR",
    b"SVM-light": "SVMlight",
    b"<?xml": "OpenCV, XML",
    b"<opencv": "OpenCV, XML",
    b"%YAML": "OpenCV, YAML",
}
LEADING_ZERO = re.compile(r"[+-]?0[0-9]+")


class Dataset(NamedTuple):
    """Samples and labels, with the original test split where the source has one.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_matrix of shape (n_samples, n_features)
        float32 or float64, as the reader documents.
    y : ndarray of shape (n_samples,), or None
        Labels: numbers or strings. None without labels.
    X_test, y_test : as X and y, or None
        The test split.
    """

    X: Any
    y: AnyArray | None
    X_test: Any = None
    y_test: AnyArray | None = None


def file_error(path: PathLike, reason: str, line: int | None = None) -> ValueError:
    """The error for a broken file: ``FILE: reason``, or ``FILE:LINE: reason``."""
    place = os.fspath(path) if line is None else f"{os.fspath(path)}:{line}"
    return ValueError(f"{place}: {reason}")


def is_read_once(path: PathLike) -> bool:
    """Whether a path names a pipe or a device, which can be read only once."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def quoted(text: str | bytes) -> str:
    """A piece of a file, quoted for a message: in ASCII, and cut when it is long."""
    text = text[:41]  # a line may have megabytes
    if isinstance(text, bytes):
        text = text.decode("ascii", "backslashreplace")
    printable = escaped(text).encode("ascii", "backslashreplace").decode()
    return f"'{printable[:40]}...'" if len(printable) > 40 else f"'{printable}'"


def escaped(text: str) -> str:
    """A text with its line breaks, control characters and halves of surrogate pairs as escape sequences."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(values: Iterable[Any], most: int = 12) -> str:
    """The first values in one line, control characters as escape sequences, and the number of all."""
    texts = [escaped(str(value)) for value in values]
    return ", ".join(texts[:most]) + (f", ... ({len(texts)} in all)" if len(texts) > most else "")


def is_number(text: str) -> bool:
    """Whether a text, blanks around it aside, is a finite decimal number in ASCII."""
    return _NUMBER.fullmatch(text.strip()) is not None and abs(float(text)) != float("inf")


def plain_numbers(cells: Sequence[str | None]) -> NDArray[np.float64] | None:
    """Cells that all are numbers, none of which loses digits: (n_cells,); None where that needs a closer look."""
    try:
        numbers = np.array(list(map(float, cells)))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None
    text = "".join(cells)  # type: ignore[arg-type]
    return numbers if np.abs(numbers).max(initial=0) < 2.0**53 and "_" not in text and text.isascii() else None


def is_exact(text: str) -> bool:
    """Whether a number's float64 has all digits of a whole one; the others are rounded, as always."""
    return len(text) < 16 or not (whole := _WHOLE.fullmatch(text)) or int(whole[1]) == int(float(text))


def labels_of(texts: Iterable[str]) -> AnyArray:
    """Distinct labels (n_labels,) as numbers where no digits and no leading zeros are lost; else as they are.

    int64 where all are whole numbers of 64 bits, float64 where all are finite numbers, otherwise strings. So are
    numbers with leading zeros, whole ones with more digits than float64 has beside others, and those of which two are
    equal and one has an exponent: 1E5 and 10E4 are codes. 1 and 1.0 become one class (`merged_labels`).
    """
    words = list(texts)
    if not words or not all(map(is_number, words)) or any(map(LEADING_ZERO.fullmatch, words)):
        return np.array(words, dtype=str)
    if all((found := _WHOLE.fullmatch(word)) and not found[2] for word in words):
        whole = [int(word) for word in words]
        return np.array(whole if max(map(abs, whole)) < 2**63 else words)
    numbers = np.array(words, dtype=np.float64)
    has_exponent = any("e" in word.lower() for word in words)
    if not all(map(is_exact, words)) or (has_exponent and len(np.unique(numbers)) < len(words)):
        return np.array(words)
    is_whole = bool((numbers == np.rint(numbers)).all()) and np.abs(numbers).max() < 2**53
    return numbers.astype(np.int64) if is_whole else numbers


def merged_labels(words: list[str], values: AnyArray) -> list[str]:
    """A note if `labels_of` made one label of several distinct words, such as 1 and 1.0."""
    first: dict[Any, str] = {}
    pairs = [(first.setdefault(value, word), word) for word, value in zip(words, values.tolist(), strict=True)]
    same = [f"{one} and {word}" for one, word in pairs if one != word]
    return [f"labels that are one number are one class: {shorten(same, 3)}"] if same else []


# Files, plain and compressed ------------------------------------------------------------------------------------------


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


def check_archive(path: PathLike, remedy: str) -> bool:
    """Whether a file is a zip archive, none that expands to more bytes than it may."""
    if not zipfile.is_zipfile(path):
        return False
    check_expansion(path, expanded_size(path), os.stat(path).st_size, remedy)
    return True


def expanded_size(file: Any) -> int:
    """The bytes of all members of a zip archive, of which `file` is the path or an open stream."""
    with zipfile.ZipFile(file) as archive:
        return sum(member.file_size for member in archive.infolist())


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
    try:
        with _OPENERS[suffix](path) as expanded, io.BufferedReader(_Bounded(path, expanded), 2**18) as buffered:
            yield cast(BinaryIO, buffered)
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system; damage has no number
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
def _open_zip(path: PathLike) -> Iterator[Any]:
    with zipfile.ZipFile(path) as archive:
        members = [one for one in archive.infolist() if not one.is_dir() and "__MACOSX/" not in one.filename]
        if len(members) != 1 or members[0].flag_bits & 1:
            found = shorten((quoted(one.filename) for one in members), 5)
            raise file_error(path, f"must hold one file that is not encrypted, but has {found}: unpack it first")
        with archive.open(members[0]) as file:
            yield file


def _open_zstandard(path: PathLike) -> Any:
    """By pyarrow: the package zstandard takes the end of a truncated file for its end."""
    try:
        import pyarrow
    except ImportError:
        reason = "Zstandard files need pyarrow: pip install pyarrow, or decompress the file by zstd -d"
        raise file_error(path, reason) from None
    return pyarrow.input_stream(os.fspath(path), compression="zstd")


_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".lzma": lzma.open,
    ".zip": _open_zip,
    ".zst": _open_zstandard,
}
