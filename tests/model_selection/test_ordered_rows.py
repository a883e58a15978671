"""Files that are sorted: folds are of rows in a random order, unless the user says otherwise."""

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

from widemargin import DCSVMClassifierCV, DCSVMRegressorCV, OCASClassifierCV
from widemargin.model_selection._best_estimator import make_splits

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
X = X[np.argsort(X[:, 0])]
VALUES = X[:, 0] ** 2 + 0.5 * X[:, 1]
CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])
HOW: dict[str, Any] = {"Cs": [10.0], "gammas": [0.3], "kernels": "rbf"}


@pytest.mark.parametrize("search", ["exact", "early"])
def test_a_file_sorted_by_a_column_does_not_mislead_a_search(search: str) -> None:
    model = DCSVMRegressorCV(**HOW, epsilons=[0.1], search=search, relevance=False)
    assert model.fit(X, VALUES).best_score_ > 0.85
    assert model.set_params(cv=KFold(5)).fit(X, VALUES).best_score_ < 0.5
    assert model.set_params(cv=None).fit(X[np.argsort(VALUES)], np.sort(VALUES)).best_score_ > 0.85


def test_folds_of_a_seed_are_the_same_and_stratified() -> None:
    splits = [make_splits(None, CLASSES, None, classifier=True, random_state=seed) for seed in (0, 0, 1)]
    (_, one), (_, same), (_, other) = (folds[0] for folds in splits)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    counts = np.array([np.bincount(CLASSES[test]) for _, test in splits[0]])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert (np.ptp([test for _, test in splits[0]], axis=1) > 200).all()  # rows from all over the file
    for seed in (None, np.random.RandomState(0)):
        assert len(make_splits(None, VALUES, None, classifier=False, random_state=seed)) == 5


def test_a_number_of_folds_takes_rows_as_they_come() -> None:
    for (_, one), (_, other) in zip(
        make_splits(5, CLASSES, None, classifier=True), StratifiedKFold(5).split(X, CLASSES), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_all_searches_have_the_same_folds() -> None:
    """Scores are shares of the same test rows."""
    search = OCASClassifierCV([1.0]).fit(X, CLASSES)
    splits = make_splits(None, CLASSES, None, classifier=True)
    np.testing.assert_array_equal(search.scores_, OCASClassifierCV([1.0], cv=splits).fit(X, CLASSES).scores_)
    kernel = DCSVMClassifierCV(**HOW).fit(X, CLASSES)
    np.testing.assert_array_equal(kernel.scores_, DCSVMClassifierCV(**HOW, cv=splits).fit(X, CLASSES).scores_)


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_noise_in_order_is_not_climbed(kind: str) -> None:
    """Scores of such folds are below a constant's, and rise with C to any size."""
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=(200, 5)), np.sort(rng.normal(size=200))
    y = np.digitize(targets, [-0.4, 0.4]) if kind == "classes" else targets
    search = DCSVMClassifierCV if kind == "classes" else DCSVMRegressorCV
    model = search(gammas=[0.1], kernels="rbf", cv=KFold(5), refit=False).fit(X, y)
    assert set(model.cv_results_["param_C"]) == {1.0, 8.0, 64.0}


def test_what_beats_a_constant_is_climbed() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    for kind, y in ((DCSVMClassifierCV, X[:, 0] > 0), (DCSVMRegressorCV, X[:, 0] + rng.normal(size=200))):
        model = kind(kernels="rbf", relevance=False, refit=False).fit(X, y)
        assert set(model.cv_results_["param_C"]) - {1.0, 8.0, 64.0}


def test_scorers_that_take_no_constants() -> None:
    """The search goes on as if there were no constant to beat."""

    def correlation(model: Any, X: Any, y: Any) -> float:
        predicted = model.predict(X)
        if not predicted.std():
            raise ValueError("constant")
        return float(np.corrcoef(predicted, y)[0, 1])

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    model = DCSVMRegressorCV(kernels="rbf", relevance=False, refit=False, scoring=correlation).fit(X, X[:, 0])
    assert model.best_score_ > 0.9
    assert set(model.cv_results_["param_C"]) - {1.0, 8.0, 64.0}
