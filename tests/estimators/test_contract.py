"""scikit-learn's checks: of one configuration of each estimator; the other configurations are slow tests."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from every_estimator import name_of
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    LandmarkNystroem,
    OCASClassifier,
    OCASClassifierCV,
    OCASRanker,
    OCASRegressor,
    OCASRegressorCV,
    RelevanceScaler,
    TwoStepKernelKMeans,
)

DEFAULTS: list[Any] = [
    DCSVMClassifier(),
    DCSVMRegressor(),
    DCOneClassSVM(),
    DCPredClassifier(n_clusters=1, n_landmarks=5, random_state=0),
    DCPredRegressor(n_clusters=1, n_landmarks=5, random_state=0),
    OCASClassifier(),
    OCASRegressor(),
    OCASRanker(C=0.01, tol=0.1),
    BSGDClassifier(lam=1e-3, budget=20, n_epochs=2, random_state=0),
    DCSVMClassifierCV(Cs=1, gammas=1, cv=2, search="exact", kernels="rbf", relevance=False),
    DCSVMRegressorCV(Cs=1, gammas=1, cv=2, search="exact", kernels="rbf", relevance=False),
    OCASClassifierCV(Cs=1, cv=2, tol=0.1),
    OCASRegressorCV(Cs=1, cv=2, tol=0.1),
    LandmarkNystroem(20, n_pseudo_landmarks=5, pseudo="triangle", random_state=0),
    RelevanceScaler(n_iter=1),
    TwoStepKernelKMeans(n_clusters=2, random_state=0),
]
OTHERS: list[Any] = [
    DCSVMClassifier(fit_intercept=True),
    DCSVMRegressor(fit_intercept=False),
    DCSVMRegressor(loss="squared_epsilon_insensitive", epsilon=0.0),
    DCSVMRegressor(loss="quantile", quantile=0.8),
    DCPredRegressor(fit_intercept=True, random_state=0),
    OCASClassifier(multi_class="crammer_singer"),
    OCASClassifier(line_search=False, tol=0.1),
    OCASClassifier(acceleration=None),
    OCASClassifier(loss="squared_hinge"),
    OCASClassifier(loss="logistic"),
    OCASRegressor(loss="squared_epsilon_insensitive", epsilon=0.3),
    OCASRegressor(loss="absolute"),
    OCASRegressor(loss="quantile", quantile=0.8),
    BSGDClassifier(lam=1e-3, maintenance="projection", kernel="laplacian", random_state=0),
    DCSVMClassifierCV(),
    DCSVMRegressorCV(),
    DCSVMRegressorCV(Cs=2, gammas=2, cv=3, loss="quantile"),
    OCASClassifierCV(Cs=2, cv=3, loss="logistic"),
    LandmarkNystroem(random_state=0),
    LandmarkNystroem(kernel="precomputed", random_state=0),
    RelevanceScaler("rbf"),
]


def statistical_checks(estimator: Any) -> dict[str, str]:
    """Steps, clusters and landmarks are drawn: a repeated row gives another draw than its weight does.

    `test_bsgd.py` and `test_dc_pred.py` have tests of weights in their place.
    """
    if not isinstance(estimator, BSGDClassifier | DCPredClassifier | DCPredRegressor):
        return {}
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(kind): "another draw" for kind in ("dense", "sparse")}


@parametrize_with_checks(DEFAULTS)
def test_keeps_the_estimator_contract(estimator: Any, check: Any) -> None:
    if check.func.__name__ in statistical_checks(estimator):
        pytest.skip("another draw of clusters or steps: it has a statistical test of its own")
    check(estimator)


@pytest.mark.parametrize("estimator", DEFAULTS, ids=name_of)
def test_a_failed_fit_leaves_the_estimator_as_it_was(estimator: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    y, bad, model = np.arange(60) % 2, X[:, :2].copy(), clone(estimator)
    bad[7, 1] = np.nan
    for _ in range(2):  # unfitted, and fitted
        before = dict(vars(model))
        with pytest.raises(ValueError, match="NaN"):
            model.fit(bad, y)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
        model.fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", OTHERS, ids=repr)
def test_other_configurations_keep_it(estimator: Any) -> None:
    check_estimator(estimator, on_skip=None, expected_failed_checks=statistical_checks(estimator))
