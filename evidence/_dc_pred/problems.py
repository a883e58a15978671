"""What is learnt: two classes, or a number; rows in dense float32."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from measuring.problems import Problem, load_problem
from widemargin.datasets import load_benchmark

CLASSES = ("letter", "usps", "a9a", "covtype_20k", "kddcup99_10", "covtype")
NUMBERS = ("cadata", "cpusmall", "census_house8L", "mnist_3_5")
_SKEWED = ("census_house8L",)  # the logarithm of the target is learnt
_HELD = 0.2


class Numbers(NamedTuple):
    """A regression problem; columns and target are standardised (but not of mnist) by the training rows."""

    name: str
    X: NDArray[np.float32]
    y: NDArray[np.float64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.float64]


def load_classes(name: str, n_rows: int | None = None) -> Problem:
    """Load a problem of two classes."""
    return load_problem(name, n_rows=n_rows)


def load_numbers(name: str, n_rows: int | None = None, seed: int = 0) -> Numbers:
    """Load a regression problem: a fifth, drawn by `seed`, is for testing.

    Of mnist, digits 3 and 5 as 0 and 1, pixels 0 to 1.
    """
    rng = np.random.default_rng(seed)
    if name == "patches":
        X, y = _few_patches()
    elif name == "mnist_3_5":
        X, y = _two_digits()
    else:
        X, y, _, _ = load_benchmark(name)
    test, train = np.split(rng.permutation(len(X)), [len(X) // 5])
    train = train[:n_rows]
    y = np.log1p(y) if name in _SKEWED else np.asarray(y, np.float64)
    if name != "mnist_3_5":
        X, y = _standardise(np.asarray(X, np.float64), train), _standardise(y[:, None], train)[:, 0]
    X = np.ascontiguousarray(X, np.float32)
    return Numbers(name, X[train], y[train], X[test], y[test])


def _two_digits() -> tuple[Any, Any]:
    X, y, X_test, y_test = load_benchmark("mnist")
    X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    chosen = np.isin(y, (3, 5))
    return X[chosen] / 255, (y[chosen] == 5).astype(np.float64)


def _few_patches() -> tuple[Any, Any]:
    """The first number of bundled patches from the others."""
    from widemargin.datasets import load_patches

    X, _ = load_patches(2000)
    return X[:, 1:], X[:, 0]


def _standardise(columns: NDArray[np.float64], train: NDArray[np.intp]) -> NDArray[np.float64]:
    spread = columns[train].std(axis=0)
    return np.asarray((columns - columns[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def hold_back(problem: Any) -> Any:
    """A random fifth of the training rows in place of the test rows: for the search of settings."""
    rng = np.random.default_rng(1)
    held, kept = np.split(rng.permutation(len(problem.X)), [int(_HELD * len(problem.X))])
    return problem._replace(X=problem.X[kept], y=problem.y[kept], X_test=problem.X[held], y_test=problem.y[held])
