"""Where all intercepts of an interval are optimal, the machine has its midpoint."""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import DCOneClassSVM, DCSVMClassifier, DCSVMClassifierCV, DCSVMRegressor

SMALL_C, GAMMA = 1e-3, 0.2


def two_classes(n: int, seed: int = 1) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A third of the rows are of class 0: with balanced weights and a small C all rows are support vectors."""
    rng, y = np.random.default_rng(seed), (np.arange(n) % 3 > 0).astype(np.int64)
    return rng.normal(size=(n, 5)) + y[:, None], y


def middle_of_optimal(f: NDArray[Any], y: NDArray[Any], weights: NDArray[Any]) -> float:
    """The middle of all b of least sum_i s_i max(0, 1 - y_i (f_i + b)): the ends of the interval are kinks."""
    signs = np.where(y > 0, 1.0, -1.0)
    kinks = signs - f
    losses = (weights * np.maximum(0.0, 1.0 - signs * (f + kinks[:, None]))).sum(axis=1)
    best = kinks[losses <= losses.min() * (1 + 1e-9)]
    return float(0.5 * (best.min() + best.max()))


@pytest.fixture(autouse=True)
def _without_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.mark.parametrize(  # of one working set, and of several
    ("n", "kernel"), [(60, "precomputed"), (300, "rbf"), (900, "rbf"), (900, "precomputed")]
)
def test_balanced_weights(n: int, kernel: str) -> None:
    X, y = two_classes(n)
    weights = np.where(y == 0, 1.5, 0.75)
    K = rbf_kernel(X, gamma=GAMMA)
    rows = K if kernel == "precomputed" else X
    model = DCSVMClassifier(SMALL_C, kernel, gamma=GAMMA, class_weight="balanced").fit(rows, y)
    expected = middle_of_optimal(K @ (SMALL_C * weights * np.where(y > 0, 1.0, -1.0)), y, weights)
    assert len(model.support_) == n
    assert model.intercept_ == pytest.approx([expected], abs=1e-5)
    assert model.score(rows, y) > 0.8


@pytest.mark.parametrize("seed", range(2))
def test_paired_weights(seed: int) -> None:
    """Each row of one class has the weight of a row of the other."""
    X, y = two_classes(300, seed)
    rng = np.random.default_rng(seed)
    weights = np.zeros(300)
    weights[y == 0] = own = rng.uniform(0.1, 1.0, 100)
    weights[np.flatnonzero(y)[:100]] = rng.permutation(own)
    model = DCSVMClassifier(SMALL_C, gamma=GAMMA).fit(X, y, weights)
    beta = SMALL_C * weights * np.where(y > 0, 1.0, -1.0)
    expected = middle_of_optimal(rbf_kernel(X, gamma=GAMMA) @ beta, y, weights)
    assert model.intercept_ == pytest.approx([expected], abs=1e-6)


def test_weights_are_repeated_rows() -> None:
    X, y = two_classes(300)
    weights = np.where(y == 0, 2, 1)
    weighted = DCSVMClassifier(SMALL_C, gamma=GAMMA).fit(X, y, weights)
    repeated = DCSVMClassifier(SMALL_C, gamma=GAMMA).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.intercept_ == pytest.approx(repeated.intercept_, abs=1e-9)


@pytest.mark.parametrize("k", [3, 12])  # 66 pairs are certified in common passes
def test_pairs_of_classes(k: int) -> None:
    rng = np.random.default_rng(0)
    y = np.sort(rng.choice(k, 40 * k, p=np.arange(1, k + 1) / (k * (k + 1) / 2)))
    X = rng.normal(size=(k, 5))[y] + rng.normal(size=(len(y), 5))
    model = DCSVMClassifier(SMALL_C, gamma=GAMMA, class_weight="balanced").fit(X, y)
    K, weights, p = rbf_kernel(X, gamma=GAMMA), len(y) / (k * np.bincount(y)), 0
    for a in range(k):
        for b in range(a + 1, k):
            rows = np.flatnonzero((y == a) | (y == b))
            signs = np.where(y[rows] == a, 1.0, -1.0)
            f = K[np.ix_(rows, rows)] @ (SMALL_C * weights[y[rows]] * signs)
            expected = middle_of_optimal(f, signs, weights[y[rows]])
            assert model.intercept_[p] == pytest.approx(expected, abs=1e-5)
            p += 1


@pytest.mark.parametrize("search", ["exact", "early"])
def test_held_out_values_of_a_search(search: str) -> None:
    """Ends of the intervals gave scores of .5; the weights of 200 + 100 rows in three folds are balanced."""
    X, y = two_classes(300)
    search_cv = DCSVMClassifierCV(
        [SMALL_C], [GAMMA], kernels="rbf", class_weight="balanced", search=search, relevance=False, cv=3
    )
    model = search_cv.fit(X, y)
    assert model.best_score_ > 0.8
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regressor(loss: str) -> None:
    """Of targets about 0 and about 10; squared losses are flat only within a tube that has all targets."""
    X, y = two_classes(90)
    y = np.where(y > 0, 10.0, 0.0) + np.random.default_rng(0).normal(size=90)
    weights, epsilon = np.where(y < 5, 2.0, 1.0), 0.1 if loss == "epsilon_insensitive" else 20.0
    model = DCSVMRegressor(SMALL_C, gamma=1e3, epsilon=epsilon, loss=loss).fit(X, y, weights)
    low, high = (y.min(), y.max()) if epsilon > 1 else (y[y < 5].max(), y[y > 5].min())
    assert model.intercept_ == pytest.approx([0.5 * (low + high)], abs=2 * SMALL_C)


def test_one_class_machine() -> None:
    """The three nearest rows to the origin have the whole weight, .3 of the sum: decision values are .3 and .9."""
    X = np.where(np.arange(10) < 3, 1.0, 3.0)[:, None]
    model = DCOneClassSVM(0.3, "linear").fit(X, sample_weight=np.full(10, 0.1))
    assert model.offset_ == pytest.approx(0.6)
