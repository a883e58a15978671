"""Fitted machines of all kinds, for the tests of what exports make of them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import widemargin as wm

SMALL = {"n_clusters": 2, "random_state": 0}
MACHINES: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda X, y: wm.OCASClassifier(C=0.1).fit(X, y),
    "two classes": lambda X, y: wm.OCASClassifier(C=0.1).fit(X, y > 1),
    "logistic": lambda X, y: wm.OCASClassifier(loss="logistic").fit(X, y),
    "regression": lambda X, y: make_pipeline(StandardScaler(), wm.OCASRegressor()).fit(X, y.astype(float)),
    "ranker": lambda X, y: wm.OCASRanker(1e-4).fit(X, y),
    "rbf": lambda X, y: wm.DCSVMClassifier(gamma=0.1).fit(X, y > 1),
    "laplacian, two targets": lambda X, y: wm.DCSVMRegressor(kernel="laplacian", gamma=0.1).fit(X, np.c_[y, -y]),
    "polynomial": lambda X, y: wm.BSGDClassifier(
        kernel="poly", gamma=0.1, coef0=1.0, budget=20, maintenance="projection", random_state=0
    ).fit(X, y),
    "merged": lambda X, y: wm.BSGDClassifier(gamma=0.3, budget=20, random_state=0).fit(X, np.array(list("abcd"))[y]),
    "sigmoid": lambda X, y: wm.DCSVMClassifier(kernel="sigmoid", gamma=0.01, coef0=0.1).fit(X, y > 1),
    "linear kernel, sparse": lambda X, y: wm.DCSVMClassifier(kernel="linear").fit(sp.csr_array(X), y),
    "linear kernel, regression": lambda X, y: wm.DCSVMRegressor(kernel="linear").fit(X, y),
    "novelty": lambda X, y: wm.DCOneClassSVM(gamma=0.1).fit(X),
    "pairs": lambda X, y: wm.DCSVMClassifier(gamma=0.1, decision_function_shape="ovo").fit(X, y),
    "early": lambda X, y: wm.DCSVMClassifier(gamma=0.1, C=0.05, stop_level=1).fit(X, y),
    "early, linear": lambda X, y: wm.DCSVMClassifier(kernel="linear", stop_level=1).fit(X, y),
    "early, sparse": lambda X, y: wm.DCSVMClassifier(stop_level=2, gamma=0.1).fit(sp.csr_array(X), y),
    "early, in feature space": lambda X, y: wm.DCSVMRegressor(gamma=0.1, stop_level=1, partition="kernel").fit(X, y),
    "early, two targets": lambda X, y: wm.DCSVMRegressor(gamma=0.02, stop_level=1).fit(X, np.c_[y, y % 2]),
    "early novelty": lambda X, y: make_pipeline(StandardScaler(), wm.DCOneClassSVM(stop_level=1)).fit(X),
    "early, scaled by relevance": lambda X, y: make_pipeline(
        wm.RelevanceScaler(n_iter=1), wm.DCSVMRegressor(stop_level=1)
    ).fit(X, y.astype(float)),
    "tree": lambda X, y: wm.DCPredClassifier(gamma=0.3, n_clusters=16, n_landmarks=5, random_state=0).fit(X, y),
    "triangle rule": lambda X, y: wm.DCPredClassifier(
        gamma=0.3, n_clusters=3, n_landmarks=5, n_pseudo_landmarks=4, pseudo="triangle", random_state=0
    ).fit(X, y),
    "two trees": lambda X, y: wm.DCPredRegressor(gamma=0.3, n_clusters=3, n_trees=2, random_state=0).fit(X, y),
    "compressed": lambda X, y: wm.compress(SVC(gamma=0.1).fit(X, y), X, **SMALL),
    "compressed regression": lambda X, y: wm.compress(SVR(gamma=0.1).fit(X, y), X, **SMALL),
    "compressed, two targets": lambda X, y: wm.compress(
        KernelRidge(kernel="rbf", gamma=0.1).fit(X, np.c_[X[:, :30].sum(axis=1), y]), X, n_landmarks=10, **SMALL
    ),
    "compressed novelty": lambda X, y: wm.compress(OneClassSVM(gamma=0.1, nu=0.2).fit(X), X, **SMALL),
    "compressed pairs": lambda X, y: wm.compress(
        SVC(gamma=0.1, decision_function_shape="ovo").fit(X, y), X, n_landmarks=10, **SMALL
    ),
    "search": lambda X, y: wm.DCSVMClassifierCV(Cs=[1.0], gammas=1, cv=2).fit(X, y > 1),
    "linear search": lambda X, y: wm.OCASClassifierCV(Cs=[1.0], cv=2).fit(X, y),
    "search of a regression": lambda X, y: wm.DCSVMRegressorCV(Cs=[1.0], gammas=1, cv=2).fit(X, y),
    "linear search of a regression": lambda X, y: wm.OCASRegressorCV(Cs=[1.0], cv=2).fit(X, y),
    "frozen pipeline in a pipeline": lambda X, y: make_pipeline(
        MinMaxScaler(), FrozenEstimator(make_pipeline(StandardScaler(), wm.DCSVMClassifier(gamma=0.005)).fit(X, y))
    ).fit(X, y),
    "read": lambda X, y: wm.read_machine(SVC(gamma=0.1).fit(X, y)),
    "read regression": lambda X, y: wm.read_machine(SVR(gamma=0.1).fit(X, y)),
    "read novelty": lambda X, y: wm.read_machine(OneClassSVM(gamma=0.1).fit(X)),
}


@cache
def digits() -> tuple[Any, Any]:
    """Rows (300, 64), float32, of four digits, and which these are."""
    X, y = load_digits(n_class=4, return_X_y=True)
    return (X[:300] / 16).astype(np.float32), y[:300]


@cache
def fitted(name: str) -> Any:
    """A machine of the table, which tests leave as it is."""
    return MACHINES[name](*digits())
