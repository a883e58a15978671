"""as_function: a function of one row is predict and decision_function of this row alone, to the last bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASClassifier,
    OCASClassifierCV,
    OCASRanker,
    OCASRegressor,
    RelevanceScaler,
    compress,
)

X, y = make_classification(300, 6, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
BINARY = np.array(["ant", "bee"])[(y > 0).astype(int)]
LABELS = np.array(["ant", "bee", "cat"])[y]
EARLY = {"n_levels": 1, "branching": 4, "stop_level": 1, "random_state": 0}

MODELS: dict[str, Any] = {
    "exact": lambda: DCSVMClassifier().fit(X, LABELS),
    "two classes": lambda: DCSVMClassifier().fit(X, BINARY),
    "pairs": lambda: DCSVMClassifier(decision_function_shape="ovo").fit(X, LABELS),
    "ties": lambda: DCSVMClassifier(break_ties=True).fit(X, LABELS),
    "linear": lambda: DCSVMClassifier(kernel="linear").fit(X, LABELS),
    "small budget": lambda: DCSVMClassifier(kernel="linear", memory_budget="1MB").fit(X, LABELS),
    "poly": lambda: DCSVMClassifier(kernel="poly").fit(X, BINARY),
    "laplacian": lambda: DCSVMClassifier(kernel="laplacian").fit(X, BINARY),
    "callable": lambda: DCSVMClassifier(kernel=lambda A, B: A @ B.T).fit(X, BINARY),
    "precomputed": lambda: DCSVMClassifier(kernel="precomputed").fit(X @ X.T, BINARY),
    "sparse": lambda: DCSVMClassifier().fit(sp.csr_array(np.where(np.abs(X) > 0.7, X, 0)), LABELS),
    "float32": lambda: DCSVMClassifier().fit(X.astype(np.float32), LABELS),
    "far": lambda: DCSVMClassifier().fit(X + 1e4, LABELS),
    "soft": lambda: DCSVMClassifier(**EARLY).fit(X, LABELS),
    "soft, input": lambda: DCSVMClassifier(partition="input", **EARLY).fit(X, BINARY),
    "soft, linear": lambda: DCSVMClassifier(kernel="linear", **EARLY).fit(X.astype(np.float32), BINARY),
    "soft, sparse": lambda: DCSVMClassifier(**EARLY).fit(sp.csr_array(X), BINARY),
    "early, precomputed": lambda: DCSVMClassifier(kernel="precomputed", **EARLY).fit(X @ X.T, BINARY),
    "budgeted": lambda: BSGDClassifier(random_state=0).fit(X, LABELS),
    "tree": lambda: DCPredClassifier(n_clusters=2, random_state=0).fit(X, LABELS),
    "trees": lambda: compress(SVC().fit(X, BINARY), X, random_state=0),
    "votes": lambda: compress(SVC().fit(X, LABELS), X, random_state=0),
    "ocas": lambda: OCASClassifier().fit(X, LABELS),
    "ocas, float32": lambda: OCASClassifier().fit(X.astype(np.float32), BINARY),
    "logistic": lambda: OCASClassifier(loss="logistic").fit(X, LABELS),
    "linear regressor": lambda: OCASRegressor().fit(X, X[:, 0] ** 2),
    "ranker": lambda: OCASRanker().fit(X, X[:, 0] ** 2),
    "regressor": lambda: DCSVMRegressor().fit(X, X[:, 0] ** 2),
    "targets": lambda: DCSVMRegressor(**EARLY).fit(X, X[:, :2] ** 2),
    "ridge": lambda: DCPredRegressor(random_state=0).fit(X, X[:, 0] ** 2),
    "compressed regressor": lambda: compress(SVR().fit(X, X[:, 0] ** 2), X, random_state=0),
    "novelty": lambda: DCOneClassSVM(nu=0.2).fit(X),
    "early novelty": lambda: DCOneClassSVM(nu=0.2, **EARLY).fit(X),
    "compressed novelty": lambda: compress(DCOneClassSVM(nu=0.2).fit(X), X, random_state=0),
    "search": lambda: DCSVMClassifierCV(Cs=2, gammas=2, cv=2).fit(X, LABELS),
    "search of regressors": lambda: DCSVMRegressorCV(Cs=2, gammas=2, cv=2).fit(X, X[:, 0] ** 2),
    "linear search": lambda: OCASClassifierCV(Cs=2, cv=2).fit(X, LABELS),
}


def rows_for(model: Any) -> Any:
    """40 rows as the machine takes them, some of them halfway between others: near a border, or between clusters."""
    rows = np.concatenate([X[:20], (X[:20] + X[20:40]) / 2])
    if getattr(model, "kernel", None) == "precomputed":
        return rows @ X.T
    return rows + 1e4 if np.abs(getattr(model, "support_vectors_", rows)).max() > 1e3 else rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:only")
@pytest.mark.parametrize("name", MODELS)
def test_it_is_predict_of_one_row_to_the_last_bit(name: str) -> None:
    model = MODELS[name]()
    rows = rows_for(model)
    for method in ("predict", "decision_function", "predict_proba"):
        if not hasattr(model, method):
            continue
        function = model.as_function(method)
        for row in rows:
            for x in (row, row.astype(np.float32)):
                expected = getattr(model, method)(x[None])[0]
                found = function(x)
                np.testing.assert_array_equal(found, expected)
                assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(function(rows[3].tolist()), getattr(model, method)(rows[3:4])[0])
        np.testing.assert_array_equal(function(np.repeat(rows[3], 2)[::2]), function(rows[3]))  # not contiguous


def test_rows_that_two_clusters_decide_are_among_those_tested() -> None:
    """Their values differ where the nearest cluster alone decides."""
    soft = MODELS["soft"]()._model
    early = replace(soft, averages=False).as_function()
    assert any(not np.array_equal(soft.as_function()(x), early(x)) for x in rows_for(soft))


def test_columns_scaled_by_their_relevance() -> None:
    search = DCSVMClassifierCV(Cs=2, gammas=2, cv=2).fit(X, LABELS)
    scaler = RelevanceScaler().set_factors(X, np.linspace(0.5, 2.0, X.shape[1]))
    search.best_estimator_ = make_pipeline(scaler, search.best_estimator_)
    function = search.as_function("decision_function")
    for x in X[:10]:
        np.testing.assert_array_equal(function(x), search.decision_function(x[None])[0])
    with pytest.raises(ValueError, match=r"x must be one row of 6 features"):
        function(X[0, :5])


WRONG = [X[0, :5], np.zeros(7), np.zeros(0), X[:1], X[:2], 1.0, [[0.0] * 6]]


@pytest.mark.parametrize("name", ["exact", "soft", "tree", "ocas", "novelty", "search", "sparse"])
def test_a_row_of_another_shape_is_an_error(name: str) -> None:
    function = MODELS[name]().as_function()
    for x in WRONG:
        with pytest.raises(ValueError, match=r"x must be one row of 6 features, of shape \(6,\), got shape"):
            function(x)
    with pytest.raises(ValueError, match="could not convert string to float"):
        function(["a"] * 6)


@pytest.mark.parametrize("name", ["exact", "soft", "tree", "ocas", "float32", "search", "regressor"])
def test_nan_and_infinity_are_errors_as_in_predict(name: str) -> None:
    model = MODELS[name]()
    function, row = model.as_function(), rows_for(model)[0].copy()
    for value in (np.nan, np.inf, -np.inf):
        row[2] = value
        with pytest.raises(ValueError, match="NaN|infinity"):
            model.predict(row[None])
        with pytest.raises(ValueError, match=rf"x must be finite in float(32|64), got {value} in column 2"):
            function(row)
    row[2] = 1e300
    with np.errstate(all="ignore"):
        if name == "float32":
            with pytest.raises(ValueError, match=r"x must be finite in float32, got 1e\+300 in column 2"):
                function(row)
        else:
            np.testing.assert_array_equal(function(row), model.predict(row[None])[0])


SCALINGS: dict[str, Any] = {
    "standard": lambda: [StandardScaler()],
    "mean": lambda: [StandardScaler(with_std=False)],
    "spread": lambda: [StandardScaler(with_mean=False)],
    "range, clipped": lambda: [MinMaxScaler((-1, 2), clip=True)],
    "largest, then standard": lambda: [MaxAbsScaler(), "passthrough", StandardScaler()],
    "relevance": lambda: [RelevanceScaler().set_factors(X, np.linspace(0.5, 2.0, X.shape[1]))],
    "none": lambda: ["passthrough"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALINGS)
def test_after_the_scalings_of_a_pipeline(name: str) -> None:
    steps = SCALINGS[name]()
    rows = X[:40] if name == "relevance" else X[:40] * [0.5, 1, 2, 0.7, 3, 1] + 2
    for step in steps:
        if name not in ("relevance", "none") and step != "passthrough":
            step.fit(rows[:20])
    model = make_pipeline(*steps, DCSVMClassifier()).fit(rows[:20], LABELS[:20]) if name != "relevance" else None
    model = model or make_pipeline(*steps, DCSVMClassifier().fit(steps[0].transform(X), LABELS))
    function = model[-1].as_function("decision_function", steps=model[:-1])
    for row in rows:
        given = row.copy()
        np.testing.assert_array_equal(function(row), model.decision_function(row[None])[0])
        np.testing.assert_array_equal(row, given)
        rounded = row.astype(np.float32)
        np.testing.assert_allclose(function(rounded), model.decision_function(rounded[None])[0], rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"x must be finite in float64, got nan in column 0"):
        function(np.full(6, np.nan))


def test_other_steps_are_errors() -> None:
    model = make_pipeline(PCA(2), DCSVMClassifier()).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"steps must be scalings, StandardScaler, .* got PCA\(n_components=2\)"):
        model[-1].as_function(steps=model[:-1])


def test_it_is_of_the_machine_as_it_was() -> None:
    model = DCSVMClassifier().fit(X, BINARY)
    function, labels = model.as_function(), model.predict(X[:20])
    model.fit(X, y)
    assert [function(x) for x in X[:20]] == labels.tolist()


def test_errors() -> None:
    with pytest.raises(NotFittedError):
        DCSVMClassifier().as_function()
    with pytest.raises(ValueError, match=r"response_method must be .*predict.*decision_function.*got 'predict_proba'"):
        MODELS["exact"]().as_function("predict_proba")
    with pytest.raises(ValueError, match="response_method must be .*predict.*got 'decision_function'"):
        MODELS["regressor"]().as_function("decision_function")
    with pytest.raises(ValueError, match="break_ties must be False with decision_function_shape='ovo'"):
        DCSVMClassifier(break_ties=True, decision_function_shape="ovo").fit(X, y).as_function()(X[0])
    with pytest.raises(AttributeError, match="has no attribute 'as_function'"):
        DCSVMClassifierCV(Cs=2, gammas=2, cv=2, refit=False).fit(X, y).as_function()
