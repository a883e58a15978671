"""The svmlight / LIBSVM text format: ``label index:value index:value ... # comment``."""

from __future__ import annotations

import re
import warnings
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin._config import resolve_memory_budget
from widemargin.datasets.compressed import opened
from widemargin.datasets.files import (
    Dataset,
    FloatType,
    PathLike,
    file_error,
    labels_of,
    quoted,
    with_short_indices,
)
from widemargin.datasets.precision import read_as_needed

_INTEGER = re.compile(rb"[+-]?\d+")


def load_svmlight(
    path: PathLike, *, n_features: int | None = None, zero_based: bool = False, dtype: FloatType | None = None
) -> Dataset:
    r"""Read an svmlight / LIBSVM file, plain or compressed as ``.gz``, ``.bz2``, ``.xz``, ``.zst`` or ``.zip``.

    By scikit-learn's compiled reader. Where it raises, or reads a number that is not finite, the lines are read again
    to name the first broken one and the reason.

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
        X is a csr_array of shape (n_samples, n_features) and the given dtype; y is int64 where all labels are
        whole numbers of at most 64 bits, otherwise float64.

    Raises
    ------
    ValueError
        ``FILE:LINE: reason`` for the first broken line; also for an empty file and for damaged compression. Without
        `n_features`, for an index so large that a vector of as many numbers exceeds the ``memory_budget``.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.svm")
    ...     with open(path, "w") as file:
    ...         _ = file.write("+1 1:0.5 3:1\n-1 2:2\n")
    ...     data = load_svmlight(path)
    >>> data.X.toarray()
    array([[0.5, 0. , 1. ],
           [0. , 2. , 0. ]], dtype=float32)
    >>> data.y
    array([ 1, -1])
    """
    file = _File(path, n_features, zero_based)
    if dtype is not None:
        return Dataset(file.samples(dtype), file.labels())
    X, wide = read_as_needed(lambda dtype: file.samples(dtype, may_be_infinite=dtype is np.float32))
    if len(wide):
        which = ", ".join(str(k + file.first) for k in wide[:3]) + (", ..." if len(wide) > 3 else "")
        warnings.warn(f"{path}: float32 would round the features {which}: read as float64", stacklevel=2)
    return Dataset(X, file.labels())


class _File:
    """Reads the samples of an svmlight file, and then knows their labels."""

    def __init__(self, path: PathLike, n_features: int | None, zero_based: bool) -> None:
        self._path, self._n_features, self.first = path, n_features, 0 if zero_based else 1
        self._y: NDArray[np.float64] = np.empty(0)

    def samples(self, dtype: FloatType, *, may_be_infinite: bool = False) -> Any:
        """X (n_samples, n_features), CSR of this dtype, in which a value may be infinite or not. Keeps the labels."""
        from sklearn.datasets import load_svmlight_file  # after the file was found

        try:
            with opened(self._path) as file, np.errstate(over="ignore"):
                X, y = load_svmlight_file(
                    _Lines(file), n_features=self._n_features, zero_based=self.first == 0, dtype=dtype
                )
        except (ValueError, OverflowError) as error:
            raise self._explain(dtype, str(error)) from error
        self._y = np.asarray(y, dtype=np.float64)
        is_valid = not np.isnan(X.data).any() if may_be_infinite else np.isfinite(X.data).all()
        if not (is_valid and np.isfinite(self._y).all()):
            raise self._explain(dtype, "a number is not finite")
        if len(self._y) == 0:
            raise file_error(self._path, "the file has no samples")
        if self._n_features is None:
            _check_width(self._path, X, self.first)
        return with_short_indices(X)

    def labels(self) -> NDArray[Any]:
        """y (n_samples,), int64 where all are whole."""
        y = self._y
        if not (y == np.rint(y)).all():
            return y
        if np.abs(y).max() < 2**53:  # whole numbers below have a float64 of their own
            return y.astype(np.int64)
        with opened(self._path) as file:  # float64 has rounded them
            exact = labels_of([label.decode("ascii") for label in map(_label_of, _Lines(file)) if label])
        return exact if exact.dtype.kind == "i" else y

    def _explain(self, dtype: FloatType, otherwise: str) -> ValueError:
        """The error for the first broken line; `otherwise` is its reason if there is none."""
        rules = _Rules(self.first, self._n_features, float(np.finfo(dtype).max))
        with opened(self._path) as file:
            found = _first_fault(file, rules)
        return file_error(self._path, otherwise) if found is None else file_error(self._path, found[1], line=found[0])


class _Lines:
    """The lines of a file for scikit-learn's reader: without a byte order mark, and without underscores in numbers.

    Python takes these for marks between digits.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read  # that there is one makes it a file for scikit-learn
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        for number, line in enumerate(self._file):
            if b"_" in line and b"_" in line.split(b"#", 1)[0]:
                raise ValueError("a number has an underscore")
            yield line.removeprefix(BOM_UTF8) if number == 0 else line


def _label_of(line: bytes) -> bytes:
    tokens = line.split(b"#", 1)[0].split(None, 1)
    return tokens[0] if tokens else b""


def _check_width(path: PathLike, X: Any, first: int) -> None:
    """Raise the error for an index, probably a typo, that gives X more columns than a vector of weights can have."""
    n_bytes, budget, index = 8 * X.shape[1], resolve_memory_budget(), X.shape[1] - 1 + first
    if n_bytes <= budget:
        return
    with opened(path) as file:
        line = next((number for number, line in enumerate(file, start=1) if _has_index(line, index)), None)
    reason = (
        f"the feature index {index} gives X {X.shape[1]} columns, and one weight for each takes {n_bytes} bytes, "
        f"more than memory_budget, {budget}. If this index is meant, set n_features, or a larger memory_budget"
    )
    raise file_error(path, reason, line=line)


def _has_index(line: bytes, index: int) -> bool:
    tokens = line.split(b"#", 1)[0].split()
    return any(token.partition(b":")[0].lstrip(b"+0") == b"%d" % index for token in tokens[1:])


class _Rules(NamedTuple):
    """Limits of the numbers of a line: least index, number of features (None: any), largest magnitude of a value."""

    first: int
    n_features: int | None
    limit: float


def _first_fault(lines: Iterable[bytes], rules: _Rules) -> tuple[int, str] | None:
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(BOM_UTF8) if number == 1 else line
        reason = _line_fault(text.split(b"#", 1)[0].split(), rules)
        if reason is not None:
            return number, reason
    return None


def _line_fault(tokens: list[bytes], rules: _Rules) -> str | None:
    """What is wrong with one line, split at white space; None if nothing is."""
    if not tokens:
        return None
    reason = _number_fault(tokens[0], float("inf"))
    if reason is not None:
        is_table = b"," in tokens[0] or b";" in tokens[0]
        remedy = "; is it delimited text? --format csv, or load_csv, reads that" if is_table else ""
        return f"the label {quoted(tokens[0])} {reason}{remedy}"
    previous = rules.first - 1
    pairs = tokens[2:] if len(tokens) > 1 and tokens[1].startswith(b"qid:") else tokens[1:]
    for token in pairs:
        reason = _pair_fault(token, previous, rules)
        if reason is not None:
            return reason
        previous = int(token.split(b":", 1)[0])
    return None


def _pair_fault(token: bytes, previous: int, rules: _Rules) -> str | None:
    index, colon, value = token.partition(b":")
    if not colon:
        return f"{quoted(token)} is not an index:value pair"
    reason = _index_fault(index, previous, rules)
    if reason is not None:
        return reason
    reason = _number_fault(value, rules.limit)
    return None if reason is None else f"the value {quoted(value)} of feature {int(index)} {reason}"


def _index_fault(index: bytes, previous: int, rules: _Rules) -> str | None:
    if not _INTEGER.fullmatch(index):
        return f"the feature index {quoted(index)} is not an integer"
    number = int(index)
    if number < rules.first:
        remedy = "; --zero-based, or zero_based=True, reads files that begin at 0" if number == 0 else ""
        return f"the feature index {number} is below {rules.first}{remedy}"
    if number <= previous:
        return f"the feature index {number} follows {previous}: indices must increase"
    if number > np.iinfo(np.int32).max:
        return f"the feature index {number} does not fit in 32 bits"
    if rules.n_features is not None and number - rules.first >= rules.n_features:
        return f"the feature index {number} lies beyond the {rules.n_features} features expected"
    return None


def _number_fault(text: bytes, limit: float) -> str | None:
    try:
        number = float(b"_" if b"_" in text else text)  # Python takes an underscore for a mark between digits
    except ValueError:
        return "is not a number"
    if not np.isfinite(number):
        return "is not finite"
    return None if abs(number) <= limit else "is too large for the dtype asked for"
