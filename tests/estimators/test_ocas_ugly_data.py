"""Linear machines on few rows, weights over many decades and scaled columns: right values, known from a QP solver."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import OCASClassifier, OCASRegressor


def weighted(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(55, 123))
    y = X @ rng.normal(size=123) + rng.normal(size=55) > 0
    return X, y, 10.0 ** rng.uniform(-3, 3, 55)


def test_weights_over_six_decades_on_few_rows() -> None:
    X, y, s = weighted(2)
    model = OCASClassifier(C=1.8e3, fit_intercept=False).fit(X, y, sample_weight=s)
    assert model.converged_
    assert np.isclose(model.objective_, 0.29249, rtol=1e-3)
    assert model.n_iter_ < 40


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_weights_over_twelve_decades(loss: str, fit_intercept: bool) -> None:
    for seed in range(12):
        X, y, s = weighted(seed)
        model = OCASClassifier(C=1.8e3, loss=loss, fit_intercept=fit_intercept).fit(X, y, sample_weight=s**2)
        assert model.converged_, seed


@pytest.mark.parametrize("seed", range(3))
def test_squared_losses_of_few_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(25, 140))) * (rng.random((25, 140)) < 0.2)
    X[:, 4] = 1e4 * (rng.random(25) < 0.3)
    y = X @ rng.normal(size=140) + rng.normal(size=25)
    model = OCASRegressor(C=1e3, loss="squared_epsilon_insensitive", epsilon=1.0, fit_intercept=False).fit(X, y)
    assert model.converged_
    assert model.n_iter_ < 40
    if seed == 0:
        assert np.isclose(model.objective_, 13.2995, rtol=1e-3)


def scaled_columns(seed: int) -> tuple[Any, Any, np.random.Generator]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 55)) * 10.0 ** rng.uniform(-4, 4, 55)
    return X, X @ rng.normal(size=55) + rng.normal(size=60), rng


@pytest.mark.parametrize(
    ("loss", "is_weighted", "seed", "right"),
    [("epsilon_insensitive", False, 1, 1.04355e7), ("absolute", True, 0, 73511.4)],
)
def test_scaled_columns_at_a_large_C(loss: str, is_weighted: bool, seed: int, right: float) -> None:
    X, y, rng = scaled_columns(seed)
    s = 10.0 ** rng.uniform(-6, 6, 60) if is_weighted else None
    model = OCASRegressor(C=1e6, loss=loss).fit(X, y, sample_weight=s)
    assert model.converged_
    assert np.isclose(model.objective_, right, rtol=1e-3)
    assert model.n_iter_ < 40


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # on some processors float64 ends it
def test_the_certificate_of_scaled_columns_holds_where_precision_ends() -> None:
    X, y, _ = scaled_columns(0)
    model, right = OCASRegressor(C=1e6).fit(X, y), 9.5986e6
    assert model.objective_ - model.dual_gap_ <= right * (1 + 1e-5)
    assert right <= model.objective_ * (1 + 1e-5)
    assert model.dual_gap_ <= 0.05 * model.objective_


def test_ridge_on_few_rows_is_one_step() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 300)), rng.normal(size=100)
    model = OCASRegressor(C=1e3, loss="squared_epsilon_insensitive", fit_intercept=False).fit(X, y)
    beta = np.linalg.solve(X @ X.T + np.eye(100) / 2e3, y)
    np.testing.assert_allclose(model.coef_, X.T @ beta, rtol=1e-6, atol=1e-9)
    assert model.n_iter_ <= 2


@pytest.mark.parametrize(("n_classes", "dtype"), [(2, np.float32), (5, np.float64)])
def test_equal_rows_have_equal_decision_values_wherever_they_stand(n_classes: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 33)).astype(dtype), np.arange(200) % n_classes
    model, rows = OCASClassifier(max_iter=3, tol=0.5).fit(X, y), np.tile(X[:1], (37, 1))
    for same in (rows, np.asfortranarray(rows), sp.csr_array(rows)):
        expected = np.atleast_2d(model.decision_function(same))[:1]
        np.testing.assert_array_equal(
            model.decision_function(same),
            np.broadcast_to(expected[0][0] if n_classes == 2 else expected, model.decision_function(same).shape),
        )
        for k in (1, 2, 5):
            np.testing.assert_array_equal(model.decision_function(same[:k]), model.decision_function(same)[:k])


def test_zero_rows_and_columns(binary: Any) -> None:
    X, y = binary
    model = OCASClassifier(tol=1e-6, fit_intercept=False).fit(X, y)
    padded = np.vstack([np.column_stack([X, np.zeros(len(X))]), np.zeros((3, X.shape[1] + 1))])
    for form in (padded, sp.csr_array(padded)):
        other = OCASClassifier(tol=1e-6, fit_intercept=False).fit(form, np.append(y, [0, 1, 0]))
        np.testing.assert_allclose(other.coef_[0, :-1], model.coef_[0], atol=1e-3)
        assert other.coef_[0, -1] == 0
        assert np.isclose(other.objective_, model.objective_ + 3.0)  # an all-zero row loses 1, whatever w
    assert OCASClassifier().fit(np.zeros((4, 2)), [0, 1, 1, 1]).predict([[0.0, 0.0]]) == [1]


def test_nan_in_a_memory_map(tmp_path: Path) -> None:
    X = np.zeros((1000, 4), np.float32)
    X[777, 1] = np.nan
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="contains NaN"):
        OCASClassifier(memory_budget=8000).fit(mapped, np.arange(1000) % 2)
