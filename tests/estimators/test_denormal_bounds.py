"""Bounds C s_i of the dual below the smallest normal number: an error if all are, else zero."""

from typing import Any

import numpy as np
import pytest

from widemargin import DCPredClassifier, DCSVMClassifier, DCSVMRegressor

X = np.random.default_rng(0).standard_normal((60, 3))
y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("estimator", [DCSVMClassifier, DCSVMRegressor, DCPredClassifier])
@pytest.mark.parametrize(("C", "weight"), [(1e-310, 1.0), (5e-324, 1.0), (1e-200, 1e-110)])
def test_an_error_names_c_and_the_weight(estimator: Any, C: float, weight: float) -> None:
    with pytest.raises(ValueError, match=f"must be at least .* got C={C} and a largest weight of {weight:g}"):
        estimator(C=C).fit(X, y, sample_weight=np.full(60, weight))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_of_a_denormal_weight_have_no_part(fit_intercept: bool) -> None:
    weights = np.where(np.arange(60) < 40, 1.0, 1e-310)
    tiny, none = (
        DCSVMClassifier(fit_intercept=fit_intercept).fit(X, y, sample_weight=s) for s in (weights, weights.round())
    )
    assert tiny.converged_
    np.testing.assert_allclose(tiny.decision_function(X), none.decision_function(X), atol=1e-6)


def test_a_class_of_denormal_weight_ends() -> None:
    assert DCSVMClassifier(class_weight={0: 1e-310, 1: 1.0}).fit(X, y).converged_
