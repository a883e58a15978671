"""A strict reader of text models: each value is checked where it is read, and errors name file and line."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .._types import Matrix, Vector
from ..datasets.files import PathLike, file_error, opened, quoted
from .machines import csr

_NUMBER = rb"[+-]?(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d++)?+"  # possessive: no state is kept for going back
_NUMBERS = re.compile(rb"\s*+(?:%b(?:\s++|\Z))*+" % _NUMBER)
_ROW = re.compile(rb"\s*+(?:%b(?:\s++|\Z))*+(?:\d{1,10}+:%b(?:\s++|\Z))*+" % (_NUMBER, _NUMBER))
_ENTRY = re.compile(rb"(?:\d{1,10}:)?%b" % _NUMBER)
_MOST_FEATURES = 2**31 - 2


class Lines:
    """The lines of a text file that are not blank; `number` is that of the line that was read last, from 1."""

    def __init__(self, path: PathLike, file: BinaryIO) -> None:
        self.path, self.file, self.number = path, file, 0

    def error(self, reason: str, line: int | None = None) -> ValueError:
        """The error for the line that was read last, or another one."""
        return file_error(self.path, reason, line or self.number)

    def __iter__(self) -> Iterator[bytes]:
        for line in self.file:
            self.number += 1
            if line.strip():
                yield line

    def next(self, expected: str) -> bytes:
        """The next line, stripped; a ValueError that names what was expected at the file's end."""
        for line in self:
            return line.strip()
        raise self.error(f"the file ends where {expected} should be", self.number + 1)

    def finish(self) -> None:
        """Check that nothing but blank lines is left."""
        for line in self:
            raise self.error(f"the model has ended, but a line follows: {quoted(line.strip())}")

    def numbers(self, text: bytes, what: str, size: int, line: int | None = None) -> Vector:
        """`size` finite numbers from a text."""
        if not _NUMBERS.fullmatch(text):
            raise self.error(f"{what}: {quoted(self._bad_entry(text))} is not a finite number", line)
        values = np.fromstring(text, sep=" ")
        if len(values) != size:
            raise self.error(f"{what} must have {size} numbers, got {len(values)}", line)
        if not np.isfinite(values).all():
            raise self.error(f"{what}: a number is too large for float64", line)
        return values

    def _bad_entry(self, text: bytes, allowed: re.Pattern[bytes] = re.compile(_NUMBER)) -> bytes:
        return next((entry[0] for entry in re.finditer(rb"\S+", text) if not allowed.fullmatch(entry[0])), text)

    def rows(self, n_rows: int, n_coef: int) -> tuple[Matrix, Any]:
        """Lines of `n_coef` numbers and of entries ``index:value``: coefficients (n_coef, n) and rows (n, d), CSR.

        Indices begin with 1, but with 0 where one is 0.
        """
        coef, values, indices, counts = array("d"), array("d"), array("q"), array("q")
        while len(counts) < n_rows:
            line = self.next(f"a support vector {len(counts) + 1} of {n_rows}").split(b"#", 1)[0]
            if not _ROW.fullmatch(line):
                bad = quoted(self._bad_entry(line, _ENTRY))
                raise self.error(f"a support vector: {bad} is no number, or no index:value after {n_coef} numbers")
            entries, row = line.count(b":"), np.fromstring(line.replace(b":", b" "), sep=" ")
            if len(row) != n_coef + 2 * entries:
                raise self.error(f"a support vector must begin with {n_coef} numbers, got {len(row) - 2 * entries}")
            index = row[n_coef::2]
            if not np.isfinite(row).all():
                raise self.error("a support vector: a number is too large for float64")
            if entries and ((np.diff(index) <= 0).any() or index[-1] > _MOST_FEATURES):
                raise self.error(f"a support vector: indices must ascend, and be at most {_MOST_FEATURES}")
            coef.frombytes(row[:n_coef].tobytes())
            values.frombytes(row[n_coef + 1 :: 2].tobytes())
            indices.frombytes(index.astype(np.int64).tobytes())
            counts.append(entries)
        columns = np.frombuffer(indices, np.int64)
        first = int(columns.min(initial=1))
        d = max(int(columns.max(initial=first)) + 1 - first, 1)  # of a constant function too
        rows = csr(np.frombuffer(values), columns - first, np.frombuffer(counts, np.int64), d)
        return np.frombuffer(coef).reshape(-1, n_coef).T.copy(), rows


@contextmanager
def lines_of(path: PathLike) -> Iterator[Lines]:
    """The lines of a file, plain or compressed."""
    with opened(path) as file:
        yield Lines(path, file)


class Fields:
    """Values by their keys, each checked where it is read; a subclass has `find`."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    def find(self, key: str) -> tuple[int, bytes]:
        """The line and the text of a value; a ValueError if it is missing."""
        raise NotImplementedError

    def error(self, key: str, reason: str) -> ValueError:
        """The error for the line of a key."""
        return self.lines.error(f"{key} {reason}", self.find(key)[0])

    def numbers(self, key: str, size: int) -> Vector:
        """Finite numbers, as many as `size`."""
        line, text = self.find(key)
        return self.lines.numbers(text, key, size, line)

    def number(self, key: str) -> float:
        """A finite number."""
        return float(self.numbers(key, 1)[0])

    def integers(self, key: str, size: int, least: int = -(2**53)) -> NDArray[np.int64]:
        """Whole numbers of at least `least`."""
        values = self.numbers(key, size)
        wrong = values[(values != np.rint(values)) | (values < least) | (values > 2**53)]
        if len(wrong):
            raise self.error(key, f"must be whole and at least {least}, got {wrong[0]:g}")
        return values.astype(np.int64)

    def integer(self, key: str, least: int) -> int:
        """A whole number of at least `least`."""
        return int(self.integers(key, 1, least)[0])

    def count_classes(self, key: str) -> int:
        """The number of classes, at least two."""
        k = self.integer(key, 1)
        if k == 1:
            raise self.error(key, "is 1: the model was trained on one class, and predicts it for every row")
        return k

    def labels(self, key: str, k: int) -> NDArray[np.int64]:
        """The labels of k classes, which must differ."""
        labels = self.integers(key, k)
        if len(np.unique(labels)) < k:
            raise self.error(key, f"must have different labels, got {labels[:10].tolist()}")
        return labels

    def choice(self, key: str, choices: Collection[str]) -> str:
        """One of several words."""
        text = self.find(key)[1].decode("ascii", "replace")
        if text not in choices:
            raise self.error(key, f"must be one of {', '.join(choices)}, got {quoted(text)}")
        return text

    def kernel(self, key: str, kernels: Mapping[str, str]) -> dict[str, Any]:
        """The parameters of a kernel, whose name in the file is a key of `kernels`."""
        kernel = kernels[self.choice(key, kernels)]
        if kernel == "precomputed":
            raise self.error(key, "is precomputed: the file has row numbers in place of support vectors")
        gamma = 1.0 if kernel == "linear" else self.number("gamma")
        if gamma <= 0:
            raise self.error("gamma", f"must be above 0, got {gamma:g}")
        degree = self.integer("degree", 0) if kernel == "poly" else 3
        coef0 = self.number("coef0") if kernel in ("poly", "sigmoid") else 0.0
        return {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}


class Header(Fields):
    """Lines ``key value ...`` up to the line `end`; each of the allowed keys is there once."""

    def __init__(self, lines: Lines, keys: tuple[str, ...], end: str) -> None:
        super().__init__(lines)
        self._values: dict[str, tuple[int, bytes]] = {}
        while (line := lines.next(f"the line {end}")) != end.encode():
            key, *value = line.split(None, 1)
            name = key.decode("ascii", "replace")
            if name not in keys:
                raise lines.error(f"{quoted(key)} is no key of this format: one of {', '.join(keys)}, or {end}")
            if name in self._values:
                raise lines.error(f"{name} is there twice, first in line {self._values[name][0]}")
            self._values[name] = lines.number, b"".join(value)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def find(self, key: str) -> tuple[int, bytes]:
        """The line and the text of a value; a ValueError if it is missing."""
        if key not in self:
            raise self.lines.error(f"the line {key} is missing")
        return self._values[key]
