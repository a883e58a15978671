"""RelevanceDisplay: the bars are what was learned, in descending order, with the columns' names."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from widemargin import DCSVMRegressor, DCSVMRegressorCV, RelevanceDisplay, RelevanceScaler

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = X[:, 2] + 0.3 * X[:, 1]
TABLE = pd.DataFrame(X, columns=list("abcd"))

pytestmark = pytest.mark.usefixtures("plt")


def labels(display: RelevanceDisplay) -> list[str]:
    return [label.get_text() for label in display.ax_.get_yticklabels()][::-1]


@pytest.mark.slow
def test_bars_are_in_descending_order() -> None:
    display = RelevanceDisplay([0.2, 1.0, 0.5]).plot(color="red")
    assert [bar.get_width() for bar in display.bars_] == [1.0, 0.5, 0.2]
    assert [bar.get_y() + bar.get_height() / 2 for bar in display.bars_] == [2, 1, 0]
    assert labels(display) == ["x1", "x2", "x0"]
    assert labels(RelevanceDisplay([0.2, 1.0, 0.5], ["a", "b", "c"]).plot(n_columns=2)) == ["b", "c"]
    assert len(RelevanceDisplay(np.arange(30)).plot().bars_) == 20


@pytest.mark.parametrize("wrap", [lambda scaler: scaler, lambda scaler: make_pipeline(StandardScaler(), scaler)])
def test_relevance_of_an_estimator(wrap: Any) -> None:
    scaler = RelevanceScaler(n_iter=1)
    display = RelevanceDisplay.from_estimator(wrap(scaler).fit(TABLE, Y))
    np.testing.assert_array_equal(display.relevance, scaler.relevance_)
    assert labels(display)[:2] == ["c", "b"]


@pytest.mark.slow
def test_relevance_in_a_search_and_behind_steps_without_names(plt: Any) -> None:
    search = GridSearchCV(
        make_pipeline(RelevanceScaler(n_iter=1), DCSVMRegressor()), {"dcsvmregressor__C": [1.0]}, cv=2
    )
    _, ax = plt.subplots()
    display = RelevanceDisplay.from_estimator(search.fit(X, Y), ax=ax)
    assert display.ax_ is ax
    assert labels(display)[:2] == ["x2", "x1"]
    components = make_pipeline(PCA(2), RelevanceScaler(n_iter=1)).fit(X, Y)
    assert set(labels(RelevanceDisplay.from_estimator(components))) == {"pca0", "pca1"}
    unnamed = make_pipeline(FunctionTransformer(np.abs), RelevanceScaler(n_iter=1)).fit(X, Y)
    assert set(labels(RelevanceDisplay.from_estimator(unnamed))) == {"x0", "x1", "x2", "x3"}


@pytest.mark.slow
@pytest.mark.parametrize("refit", [True, False])
def test_relevance_that_a_search_has_learned(refit: bool) -> None:
    search = DCSVMRegressorCV([1.0], [0.2], kernels="rbf", epsilons=[0.1], cv=2, search="early", refit=refit)
    display = RelevanceDisplay.from_estimator(search.fit(TABLE, np.sin(2 * Y)))
    np.testing.assert_allclose(display.relevance, search.relevance_)
    assert labels(display)[:2] == ["c", "b"]


def test_relevance_that_a_search_has_learned_behind_other_steps() -> None:
    search = DCSVMRegressorCV([1.0], [0.2], kernels="rbf", epsilons=[0.1], cv=2, search="early")
    pipeline = make_pipeline(StandardScaler(), "passthrough", search).fit(TABLE, np.sin(2 * Y))
    assert labels(RelevanceDisplay.from_estimator(pipeline))[:2] == ["c", "b"]


def test_a_search_that_has_kept_the_columns_says_how_to_draw_gradients() -> None:
    search = DCSVMRegressorCV([1.0], [0.2], epsilons=[0.1], cv=2, relevance=False).fit(X, Y)
    for estimator in (search, make_pipeline(StandardScaler(), search).fit(X, Y)):
        with pytest.raises(ValueError, match=r"kept the columns as they are .*\(model.decision_gradient\(X\)"):
            RelevanceDisplay.from_estimator(estimator)
    assert len(RelevanceDisplay((search.decision_gradient(X) ** 2).mean(axis=0) ** 0.5).plot().bars_) == 4


def test_what_has_no_relevance_is_named() -> None:
    with pytest.raises(ValueError, match="must be a fitted RelevanceScaler, or a Pipeline .* one, got DCSVMReg"):
        RelevanceDisplay.from_estimator(DCSVMRegressor().fit(X, Y))
    with pytest.raises(ValueError, match="must be a fitted RelevanceScaler"):
        RelevanceDisplay.from_estimator(RelevanceScaler())
    with pytest.raises(ValueError, match="of one length and not empty"):
        RelevanceDisplay([1.0, 2.0], ["a"])
