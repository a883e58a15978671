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
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from widemargin._config import resolve_memory_budget
from widemargin._types import AnyArray
from widemargin.datasets.files import Dataset, PathLike, check_archive, file_error, is_number, labels_of, opened, quoted

FloatType: TypeAlias = type[np.float32] | type[np.float64]

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
        may be a smaller one, and for so many that a vector of them exceeds the configured ``memory_budget``.
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
        ``FILE:LINE: reason`` for a broken line; also for an empty file and for damaged compression.

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
    with opened(path) as file:
        lines = _Lines(file)
        try:
            X, _ = load_svmlight_file(lines, zero_based=zero_based, dtype=np.float64)
        except (ValueError, OverflowError) as error:
            if str(error).startswith(f"{path}:"):  # of its compression
                raise
            raise file_error(path, _fault(lines.line, first) or str(error), lines.number) from error
    if not lines.numbers:
        raise file_error(path, "the file has no samples")

    def error_of(entry: Any, reason: str) -> ValueError:
        row = np.searchsorted(X.indptr, entry, side="right") - 1
        return file_error(path, f"the feature index {X.indices[entry] + first} {reason}", lines.numbers[row])

    limit = float(np.finfo(dtype or np.float64).max)
    if len(wrong := np.flatnonzero(~(np.abs(X.data) <= limit))):
        raise error_of(wrong[0], f"has the value {X.data[wrong[0]]:g}, which must be finite and at most {limit:.3g}")
    n_bytes, budget = 8 * X.shape[1], resolve_memory_budget()
    if n_features is None and n_bytes > budget:  # probably a typo
        found = f"gives X {X.shape[1]} columns, and one weight for each takes {n_bytes} bytes, more than memory_budget"
        remedy = "If this index is meant, set n_features, or a larger memory_budget"
        raise error_of(np.argmax(X.indices), f"{found}, {budget}. {remedy}")
    if n_features is not None:
        if len(beyond := np.flatnonzero(X.indices >= n_features)):
            raise error_of(beyond[0], f"lies beyond the {n_features} features expected")
        X.resize((X.shape[0], n_features))
    y = lines.labels(path)
    wide = rounded_columns(X) if dtype is None else np.empty(0, dtype=np.intp)
    if len(wide):
        which = ", ".join(str(k + first) for k in wide[:3]) + (", ..." if len(wide) > 3 else "")
        warnings.warn(f"{path}: float32 would round the features {which}: read as float64", stacklevel=2)
    return Dataset(_with_short_indices(X.astype(dtype or (np.float64 if len(wide) else np.float32), copy=False)), y)


class _Lines:
    """The lines of a file for scikit-learn's reader, which reads one after the other, with 0 for each label.

    A label may be a text. Without a byte order mark, and without underscores: Python has these between digits.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read  # that there is one makes it a file for scikit-learn
        self._file, self._codes, self._words = file, array("q"), dict[bytes, int]()
        self.number, self.line, self.numbers = 0, b"", array("q")  # of the last line, and of the lines that are rows

    def __iter__(self) -> Iterator[bytes]:
        for line in self._file:
            self.number += 1
            self.line = (line.removeprefix(BOM_UTF8) if self.number == 1 else line).split(b"#", 1)[0].strip()
            if self.line:
                label, pairs = (*self.line.split(None, 1), b"")[:2]
                if b":" in label or b"," in label or b"_" in pairs:
                    raise ValueError("the label is missing, or several, or a number has an underscore")
                self.numbers.append(self.number)
                self._codes.append(self._words.setdefault(label, len(self._words)))
                yield b"0 " + pairs + b"\n"

    def labels(self, path: PathLike) -> AnyArray:
        """y (n_samples,); a ValueError if only some of the labels are numbers."""
        codes, words = np.frombuffer(self._codes, dtype=np.int64), list(map(_text, self._words))
        are_numbers = np.array(list(map(is_number, words)))
        if len(unlike := np.flatnonzero(are_numbers != are_numbers[0])):  # words are in the order of their first rows
            row, kind = np.argmax(codes == unlike[0]), "no" if are_numbers[0] else "a"
            reason = f"the label {quoted(words[unlike[0]])} is {kind} number, unlike those above"
            raise file_error(path, reason, self.numbers[row])
        return labels_of(words)[codes]


def _text(word: bytes) -> str:
    return word.decode("utf-8", "backslashreplace")


def _fault(line: bytes, first: int) -> str:
    """What is wrong with a line, if anything is; its values may be infinite."""
    label, *pairs = line.split()
    remedy = "" if b":" in line else ": is it delimited text? --format csv, or format='csv', reads that"
    if re.search(rb"[,;:]", label):
        return f"{quoted(label)} is no label{remedy}"
    previous = first - 1
    for pair in pairs[1:] if pairs and pairs[0].startswith(b"qid:") else pairs:
        index, _, value = _text(pair).partition(":")
        if not re.fullmatch(r"[+-]?[0-9]+", index) or not is_number(value):
            return f"{quoted(pair)} is no pair of a whole index and a finite value{remedy}"
        number = int(index)
        if number < first:
            how = "; --zero-based, or zero_based=True, reads files that begin at 0" if number == 0 else ""
            return f"the feature index {number} is below {first}{how}"
        if number <= previous:
            return f"the feature index {number} follows {previous}: indices must increase"
        if number > np.iinfo(np.int32).max:
            return f"the feature index {number} does not fit in 32 bits"
        previous = number
    return ""


def is_rounded(values: NDArray[np.float64]) -> bool:
    """Whether float32 moves a value of a column (n_samples,) by more than 1e-5 of its standard deviation."""
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.nanmax(np.abs(values - values.astype(np.float32)), initial=0)
        spread = np.nanstd(values - values[np.argmin(np.isnan(values))]) if moved else 0  # exactly 0 where all are one
    return bool(moved == np.inf or moved > _MOST_ROUNDED * spread > 0)


def rounded_columns(X: Any) -> NDArray[np.intp]:
    """Columns of a CSR matrix of float64 of which `is_rounded` is true: all zeros count in their spread."""
    from sklearn.utils.sparsefuncs import mean_variance_axis

    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.abs(X.data - X.data.astype(np.float32))
        if not errors.any():
            return np.empty(0, dtype=np.intp)
        columns, own = np.unique(X.indices, return_inverse=True)  # there may be 2**31 columns
        used = type(X)((X.data, own, X.indptr), shape=(X.shape[0], len(columns))).tocsc()
        moved, spread = np.zeros(len(columns)), np.sqrt(mean_variance_axis(used, axis=0)[1])
        np.maximum.at(moved, own, errors)
        is_moved = moved > _MOST_ROUNDED * spread
    varies = (used.max(axis=0) != used.min(axis=0)).toarray().ravel()
    return np.asarray(columns[(is_moved & varies) | (moved == np.inf)], dtype=np.intp)


def _with_short_indices(X: Any) -> Any:
    """A csr_matrix with the values of X, and 32-bit indices where they suffice: some estimators refuse 64-bit ones."""
    from scipy.sparse import csr_matrix, get_index_dtype

    short = get_index_dtype(maxval=max(X.nnz, *X.shape))
    parts = (X.data, X.indices.astype(short, copy=False), X.indptr.astype(short, copy=False))
    return csr_matrix(parts, shape=X.shape)


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
        Naming the file and what is wrong: damage, a missing key, objects, shapes that disagree, CSR indices out of
        bounds.

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
    with open(path, "rb") as file:
        # The directory of a zip file is at its end: a truncated file has none.
        if not check_archive(path, "save it by numpy.savez, which does not compress"):
            raise file_error(path, "not an .npz archive, or a truncated one")
        try:
            with np.load(file, allow_pickle=False) as archive:
                # A member that is no array is read as raw bytes, which checks of dtype and shape refuse.
                arrays = {key: np.asarray(archive[key]) for key in archive.files}
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            raise file_error(path, f"a damaged archive, or an array in it cannot be read ({error})") from error
    X, X_test = _samples(path, arrays, ""), _samples(path, arrays, "_test")
    found = ", ".join(sorted(arrays)) or "nothing"
    if X is None:
        raise file_error(path, f"neither the key 'X' nor the keys {_CSR_KEYS} are there, only: {found}")
    if X_test is not None and X_test.shape[1] != X.shape[1]:
        raise file_error(path, f"X has {X.shape[1]} features and X_test {X_test.shape[1]}")
    if target != "y" and target not in arrays:  # archives for prediction may have no labels
        raise file_error(path, f"there is no key {target!r}, only: {found}")
    labels = arrays.get(target), None if X_test is None else arrays.get(f"{target}_test")
    for y, samples in zip(labels, (X, X_test), strict=True):
        if y is not None and y.shape != (samples.shape[0],):
            n = samples.shape[0]
            raise file_error(path, f"{target} must have the shape ({n},) of the {n} samples, not {y.shape}")
    return Dataset(X, labels[0], X_test, labels[1])


def _samples(path: PathLike, arrays: dict[str, AnyArray], ending: str) -> Any:
    """The samples under keys with this ending; None if there are none."""
    key = f"X{ending}" if f"X{ending}" in arrays else f"data{ending}"
    if key not in arrays:
        return None
    values = arrays[key]
    if values.dtype.kind not in "fiub":
        raise file_error(path, f"{key} must hold numbers, not {values.dtype}")
    is_wide = np.result_type(values.dtype, np.float32).itemsize > 4
    values = values.astype(np.float64 if is_wide else np.float32, copy=False)
    if key.startswith("X"):
        if values.ndim != 2 or 0 in values.shape:
            reason = f"{key} must have two dimensions and at least one row and column, not {values.shape}"
            raise file_error(path, reason)
        return values
    from scipy.sparse import csr_array

    if missing := [key + ending for key in _CSR_KEYS if key + ending not in arrays]:
        raise file_error(path, f"keys of the CSR matrix are missing: {', '.join(missing)}")
    try:
        n_rows, n_columns = arrays[f"shape{ending}"].tolist()
        parts = values, arrays[f"indices{ending}"], arrays[f"indptr{ending}"]
        X = csr_array(parts, shape=(n_rows, n_columns))
        X.check_format(full_check=True)  # compiled code does not check indices
    except (ValueError, TypeError) as error:
        raise file_error(path, f"data{ending}, indices{ending}, indptr{ending} are no CSR matrix ({error})") from error
    return _with_short_indices(X)


def load_benchmark(name: str, data_home: PathLike | None = None, *, target: str = "y") -> Dataset:
    """Read a benchmark set, such as ``"a9a"``, from a folder of files ``NAME.npz``, as `load_npz` does.

    Parameters
    ----------
    name : str
        The set.
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
        When no folder is known, or it has no such set.
    """
    home = os.environ.get(_HOME) if data_home is None else os.fspath(data_home)
    if not home:
        reason = f"no folder of .npz files is known: set the environment variable {_HOME}, or pass data_home"
        raise FileNotFoundError(reason)
    path = Path(home) / f"{name}.npz"
    if not path.is_file():
        known = sorted(file.stem for file in Path(home).glob("*.npz"))
        raise FileNotFoundError(f"{home} has no data set {name!r}; it has: {', '.join(known) or 'no .npz files'}")
    return load_npz(path, target=target)
