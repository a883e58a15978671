"""`Dataset`, which all readers return; opening files; errors that name the file and the line."""

from __future__ import annotations

import bz2
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

PathLike: TypeAlias = "str | os.PathLike[str]"
FloatType: TypeAlias = type[np.float32] | type[np.float64]

_SHOWN = 40  # characters of a quoted piece of a file
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


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
    printable = "".join(c if c.isprintable() and c.isascii() else c.encode("unicode_escape").decode() for c in text)
    return f"'{printable[:_SHOWN]}...'" if len(printable) > _SHOWN else f"'{printable}'"


@contextmanager
def opened(path: PathLike) -> Iterator[BinaryIO]:
    """Open a plain, ``.gz`` or ``.bz2`` file for reading bytes.

    Raises
    ------
    ValueError
        Naming the file, when its compression turns out truncated or damaged, here or in the body of the ``with``.
    OSError
        When the file cannot be opened.
    """
    suffix = Path(path).suffix
    with cast(BinaryIO, _OPENERS.get(suffix, open)(path, "rb")) as file:
        try:
            yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise file_error(path, f"truncated or damaged {suffix} file ({error})") from error
        except OSError as error:
            # bz2 reports damage as an OSError without errno; the operating system's errors have one.
            if suffix != ".bz2" or error.errno is not None:
                raise
            raise file_error(path, f"truncated or damaged {suffix} file ({error})") from error


def integers_if_whole(labels: NDArray[Any]) -> NDArray[Any]:
    """Convert float labels to int64 if all of them are whole numbers.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,), float64
        Finite.

    Returns
    -------
    ndarray of shape (n_samples,), int64 or float64

    Examples
    --------
    >>> integers_if_whole(np.array([1.0, -1.0]))
    array([ 1, -1])
    >>> integers_if_whole(np.array([1.5, 2.0]))
    array([1.5, 2. ])
    """
    whole = bool((labels == np.rint(labels)).all()) and bool((np.abs(labels) < 2**53).all())
    return labels.astype(np.int64) if whole else labels


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
