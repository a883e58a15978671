"""`Dataset`, which all readers return; labels; errors that name the file and the line."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

PathLike: TypeAlias = "str | os.PathLike[str]"
FloatType: TypeAlias = type[np.float32] | type[np.float64]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")


class Dataset(NamedTuple):
    """Samples and labels, with the original test split where the source has one.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_array of shape (n_samples, n_features)
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
    """Make the error for a broken file: ``FILE: reason``, or ``FILE:LINE: reason``.

    Examples
    --------
    >>> file_error("a.svm", "the label 'x' is not a number", line=3)
    ValueError("a.svm:3: the label 'x' is not a number")
    """
    place = os.fspath(path) if line is None else f"{os.fspath(path)}:{line}"
    return ValueError(f"{place}: {reason}")


def quoted(text: str | bytes) -> str:
    r"""Quote a piece of a file for a message: in ASCII, and cut when it is long.

    Examples
    --------
    >>> print(quoted(b"ab\xff"))
    'ab\xff'
    """
    if isinstance(text, bytes):
        text = text.decode("ascii", "backslashreplace")
    printable = "".join(c if c.isprintable() and c.isascii() else _escape(c) for c in text)
    return f"'{printable[:40]}...'" if len(printable) > 40 else f"'{printable}'"


def escaped(text: str) -> str:
    r"""A text with its line breaks, control characters and halves of surrogate pairs as escape sequences.

    Examples
    --------
    >>> print(escaped("K\u00f6ln\n\x1b[31m"))
    Köln\n\x1b[31m
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def labels_of(texts: list[str]) -> NDArray[Any]:
    """Labels as numbers where that loses nothing: neither digits nor leading zeros.

    Returns
    -------
    ndarray of shape (n_samples,)
        int64 where all are whole numbers of 64 bits; float64 where all are finite numbers; otherwise strings. Numbers
        with leading zeros are strings, and so are larger whole ones.

    Examples
    --------
    >>> labels_of(["1", "-1.0"]), labels_of(["1.5", "2"]), labels_of(["007", "42"])
    (array([ 1, -1]), array([1.5, 2. ]), array(['007', '42'], dtype='<U3'))
    """
    distinct = set(texts)
    if not all(map(is_number, distinct)) or any(map(_LEADING_ZERO.match, distinct)):
        return np.array(texts)
    numbers = np.array(texts, dtype=np.float64)
    if not np.isfinite(numbers).all():
        return np.array(texts)
    if not (numbers == np.rint(numbers)).all():
        return numbers
    if np.abs(numbers).max(initial=0) < 2**53:
        return numbers.astype(np.int64)
    exact = {text: int(text) for text in distinct if _INTEGER.fullmatch(text)}
    if len(exact) == len(distinct) and max(map(abs, exact.values())) < 2**63:
        return np.array([exact[text] for text in texts], dtype=np.int64)
    return np.array(texts)


def is_number(cell: str) -> bool:
    """Whether `float` reads the text, and no underscore stands between its digits."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def with_short_indices(X: Any) -> Any:
    """A CSR array with 32-bit indices where they suffice: half the memory, and some estimators refuse 64-bit ones.

    Parameters
    ----------
    X : csr_array or csr_matrix
        With indices within bounds.

    Returns
    -------
    csr_array
        Shares the values, and the indices if their dtype fits.
    """
    from scipy.sparse import csr_array, get_index_dtype

    short = get_index_dtype(maxval=max(X.nnz, *X.shape))
    parts = (X.data, X.indices.astype(short, copy=False), X.indptr.astype(short, copy=False))
    return csr_array(parts, shape=X.shape)
