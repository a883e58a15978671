"""Matrices: the svmlight / LIBSVM text format, ``label index:value ... # comment``, and NumPy archives."""

from __future__ import annotations

import os
import re
import warnings
import zipfile
import zlib
from array import array
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from widemargin._config import resolve_memory_budget
from widemargin.datasets.files import (
    Dataset,
    FloatType,
    PathLike,
    check_archive,
    file_error,
    is_number,
    labels_of,
    opened,
    quoted,
    with_short_indices,
)

_HOME = "WIDEMARGIN_DATA"
_CSR_KEYS = ("data", "indices", "indptr", "shape")
_MOST_ROUNDED = 1e-5  # rounding error in float32 / standard deviation of a column


def load_svmlight(
    path: PathLike, *, n_features: int | None = None, zero_based: bool = False, dtype: FloatType | None = None
) -> Dataset:
    r"""Read an svmlight / LIBSVM file, plain or compressed as ``.gz``, ``.bz2``, ``.xz``, ``.zst`` or ``.zip``.

    Parameters
    ----------
    path : str or path-like
        The file. ``# ...`` at a line's end, blank lines and ``qid:`` entries are skipped.
    n_features : int, default=None
        Number of columns of X; None: the largest index in the file. To be given for a test file, whose largest index
        may be smaller than the training file's, and for so many that a vector of them exceeds the configured
        ``memory_budget``.
    zero_based : bool, default=False
        Whether the first feature has index 0 instead of 1.
    dtype : {numpy.float32, numpy.float64}, default=None
        Type of X: kernels are computed in it. None: float32, which keeps seven digits; float64 where rounding to them
        moves a value by more than 1e-5 of its column's standard deviation (with a warning).

    Returns
    -------
    Dataset
        X is a csr_matrix of shape (n_samples, n_features); y is int64 where all labels are whole numbers of at most 64
        bits, float64 where all are numbers, otherwise strings.

    Raises
    ------
    ValueError
        ``FILE:LINE: reason`` for the first broken line; also for an empty file and for damaged compression.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.svm")
    ...     with open(path, "w") as file:
    ...         _ = file.write("yes 1:0.5 3:1\nno 2:2\n")
    ...     data = load_svmlight(path)
    >>> data.X.toarray()
    array([[0.5, 0. , 1. ],
           [0. , 2. , 0. ]], dtype=float32)
    >>> data.y.tolist()
    ['yes', 'no']
    """
    from sklearn.datasets import load_svmlight_file  # after the file was found

    first = 0 if zero_based else 1
    try:
        with opened(path) as file:
            lines = _Lines(file)
            X, _ = load_svmlight_file(lines, n_features=n_features, zero_based=zero_based, dtype=np.float64)
    except (ValueError, OverflowError) as error:
        if str(error).startswith(f"{path}:"):  # of its compression
            raise
        raise _explained(path, first, n_features, str(error)) from error
    limit = float(np.finfo(dtype or np.float64).max)
    if not (np.abs(X.data) <= limit).all():
        raise _explained(path, first, n_features, "a number is not finite", limit)
    y = lines.labels()
    if y is None:
        raise _explained(path, first, n_features, "some labels are numbers and some are not")
    if len(y) == 0:
        raise file_error(path, "the file has no samples")
    if n_features is None:
        _check_width(path, X, first)
    wide = rounded_columns(X) if dtype is None else np.empty(0, dtype=np.intp)
    if len(wide):
        which = ", ".join(str(k + first) for k in wide[:3]) + (", ..." if len(wide) > 3 else "")
        warnings.warn(f"{path}: float32 would round the features {which}: read as float64", stacklevel=2)
    return Dataset(with_short_indices(X.astype(dtype or (np.float64 if len(wide) else np.float32), copy=False)), y)


class _Lines:
    """The lines of a file for scikit-learn's reader, with 0 for each label: a text is one, too.

    Without a byte order mark, and without underscores in numbers: Python takes these for marks between digits.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read  # that there is one makes it a file for scikit-learn
        self._file = file
        self._codes, self._words = array("q"), dict[bytes, int]()

    def __iter__(self) -> Iterator[bytes]:
        for number, line in enumerate(self._file):
            line = (line.removeprefix(BOM_UTF8) if number == 0 else line).split(b"#", 1)[0].strip()
            if line:
                label, pairs = (*line.split(None, 1), b"")[:2]
                if b"_" in pairs:
                    raise ValueError("a number has an underscore")
                if b":" in label or b"," in label:
                    raise ValueError("the label is missing, or several")
                self._codes.append(self._words.setdefault(label, len(self._words)))
                yield b"0 " + pairs + b"\n"

    def labels(self) -> NDArray[Any] | None:
        """y (n_samples,); None if only some labels are numbers."""
        words = [word.decode("utf-8", "backslashreplace") for word in self._words]
        if any(map(is_number, words)) and not all(map(is_number, words)):
            return None
        return labels_of(words)[np.frombuffer(self._codes, dtype=np.int64)] if words else np.empty(0)


def _explained(
    path: PathLike, first: int, n_features: int | None, otherwise: str, limit: float = float("inf")
) -> ValueError:
    """The error for the first broken line; `otherwise` is its reason if there is none."""
    with opened(path) as file:
        is_numeric: bool | None = None
        for number, line in enumerate(file, start=1):
            tokens = (line.removeprefix(BOM_UTF8) if number == 1 else line).split(b"#", 1)[0].split()
            if not tokens:
                continue
            is_number_ = is_number(tokens[0].decode("utf-8", "backslashreplace"))
            is_numeric = is_number_ if is_numeric is None else is_numeric
            reason = next(_line_faults(tokens, first, n_features, limit), None)
            if reason is None and is_number_ != is_numeric:
                reason = f"the label {quoted(tokens[0])} is {'a' if is_number_ else 'no'} number, unlike those above"
            if reason is not None:
                return file_error(path, reason, number)
    return file_error(path, otherwise)


def _line_faults(tokens: list[bytes], first: int, n_features: int | None, limit: float) -> Iterator[str]:
    """What is wrong with one line, split at white space."""
    is_other = not any(b":" in token for token in tokens)
    remedy = ": is it delimited text? --format csv, or format='csv', reads that" if is_other else ""
    if re.search(rb"[,;:]", tokens[0]):
        yield f"{quoted(tokens[0])} is no label{remedy}"
    previous = first - 1
    for token in tokens[2:] if len(tokens) > 1 and tokens[1].startswith(b"qid:") else tokens[1:]:
        index, _, value = (part.decode("ascii", "backslashreplace") for part in token.partition(b":"))
        if not re.fullmatch(r"[+-]?[0-9]+", index) or not is_number(value) or abs(float(value)) > limit:
            kind = "" if limit == float("inf") else f", at most {limit:.3g}"
            yield f"{quoted(token)} is no pair of a whole index and a finite value{kind}{remedy}"
        number = int(index)
        if number < first:
            how = "; --zero-based, or zero_based=True, reads files that begin at 0" if number == 0 else ""
            yield f"the feature index {number} is below {first}{how}"
        if number <= previous:
            yield f"the feature index {number} follows {previous}: indices must increase"
        if number > np.iinfo(np.int32).max:
            yield f"the feature index {number} does not fit in 32 bits"
        if n_features is not None and number - first >= n_features:
            yield f"the feature index {number} lies beyond the {n_features} features expected"
        previous = number


def _check_width(path: PathLike, X: Any, first: int) -> None:
    """Raise the error for an index, probably a typo, that gives X more columns than a vector of weights can have."""
    n_bytes, budget, index = 8 * X.shape[1], resolve_memory_budget(), X.shape[1] - 1 + first
    if n_bytes > budget:
        written = re.compile(rb"[^#]*\s\+?0*%d:" % index)
        with opened(path) as file:
            line = next((number for number, line in enumerate(file, start=1) if written.match(line)), None)
        found = f"the feature index {index} gives X {X.shape[1]} columns, and one weight for each takes {n_bytes} bytes"
        remedy = "If this index is meant, set n_features, or a larger memory_budget"
        raise file_error(path, f"{found}, more than memory_budget, {budget}. {remedy}", line)


def is_rounded(values: NDArray[np.float64]) -> bool:
    """Whether float32 moves a value of a column (n_samples,) by more than 1e-5 of its standard deviation."""
    present = values[~np.isnan(values)]
    return len(_rounded(present, np.zeros(len(present), dtype=np.intp), len(present))) > 0


def rounded_columns(X: Any) -> NDArray[np.intp]:
    """Columns of a CSR matrix of float64 of which `is_rounded` is true: all zeros count in their spread."""
    columns, own = np.unique(X.indices, return_inverse=True)  # there may be 2**31 columns
    return columns[_rounded(X.data, own, X.shape[0])].astype(np.intp)


def _rounded(values: NDArray[np.float64], columns: NDArray[np.intp], n_samples: int) -> NDArray[np.intp]:
    """Columns that float32 would round; each value has the number of its column, and the others are 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.abs(values - values.astype(np.float32))
        if not errors.any():
            return np.empty(0, dtype=np.intp)
        counts = np.bincount(columns)
        moved = np.zeros(len(counts))
        np.maximum.at(moved, columns, errors)
        first = np.zeros(len(counts))
        first[columns[::-1]] = values[::-1]  # from which one value alone deviates by exactly 0
        shifted, n_zeros = values - first[columns], n_samples - counts
        mean = (np.bincount(columns, shifted) - n_zeros * first) / n_samples
        squares = np.bincount(columns, (shifted - mean[columns]) ** 2) + n_zeros * (first + mean) ** 2
        is_moved = moved > _MOST_ROUNDED * np.sqrt(squares / n_samples)
    return np.flatnonzero((is_moved & (squares > 0)) | (moved == np.inf))


# NumPy archives -------------------------------------------------------------------------------------------------------


def load_npz(path: PathLike, *, target: str = "y") -> Dataset:
    """Read a NumPy archive. Nothing in it is unpickled.

    Parameters
    ----------
    path : str or path-like
        An archive with the keys ``X`` (dense) or ``data``, ``indices``, ``indptr`` and ``shape`` (CSR); ``y``, if there
        are labels; and all of these once more with the ending ``_test``, if there is a test split.
    target : str, default="y"
        Key of the labels, for archives with several kinds of them.

    Returns
    -------
    Dataset
        X is an ndarray or csr_matrix of shape (n_samples, n_features): float32 and float64 are kept, booleans, 8- and
        16-bit integers become float32, 32- and 64-bit integers float64. y keeps its dtype.

    Raises
    ------
    ValueError
        Naming the file and what is wrong: a truncated or damaged archive, a missing key, an array with objects in
        it, shapes that disagree, CSR indices out of bounds.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.npz")
    ...     np.savez(path, X=np.eye(3, dtype="uint8"), y=["a", "b", "a"])
    ...     data = load_npz(path)
    >>> data.X.dtype, data.y.tolist()
    (dtype('float32'), ['a', 'b', 'a'])
    """
    arrays = _read_arrays(path)
    X = _samples(path, arrays, "")
    if X is None:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise file_error(path, f"neither the key 'X' nor the keys {_CSR_KEYS} are there, only: {found}")
    X_test = _samples(path, arrays, "_test")
    if X_test is not None and X_test.shape[1] != X.shape[1]:
        raise file_error(path, f"X has {X.shape[1]} features and X_test {X_test.shape[1]}")
    y = _labels(path, arrays, target, X)
    y_test = None if X_test is None else _labels(path, arrays, f"{target}_test", X_test)
    return Dataset(X, y, X_test, y_test)


def _read_arrays(path: PathLike) -> dict[str, NDArray[Any]]:
    with open(path, "rb") as file:
        # The directory of a zip file is at its end: a truncated file has none.
        if not check_archive(path, "save it by numpy.savez, which does not compress"):
            raise file_error(path, "not an .npz archive, or a truncated one")
        try:
            with np.load(file, allow_pickle=False) as archive:
                # A member that is no array is read as raw bytes, which later checks of dtype and shape refuse.
                return {key: np.asarray(archive[key]) for key in archive.files}
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            raise file_error(path, f"a damaged archive, or an array in it cannot be read ({error})") from error


def _samples(path: PathLike, arrays: dict[str, NDArray[Any]], ending: str) -> Any:
    if f"X{ending}" in arrays:
        X = _as_float(path, f"X{ending}", arrays[f"X{ending}"])
        if X.ndim != 2 or 0 in X.shape:
            raise file_error(path, f"X{ending} must have two dimensions and at least one row and column, not {X.shape}")
        return X
    if f"data{ending}" not in arrays:
        return None
    from scipy.sparse import csr_array

    missing = [key + ending for key in _CSR_KEYS if key + ending not in arrays]
    if missing:
        raise file_error(path, f"keys of the CSR matrix are missing: {', '.join(missing)}")
    data, indices, indptr, shape = (arrays[key + ending] for key in _CSR_KEYS)
    try:
        n_rows, n_columns = shape.tolist()
        X = csr_array((_as_float(path, f"data{ending}", data), indices, indptr), shape=(n_rows, n_columns))
        X.check_format(full_check=True)  # compiled code does not check indices
    except (ValueError, TypeError) as error:
        raise file_error(path, f"data{ending}, indices{ending}, indptr{ending} are no CSR matrix ({error})") from error
    return with_short_indices(X)


def _as_float(path: PathLike, key: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "fiub":
        raise file_error(path, f"{key} must hold numbers, not {values.dtype}")
    wide = np.result_type(values.dtype, np.float32).itemsize > 4
    return values.astype(np.float64 if wide else np.float32, copy=False)


def _labels(path: PathLike, arrays: dict[str, NDArray[Any]], key: str, X: Any) -> NDArray[Any] | None:
    if key in arrays and arrays[key].shape != (X.shape[0],):
        found = arrays[key].shape
        raise file_error(path, f"{key} must have the shape ({X.shape[0]},) of the {X.shape[0]} samples, not {found}")
    if key not in arrays and key != "y" and not key.endswith("_test"):  # archives for prediction may have no labels
        raise file_error(path, f"there is no key {key!r}, only: {', '.join(sorted(arrays))}")
    return arrays.get(key)


def load_benchmark(name: str, data_home: PathLike | None = None, *, target: str = "y") -> Dataset:
    """Read a benchmark set, ``NAME.npz``, as `load_npz` does, from the folder that WIDEMARGIN_DATA names.

    Parameters
    ----------
    name : str
        The set, such as ``"a9a"``.
    data_home : str or path-like, default=None
        The folder. None takes that of the environment variable WIDEMARGIN_DATA.
    target : str, default="y"
        Key of the labels: some sets have ``"y_multi"`` as well.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        When the variable is not set, or the folder has no such set.
    """
    home = os.environ.get(_HOME) if data_home is None else os.fspath(data_home)
    if not home:
        raise FileNotFoundError(
            f"no folder of benchmark data is known: set the environment variable {_HOME} to a folder of .npz files "
            "(keys X and y, or data, indices, indptr, shape and y), or pass data_home"
        )
    path = Path(home) / f"{name}.npz"
    if not path.is_file():
        known = sorted(file.stem for file in Path(home).glob("*.npz"))
        raise FileNotFoundError(f"{home} has no data set {name!r}; it has: {', '.join(known) or 'no .npz files'}")
    return load_npz(path, target=target)
