"""Displays of searches: what is drawn is the means of the scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import CPathDisplay, DCSVMClassifierCV, DCSVMRegressorCV, GridScoresDisplay, OCASClassifierCV

pytestmark = pytest.mark.usefixtures("plt")


def test_a_search_over_C_and_gamma() -> None:
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), DCSVMClassifierCV([0.1, 1.0, 10.0], [0.01, 0.1], cv=3)).fit(X, y)
    search = model[-1]
    display = GridScoresDisplay.from_estimator(model)
    means = search.scores_.mean(axis=0)
    np.testing.assert_array_equal(np.asarray(display.image_.get_array()).ravel(), means.ravel())
    assert means[int(display.best_.get_ydata()[0]), int(display.best_.get_xdata()[0])] == search.best_score_
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0.1", "1", "10"]
    path = CPathDisplay.from_path(search)
    np.testing.assert_array_equal(path.line_.get_ydata(), means[list(search.gammas_).index(search.gamma_)])


def test_cells_that_were_left_are_empty() -> None:
    scores = np.array([[[0.5, np.nan], [0.7, 0.9]]])
    display = GridScoresDisplay([1.0, 10.0], [0.1, 1.0], scores).plot()
    assert np.ma.getmaskarray(display.image_.get_array()).sum() == 1
    path = CPathDisplay([1.0, 10.0], scores[:, 0]).plot()
    np.testing.assert_array_equal(path.line_.get_xdata(), [1.0])


def test_regression_and_a_path_of_the_linear_machine() -> None:
    X, y = make_regression(60, 3, random_state=0)
    search = DCSVMRegressorCV([1.0, 10.0], [0.1, 1.0], epsilons=[0.1, 1.0], cv=2).fit(X, y / y.std())
    assert GridScoresDisplay.from_estimator(search).scores.shape == (2, 2, 2)
    linear = OCASClassifierCV([0.1, 1.0], cv=2).fit(X, y > 0)
    np.testing.assert_array_equal(CPathDisplay.from_path(linear).line_.get_ydata(), linear.scores_.mean(axis=0))


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="must be a fitted search over C and gamma"):
        GridScoresDisplay.from_estimator(DCSVMClassifierCV())
    with pytest.raises(ValueError, match="scores must have shape"):
        GridScoresDisplay([1.0], [1.0], np.zeros((2, 1)))
    with pytest.raises(ValueError, match="all have NaN"):
        GridScoresDisplay([1.0], [1.0], np.full((2, 1, 1), np.nan))
    with pytest.raises(ValueError, match="all have NaN"):
        CPathDisplay([1.0], np.full((2, 1), np.nan))


def test_of_equal_scores_the_mark_is_at_the_smallest_c() -> None:
    display = GridScoresDisplay([1.0, 10.0], [0.1, 1.0], [[[0.5, 0.9], [0.9, 0.5]]]).plot()
    assert display.best_.get_xydata().tolist() == [[0.0, 1.0]]
