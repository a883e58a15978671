"""Machines that have learned nothing warn, with the remedy; others don't."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, make_blobs

from caught_warnings import warnings_of
from widemargin import (
    BSGDClassifier,
    DCPredClassifier,
    DCSVMClassifier,
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASClassifier,
    OCASClassifierCV,
    OCASRegressor,
    OCASRegressorCV,
)
from widemargin.estimators._training_warnings import rows_of_each_class

X, Y = make_blobs(300, centers=[[-2, 0], [2, 0], [0, 3]], random_state=0)
RARE = np.where(np.arange(300) < 6, "rare", "usual")  # whatever the row


def user_warnings(model: Any, rows: Any, y: Any) -> list[str]:
    return warnings_of(UserWarning, model.fit, rows, y)


@pytest.mark.parametrize("options", [{}, {"stop_level": 1, "n_levels": 1}, {"fit_intercept": False, "gamma": 1e-3}])
def test_a_machine_of_one_class_says_so(options: dict[str, Any]) -> None:
    model = DCSVMClassifier(C=0.1, **options)
    (message,) = user_warnings(model, X, RARE)
    assert "predicts the class 'usual' for all training rows" in message
    for remedy in ("larger C or gamma", "class_weight='balanced'", "StandardScaler"):
        assert remedy in message
    assert (model.predict(X) == "usual").all()


def test_a_machine_of_several_classes_all_of_whose_pairs_decide_for_one() -> None:
    y = np.where(np.arange(300) < 6, 0, np.where(np.arange(300) < 12, 2, 1))
    (message,) = user_warnings(DCSVMClassifier(C=0.01), X, y)
    assert "predicts the class 1 " in message


def test_machines_that_tell_classes_apart_are_silent() -> None:
    for model in (
        DCSVMClassifier(),
        DCSVMClassifier(stop_level=1, n_levels=1),
        DCSVMClassifier(class_weight="balanced"),
    ):
        assert not user_warnings(model, X, Y)
        assert not user_warnings(model, X, Y == 1)


def test_a_stopped_fit_tells_of_the_stop_alone() -> None:
    assert not user_warnings(DCSVMClassifier(max_time=0), X, Y)


@pytest.mark.parametrize("kind", [DCPredClassifier, BSGDClassifier])
def test_machines_on_a_probe_of_the_rows(kind: Any) -> None:
    (message,) = user_warnings(kind(C=1e-3, gamma=1.0, random_state=0), X, RARE)
    assert "predicts the class 'usual' for all of 300 training rows" in message
    assert not user_warnings(kind(random_state=0), X, Y == 1)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_linear_machines(multi_class: str, form: Any) -> None:
    model = OCASClassifier(C=1e-4, multi_class=multi_class)
    rows = 0.01 * np.c_[X, np.zeros(300)]  # a column without entries
    (message,) = user_warnings(model, form(rows), RARE)
    assert "predicts the class 'usual' for all of 300 training rows" in message
    assert "Try a larger C, class_weight" in message
    assert message.endswith("OCASClassifierCV chooses C")
    (message,) = user_warnings(OCASClassifierCV([1e-4], multi_class=multi_class, cv=2), form(rows), RARE)
    assert "predicts the class 'usual'" in message
    for y in (Y, Y == 1):
        assert not user_warnings(model.set_params(C=1e4), form(rows), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(C=1e-4).fit_path(form(rows), RARE, [1e-4])  # the first machines of a path often are such ones


def test_a_rare_class_that_a_linear_machine_finds_is_no_warning() -> None:
    rows = np.concatenate([np.tile(X, (20, 1)), [[50.0, 50.0]] * 2])  # 2 of 6,002 rows
    assert not user_warnings(OCASClassifier(C=10.0), rows, np.arange(6002) >= 6000)


def test_the_probe_has_rows_of_each_class() -> None:
    y = np.repeat([0, 1, 2], [5000, 3, 100])
    rows = rows_of_each_class(y, 3)
    assert np.bincount(y[rows]).tolist() == [333, 3, 100]
    assert len(np.unique(rows)) == len(rows)


ROWS, TARGETS = load_diabetes(return_X_y=True)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"epsilon": 200.0}, "epsilon=200 is at least half of the spread of y (321)"),
        ({"C": 0.01}, "C=0.01 is too small for y, whose standard deviation is 77"),
        ({}, "C=1 is too small for y"),
        ({"loss": "absolute"}, "C=1 is too small for y"),
        ({"loss": "quantile", "quantile": [0.3, 0.9]}, "C=1 is too small for y"),
    ],
)
def test_regression_out_of_all_proportion(options: dict[str, Any], problem: str) -> None:
    (message,) = user_warnings(DCSVMRegressor(**options), ROWS, TARGETS)
    assert message.startswith(problem)
    assert "DCSVMRegressorCV" in message
    assert message.endswith("C=77 makes sense" if "loss" in options else "C=77 and epsilon=7.7 make sense")
    if "quantile" not in options:
        (of_two,) = user_warnings(DCSVMRegressor(**options), ROWS, np.column_stack([TARGETS, TARGETS]))
        assert of_two == message


def test_regression_in_proportion_is_silent() -> None:
    assert not user_warnings(DCSVMRegressor(C=77, epsilon=7.7), ROWS, TARGETS)
    for q in (0.05, 0.5, 0.95):  # nearly all rows are at their bound
        assert not user_warnings(DCSVMRegressor(C=77, loss="quantile", quantile=q), ROWS, TARGETS)
    assert not user_warnings(DCSVMRegressorCV(max_time=0.5, cv=2), ROWS, TARGETS)
    assert not user_warnings(DCSVMRegressor(), ROWS, np.full(len(ROWS), 3.0))  # nothing to learn, and nothing amiss


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "absolute", "quantile"])
def test_linear_regression_of_dollars(loss: str, form: Any) -> None:
    """R2 is 0: weights that C holds down to a few for targets of 1e5."""
    rows = np.c_[ROWS / ROWS.std(axis=0), np.zeros(len(ROWS))]  # a column without entries
    model, y = OCASRegressor(loss=loss), 1e3 * TARGETS
    (message,) = user_warnings(model, form(rows), y)
    assert "C=1 is too small for y, whose standard deviation is 7.7e+04" in message
    assert message.endswith("or let OCASRegressorCV choose, which does; for y as it is, C=7.7e+04 makes sense")
    assert not user_warnings(model.set_params(C=7.7e4), form(rows), y)
    assert model.score(rows, y) > 0.4
    assert not user_warnings(OCASRegressorCV(3, loss=loss, cv=2), form(rows), y)
    (message,) = user_warnings(OCASRegressorCV([1.0], loss=loss, cv=2), form(rows), y)
    assert "C=1 is too small for y" in message


def test_linear_regression_of_noise_is_silent() -> None:
    """The machine is nearly constant, and no C makes a better one."""
    rng = np.random.default_rng(0)
    assert not user_warnings(OCASRegressor(), rng.normal(size=(400, 5)), rng.normal(size=400))
    assert not user_warnings(OCASRegressor(loss="squared_epsilon_insensitive"), ROWS, 1e5 * TARGETS)
    assert not user_warnings(OCASRegressor(), ROWS, np.full(len(ROWS), 3.0))


def test_a_tube_wider_than_linear_targets() -> None:
    (message,) = user_warnings(OCASRegressor(epsilon=200.0), ROWS, TARGETS)
    assert message.startswith("epsilon=200 is at least half of the spread of y (321)")


def test_wild_targets_are_no_part_of_what_makes_sense() -> None:
    y = TARGETS.copy()
    y[3] = 1e9
    for model in (DCSVMRegressor(), OCASRegressor()):
        (message,) = user_warnings(model, ROWS, y)
        assert "C=1 is too small for y, whose standard deviation is 77" in message
