"""`OCASRegressorCV`, and losses other than the hinge in `OCASClassifierCV`: scores of plain loops over folds and Cs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import scale

from naive.tuning import grid_scores
from widemargin import C_path, CPathDisplay, OCASClassifier, OCASClassifierCV, OCASRegressor, OCASRegressorCV

CS = [0.01, 1.0, 100.0]
Data = tuple[NDArray[Any], NDArray[Any]]


@pytest.fixture(scope="module")
def diabetes() -> Data:
    X, y = load_diabetes(return_X_y=True)
    return scale(X)[:200], y[:200]


@pytest.mark.parametrize("loss", ["absolute", "squared_epsilon_insensitive"])
def test_scores_are_those_of_plain_loops(diabetes: Data, loss: str) -> None:
    X, y = diabetes
    name, splits = "neg_mean_absolute_error", list(KFold(3).split(X))
    model = OCASRegressorCV(CS, cv=3, scoring=name, loss=loss, tol=1e-7).fit(X, y)
    machine = OCASRegressor(loss=loss, tol=1e-7)
    wanted = grid_scores(machine, X, y, splits, [{"C": C} for C in CS], get_scorer(name))
    np.testing.assert_allclose(model.scores_, wanted, rtol=1e-3)
    best = CS[int(np.argmax(wanted.mean(axis=0)))]
    assert best == model.C_
    np.testing.assert_allclose(model.predict(X), machine.set_params(C=best).fit(X, y).predict(X))
    path = C_path(machine, X, y, CS, cv=3, scoring=name)
    np.testing.assert_array_equal(model.scores_, path.scores)
    pytest.importorskip("matplotlib").use("Agg")
    assert CPathDisplay.from_path(model).ax_.has_data()


@pytest.mark.parametrize("loss", ["absolute", "quantile", "squared_epsilon_insensitive"])
def test_units_of_targets_do_not_matter(diabetes: Data, loss: str) -> None:
    X, y = diabetes
    one, other = (OCASRegressorCV(4, loss=loss, tol=1e-6).fit(X, target) for target in (y, 1000.0 * y))
    unit = 1000.0 if loss == "quantile" else 1.0  # of minus the pinball loss
    np.testing.assert_allclose(other.scores_, unit * one.scores_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.predict(X), 1000.0 * one.predict(X), rtol=1e-2)


def test_probabilities_of_a_search() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)[:300]
    y = y[:300]
    model = OCASClassifierCV(CS, cv=3, scoring="neg_log_loss", loss="logistic", tol=1e-6).fit(X, y)
    machine, splits = OCASClassifier(loss="logistic", tol=1e-6), list(StratifiedKFold(3).split(X, y))
    wanted = grid_scores(machine, X, y, splits, [{"C": C} for C in CS], get_scorer("neg_log_loss"))
    np.testing.assert_allclose(model.scores_, wanted, rtol=1e-2)
    np.testing.assert_array_equal(model.predict_proba(X), model.best_estimator_.predict_proba(X))


def test_weights_and_errors(diabetes: Data) -> None:
    X, y = diabetes
    with pytest.raises(ValueError, match="cv: the test rows of fold 0 have no positive weight"):
        OCASRegressorCV(CS, cv=4).fit(X, y, np.arange(200) >= 50)
    with pytest.raises(ValueError, match=r"Cs\[1\] must be greater than 0, got -1"):
        OCASRegressorCV([1.0, -1.0]).fit(X, y)
    with pytest.raises(ValueError, match="quantile must be less than 1, got 1.5"):
        OCASRegressorCV(quantile=1.5).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="OCASRegressorCV was stopped by max_time after 0 of 5 folds"):
        OCASRegressorCV(CS, max_time=0).fit(X, y)
