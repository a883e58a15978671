"""`Dataset`; numbers and labels in text; errors that name the file and the line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

PathLike: TypeAlias = "str | os.PathLike[str]"
FloatType: TypeAlias = type[np.float32] | type[np.float64]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"([+-]?[0-9]+)(\.0*)?")
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
    y: NDArray[Any] | None
    X_test: Any = None
    y_test: NDArray[Any] | None = None


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
    printable = "".join(c if c.isprintable() and c.isascii() else _escape(c) for c in text)
    return f"'{printable[:40]}...'" if len(printable) > 40 else f"'{printable}'"


def escaped(text: str) -> str:
    """A text with its line breaks, control characters and halves of surrogate pairs as escape sequences."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def is_number(text: str) -> bool:
    """Whether a text, blanks around it aside, is a finite decimal number in ASCII."""
    return _NUMBER.fullmatch(text.strip()) is not None and abs(float(text)) != float("inf")


def is_exact(text: str) -> bool:
    """Whether a number's float64 has all digits of a whole one; the others are rounded, as always."""
    return len(text) < 16 or not (whole := _WHOLE.fullmatch(text)) or int(whole[1]) == int(float(text))


def labels_of(texts: Iterable[str]) -> NDArray[Any]:
    """Distinct labels (n_labels,) as numbers where that loses nothing: neither digits nor leading zeros nor classes.

    int64 where all are whole numbers of 64 bits, float64 where all are finite numbers, otherwise strings. So are
    numbers with leading zeros, whole ones with more digits than float64 has beside others, and those of which two are
    equal and one has an exponent: 1E5 and 10E4 are codes.
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


def merged_labels(words: list[str], values: NDArray[Any]) -> list[str]:
    """A note if `labels_of` made one label of several distinct words, such as 1 and 1.0."""
    first: dict[Any, str] = {}
    pairs = [(first.setdefault(value, word), word) for word, value in zip(words, values.tolist(), strict=True)]
    same = [f"{one} and {word}" for one, word in pairs if one != word]
    return [f"labels that are one number are one class: {', '.join(same[:3])}"] if same else []


def with_short_indices(X: Any) -> Any:
    """A csr_matrix with the values of X, and 32-bit indices where they suffice: some estimators refuse 64-bit ones."""
    from scipy.sparse import csr_matrix, get_index_dtype

    short = get_index_dtype(maxval=max(X.nnz, *X.shape))
    parts = (X.data, X.indices.astype(short, copy=False), X.indptr.astype(short, copy=False))
    return csr_matrix(parts, shape=X.shape)
