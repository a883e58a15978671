"""`OCASClassifierCV`, `OCASRegressorCV`: scores of plain loops over folds and Cs, the best C, limits and errors."""

import math
import signal
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.preprocessing import scale

from naive.tuning import grid_scores
from widemargin import DCSVMClassifierCV, OCASClassifier, OCASClassifierCV, OCASRegressor, OCASRegressorCV, _progress
from widemargin.algorithms.ocas import OCASTraining

CS = [0.001, 0.1, 10.0]
Data = tuple[NDArray[Any], NDArray[Any]]


@pytest.fixture(scope="module")
def cancer() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:300], np.array(["bad", "good"])[y[:300]]


@pytest.fixture(scope="module")
def diabetes() -> Data:
    X, y = load_diabetes(return_X_y=True)
    return scale(X)[:200], y[:200]


@pytest.mark.parametrize(
    ("machine", "scoring"),
    [
        (OCASClassifier(), "accuracy"),
        (OCASClassifier(), "roc_auc"),
        (OCASClassifier(loss="logistic"), "neg_log_loss"),
        (OCASRegressor(loss="absolute"), "neg_mean_absolute_error"),
        (OCASRegressor(loss="squared_epsilon_insensitive"), "neg_mean_absolute_error"),
    ],
)
def test_scores_are_those_of_plain_loops(cancer: Data, diabetes: Data, machine: Any, scoring: str) -> None:
    kind: Any = OCASClassifierCV if is_classifier(machine) else OCASRegressorCV
    (X, y), splitter, method = diabetes, KFold(3), "predict"
    if is_classifier(machine):
        (X, y), splitter = cancer, StratifiedKFold(3)
        method = "predict_proba" if machine.loss == "logistic" else "decision_function"
    machine = machine.set_params(tol=1e-6)
    model = kind(CS, cv=3, scoring=scoring, loss=machine.loss, tol=1e-6).fit(X, y)
    wanted = grid_scores(machine, X, y, list(splitter.split(X, y)), [{"C": C} for C in CS], get_scorer(scoring))
    np.testing.assert_allclose(model.scores_, wanted, rtol=1e-2)
    best = CS[int(np.argmax(wanted.mean(axis=0)))]
    assert best == model.C_
    machine.set_params(C=best).fit(X, y)
    np.testing.assert_allclose(*(getattr(one, method)(X) for one in (model, machine)), rtol=1e-6)


def test_sparse_rows_groups_and_weights(cancer: Data) -> None:
    X, y = cancer
    weights = np.arange(300) % 3
    groups = np.arange(300) % 5
    weighted = OCASClassifierCV(CS, cv=GroupKFold(5), tol=1e-6).fit(sp.csr_array(X), y, weights, groups=groups)
    times = np.repeat(np.arange(300), weights)
    repeated = OCASClassifierCV(CS, cv=GroupKFold(5), tol=1e-6).fit(X[times], y[times], groups=groups[times])
    np.testing.assert_allclose(weighted.scores_, repeated.scores_)
    assert weighted.coef_.shape == (1, X.shape[1])


def test_no_time_says_so(cancer: Data) -> None:
    model = OCASClassifierCV(CS, max_time=0)
    with pytest.warns(UserWarning, match="OCASClassifierCV was stopped by max_time after 0 of 5 folds"):
        model.fit(*cancer)
    assert np.isnan(model.scores_).all()
    assert model.predict(cancer[0]).shape == (300,)


def test_bad_input_is_named(cancer: Data) -> None:
    X, y = cancer
    for options, message in [
        ({"Cs": []}, "Cs must have at least one value"),
        ({"scoring": "neg_log_loss"}, "needs probabilities"),
        (
            {"cv": [(np.flatnonzero(y == "bad"), [0])]},
            "the training rows of fold 0 have rows of fewer than two classes: no row of class 'good'",
        ),
        ({"cv": GroupKFold(3)}, "groups"),
    ]:
        with pytest.raises(ValueError, match=message):
            OCASClassifierCV(**{"Cs": CS, **options}).fit(X, y)


def test_folds_are_tasks_of_callbacks(cancer: Data, listener: Any) -> None:
    pytest.importorskip("sklearn.callback")
    OCASClassifierCV(CS, cv=3).set_callbacks(listener).fit(*cancer)
    assert listener.events.count("end round") == 3
    listener.stop_after = 4  # of both fits
    model = OCASClassifierCV(CS, cv=3).set_callbacks(listener)
    with pytest.warns(UserWarning, match="stopped by callback after 1 of 3 folds"):
        model.fit(*cancer)
    assert np.isnan(model.scores_[1:]).all()


@pytest.mark.parametrize("max_time", [None, 1000.0])
def test_what_ended_the_machines_is_said(max_time: float | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    y = X[:, 0] + rng.normal(size=3000) > 0
    search = OCASClassifierCV([1.0, 10.0], cv=2, tol=1e-9, max_iter=1, max_time=max_time, refit=False)
    with pytest.warns(ConvergenceWarning) as caught:
        search.fit(X, y)
    assert all("OCASClassifier was stopped by max_iter" in str(warning.message) for warning in caught)


def test_without_refit_the_machine_of_an_earlier_fit_is_gone(cancer: Data) -> None:
    X, y = cancer
    model = OCASClassifierCV(CS, cv=2).fit(X, y).set_params(refit=False).fit(X[:, :3], y)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "best_estimator_")
    assert not hasattr(model, "coef_")


def test_test_rows_of_weight_zero_are_not_scored(cancer: Data) -> None:
    def count(model: Any, X: Any, y: Any) -> float:
        return float(len(y))

    model = OCASClassifierCV([1.0], cv=2, scoring=count, refit=False).fit(*cancer, np.arange(300) % 2)
    assert model.scores_.sum() == 150


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_class_of_one_row_is_searched_as_by_grid_search(class_weight: Any) -> None:
    X, y = load_iris(return_X_y=True)
    y[75] = 3
    with pytest.warns(UserWarning, match="The least populated class in y has only 1 member"):
        search = OCASClassifierCV(CS, cv=3, tol=1e-6, class_weight=class_weight).fit(X, y)
    with pytest.warns(UserWarning, match="The least populated class in y has only 1 member"):
        grid = GridSearchCV(OCASClassifier(tol=1e-6, class_weight=class_weight), {"C": CS}, cv=3).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=0.007)


@pytest.mark.parametrize("search", [OCASClassifierCV([0.1], cv=2), DCSVMClassifierCV([1.0], 1, kernels="rbf", cv=2)])
def test_a_scorer_is_given_the_rows_of_a_frame(cancer: Data, search: Any) -> None:
    pd = pytest.importorskip("pandas")
    X, y = cancer
    frame = pd.DataFrame(X, columns=[f"column {k}" for k in range(X.shape[1])])
    seen: list[Any] = []

    def score(model: Any, X: Any, y: Any) -> float:
        seen.append(X)
        return float(model.score(X, y))

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of names that one side lacks
        search.set_params(scoring=score).fit(frame, y)
    assert len(seen) == 2
    for test, (_, rows) in zip(seen, StratifiedKFold(2).split(X, y), strict=True):
        pd.testing.assert_frame_equal(test, frame.iloc[rows])


@pytest.mark.parametrize("loss", ["absolute", "quantile", "squared_epsilon_insensitive"])
def test_units_of_targets_do_not_matter(diabetes: Data, loss: str) -> None:
    X, y = diabetes
    one, other = (OCASRegressorCV(4, loss=loss, tol=1e-6).fit(X, target) for target in (y, 1000.0 * y))
    unit = 1000.0 if loss == "quantile" else 1.0  # of minus the pinball loss
    np.testing.assert_allclose(other.scores_, unit * one.scores_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.predict(X), 1000.0 * one.predict(X), rtol=1e-2)


def test_weights_and_errors(diabetes: Data) -> None:
    X, y = diabetes
    with pytest.raises(ValueError, match="cv: the test rows of fold 0 have no positive weight"):
        OCASRegressorCV(CS, cv=4).fit(X, y, np.arange(200) >= 50)
    with pytest.raises(ValueError, match=r"Cs\[1\] must be greater than 0, got -1"):
        OCASRegressorCV([1.0, -1.0]).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="OCASRegressorCV was stopped by max_time after 0 of 5 folds"):
        OCASRegressorCV(CS, max_time=0).fit(X, y)


@pytest.mark.parametrize("kind", [OCASClassifierCV, OCASRegressorCV])
def test_an_interrupt_of_the_trial_before_a_search_ends_the_search(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(5000, 5))
    restart = OCASTraining.restart
    n_rows: list[int] = []

    def interrupted(self: OCASTraining) -> None:
        if not n_rows:
            signal.raise_signal(signal.SIGINT)
        n_rows.append(self.X.shape[0])
        restart(self)

    monkeypatch.setattr(_progress, "_last_sigint", -math.inf)
    monkeypatch.setattr(OCASTraining, "restart", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupt"):
        kind(Cs=[0.1, 1.0], cv=3, refit=False).fit(X, np.where(X[:, 0] > 0, 1.0, -1.0))
    assert len(n_rows) == 1, "no fold"
