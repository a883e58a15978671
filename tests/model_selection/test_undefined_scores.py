"""Scores that cannot be had: another score, or an error that says where, why and what helps, and says so early."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import KFold, LeaveOneOut

from caught_warnings import warnings_of
from widemargin import DCSVMClassifierCV, DCSVMRegressorCV, OCASClassifierCV, OCASRegressorCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=40)
TEXT = np.where(X[:, 0] + RNG.normal(size=40) > 0, "rare", "usual")  # the second is the positive class

EXACT: dict[str, Any] = {"Cs": [1.0, 10.0], "gammas": [0.3], "kernels": "rbf"}
REGRESSIONS = [
    DCSVMRegressorCV(**EXACT, epsilons=[0.1]),
    DCSVMRegressorCV(**EXACT, search="early", relevance=False),
    OCASRegressorCV(3),
]
CLASSIFICATIONS = [
    partial(DCSVMClassifierCV, **EXACT),
    partial(DCSVMClassifierCV, **EXACT, search="early", relevance=False),
    partial(OCASClassifierCV, 3),
]


def warned(model: Any, *data: Any, **how: Any) -> list[str]:
    return warnings_of(UserWarning, model.fit, *data, **how)


@pytest.mark.parametrize(("model", "n"), zip(REGRESSIONS, [5, 7, 9], strict=True))
def test_few_rows_are_chosen_by_absolute_errors(model: Any, n: int) -> None:
    (message,) = warned(model.set_params(cv=None), X[:n], Y[:n])
    assert f"folds of one test row ({10 - n} of 5), and R2 needs two" in message
    assert "minus the mean absolute error" in message
    assert -1.5 < model.best_score_ < 0
    assert model.predict(X[:n]).shape == (n,)


@pytest.mark.parametrize("model", REGRESSIONS)
def test_leave_one_out(model: Any) -> None:
    (message,) = warned(model.set_params(cv=LeaveOneOut()), X[:15], Y[:15])
    assert "(15 of 15)" in message
    folds = np.array([score for name, score in model.cv_results_.items() if name.startswith("split")])
    assert model.best_score_ == pytest.approx(folds.mean(axis=0).max())
    assert not warned(model.set_params(cv=3), X, Y)
    assert model.best_score_ > 0.5  # R2 again


def test_rows_of_no_weight_are_no_test_rows() -> None:
    weights = np.ones(10)
    weights[1] = 0.0
    model = DCSVMRegressorCV(**EXACT, epsilons=[0.1], cv=KFold(5))
    (message,) = warned(model, X[:10], Y[:10], sample_weight=weights)
    assert "(1 of 5)" in message


@pytest.mark.parametrize(("kind", "scoring"), [*zip(CLASSIFICATIONS, ["average_precision", "f1", "f1"], strict=True)])
def test_the_second_of_two_text_labels_is_positive(kind: Any, scoring: str) -> None:
    text, numbers = (kind(scoring=scoring, cv=3).fit(X, y) for y in (TEXT, (TEXT == "usual").astype(int)))
    np.testing.assert_allclose(text.scores_, numbers.scores_)
    metric = {"average_precision": average_precision_score, "f1": f1_score}[scoring]
    values = text.decision_function(X) if scoring == "average_precision" else text.predict(X) == "usual"
    assert metric(TEXT == "usual", values) > 0.5


@pytest.mark.parametrize("kind", [partial(DCSVMClassifierCV, **EXACT, search="exact"), *CLASSIFICATIONS[2:]])
def test_a_scorer_that_raises_does_so_on_few_rows(kind: Any) -> None:
    """Before a search has trained anything but a model of these."""
    X, y = make_classification(6000, 5, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    how: dict[str, Any] = {"cv": [(np.arange(6000) < 3000, np.arange(6000) >= 3000)]}
    seen = []

    def score(model: Any, X: Any, y: Any) -> float:
        seen.append((len(model.predict(X)), len(np.unique(y))))
        raise KeyError("no such column")

    with pytest.raises(KeyError, match="no such column"):
        kind(scoring=score, **how).fit(X, y)
    ((n_rows, n_classes),) = seen
    assert n_rows <= 1000
    assert n_classes == 3


@pytest.mark.parametrize("kind", CLASSIFICATIONS)
def test_nan_says_in_which_fold_and_why(kind: Any) -> None:
    y = np.arange(40) >= 16  # of five folds of consecutive rows each has one class
    with pytest.raises(ValueError, match=r"^scoring gave NaN in fold [0-9] of 8 held-out rows, for .*C=") as caught:
        kind(scoring="roc_auc", cv=KFold(5)).fit(X, y)
    assert "Only one class is present in y_true" in str(caught.value)
    assert "Either give a cv whose test rows have what the score needs" in str(caught.value)


def test_nan_without_a_reason() -> None:
    with pytest.raises(ValueError, match="fold 0 of 8 held-out rows.*: the scorer gives no reason"):
        OCASClassifierCV(3, scoring=lambda *_: np.nan).fit(X, TEXT)
