"""A few targets that are far from all others decide neither the scale of y, nor what a search chooses."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from caught_warnings import warnings_of
from widemargin import (
    DCPredRegressor,
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASRegressor,
    OCASRegressorCV,
    suggest,
)
from widemargin.estimators._training_warnings import wild_rows

X, Y = make_friedman1(200, noise=1.0, random_state=0)
NEW, NEW_Y = make_friedman1(500, noise=0.0, random_state=1)
ROWS = [7, 140, 173]
QUICK = {"kernels": "rbf", "gammas": [0.1, 0.3], "Cs": [1.0, 8.0, 64.0], "epsilons": [0.1], "cv": 3}


def wild(value: float, rows: Any = ROWS) -> Any:
    y = Y.copy()
    y[rows] = value
    return y


def fit(model: Any, y: Any, rows: Any = X, **how: Any) -> list[str]:
    return warnings_of(UserWarning, model.fit, rows, y, **how)


def error(model: Any) -> float:
    return float(np.median(np.abs(model.predict(NEW) - NEW_Y)))


@pytest.mark.parametrize(("value", "rows"), [(999.0, ROWS), (-999_999.0, ROWS), (1e9, [3])])
def test_a_search_is_as_good_as_without_them(value: float, rows: list[int]) -> None:
    model, clean = DCSVMRegressorCV(**QUICK), DCSVMRegressorCV(**QUICK)
    assert not fit(clean, Y)
    (message,) = fit(model, wild(value, rows))
    assert f"{value!r} in row {rows[0]}" in message
    assert "scoring='r2'" in message
    assert error(model) < 1.2 * error(clean)
    assert model.best_score_ == pytest.approx(clean.best_score_, abs=0.1)
    assert pytest.approx(model.C_ * np.delete(wild(value, rows), rows).std()) == model.best_estimator_.C


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "absolute", "quantile"])
def test_a_linear_search(loss: str) -> None:
    model, clean = OCASRegressorCV(5, loss=loss, cv=3), OCASRegressorCV(5, loss=loss, cv=3)
    assert not fit(clean, Y)
    (message,) = fit(model, wild(999_999.0))
    assert "999999.0 in row 7, 999999.0 in row 140" in message
    assert error(model) < 1.4 * error(clean)
    np.testing.assert_allclose(model.Cs_, clean.Cs_, rtol=0.05)


def test_a_scorer_of_the_user_counts_them() -> None:
    y = wild(999_999.0)
    model = DCSVMRegressorCV(**QUICK, scoring="neg_mean_absolute_error")
    (message,) = fit(model, y)
    assert "scoring" not in message
    assert model.best_score_ < -1e4


def test_rows_have_the_users_numbers() -> None:
    """Without those of weight 0, wild or not."""
    y, weights = wild(1e6), np.ones(200)
    weights[[0, 1, 140]] = 0.0
    for model in (DCSVMRegressorCV(**QUICK), OCASRegressorCV(3, cv=2), DCPredRegressor()):
        (message,) = fit(model, y, sample_weight=weights)
        assert "in row 7, 1000000.0 in row 173" in message


@pytest.mark.parametrize(
    "model",
    [
        DCPredRegressor(random_state=0),
        DCSVMRegressor(loss="squared_epsilon_insensitive"),
        OCASRegressor(loss="squared_epsilon_insensitive"),
    ],
)
def test_squared_losses_say_that_they_follow_them(model: Any) -> None:
    (message,) = fit(model, wild(1e6))
    assert "Squared losses follow them" in message
    assert "1000000.0 in row 7" in message
    assert not fit(model, Y)


def test_of_several_targets_any() -> None:
    y = np.column_stack([Y, wild(1e6, [5]), wild(-1e6, [9])])
    model = DCSVMRegressorCV(**QUICK)
    (message,) = fit(model, y)
    assert "in row 5" in message
    assert "in row 9" in message
    assert model.best_score_ > 0.5


def test_suggest_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    suggest(X, wild(1e6), max_time=4)
    printed = capsys.readouterr().out
    assert "targets: values ten times and more as far from the median as all others: 1000000.0 in row 7" in printed
    shown = next(line for line in printed.splitlines() if line.startswith("probe"))
    assert float(shown.split("R2 ")[1].split()[0]) > 0.3


@pytest.mark.parametrize("draw", ["normal", "lognormal", "gumbel", "exponential"])
def test_no_value_of_a_heavy_tail_is_wild(draw: str) -> None:
    rng = np.random.default_rng(0)
    for n in (30, 400, 20_000):
        assert not len(wild_rows(getattr(rng, draw)(size=n)))


def test_what_is_wild() -> None:
    y = np.arange(100.0)
    assert wild_rows(np.r_[y, 1e3, 1e6]).tolist() == [100, 101]
    assert wild_rows(np.r_[y, 500.0]).tolist() == []
    assert wild_rows(np.r_[y, np.full(20, 1e6)]).tolist() == []  # more than a few are a part of the data
    assert wild_rows(np.r_[np.zeros(95), 1.0, 2.0, 1e6]).tolist() == []  # hardly any value to compare with
    assert wild_rows(np.r_[np.zeros(50), np.ones(50), 1e6]).tolist() == [100]
    assert wild_rows(np.array([1.0, 2.0, 1e6])).tolist() == []  # too few rows to tell
    assert wild_rows(np.full(50, 3.0)).tolist() == []
