"""Named classification problems with the settings (C, gamma) that benchmarks train them at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from widemargin.datasets import load_benchmark, load_patches


class Problem(NamedTuple):
    """A binary problem in dense float32 with labels +1 and -1, and the RBF machine to train on it."""

    name: str
    X: NDArray[np.float32]
    y: NDArray[np.int8]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int8]
    C: float
    gamma: float
    task: str
    sparse: bool  # the source is sparse, so a sparse form is worth offering too


class _Setting(NamedTuple):
    C: float
    gamma: float
    task: str
    positive: Callable[[NDArray[Any]], NDArray[np.bool_]]
    scale: bool = False


def _is_largest(y: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(y == np.unique(y)[-1])


def _is_round(digits: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isin(digits, (0, 3, 6, 8, 9))


_SETTINGS: dict[str, _Setting] = {
    "patches": _Setting(8.0, 1.0, "which photograph", _is_largest),
    "a9a": _Setting(32.0, 2.0**-7, "as published", _is_largest),
    "ijcnn1": _Setting(32.0, 2.0, "as published, reconstructed features", _is_largest),
    "codrna": _Setting(32.0, 0.5, "as published", _is_largest),
    "mnist": _Setting(8.0, 2.0**-21, "digits 0 3 6 8 9 against the rest", _is_round),
    "deformed_digits": _Setting(8.0, 2.0**-21, "mnist's, deformed: digits 0 3 6 8 9 against the rest", _is_round),
    "letter": _Setting(32.0, 4.0, "letters 1-13 against 14-26", lambda y: y <= 13),
    "usps": _Setting(8.0, 2.0**-6, "digits 0-4 against 5-9", lambda y: y <= 4),
    "pendigits": _Setting(8.0, 2.0**-12, "even digits against odd", lambda y: y % 2 == 0),
    "covtype": _Setting(32.0, 32.0, "class 2 against the rest, columns scaled to [0, 1]", lambda y: y == 2, scale=True),
    "covtype_20k": _Setting(32.0, 32.0, "class 2 against the rest, columns scaled to [0, 1]", _is_largest, scale=True),
    "sparse_wide": _Setting(32.0, 0.02, "generated: 12 of 300 columns", _is_largest),
    "one_hot": _Setting(1.0, 0.05, "generated: 20 columns of 4 levels", _is_largest),
    "noisy": _Setting(1.0, 0.1, "generated: a smooth function of 4 of 10 columns, and noise", _is_largest),
    "kddcup99_10": _Setting(32.0, 0.25, "normal against attack, columns scaled to [0, 1]", _is_largest, scale=True),
}

NAMES = tuple(_SETTINGS)
_TEST_PATCHES = 10_000


def load_problem(name: str, *, n_rows: int | None = None, random_state: int = 0) -> Problem:
    """Load a named problem.

    Parameters
    ----------
    name : str
        One of `NAMES`. "patches" is bundled, "sparse_wide", "one_hot" and "noisy" are generated; the others, and the
        digits that are deformed, are read from the folder named by ``WIDEMARGIN_DATA``.
    n_rows : int, optional
        How many training patches to cut (default 20,000), or rows to generate; of the other sets, how many random
        training rows to keep.
    random_state : int
        Seeds the cut, and the 80/20 split of a set that was published without one.

    Returns
    -------
    Problem
    """
    setting = _SETTINGS[name]
    rng = np.random.default_rng(random_state)
    X, y, X_test, y_test = _GENERATED[name](n_rows, random_state) if name in _GENERATED else load_benchmark(name)
    if X_test is None:
        test, train = np.split(rng.permutation(X.shape[0]), [X.shape[0] // 5])
        X, X_test, y, y_test = X[train], X[test], y[train], y[test]
    if n_rows is not None and n_rows < X.shape[0]:
        chosen = rng.choice(X.shape[0], n_rows, replace=False)
        X, y = X[chosen], y[chosen]
    is_sparse = bool(sp.issparse(X))
    X, X_test = _dense(X), _dense(X_test)
    if setting.scale:
        X, X_test = _to_unit_range(X, X_test)
    positive = setting.positive(y), setting.positive(np.asarray(y_test))
    signs = [np.where(p, 1, -1).astype(np.int8) for p in positive]
    return Problem(name, X, signs[0], X_test, signs[1], setting.C, setting.gamma, setting.task, is_sparse)


def _load_patches(n_rows: int | None, random_state: int) -> tuple[Any, Any, Any, Any]:
    n = n_rows or 20_000
    X, y = load_patches(n + _TEST_PATCHES, 5, random_state=random_state)
    return X[:n], y[:n], X[n:], y[n:]


def _deform_digits(n_rows: int | None, random_state: int) -> tuple[Any, Any, Any, Any]:
    """1,000,000 rows (n, 784): each of mnist's digits x is moved, x - u dx - v dy, for a random smooth field (u, v).

    The fields' displacements are of one pixel in root mean square. (To first order, as Loosli, Canu and Bottou, 2007.)
    """
    rng, n = np.random.default_rng(random_state), n_rows or 1_000_000
    digits, labels, X_test, y_test = load_benchmark("mnist")
    fields = gaussian_filter(rng.standard_normal((500, 2, 28, 28), dtype=np.float32), (0, 0, 4, 4), mode="wrap")
    fields /= np.sqrt(np.mean(np.square(fields), axis=(2, 3), keepdims=True))
    X, origin = np.empty((n, 784), np.float32), np.arange(n) % len(labels)
    for first in range(0, n, 10_000):
        images = np.asarray(digits[origin[first : first + 10_000]], np.float32).reshape(-1, 28, 28)
        field = fields[rng.integers(len(fields), size=len(images))]
        moved = images - field[:, 0] * np.gradient(images, axis=1) - field[:, 1] * np.gradient(images, axis=2)
        X[first : first + len(images)] = np.clip(moved, 0, 255).reshape(-1, 784)
    return X, labels[origin], X_test, y_test


def _make_sparse_wide(n_rows: int | None, random_state: int) -> tuple[Any, Any, None, None]:
    """50,000 rows (a fifth for tests) with 12 of 300 columns, and the sign of a linear function of them."""
    rng = np.random.default_rng(random_state)
    n, d, n_set = n_rows or 50_000, 300, 12
    columns = rng.random((n, d)).argpartition(n_set, axis=1)[:, :n_set]
    X = sp.csr_array((rng.random(n * n_set), (np.repeat(np.arange(n), n_set), columns.ravel())), shape=(n, d))
    value = X @ rng.standard_normal(d)
    return X, np.where(value > np.median(value), 1, -1), None, None


def _make_one_hot(n_rows: int | None, random_state: int) -> tuple[Any, Any, None, None]:
    """11,250 rows (a fifth for tests) of 20 categories with 4 levels, and the sign of a quadratic function of them."""
    rng = np.random.default_rng(random_state)
    n, n_columns, n_levels = n_rows or 11_250, 20, 4
    columns = n_levels * np.arange(n_columns) + rng.integers(n_levels, size=(n, n_columns))
    shape = n, n_columns * n_levels
    X = sp.csr_array((np.ones(n * n_columns), (np.repeat(np.arange(n), n_columns), columns.ravel())), shape=shape)
    a, b, c = (X @ rng.standard_normal((shape[1], 3))).T
    value = a + 0.5 * b * c
    return X, np.where(value > np.median(value), 1, -1), None, None


def _make_noisy(n_rows: int | None, random_state: int) -> tuple[Any, Any, None, None]:
    """1,250,000 rows (a fifth for tests) of 10 normal columns, and the sign of a function of 4 of them and noise."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_rows or 1_250_000, 10), dtype=np.float32)
    value = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * np.cos(3 * X[:, 3])
    return X, np.where(value + 0.6 * rng.standard_normal(len(X)) > 0, 1, -1), None, None


def make_word_counts(n: int = 25_000, d: int = 75_000, random_state: int = 0) -> tuple[Any, NDArray[np.int64]]:
    """Word counts of n documents of 20 topics, CSR float32, and which half of the topics: 2 % of the labels are wrong.

    Words have Zipf's frequencies, in each topic times log-normal factors of its own. Of a document's words, about 180
    with repetitions, a random 20 to 80 % are drawn from its topic's distribution, the others from that of all.
    """
    rng, n_topics = np.random.default_rng(random_state), 20
    common = np.arange(1.0, d + 1) ** -1.05
    topics = common * rng.lognormal(size=(n_topics, d))
    cumulative = np.cumsum(np.vstack([topics, common]), axis=1)
    cumulative /= cumulative[:, -1:]
    topic, share = rng.integers(n_topics, size=n), rng.uniform(0.2, 0.8, n)
    lengths = np.maximum(20, rng.lognormal(np.log(180), 0.5, n).astype(np.int64))
    words = []
    for t, p, length in zip(topic, share, lengths, strict=True):
        k = rng.binomial(length, p)
        words += [cumulative[t].searchsorted(rng.random(k)), cumulative[-1].searchsorted(rng.random(length - k))]
    columns = rng.permutation(d).astype(np.int32)[np.concatenate(words)]  # not in the order of frequency
    entries = np.ones(len(columns), np.float32), (np.repeat(np.arange(n, dtype=np.int32), lengths), columns)
    X = sp.csr_array(entries, shape=(n, d))
    is_first_half = (topic < n_topics // 2) != (rng.random(n) < 0.02)
    return X, np.where(is_first_half, 1, -1)


def _dense(X: Any) -> NDArray[np.float32]:
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


def _to_unit_range(
    X: NDArray[np.float32], X_test: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    low, high = X.min(axis=0), X.max(axis=0)
    span = np.where(high > low, high - low, 1.0).astype(np.float32)
    return (X - low) / span, (X_test - low) / span


_GENERATED = {
    "patches": _load_patches,
    "deformed_digits": _deform_digits,
    "sparse_wide": _make_sparse_wide,
    "one_hot": _make_one_hot,
    "noisy": _make_noisy,
}
