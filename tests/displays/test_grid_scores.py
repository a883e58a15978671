"""Displays of searches: what is drawn is the means of the scores."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons, make_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import CPathDisplay, DCSVMClassifierCV, DCSVMRegressorCV, GridScoresDisplay, OCASClassifierCV

pytestmark = pytest.mark.usefixtures("plt")


@pytest.mark.slow
def test_a_search_over_C_and_gamma() -> None:
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), DCSVMClassifierCV([0.1, 1.0, 10.0], [0.01, 0.1], cv=3)).fit(X, y)
    search = model[-1]
    display = GridScoresDisplay.from_estimator(model)
    means = search.scores_.mean(axis=0)
    np.testing.assert_array_equal(np.asarray(display.image_.get_array()).ravel(), means.ravel())
    assert means[int(display.best_.get_ydata()[0]), int(display.best_.get_xdata()[0])] == search.best_score_
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0.1", "1", "10"]
    path = CPathDisplay.from_estimator(search)
    np.testing.assert_array_equal(path.line_.get_ydata(), means[list(search.gammas_).index(search.gamma_)])


def test_cells_that_were_left_are_empty() -> None:
    scores = np.array([[[0.5, np.nan], [0.7, 0.9]]])
    display = GridScoresDisplay([1.0, 10.0], [0.1, 1.0], scores).plot()
    assert np.ma.getmaskarray(display.image_.get_array()).sum() == 1
    path = CPathDisplay([1.0, 10.0], scores[:, 0]).plot()
    np.testing.assert_array_equal(path.line_.get_xdata(), [1.0])


@pytest.mark.slow
def test_eliminated_cells_are_faded_by_their_scores_on_fewer_rows() -> None:
    X, y = make_moons(2400, noise=0.25, random_state=0)
    search = DCSVMClassifierCV(np.logspace(-2, 2, 5), [0.001, 0.1], kernels="rbf", search="exact", cv=3).fit(X, y)
    display = GridScoresDisplay.from_estimator(search)
    eliminated = np.isnan(search.scores_).all(axis=0)
    g, c = np.argwhere(eliminated)[0]
    history = search.history_
    cell = (history["gamma"] == search.gammas_[g]) & (history["C"] == search.Cs_[c]) & (history["n_rows"] == 600)
    faded = np.ma.filled(display.partial_image_.get_array().reshape(2, 5).astype(float), np.nan)
    assert faded[g, c] == pytest.approx(history["score"][cell].mean())
    assert np.isnan(faded[~np.isnan(search.scores_.mean(axis=0))]).all()
    assert display.partial_image_.get_alpha() < 1
    assert display.partial_image_.get_clim() == display.image_.get_clim()


@pytest.mark.slow
def test_early_searches_fade_cells_that_were_not_scored_in_every_fold() -> None:
    X, y = make_moons(2400, noise=0.25, random_state=0)
    search = DCSVMClassifierCV(kernels="rbf", relevance=False, random_state=0).fit(X, y)
    display = GridScoresDisplay.from_estimator(search)
    known = ~np.isnan(search.scores_)
    is_partial = known.any(axis=0) & ~known.all(axis=0)
    drawn = ~np.ma.getmaskarray(display.partial_image_.get_array())
    np.testing.assert_array_equal(drawn.reshape(is_partial.shape), is_partial)


def test_regression_and_a_path_of_the_linear_machine() -> None:
    X, y = make_regression(60, 3, random_state=0)
    search = DCSVMRegressorCV([1.0, 10.0], [0.1, 1.0], epsilons=[0.1, 1.0], kernels="rbf", cv=2).fit(X, y / y.std())
    display = GridScoresDisplay.from_estimator(search)
    means = search.scores_[:, :, list(search.epsilons_).index(search.epsilon_)].mean(axis=0)
    np.testing.assert_array_equal(np.asarray(display.image_.get_array()).reshape(2, 2), means)
    linear = OCASClassifierCV([0.1, 1.0], cv=2).fit(X, y > 0)
    np.testing.assert_array_equal(CPathDisplay.from_estimator(linear).line_.get_ydata(), linear.scores_.mean(axis=0))


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="must be a fitted search over C and gamma"):
        GridScoresDisplay.from_estimator(DCSVMClassifierCV())
    with pytest.raises(ValueError, match="scores must have shape"):
        GridScoresDisplay([1.0], [1.0], np.zeros((2, 1)))
    with pytest.raises(ValueError, match="all have NaN"):
        GridScoresDisplay([1.0], [1.0], np.full((2, 1, 1), np.nan))
    with pytest.raises(ValueError, match="partial_scores must have shape"):
        GridScoresDisplay([1.0], [1.0], np.ones((2, 1, 1)), np.ones((2, 1)))
    with pytest.raises(ValueError, match="all have NaN"):
        CPathDisplay([1.0], np.full((2, 1), np.nan))


def test_of_equal_scores_the_mark_is_at_the_smallest_c() -> None:
    display = GridScoresDisplay([1.0, 10.0], [0.1, 1.0], [[[0.5, 0.9], [0.9, 0.5]]]).plot()
    assert display.best_.get_xydata().tolist() == [[0.0, 1.0]]


@pytest.mark.usefixtures("plt")
def test_path_of_c() -> None:
    display = CPathDisplay([10.0, 1.0, 0.1], [[0.8, 0.9, 0.5], [0.8, 0.7, 0.7]]).plot(color="red")
    assert np.allclose(display.line_.get_xydata(), [[0.1, 0.6], [1.0, 0.8], [10.0, 0.8]])
    assert display.line_.get_color() == "red"
    assert list(display.best_line_.get_xdata()) == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"scores \(0, 3\)"):
        CPathDisplay([10.0, 1.0, 0.1], np.empty((0, 3)))
