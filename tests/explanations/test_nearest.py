"""The support vectors that contribute most, against the kernel values themselves."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from widemargin import (
    BSGDClassifier,
    DCPredClassifier,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    OCASClassifier,
    nearest_support,
)
from widemargin._threads import ONE_THREAD

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
TWO = np.where(X[:, 0] * X[:, 1] > 0, "plus", "minus")
THREE = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 1.5])


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear", "chi2"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_contributions_are_coefficients_times_kernel_values(kernel: str, form: Any) -> None:
    rows, form = np.abs(X), np.asarray if kernel == "chi2" else form
    model = DCSVMClassifier(kernel=kernel, gamma=0.3).fit(form(rows), TWO)
    found = nearest_support(model, form(rows[7:8]), k=10_000)
    parameters = {"gamma": 0.3, "degree": 3, "coef0": 0.0}
    K = pairwise_kernels(rows[7:8], rows[model.support_], kernel, filter_params=True, **parameters)[0]
    expected = model.dual_coef_[0] * K
    order = np.argsort(-abs(expected), kind="stable")
    np.testing.assert_allclose(found.contributions, expected[order], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.contributions.sum() + model.intercept_, model.decision_function(form(rows[7:8])))
    np.testing.assert_array_equal(found.labels, TWO[found.rows])
    np.testing.assert_allclose(found.shares.sum(), 1.0)


@pytest.mark.parametrize(
    "model", [DCSVMClassifier(stop_level=1, branching=3), DCSVMRegressor(stop_level=1, branching=3)]
)
def test_early_machines_name_points_of_the_clusters_that_decide(model: Any) -> None:
    model.set_params(gamma=0.1, C=5, random_state=0).fit(X, TWO if isinstance(model, DCSVMClassifier) else X[:, 0])
    labels, others, _ = model._model.clusters_of(X, ONE_THREAD)
    decide = getattr(model, "decision_function", model.predict)
    assert isinstance(model, DCSVMRegressor) or (labels != others).any()
    for i in {0, int(np.argmax(labels != others))}:
        found = nearest_support(model, X[i], k=300)
        b = model._model.intercept[0]
        used = found.contributions != 0
        np.testing.assert_allclose(
            found.contributions.sum() + (b[labels[i]] + b[others[i]]) / 2, decide(X[[i]]), atol=1e-9
        )
        assert set(model.assign_clusters(X[found.rows[used]])) <= {labels[i], others[i]}
        np.testing.assert_allclose(found.support_vectors, X[found.rows])


@pytest.mark.parametrize("model", [DCSVMClassifier(C=5), SVC(C=5)])
def test_support_of_the_predicted_class_speaks_for_it_and_the_others_against(model: Any) -> None:
    model.fit(X, THREE)
    for i in (3, 20, 57):
        found = nearest_support(model, X[i], k=300)
        np.testing.assert_array_equal(
            found.labels[found.contributions != 0] == model.predict(X[[i]])[0],
            found.contributions[found.contributions != 0] > 0,
        )
        assert found.contributions.sum() == pytest.approx(_class_value(model, X[[i]]), abs=1e-6)


def _class_value(model: Any, x: Any) -> float:
    """The sum of the pairs' values for the predicted class, less their intercepts."""
    values = (model.set_params(decision_function_shape="ovo").decision_function(x) - model.intercept_)[0]
    sums = [values[0] + values[1], values[2] - values[0], -values[1] - values[2]]
    return float(sums[int(model.predict(x)[0])])


def test_merged_points_have_the_class_that_they_speak_for_and_no_rows() -> None:
    model = BSGDClassifier(budget=50, random_state=0).fit(X, THREE)
    found = nearest_support(model, X[0], k=2)
    assert found.rows is None
    assert set(found.labels) <= {0, 1, 2}


def test_searches_name_rows_of_the_training_data() -> None:
    model = DCSVMClassifierCV(cv=2, relevance=True, search="early", Cs=[1, 4], gammas=[0.1, 1], kernels="rbf").fit(
        X, TWO
    )
    found = nearest_support(model, X[0])
    scaler = model.best_estimator_[0]
    np.testing.assert_allclose(found.support_vectors, X[found.rows] * scaler.scale_, rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (OCASClassifier(), {}, "must have support vectors.*OCASClassifier"),
        (DCPredClassifier(random_state=0), {}, "must have support vectors.*DCPredClassifier"),
        (DCSVMClassifier(), {"k": 0}, "k must be"),
        (DCSVMClassifier(), {"x": X[:2]}, "x must be one row, got 2"),
    ],
)
def test_wrong_arguments_are_named(model: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nearest_support(model.fit(X, TWO), **{"x": X[0], **arguments})


def test_several_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="one target for nearest_support, got 2"):
        nearest_support(DCSVMRegressor().fit(X, X[:, :2]), X[0])
