"""Many equal rows of one class: trained as one row with the sum of their weights."""

import numpy as np
import pytest

from widemargin import DCSVMClassifier
from widemargin.data.rows import find_equal_rows


def contradictory(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    point = rng.integers(0, 5, n)
    y = (rng.random(n) < np.array([0.2, 0.4, 0.45, 0.6, 0.9])[point]).astype(int)
    return rng.standard_normal((5, 3))[point], y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_are_found(dtype: type) -> None:
    X, y = contradictory(1000)
    numbers = find_equal_rows(X.astype(dtype), y)
    assert numbers is not None
    distinct, expected = np.unique(np.c_[X, y], axis=0, return_inverse=True)
    assert len(distinct) == len(set(zip(numbers.tolist(), expected.ravel().tolist(), strict=True))) == 10


def test_few_equal_rows_are_left_alone() -> None:
    X = np.random.default_rng(0).standard_normal((1000, 3))
    X[:100] = X[0]
    assert find_equal_rows(X, np.zeros(1000, int)) is None


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_merged_rows_give_the_machine_of_all_rows(fit_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = contradictory(2000)
    weights = np.random.default_rng(1).random(2000)
    merged = DCSVMClassifier(gamma=0.5, fit_intercept=fit_intercept).fit(X, y, sample_weight=weights)
    monkeypatch.setattr("widemargin.estimators._dual_machine.find_equal_rows", lambda *_: None)
    each = DCSVMClassifier(gamma=0.5, fit_intercept=fit_intercept).fit(X, y, sample_weight=weights)
    assert len(merged.support_) <= 10
    np.testing.assert_array_equal(X[merged.support_], merged.support_vectors_)
    assert merged.objective_ == pytest.approx(each.objective_, rel=1e-4)
    np.testing.assert_allclose(merged.decision_function(X[:50]), each.decision_function(X[:50]), atol=1e-2)


def test_100_000_rows_of_five_points_take_no_time() -> None:
    model = DCSVMClassifier().fit(*contradictory(100_000))
    assert model.converged_
    assert len(model.support_) <= 10
