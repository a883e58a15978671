"""No time at all: every estimator returns the cheapest model there is, with its gap and a warning."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from caught_warnings import warnings_of
from widemargin import DCPredClassifier, DCPredRegressor, DCSVMClassifier, OCASClassifier
from widemargin._native import Stopped
from widemargin.algorithms import dc_svm_levels as dc_svm

CLASSIFIERS: list[Any] = [
    DCSVMClassifier(),
    DCSVMClassifier(fit_intercept=True),
    DCSVMClassifier(n_levels=2, stop_level=1),
    DCSVMClassifier(n_levels=2, partition="kernel"),
    DCPredClassifier(),
    DCPredClassifier(n_trees=3),
    OCASClassifier(),
]


def problem(n_classes: int, n: int = 6000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    edges = np.quantile(X[:, 0], np.linspace(0.6, 1, n_classes, endpoint=False))
    return X, np.searchsorted(edges, X[:, 0] + 0.1 * rng.standard_normal(n)).clip(0, n_classes - 1)


def fit_without_time(model: Any, X: Any, y: Any) -> Any:
    (message,) = warnings_of(ConvergenceWarning, model.set_params(max_time=0).fit, X, y)
    assert "max_time" in message
    assert model.converged_ is False
    return model


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_no_time_gives_a_constant_and_its_gap(model: Any, n_classes: int) -> None:
    X, y = problem(n_classes)
    model = fit_without_time(model, X, y)
    assert len(np.unique(model.predict(X))) == 1
    assert 0 < model.dual_gap_ <= model.objective_ * (1 + 1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_constant_of_the_tree_is_the_larger_class(n_classes: int) -> None:
    X, y = problem(n_classes)
    model = fit_without_time(DCPredClassifier(), X, y)
    assert (model.predict(X) == np.bincount(y).argmax()).all()
    signs = np.where(y[:, None] == ([1] if n_classes == 2 else np.arange(n_classes)), 1, -1)
    losses = [min(2 * (column > 0).sum(), 2 * (column < 0).sum()) for column in signs.T]
    assert model.objective_ == pytest.approx(sum(losses))


def test_a_regressor_without_time_predicts_zero() -> None:
    X, y = problem(2)
    model = fit_without_time(DCPredRegressor(), X, 3.0 * y)
    assert not model.predict(X).any()
    assert model.objective_ == pytest.approx(9.0 * y.sum())
    assert model.dual_gap_ == model.objective_


@pytest.mark.parametrize("stop_at", [1, 2])
def test_pairs_that_stop_at_different_levels_share_their_clusters(
    stop_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs' machines are those of the clusters that they share at `stop_level`, solved or not."""
    X, y = problem(3, 3000)
    original, calls = dc_svm.divide, iter(range(100))

    def divide(*args: Any, **kwargs: Any) -> Any:
        if next(calls) >= stop_at:
            raise Stopped
        return original(*args, **kwargs)

    monkeypatch.setattr(dc_svm, "divide", divide)
    model = DCSVMClassifier(n_levels=2, stop_level=1, n_jobs=1, random_state=0).fit(X, y)
    assert model.early_level_ == 1
    assert np.isfinite(model.decision_function(X)).all()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
