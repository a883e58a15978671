"""calibrate: probabilities as good as scikit-learn's, which trains the machine again for each fold."""

import importlib
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import DCSVMClassifier, DCSVMClassifierCV, OCASClassifier, calibrate
from widemargin.model_selection.calibrate import _deal, _held_out_values, _training_rows

EARLY = {"n_levels": 1, "stop_level": 1, "partition": "input", "random_state": 0}
LETTERS = np.array(["a", "b", "c", "d"])


def rows(n: int = 600, n_classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    X, y = make_classification(n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2, random_state=seed)
    return X, LETTERS[y]


def halves(n_classes: int) -> tuple[Any, Any, Any, Any]:
    X, y = rows(1600, n_classes)
    return X[:800], y[:800], X[800:], y[800:]


def squared_error(y: Any, probabilities: Any) -> float:
    """Brier's score."""
    return float(np.square(np.equal.outer(y, np.unique(y)) - probabilities).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("parameters", "method", "n_classes"), [({}, "sigmoid", 2), ({}, "isotonic", 4), (EARLY, "sigmoid", 4)]
)
def test_log_loss_is_that_of_five_more_fits(parameters: dict[str, Any], method: str, n_classes: int) -> None:
    X, y, X_test, y_test = halves(n_classes)
    model = DCSVMClassifier(**parameters).fit(X, y)
    theirs = CalibratedClassifierCV(clone(model), ensemble=False, method=method).fit(X, y)
    loss = log_loss if method == "sigmoid" else squared_error  # isotonic curves have probabilities of 0
    own, other = (loss(y_test, one.predict_proba(X_test)) for one in (calibrate(model, X, y, method=method), theirs))
    prior = loss(y_test, np.tile(np.unique(y, return_counts=True)[1] / len(y), (len(y_test), 1)))
    assert own < other + 0.1 * (prior - other)
    assert own < 0.9 * prior


@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_values_are_those_of_machines_trained_without_the_rows(n_classes: int) -> None:
    X, y = rows(300, n_classes)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = DCSVMClassifier(C=2.0, gamma=0.2, tol=1e-5, class_weight="balanced").fit(X, y, weights)
    known, routed = _training_rows(model, X, y, weights)
    tests = _deal(known.y, 3, np.random.default_rng(0))
    fold = np.empty(len(y), np.intp)
    for k, test in enumerate(tests):
        fold[test] = k
    ovo = clone(model).set_params(decision_function_shape="ovo")
    how = {"cv": PredefinedSplit(fold), "method": "decision_function", "params": {"sample_weight": weights}}
    expected = cross_val_predict(ovo, X, y, **how).reshape(len(y), -1)
    np.testing.assert_allclose(_held_out_values(model, known, routed, tests), expected, atol=2e-3)


def test_of_an_early_machine_they_are_those_of_its_clusters() -> None:
    X, y = rows(600)
    model = DCSVMClassifier(gamma=0.2, tol=1e-5, **EARLY).fit(X, y)
    known, routed = _training_rows(model, X, y, None)
    tests, cluster = _deal(known.y, 3, np.random.default_rng(0)), model.assign_clusters(X)
    found = _held_out_values(model, known, routed, tests)[:, 0]
    assert len(np.unique(cluster)) > 1
    for test in tests:
        for c in np.unique(cluster):
            own, left = np.flatnonzero(cluster == c), np.setdiff1d(np.flatnonzero(cluster == c), test)
            own = np.intersect1d(own, test)
            alone = DCSVMClassifier(gamma=0.2, tol=1e-5).fit(X[left], y[left])
            np.testing.assert_allclose(found[own], alone.decision_function(X[own]), atol=2e-3)


@pytest.mark.parametrize("parameters", [{}, EARLY], ids=["exact", "early"])
def test_a_weight_is_a_number_of_rows(parameters: dict[str, Any]) -> None:
    """Rows of weight 0 are not there; the curve of doubled weights is that of a doubled C on plain rows."""
    X, y = rows()
    weights = np.repeat([0.0, 1.0], [100, len(y) - 100])
    model = DCSVMClassifier(**parameters).fit(X[100:], y[100:])
    with_zeros = DCSVMClassifier(gamma=model._gamma, **parameters).fit(X, y, weights)
    some = calibrate(model, X[100:], y[100:]).predict_proba(X)
    np.testing.assert_allclose(calibrate(with_zeros, X, y, weights).predict_proba(X), some, atol=1e-2)
    heavy = np.where(y == "b", 20.0, 1.0)
    model = DCSVMClassifier(**parameters).fit(X, y, heavy)
    assert calibrate(model, X, y, heavy).predict_proba(X)[:, 1].mean() > 0.8


def test_classes_of_few_rows() -> None:
    X, y = rows(300, 3)
    y = y.astype("<U8")
    y[:2], y[2] = "two rows", "one row"
    model = DCSVMClassifier().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probabilities = calibrate(model, X, y).predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert probabilities[:, -2:].mean() < 0.1
    two = np.array(["a"] * 298 + ["b"] * 2)
    assert calibrate(DCSVMClassifier().fit(X, two), X, two).predict_proba(X)[:, 1].mean() < 0.1
    two[-1] = "a"
    with pytest.raises(ValueError, match="y must have two rows of each class, got one of class .*'b'"):
        calibrate(DCSVMClassifier().fit(X, two), X, two)


@pytest.mark.parametrize("wrap", ["pipeline", "search", "frozen", "sparse", "precomputed", "many rows"])
def test_models_around_it(wrap: str) -> None:
    X, y = rows(400, 3)
    if wrap == "precomputed":
        X = X @ X.T
        model = DCSVMClassifier(kernel="precomputed", n_levels=1, stop_level=1).fit(X, y)
    elif wrap == "search":
        model = DCSVMClassifierCV(Cs=2, gammas=2, cv=2).fit(X, y)
    elif wrap == "pipeline":
        model = make_pipeline(StandardScaler(), "passthrough", DCSVMClassifier(**EARLY)).fit(X, y)
    elif wrap == "sparse":
        X = sp.csr_array(X)
        model = DCSVMClassifier(**EARLY).fit(X, y)
    else:
        model = DCSVMClassifier(memory_budget="1MB" if wrap == "many rows" else None).fit(X, y)
        model = FrozenEstimator(model) if wrap == "frozen" else model
    calibrated = calibrate(model, X, y)
    np.testing.assert_array_equal(calibrated.classes_, ["a", "b", "c"])
    assert calibrated.n_features_in_ == X.shape[1]
    assert log_loss(y, calibrated.predict_proba(X)) < 0.9 * np.log(3)
    scores = model.decision_function(X)
    assert np.mean(calibrated.predict(X) == LETTERS[scores.argmax(axis=1)]) > 0.9


@pytest.mark.slow
def test_a_clone_calibrates_the_same_machine_on_other_rows() -> None:
    X, y = rows(400, 3)
    calibrated = calibrate(make_pipeline(StandardScaler(), DCSVMClassifier(**EARLY)).fit(X, y), X, y)
    again = clone(calibrated).fit(X[:200], y[:200])
    np.testing.assert_array_equal(
        again.calibrated_classifiers_[0].estimator.decision_function(X[:5]),
        calibrated.estimator.decision_function(X[:5]),
    )


def test_the_seed_chooses_the_folds_and_threads_change_nothing() -> None:
    X, y = rows()
    model = DCSVMClassifier(**EARLY).fit(X, y)
    one = calibrate(model, X, y).predict_proba(X)
    np.testing.assert_array_equal(calibrate(model.set_params(n_jobs=1), X, y).predict_proba(X), one)
    assert not np.array_equal(calibrate(model, X, y, random_state=1).predict_proba(X), one)


def test_a_stop_says_how_many_rows_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = importlib.import_module("widemargin.model_selection.calibrate")
    calls, last = [0], [10**9]
    go_on = module.Progress.go_on

    def stop(self: Any, **state: float) -> bool:
        calls[0] += 1
        if calls[0] > last[0]:
            self.stopped_by = "interrupt"
        return bool(go_on(self, **state))

    X, y = rows()
    model = DCSVMClassifier(n_jobs=1, **EARLY).fit(X, y)
    monkeypatch.setattr(module.Progress, "go_on", stop)
    calibrate(model, X, y)
    calls[0], last[0] = 0, calls[0] // 2
    with pytest.warns(ConvergenceWarning, match=r"calibrate was stopped by .* held-out values of \d+ of 600 rows"):
        assert np.isfinite(calibrate(model, X, y).predict_proba(X)).all()
    calls[0], last[0] = 0, 0
    with pytest.raises(KeyboardInterrupt, match="before there were held-out values of every class"):
        calibrate(model, X, y)


def test_errors() -> None:
    X, y = rows(200, 3)
    model = DCSVMClassifier().fit(X, y)
    for name, bad in (("method", "temperature"), ("n_folds", 1), ("n_folds", 2.5)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            calibrate(model, X, y, **{name: bad})
    with pytest.raises(
        ValueError, match=r"model must be a DCSVMClassifier.*got OCASClassifier\(\).*CalibratedClassifierCV"
    ):
        calibrate(OCASClassifier().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        calibrate(DCSVMClassifier(), X, y)
    with pytest.raises(ValueError, match=r"X must be the rows that the model was trained on, of shape \(200, 6\), got"):
        calibrate(model, X[:100], y[:100])
    with pytest.raises(ValueError, match="y must have the classes of the model"):
        calibrate(model, X, np.where(y == "a", "b", y))
    with pytest.raises(ValueError, match="decision_function_shape must be 'ovr'"):
        calibrate(DCSVMClassifier(decision_function_shape="ovo").fit(X, y), X, y)
    with pytest.raises(ValueError, match="NaN"):
        calibrate(model, np.where(np.arange(200)[:, None] == 3, np.nan, X), y)
