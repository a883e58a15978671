"""A scorer that raises does so before a search has trained anything but a machine of few rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from widemargin import C_path, DCSVMClassifierCV, DCSVMRegressorCV, OCASClassifier, OCASClassifierCV

Fit = Callable[..., Any]


def path(X: Any, y: Any, scoring: Any, **how: Any) -> Any:
    return C_path(OCASClassifier(), X, y, [0.1, 1.0], scoring=scoring, **how)


def search(kind: Any, **parameters: Any) -> Fit:
    return lambda X, y, scoring, **how: kind(scoring=scoring, **parameters, **how).fit(X, y)


@pytest.mark.parametrize(
    "fit",
    [
        search(DCSVMClassifierCV, Cs=[1.0], gammas=[0.1], search="exact", kernels="rbf"),
        search(DCSVMRegressorCV, Cs=[1.0], gammas=[0.1], epsilons=[0.1], search="exact", kernels="rbf"),
        search(OCASClassifierCV, Cs=[0.1, 1.0]),
        path,
    ],
)
def test_a_scorer_that_raises_does_so_on_few_rows(fit: Fit) -> None:
    X, y = make_classification(6000, 5, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    train, test = np.arange(6000) < 3000, np.arange(6000) >= 3000
    seen = []

    def score(model: Any, X: Any, y: Any) -> float:
        seen.append((len(model.predict(X)), len(np.unique(y))))
        raise KeyError("no such column")

    with pytest.raises(KeyError, match="no such column"):
        fit(X, y, score, cv=[(train, test)])
    ((n_rows, n_classes),) = seen
    assert n_rows <= 1000
    assert n_classes == 3
