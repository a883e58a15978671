"""DCSVMClassifier with levels: the same optimum by any way, and early machines that are what they claim to be."""

import pickle
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from naive import dc_svm as naive
from widemargin import DCSVMClassifier
from widemargin.algorithms import dc_svm_levels as dc_svm
from widemargin.datasets import load_patches

Data = tuple[NDArray[Any], NDArray[np.int64]]
PATCHES: dict[str, Any] = {"C": 8.0, "gamma": 1.0, "random_state": 0}
EARLY: dict[str, Any] = PATCHES | {"n_levels": 2, "stop_level": 2}


def dual(model: DCSVMClassifier) -> float:
    return model.objective_ - model.dual_gap_


@pytest.fixture(scope="module")
def patches() -> Data:
    return load_patches(1500, 5, random_state=0)[:2]


@pytest.fixture(scope="module")
def early(patches: Data) -> DCSVMClassifier:
    """An early machine of about 16 clusters; not to be changed."""
    return DCSVMClassifier(**EARLY, partition="kernel").fit(*patches)


@pytest.mark.slow
@pytest.mark.parametrize(("partition", "fit_intercept"), [("kernel", False), ("input", True)])
@pytest.mark.parametrize("n_levels", [1, 2, 3, "auto"])
def test_levels_reach_the_dual_of_the_direct_solution(
    n_levels: Any, partition: str, fit_intercept: bool, patches: Data
) -> None:
    X, y = patches
    options = PATCHES | {"fit_intercept": fit_intercept}
    direct = DCSVMClassifier(**options, n_levels=0).fit(X, y)
    model = DCSVMClassifier(**options, n_levels=n_levels, partition=partition).fit(X, y)
    assert model.converged_
    assert dual(model) == pytest.approx(dual(direct), rel=1e-5)
    np.testing.assert_allclose(model.decision_function(X), direct.decision_function(X), atol=0.01)
    assert [level["level"] for level in model.levels_] == ([] if n_levels == "auto" else list(range(n_levels, 0, -1)))


FORMS = ["weights", "class weights", "csr", "csr float32", "poly", "laplacian", "linear", "callable", "precomputed"]


def own_kernel(A: Any, B: Any) -> Any:
    return rbf_kernel(A, B, gamma=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_levels_with_every_form_of_input(form: str, binary: Data) -> None:
    X, y = binary
    options: dict[str, Any] = {"C": 2.0, "gamma": 0.2, "random_state": 0}
    weights, rows = None, X
    if form == "weights":
        weights = np.random.default_rng(0).choice([0.0, 0.5, 3.0], len(y))
    elif form == "class weights":
        options["class_weight"] = {0: 0.3, 1: 2.0}
    elif form.startswith("csr"):
        rows = sp.csr_array(X.astype(np.float32 if "32" in form else np.float64))
    elif form == "precomputed":
        rows = polynomial_kernel(X, degree=2, gamma=0.2)
        options["kernel"] = "precomputed"
    elif form in ("poly", "laplacian", "linear"):
        options["kernel"] = form
    elif form == "callable":
        options["kernel"] = own_kernel
    direct = DCSVMClassifier(**options, n_levels=0).fit(rows, y, sample_weight=weights)
    for partition in ("auto", "kernel"):
        model = DCSVMClassifier(**options, n_levels=2, partition=partition).fit(rows, y, sample_weight=weights)
        assert dual(model) == pytest.approx(dual(direct), rel=1e-5)
        assert len(model.levels_) == 2
        stopped = DCSVMClassifier(**options, n_levels=1, stop_level=1, partition=partition)
        stopped.fit(rows, y, sample_weight=weights)
        assert stopped.score(rows, y) > 0.5
        assert stopped.objective_ >= dual(stopped) > 0


@pytest.mark.slow
def test_levels_are_reported(patches: Data) -> None:
    X, y = patches
    model = DCSVMClassifier(**PATCHES, n_levels=3).fit(X, y)
    assert [level["level"] for level in model.levels_] == [3, 2, 1]
    for level in model.levels_:
        assert {
            "problem",
            "n_clusters",
            "n_support",
            "seconds",
            "clustering_seconds",
            "objective",
            "lower_bound",
        } <= set(level)
        assert 0 <= level["clustering_seconds"] <= level["seconds"]
        assert 0 < level["n_support"] <= len(y)
        assert 1 <= level["n_clusters"] <= 2.5 * 4 ** level["level"]
        assert 0 < level["lower_bound"] <= level["objective"]
    assert DCSVMClassifier(**PATCHES, n_levels=0).fit(X, y).levels_ == []


@pytest.mark.slow
def test_early_accuracy_is_near_the_exact_one() -> None:
    X, y = load_patches(6000, 5, random_state=0)[:2]
    train, test = (X[:4500], y[:4500]), (X[4500:], y[4500:])
    exact = DCSVMClassifier(**PATCHES, n_levels=0).fit(*train).score(*test)
    for partition, loss in (("kernel", 0.01), ("input", 0.015)):
        for level in (1, 2, 3):
            model = DCSVMClassifier(**PATCHES, n_levels=level, stop_level=level, partition=partition).fit(*train)
            assert model.score(*test) > exact - loss


@pytest.mark.parametrize("name", ["sample_weight", "class_weight"])
def test_a_weight_is_as_many_rows(name: str) -> None:
    rng = np.random.default_rng(0)
    side = np.repeat([-8, 8], 200)
    X = side[:, None] + rng.normal(size=(400, 2))
    y = np.where((X[:, 0] - side) * np.sign(side) + 0.7 * rng.normal(size=400) > 0.6, 1, 0)
    rows, new = np.repeat(np.arange(400), np.where(y == 1, 4, 1)), rng.normal(side[:, None], 1.5, size=(400, 2))
    options: dict[str, Any] = {"gamma": 0.3, "branching": 2, "stop_level": 1, "tol": 1e-6, "random_state": 0}
    model = DCSVMClassifier(**options)
    repeated = clone(model).fit(X[rows], y[rows]).decision_function(new)
    if name == "class_weight":
        model.set_params(class_weight={1: 4}).fit(X, y)
    else:
        model.fit(X, y, sample_weight=np.where(y == 1, 4, 1))
    np.testing.assert_allclose(model.decision_function(new), repeated, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("partition", ["kernel", "input"])
def test_early_prediction_is_the_papers(partition: str, fit_intercept: bool, patches: Data) -> None:
    """Section 4: route the row to its nearest centre, and sum over that cluster's support vectors alone."""
    X, y = patches[0].astype(np.float64), patches[1]
    model = DCSVMClassifier(**EARLY, partition=partition, fit_intercept=fit_intercept, n_sample=100)
    model.fit(X[:500], y[:500])
    clusters, rows = model._clusters, X[700:730]

    def rbf(x: Any, z: Any) -> float:
        return float(np.exp(-np.sum((x - z) ** 2)))

    def linear(x: Any, z: Any) -> float:  # k-means in input space is kernel k-means with the linear kernel
        return float(x @ z)

    space = rbf if partition == "kernel" else linear
    support = model.support_vectors_, model.dual_coef_[0], clusters["support_labels"], clusters["intercepts"][0]
    own = [naive.nearest_cluster(space, x, clusters["points"], clusters["labels"]) for x in rows]
    truth = [naive.early_decision_value(rbf, x, c, *support) for x, c in zip(rows, own, strict=True)]
    np.testing.assert_allclose(replace(model._model, averages=False).decision_values(rows)[:, 0], truth, atol=1e-9)


def test_out_of_time_in_a_level_gives_the_better_machine_of_the_level_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time ends before any cluster of the second level is solved."""
    original, calls = dc_svm.DCSVMTraining.solve_clusters, iter(range(10))

    def solve_clusters(fit: Any, *arguments: Any) -> Any:
        if next(calls) == 1:
            fit.progress._stop("max_time")
        return original(fit, *arguments)

    monkeypatch.setattr(dc_svm.DCSVMTraining, "solve_clusters", solve_clusters)
    X, y = load_patches(3000, 5, random_state=0)[:2]
    with pytest.warns(ConvergenceWarning, match="max_time .* of the early prediction of level 2"):
        model = DCSVMClassifier(**PATCHES, n_levels=2).fit(X, y)
    assert model.early_level_ == 2
    assert model.objective_ < 0.5 * PATCHES["C"] * len(X)  # of zero: C a row


@pytest.mark.slow
@pytest.mark.parametrize("n_levels", [1, 3])
def test_out_of_time_at_a_level_gives_its_early_machine(n_levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time ends with the first level."""
    original = dc_svm.DCSVMTraining.solve_level

    def solve_level(fit: Any, *arguments: Any) -> Any:
        beta = original(fit, *arguments)
        fit.progress._stop("max_time")
        return beta

    monkeypatch.setattr(dc_svm.DCSVMTraining, "solve_level", solve_level)
    X, y = load_patches(3000, 5, random_state=0)[:2]
    y = np.where(np.random.default_rng(0).random(3000) < 0.2, 1 - y, y)
    model = DCSVMClassifier(**PATCHES | {"C": 1e3}, n_levels=n_levels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert any(issubclass(w.category, ConvergenceWarning) and "max_time" in str(w.message) for w in caught)
    assert model.converged_ is False
    assert [level["level"] for level in model.levels_] == [n_levels]
    assert model.early_level_ == n_levels
    assert model.dual_gap_ > 0
    assert model.score(X, y) > 0.55
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_kernel_that_is_the_identity(form: Any) -> None:
    """gamma |x|^2 of 1e5: float32 entries of k(x, x) are not 1 to the last digits."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 10)).astype(np.float32), rng.integers(2, size=3000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gamma is too large
        model = DCSVMClassifier(gamma=1e4, n_levels=1, random_state=0).fit(form(X), y)
    assert (model.predict(form(X)) == y).all()
