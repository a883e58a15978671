"""X and y whose squares overflow or underflow are named, and NumPy warns of nothing; others are as scaled data are."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from widemargin import (
    DCPredClassifier,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    RelevanceScaler,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + 0.3 * X[:, 1] ** 2
LABELS = (X[:, 0] > 0).astype(np.intp)


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_rows_within_the_bounds(scale: float) -> None:
    how: dict[str, Any] = {"Cs": [10.0], "kernels": "rbf", "gammas": 1, "cv": 3}
    for kind, y in ((DCSVMRegressorCV, Y), (DCSVMClassifierCV, LABELS)):
        parameters = {"epsilons": [0.1]} if kind is DCSVMRegressorCV else {}
        one, other = (kind(**how, **parameters).fit(rows, y) for rows in (X, X * scale))
        np.testing.assert_allclose(other.scores_, one.scores_, atol=0.01)
    np.testing.assert_allclose(RelevanceScaler().fit(X * scale, Y).relevance_, RelevanceScaler().fit(X, Y).relevance_)


@pytest.mark.parametrize("scale", [1e95, 1e-95])
def test_targets_within_the_bounds(scale: float) -> None:
    model = DCSVMRegressorCV([10.0], [0.3], epsilons=[0.1], kernels="rbf", cv=3).fit(X, Y * scale)
    assert model.best_score_ > 0.9
    assert model.score(X, Y * scale) > 0.95


def test_zeros_and_kernel_matrices_are_as_they_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        DCSVMClassifier().fit(np.zeros((120, 3)), LABELS)
        DCSVMRegressor().fit(X, np.zeros(120))
    K = 1e-152 * X @ X.T
    assert DCSVMClassifier(C=1e150, kernel="precomputed").fit(K, LABELS).score(K, LABELS) > 0.9


def test_a_spread_whose_square_overflows_is_named() -> None:
    model = DCSVMRegressor().fit(X, Y)
    for spread in (1e250, 0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match=r"spread must be greater than 0 and at most 1e\+100, got"):
            model.rescale_targets(0.0, spread)


# Bounds C s_i of the dual below the smallest normal number: an error if all are, else zero.


@pytest.mark.parametrize("estimator", [DCSVMClassifier, DCSVMRegressor, DCPredClassifier])
@pytest.mark.parametrize(("C", "weight"), [(1e-310, 1.0), (5e-324, 1.0), (1e-200, 1e-110)])
def test_an_error_names_c_and_the_weight(estimator: Any, C: float, weight: float) -> None:
    with pytest.raises(ValueError, match=f"must be at least .* got C={C} and a largest weight of {weight:g}"):
        estimator(C=C).fit(X, LABELS, sample_weight=np.full(120, weight))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_of_a_denormal_weight_have_no_part(fit_intercept: bool) -> None:
    model, weights = DCSVMClassifier(fit_intercept=fit_intercept), np.where(np.arange(120) < 80, 1.0, 1e-310)
    tiny, none = (clone(model).fit(X, LABELS, s) for s in (weights, weights.round()))
    assert tiny.converged_
    np.testing.assert_allclose(tiny.decision_function(X), none.decision_function(X), atol=1e-6)


def test_a_class_of_denormal_weight_ends() -> None:
    assert DCSVMClassifier(class_weight={0: 1e-310, 1: 1.0}).fit(X, LABELS).converged_
