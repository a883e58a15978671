"""Out-of-fold predictions of a search: those of models that are trained without each fold."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

from widemargin import DCSVMClassifierCV, DCSVMRegressor, DCSVMRegressorCV

EXACT: dict[str, Any] = {"Cs": [1.0, 10.0], "gammas": [0.03, 0.3], "kernels": "rbf", "tol": 1e-6}


@pytest.mark.parametrize("cv", [KFold(3), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), TimeSeriesSplit(3)])
@pytest.mark.parametrize("quantile", [None, [0.2, 0.8]])
def test_they_are_those_of_models_without_the_fold(cv: Any, quantile: Any) -> None:
    """In the user's units; the mean of several; NaN for rows that are never held out, or have no weight."""
    X, y = make_friedman1(150, noise=1.0, random_state=0)
    y, weights = 1e3 * y + 1e5, np.ones(150)
    weights[140] = 0.0
    how = {"loss": "quantile", "quantile": quantile} if quantile else {}
    search = DCSVMRegressorCV(**EXACT, epsilons=[0.1], cv=cv, **how).fit(X, y, weights)
    model = DCSVMRegressor(**{**search.best_estimator_.get_params(), "tol": 1e-3})
    sums, counts = np.zeros(search.predict(X).shape), np.zeros(150)
    for train, test in cv.split(X):
        sums[test] += model.fit(X[train], y[train], weights[train]).predict(X[test])
        counts[test] += 1
    wanted = sums / np.where(counts * weights, counts, np.nan).reshape(-1, *[1] * (sums.ndim - 1))
    assert np.isnan(wanted).any()
    np.testing.assert_allclose(search.oof_prediction_, wanted, atol=1.0)


@pytest.mark.parametrize(("how", "n"), [({"exhaustive": True}, 400), ({}, 2000), ({"search": "early"}, 400)])
def test_the_best_score_is_theirs(how: dict[str, Any], n: int) -> None:
    """Of a race and an early search as well: every row is scored at last, in columns that may be scaled."""
    X, y = make_friedman1(n, noise=1.0, random_state=0)
    splits = list(KFold(3).split(X))
    search = DCSVMRegressorCV(**{**EXACT, "tol": 1e-2}, epsilons=[0.1], cv=splits, refit=False, **how).fit(X, y)
    scores = [r2_score(y[test], search.oof_prediction_[test]) for _, test in splits]
    assert float(np.mean(scores)) == pytest.approx(search.best_score_)


def test_of_classes_they_are_decision_values() -> None:
    X, y = load_iris(return_X_y=True)
    y = np.where(y < 2, y, 3)
    search = DCSVMClassifierCV(search="early", kernels="rbf", relevance=False).fit(X, y)
    assert search.oof_decision_function_.shape == (150, 3)
    labels = search.classes_[search.oof_decision_function_.argmax(axis=1)]
    assert np.mean(labels == y) == pytest.approx(search.best_score_)
    search.set_params(decision_function_shape="ovo", break_ties=False).fit(X, y)
    votes = search.oof_decision_function_ > 0  # of 0 against 1, 0 against 3, and 1 against 3
    labels = np.select([votes[:, 0] & votes[:, 1], ~votes[:, 0] & votes[:, 2]], [0, 1], 3)
    assert np.mean(labels == y) == pytest.approx(search.best_score_, abs=0.01)
    search.fit(X[y > 0], y[y > 0])
    assert np.mean((search.oof_decision_function_ > 0) == (y[y > 0] == 3)) == pytest.approx(search.best_score_)


def test_rows_that_were_not_scored_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widemargin.model_selection._adaptive_search._HELD_OUT_ROWS", (100, 200))
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    how: dict[str, Any] = {"Cs": [1.0, 10.0], "gammas": [0.1], "kernels": "rbf", "search": "early", "relevance": False}
    search = DCSVMRegressorCV(**how, cv=KFold(4), refit=False).fit(X, y)
    assert np.flatnonzero(np.isnan(search.oof_prediction_)).tolist() == list(range(300, 600))  # two folds
    with pytest.warns(ConvergenceWarning, match="Nothing was scored"):
        search.set_params(max_time=0).fit(X, y)
    assert np.isnan(search.oof_prediction_).all()
