"""One of every estimator, with parameters that make it quick on some tens of rows."""

from typing import Any

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

CLASSIFIERS: list[Any] = [
    DCSVMClassifier(),
    DCPredClassifier(random_state=0),
    OCASClassifier(),
    BSGDClassifier(n_epochs=2, random_state=0),
]
REGRESSORS: list[Any] = [DCSVMRegressor(), DCPredRegressor(random_state=0), OCASRegressor()]
ESTIMATORS: list[Any] = [
    *CLASSIFIERS,
    *REGRESSORS,
    DCOneClassSVM(),
    OCASRanker(C=0.01),
    LandmarkNystroem(20, random_state=0),
    RelevanceScaler(n_iter=1),
    TwoStepKernelKMeans(3, random_state=0),
]
SEARCHES: list[Any] = [
    DCSVMClassifierCV(Cs=[1.0], gammas=1, cv=2),
    DCSVMRegressorCV(Cs=[1.0], gammas=1, cv=2),
    OCASClassifierCV(Cs=[1.0], cv=2),
    OCASRegressorCV(Cs=[1.0], cv=2),
]


def name_of(estimator: Any) -> str:
    """The name of its class, for the ids of tests."""
    return type(estimator).__name__


def answer(model: Any, rows: Any) -> Any:
    """Decision values of a fitted estimator, or its coordinates, or else its predictions."""
    method = next(name for name in ("decision_function", "transform", "predict") if hasattr(model, name))
    return getattr(model, method)(rows)
