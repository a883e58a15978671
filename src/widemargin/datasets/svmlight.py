"""The svmlight / LIBSVM text format: ``label index:value index:value ... # comment``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from widemargin._config import resolve_memory_budget
from widemargin.datasets.files import (
    Dataset,
    FloatType,
    PathLike,
    file_error,
    integers_if_whole,
    opened,
    quoted,
    with_short_indices,
)

_MAX_INDEX = 2**31 - 1
_INTEGER = re.compile(rb"[+-]?\d+")


def load_svmlight(
    path: PathLike, *, n_features: int | None = None, zero_based: bool = False, dtype: FloatType = np.float32
) -> Dataset:
    r"""Read an svmlight / LIBSVM file, plain or compressed as ``.gz`` or ``.bz2``.

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
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of X: kernels are computed in it. Float32 keeps seven digits.

    Returns
    -------
    Dataset
        X is a csr_array of shape (n_samples, n_features) and the given dtype; y is int64 where all labels are
        whole numbers, otherwise float64.

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
    rules = _Rules(0 if zero_based else 1, n_features, float(np.finfo(dtype).max))
    try:
        X, y = _parse(path, n_features, zero_based, dtype)
    except (ValueError, OverflowError) as error:
        raise _explain(path, rules, str(error)) from error
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise _explain(path, rules, "a number is not finite")
    if len(y) == 0:
        raise file_error(path, "the file has no samples")
    if n_features is None:
        _check_width(path, X, rules.first)
    return Dataset(X, integers_if_whole(y))


def _parse(path: PathLike, n_features: int | None, zero_based: bool, dtype: FloatType) -> tuple[Any, Any]:
    # A value beyond float32 becomes infinite with a warning; the caller names its line.
    with opened(path) as file, np.errstate(over="ignore"):
        from sklearn.datasets import load_svmlight_file  # after the file was found

        X, y = load_svmlight_file(file, n_features=n_features, zero_based=zero_based, dtype=dtype)
    return with_short_indices(X), np.asarray(y, dtype=np.float64)


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


def _explain(path: PathLike, rules: _Rules, otherwise: str) -> ValueError:
    """The error for the first broken line; ``otherwise`` is its reason if there is none."""
    with opened(path) as file:
        found = _first_fault(file, rules)
    return file_error(path, otherwise) if found is None else file_error(path, found[1], line=found[0])


def _first_fault(lines: Iterable[bytes], rules: _Rules) -> tuple[int, str] | None:
    for number, line in enumerate(lines, start=1):
        reason = _line_fault(line.split(b"#", 1)[0].split(), rules)
        if reason is not None:
            return number, reason
    return None


def _line_fault(tokens: list[bytes], rules: _Rules) -> str | None:
    """What is wrong with one line, split at white space; None if nothing is."""
    if not tokens:
        return None
    reason = _number_fault(tokens[0], float("inf"))
    if reason is not None:
        return f"the label {quoted(tokens[0])} {reason}"
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
    if number > _MAX_INDEX:
        return f"the feature index {number} does not fit in 32 bits"
    if rules.n_features is not None and number - rules.first >= rules.n_features:
        return f"the feature index {number} lies beyond the {rules.n_features} features expected"
    return None


def _number_fault(text: bytes, limit: float) -> str | None:
    try:
        number = float(text)
    except ValueError:
        return "is not a number"
    if not np.isfinite(number):
        return "is not finite"
    return None if abs(number) <= limit else "is too large for the dtype asked for"
