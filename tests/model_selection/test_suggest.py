"""`suggest`: each rule of the table, what it prints, and wrong arguments."""

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from widemargin import (
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASClassifier,
    OCASClassifierCV,
    suggest,
)
from widemargin.model_selection.suggest import _are_targets, _duration

MODULE = import_module("widemargin.model_selection.suggest")  # the function has its name
X, Y = make_moons(300, noise=0.2, random_state=0)


def test_a_kernel_machine_where_it_is_better(capsys: pytest.CaptureFixture[str]) -> None:
    model = suggest(X, Y, memory_budget="500MB")
    assert isinstance(model, DCSVMClassifierCV)
    assert model.memory_budget == "500MB"
    assert model.max_time is None
    out = capsys.readouterr().out
    assert "300 rows, 2 columns, 100 % of the entries not zero, 2 classes, 50 % of the rows in the largest (0)" in out
    assert "probe of 300 rows: accuracy 0.9" in out
    assert "; linear model 0.8" in out
    assert "no probe beats" not in out


def test_a_linear_machine_where_it_is_as_good() -> None:
    assert isinstance(suggest(X, X[:, 0] > X[:, 1]), OCASClassifierCV)
    wide = sp.random_array((50, 10_001), density=0.01, random_state=0, format="csr")
    assert isinstance(suggest(wide, np.arange(50) % 2), OCASClassifierCV)


@pytest.mark.parametrize(("convert", "scaler"), [(np.asarray, StandardScaler), (sp.csr_array, MaxAbsScaler)])
def test_unequal_columns_are_scaled(convert: Any, scaler: type) -> None:
    model = suggest(convert(X * [1.0, 1000.0]), Y)
    assert isinstance(model, Pipeline)
    assert isinstance(model[0], scaler)


def test_counts_of_words_are_weighted(capsys: pytest.CaptureFixture[str]) -> None:
    counts = sp.random_array((60, 12_000), density=0.01, random_state=0, format="csr")
    counts.data = np.ceil(3 * counts.data)
    model = suggest(counts, np.arange(60) % 2)
    assert isinstance(model[0], TfidfTransformer)
    assert "counts of words" in capsys.readouterr().out
    counts.data -= 0.5
    assert isinstance(suggest(counts, np.arange(60) % 2), OCASClassifierCV)


TARGET = 1000 * np.sin(3 * X[:, 0])


def test_regression() -> None:
    assert isinstance(suggest(X, TARGET), DCSVMRegressorCV)
    values = np.arange(300) % 101
    assert _are_targets(values.astype(float))
    assert not _are_targets(values)
    assert not _are_targets(values // 2 * 1.0)


def test_parameters_of_the_probe_are_in_the_units_of_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "_LEAST_SECONDS", 60.0)
    early = suggest(X, TARGET, max_time=1e-3)
    assert isinstance(early, DCSVMRegressor)
    assert early.C > 500


@pytest.mark.parametrize(("y", "kind"), [(Y, DCPredClassifier), (TARGET, DCPredRegressor)])
def test_the_cost_of_a_prediction(y: Any, kind: type) -> None:
    cheap = suggest(X, y, prediction_cost=20)
    assert isinstance(cheap, kind)
    assert cheap.prediction_cost == 20
    assert isinstance(cheap.gamma, float)  # of the probe


def test_little_time_asks_for_an_early_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "_LEAST_SECONDS", 60.0)  # the probe is finished on any computer
    rows = np.arange(30_000) % 300
    model = suggest(X[rows], Y[rows], max_time=1e-3)
    assert isinstance(model, DCSVMClassifier)
    assert model.stop_level == "auto"
    assert model.max_time == 1e-3


@pytest.mark.slow
def test_a_probe_of_few_rows_is_no_proof_for_a_linear_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many rows a second, larger probe decides; where there is no time for it, a search or early prediction does."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9000, 2))
    labels = rows[:, 0] + rng.normal(size=9000) > 0
    assert isinstance(suggest(rows, labels, max_time=1000), OCASClassifierCV)
    monkeypatch.setattr(MODULE, "_PROBE_GROWTH", 1e9)  # no time for the second one
    assert isinstance(suggest(rows, labels, max_time=1000), DCSVMClassifierCV)


def test_many_rows_have_a_limit_and_probes_of_more_and_more_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(MODULE, "_PROBE_ROWS", (100, 200, 400))
    monkeypatch.setattr(MODULE, "_LARGE", 250)
    model = suggest(X, Y)
    assert isinstance(model, DCSVMClassifierCV)
    assert model.max_time == 600
    out = capsys.readouterr().out
    assert all(f"probe of {n} rows: accuracy 0." in out for n in (100, 200, 300))
    assert "on all rows; at most 10 minutes" in out


def test_unequal_classes_are_weighted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.concatenate([np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:12]])
    model = suggest(X[rows], Y[rows])
    assert model.class_weight == "balanced"
    assert model.scoring == "balanced_accuracy"
    out = capsys.readouterr().out
    assert "1 has 7.41 % of the rows" in out
    assert "balanced accuracy 0.9" in out


def test_nothing_to_learn_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    noise = np.random.default_rng(0).normal(size=(200, 3))
    y = np.where(np.arange(200) % 4 == 0, "a", "b")
    suggest(noise, y)
    assert "no probe beats a model that predicts the largest class for every row (accuracy 0.750)" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(("n_rare", "target"), [(1, "straight"), (2, "bent")])
def test_rare_classes_do_not_make_the_suggestion_fail(n_rare: int, target: str) -> None:
    y = Y.copy() if target == "bent" else (X[:, 0] > X[:, 1]).astype(int)
    y[:n_rare] = 2
    model = suggest(X, y)
    assert isinstance(model, DCSVMClassifier | OCASClassifier) == (n_rare == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_time=0.2).fit(X, y)
    assert len(model.classes_) == 3


@pytest.mark.slow
def test_ordered_rows_are_held_out_at_random(capsys: pytest.CaptureFixture[str]) -> None:
    order = np.argsort(X[:, 0])
    assert suggest(X[order], Y[order]).cv is None
    assert "folds are drawn at random" in capsys.readouterr().out
    rare = np.where(np.arange(len(Y)) < 3, 2, Y)
    cv = suggest(X, rare).cv
    assert isinstance(cv, StratifiedKFold)
    assert (cv.n_splits, cv.shuffle) == (3, True)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.1, "a second"), (1, "1 second"), (44, "44 seconds"), (2640, "44 minutes"), (7200, "2 hours"), (3e5, "3 days")],
)
def test_times_are_for_people(seconds: float, words: str) -> None:
    assert _duration(seconds) == words


def test_bad_input_is_named() -> None:
    for options in ({"max_time": 0}, {"prediction_cost": -1}, {"memory_budget": "much"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            suggest(X, Y, **options)
    with pytest.raises(ValueError, match="y must have at least two classes, got 1 alone"):
        suggest(X, np.ones(300, int))
    with pytest.raises(ValueError, match=r"y must have at least two different values, got 0\.5 alone"):
        suggest(X, np.full(300, 0.5))
