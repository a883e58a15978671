"""Searches by ranking scores and on rare classes: drawn rows, candidates, and how good the answer is."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

import widemargin
from widemargin import DCSVMClassifier, DCSVMClassifierCV, DCSVMRegressorCV, RelevanceScaler
from widemargin.data.rows import sample_classes
from widemargin.model_selection import _search_cv

SEARCH: dict[str, Any] = {"scoring": "roc_auc", "relevance": False}


def binary_columns(n: int, share: float, d: int = 39) -> tuple[NDArray[Any], NDArray[Any]]:
    """Columns of 0 and 1, and a class of about this share whose log-odds are linear in them."""
    g = np.random.default_rng(0)
    X = (g.random((n, d)) < g.uniform(0.05, 0.5, d)).astype(float)
    f = X @ g.normal(size=d) * 1.5
    f -= np.quantile(f, 1 - share)
    return X, (g.random(n) < 1 / (1 + np.exp(-f))).astype(int)


def few_positives(n: int, n_positives: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Shuffled rows, and a class of so many, three standard deviations off in the first column."""
    g = np.random.default_rng(0)
    X, y = g.normal(size=(n, 4)), np.zeros(n, int)
    y[g.choice(n, n_positives, replace=False)] = 1
    X[:, 0] += 3 * y
    return X, y


@pytest.mark.parametrize("counts", [(3990, 10), (300, 300), (5000, 2, 100)])
def test_drawn_rows_stand_for_all_rows_of_their_class(counts: tuple[int, ...]) -> None:
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    rows, factors = sample_classes(y, 400, np.random.default_rng(1))
    assert len(rows) <= 400
    assert (np.diff(rows) > 0).all()
    np.testing.assert_allclose(np.bincount(y[rows], factors), counts)
    least = np.minimum(counts, 400 // (2 * len(counts)))
    assert (np.bincount(y[rows]) >= least).all()


@pytest.mark.parametrize("scoring", ["average_precision", "f1"])
def test_ten_positives_among_many_rows_are_all_scored(monkeypatch: pytest.MonkeyPatch, scoring: str) -> None:
    """Two are in each fold, and few clusters of rows have any."""
    monkeypatch.setattr(_search_cv, "CLUSTER_ROWS", 100)
    monkeypatch.setattr(_search_cv, "_DRAWN_FINALLY", 500)
    X, y = few_positives(2000, 10)
    search = DCSVMClassifierCV(Cs=[1, 8], gammas=[0.03, 0.1], **{**SEARCH, "scoring": scoring})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the machine may label no row 1
        search.fit(X, y)
    assert search.cv_results_["n_test_rows"].min() == 200
    assert 200 < search.cv_results_["n_test_rows"].max() <= 500
    assert search.best_score_ > {"average_precision": 0.15, "f1": 0.0}[scoring]
    assert scoring == "f1" or roc_auc_score(y, search.decision_function(X)) > 0.95


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_a_fold_without_a_class_is_named() -> None:
    X, y = few_positives(600, 1)
    how = {"Cs": [1.0], "gammas": [0.1], "refit": False, **SEARCH, "kernels": "rbf"}
    halves = [(np.arange(300), np.arange(300, 600)), (np.arange(300, 600), np.arange(300))]
    X[[0, np.argmax(y)]], y[[0, np.argmax(y)]] = X[[np.argmax(y), 0]], y[[np.argmax(y), 0]]
    for search in ("early", "exact"):
        with pytest.raises(ValueError, match=r"fold 0 of 300 held-out rows.*all classes in each"):
            DCSVMClassifierCV(**how, search=search, cv=halves[:1]).fit(X, y)


def test_relevance_is_learnt_with_rare_rows() -> None:
    X, y = few_positives(40_000, 10)  # a random sample of 1,000 rows has none
    assert RelevanceScaler(n_rows=1000, n_iter=1).fit(X, y).relevance_.max() == 1.0


def test_the_answer_is_an_ordinary_machine(tmp_path: Path) -> None:
    """Weights of classes are those of the last machine, in the results, and kept by `save`."""
    X, y = binary_columns(500, 0.05)
    search = DCSVMClassifierCV([1.0, 8.0], **SEARCH, cv=3).fit(X, y)
    results, best = search.cv_results_, search.best_estimator_
    assert isinstance(best, DCSVMClassifier)
    assert {(p["kernel"], p["class_weight"]) for p in results["params"]} >= {("linear", "balanced"), ("rbf", None)}
    chosen = results["params"][results["rank_test_score"].argmin()]
    assert {name: getattr(best, name) for name in ("kernel", "C", "gamma", "class_weight")} == {
        name: chosen[name] for name in ("kernel", "C", "gamma", "class_weight")
    }
    widemargin.save(search, tmp_path / "search")
    np.testing.assert_array_equal(
        widemargin.load(tmp_path / "search").decision_function(X), search.decision_function(X)
    )
    same = clone(best).fit(X, y)
    np.testing.assert_allclose(same.decision_function(X), search.decision_function(X))


@pytest.mark.parametrize("given", [{"kernels": "rbf", "class_weight": None}, {"class_weight": {0: 1, 1: 3}}])
def test_what_is_given_is_obeyed(given: dict[str, Any]) -> None:
    X, y = binary_columns(300, 0.1)
    search = DCSVMClassifierCV(Cs=[1.0], **SEARCH, **given).fit(X, y)
    tried = {p["kernel"] for p in search.cv_results_["params"]}
    assert tried == ({"rbf"} if "kernels" in given else {"rbf", "laplacian", "linear"})
    assert "param_class_weight" not in search.cv_results_
    assert search.best_estimator_.class_weight == given["class_weight"]


def test_the_accuracy_has_the_candidates_it_had() -> None:
    X, y = binary_columns(300, 0.1)
    results = DCSVMClassifierCV(Cs=[1.0], relevance=False, refit=False).fit(X, y).cv_results_
    assert "param_class_weight" not in results
    assert set(results["param_kernel"]) == {"rbf", "laplacian"}


@pytest.mark.slow
def test_a_nearly_linear_regression_takes_a_linear_machine() -> None:
    """27 columns, some with a few huge values: R2 of an RBF machine is far lower."""
    g = np.random.default_rng(0)
    X = g.normal(size=(600, 27))
    X[:, :9] = np.exp(1.5 * X[:, :9])
    y = X @ g.normal(size=27) / 3 + g.normal(size=600)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    search = DCSVMRegressorCV().fit(X[:400], y[:400])
    assert search.kernel_ == "linear"
    assert search.score(X[400:], y[400:]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_two_per_cent_of_binary_columns_beside_logistic_regression(scoring: str) -> None:
    """16,000 rows: 1 - AUC was once five times that of a logistic regression."""
    X, y = binary_columns(22_000, 0.02)
    search = DCSVMClassifierCV(scoring=scoring, random_state=0).fit(X[:16_000], y[:16_000])
    other = LogisticRegression(max_iter=1000).fit(X[:16_000], y[:16_000])
    metric = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[scoring]
    ours, theirs = (1 - metric(y[16_000:], m.decision_function(X[16_000:])) for m in (search, other))
    assert ours < 1.2 * theirs
