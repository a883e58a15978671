"""`suggest`: each rule of the table, and wrong arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from widemargin import (
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressorCV,
    OCASClassifierCV,
    suggest,
)

X, Y = make_moons(300, noise=0.2, random_state=0)


def test_a_kernel_machine_where_it_is_better(capsys: pytest.CaptureFixture[str]) -> None:
    model = suggest(X, Y, memory_budget="500MB")
    assert isinstance(model, DCSVMClassifierCV)
    assert model.memory_budget == "500MB"
    out = capsys.readouterr().out
    assert "300 rows, 2 columns, 100 % of the entries not zero, 2 classes" in out
    assert "linear machine 0.8" in out
    assert model.fit(X, Y).score(X, Y) > 0.9


def test_a_linear_machine_where_it_is_as_good() -> None:
    assert isinstance(suggest(X, X[:, 0] > X[:, 1]), OCASClassifierCV)
    wide = sp.random_array((50, 10_001), density=0.01, random_state=0, format="csr")
    assert isinstance(suggest(wide, np.arange(50) % 2), OCASClassifierCV)


@pytest.mark.parametrize(("convert", "scaler"), [(np.asarray, StandardScaler), (sp.csr_array, MaxAbsScaler)])
def test_unequal_columns_are_scaled(convert: Any, scaler: type) -> None:
    model = suggest(convert(X * [1.0, 1000.0]), Y)
    assert isinstance(model, Pipeline)
    assert isinstance(model[0], scaler)


def test_regression_and_the_cost_of_a_prediction() -> None:
    target = np.sin(3 * X[:, 0])
    assert isinstance(suggest(X, target), DCSVMRegressorCV)
    cheap = suggest(X, Y, prediction_cost=20)
    assert isinstance(cheap, DCPredClassifier)
    assert cheap.prediction_cost == 20
    regressor = suggest(X, target, prediction_cost=20)
    assert isinstance(regressor, DCPredRegressor)
    assert isinstance(regressor.gamma, float)  # of the probe


def test_little_time_asks_for_an_early_machine() -> None:
    rows = np.arange(30_000) % 300
    model = suggest(X[rows], Y[rows], max_time=1e-3)
    assert isinstance(model, DCSVMClassifier)
    assert model.max_time == 1e-3


def test_bad_input_is_named() -> None:
    for options in ({"max_time": 0}, {"prediction_cost": -1}, {"memory_budget": "much"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            suggest(X, Y, **options)
