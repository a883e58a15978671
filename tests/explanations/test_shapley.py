"""Shapley values against all coalitions, of every kind of machine, and what is refused."""

import signal
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVR, OneClassSVM

from naive.shapley import product_value
from naive.shapley import shapley_values as naive_values
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASClassifier,
    OCASRegressor,
    nearest_support,
    shapley_values,
)
from widemargin._threads import ONE_THREAD
from widemargin.interchange.machines import ImportedRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
TWO = X[:, 0] * X[:, 1] > 0.1 * X[:, 2]
THREE = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 1.5])
NUMBER = np.sin(X[:, 0]) * X[:, 1] + X[:, 3]


def random_machine(kernel: str, rng: np.random.Generator, r: int, d: int) -> Any:
    points = np.round(np.abs(rng.normal(size=(r, d))), 1) + 0.1  # some columns of points and rows are equal
    machine = ImportedRegressor(kernel, gamma=float(rng.choice([0.01, 0.3, 2.0, 500.0])))
    return machine.take(points, rng.normal(size=(1, r)), [0.5], laplace_scale_=None)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
@pytest.mark.parametrize("is_interventional", [False, True])
@pytest.mark.parametrize("most", [6, pytest.param(12, marks=pytest.mark.slow)])
def test_random_machines_have_the_values_of_all_coalitions(kernel: str, is_interventional: bool, most: int) -> None:
    rng = np.random.default_rng(most)
    for d in [*range(1, most + 1), *([1, 2, 3, 4, 5] * 6)]:
        machine = random_machine(kernel, rng, 5, d)
        x = np.round(np.abs(rng.normal(size=d)), 1) + 0.1
        background = np.round(np.abs(rng.normal(size=(2, d))), 1) + 0.1 if is_interventional else None
        found = shapley_values(machine, x[None], background)
        value = product_value(kernel, machine.gamma, machine.support_vectors_, machine.dual_coef_[0], x, background)
        expected, empty = naive_values(value, d)
        np.testing.assert_allclose(found.values[0], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.base_values[0], empty + 0.5, rtol=1e-9, atol=1e-12)


def black_box(decide: Callable[[Any], Any], x: Any, background: Any, groups: list[list[int]]) -> tuple[Any, Any]:
    """The interventional game of any function of rows."""

    def value(is_present: Any) -> Any:
        rows = background.copy()
        for k in np.flatnonzero(is_present):
            rows[:, groups[k]] = x[groups[k]]
        return np.mean(decide(rows), axis=0)

    return naive_values(value, len(groups))


def class_sums(values: Any) -> Any:
    """Values of three classes, from those of the pairs (0, 1), (0, 2), (1, 2)."""
    return np.array([values[:, 0] + values[:, 1], values[:, 2] - values[:, 0], -values[:, 1] - values[:, 2]]).T


MODELS: dict[str, tuple[Any, Any]] = {
    "two classes": (DCSVMClassifier(C=5), TWO),
    "linear kernel": (DCSVMClassifier(kernel="linear"), TWO),
    "pairs": (DCSVMClassifier(kernel="laplacian", decision_function_shape="ovo"), THREE),
    "regressor": (DCSVMRegressor(), NUMBER),
    "targets": (DCSVMRegressor(kernel="laplacian"), np.c_[NUMBER, X[:, 0]]),
    "novelty": (DCOneClassSVM(nu=0.3), None),
    "budget": (BSGDClassifier(budget=20, random_state=0), THREE),
    "SVC": (SVC(), TWO),
    "SVC of pairs": (SVC(decision_function_shape="ovo"), THREE),
    "NuSVR on CSR rows": (NuSVR(), NUMBER),
    "OneClassSVM": (OneClassSVM(nu=0.3), None),
    "OCAS": (OCASClassifier(), THREE),
    "OCAS regressor": (OCASRegressor(), NUMBER),
    "search": (DCSVMClassifierCV([1, 4], [0.1, 1], cv=2, kernels="rbf", relevance=True, search="early"), TWO),
    "search of a regressor": (DCSVMRegressorCV([1.0], [0.5], cv=2, kernels="rbf", epsilons=[0.1]), 100 * NUMBER),
    "pipeline": (make_pipeline(StandardScaler(), DCSVMClassifier()), TWO),
    "landmarks": (DCPredClassifier(n_clusters=1, n_landmarks=6, pseudo=None, random_state=0), THREE),
    "products of landmarks": (
        DCPredClassifier(n_clusters=1, n_landmarks=5, n_pseudo_landmarks=9, n_trees=2, random_state=0),
        TWO,
    ),
}


@cache
def fitted(name: str) -> Any:
    model, y = MODELS[name]
    return model.fit(sp.csr_array(X) if "CSR" in name else X, y)


@pytest.mark.parametrize(
    ("name", "groups"), [*((name, None) for name in MODELS), ("OCAS", {"both": [0, 3]}), ("pairs", {"both": [0, 3]})]
)
def test_every_machine_has_the_values_of_its_decision_function(name: str, groups: Any) -> None:
    model, background = fitted(name), X[20:26]
    found = shapley_values(model, X[:3], background, groups=groups)
    columns = [[0, 3], [1], [2]] if groups else [[k] for k in range(4)]
    decide = model.decision_function if hasattr(model, "decision_function") else model.predict
    for x, values, base in zip(X[:3], found.values, found.base_values, strict=True):
        expected, empty = black_box(decide, x, background, columns)
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(base, empty, rtol=1e-6, atol=1e-6)


def test_classes_have_the_sums_of_their_pairs() -> None:
    model = DCSVMClassifier().fit(X, THREE)
    pairs = DCSVMClassifier(decision_function_shape="ovo").fit(X, THREE)
    found = shapley_values(model, X[:2], X[50:53])
    expected, _ = black_box(
        lambda rows: class_sums(pairs.decision_function(rows)), X[0], X[50:53], [[k] for k in range(4)]
    )
    np.testing.assert_allclose(found.values[0], expected, atol=1e-9)
    assert found.values.shape == (2, 4, 3)
    assert found.output_names == ["0", "1", "2"]
    assert shapley_values(pairs, X[:1]).output_names == ["0 against 1", "0 against 2", "1 against 2"]


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("background", [None, X[:4]])
def test_early_machines_are_explained_by_those_that_decide(kernel: str, background: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 4))
    model = DCSVMClassifier(C=5, kernel=kernel, gamma=0.1, stop_level=1, branching=3, random_state=0)
    model.fit(rows, rows[:, 0] * rows[:, 1] > 0)
    found = shapley_values(model, rows, background)
    np.testing.assert_allclose(found.values.sum(1) + found.base_values, model.decision_function(rows), atol=1e-9)
    clustered = model._model
    labels, others, _ = clustered.clusters_of(rows, ONE_THREAD)
    assert 0 < np.sum(labels != others) < len(rows)
    for i in [int(np.argmax(labels != others)), int(np.argmin(labels != others))]:
        both = [shapley_values(exact(clustered.machines[c]), rows[[i]], background) for c in (labels[i], others[i])]
        for name in ("values", "base_values"):
            mean = (getattr(both[0], name)[0] + getattr(both[1], name)[0]) / 2
            np.testing.assert_allclose(getattr(found, name)[i], mean, atol=1e-9)


def exact(machine: Any) -> Any:
    parameters = {"kernel": machine.kernel.name, "gamma": getattr(machine.kernel, "gamma", 1.0)}
    return ImportedRegressor(**parameters).take(machine.points, machine.coef, machine.intercept, laplace_scale_=None)


@pytest.mark.parametrize("background", [None, 5])
def test_784_columns_are_finite_and_sum_to_the_value(background: int | None) -> None:
    rng = np.random.default_rng(0)
    pixels = np.where(rng.random((60, 784)) < 0.2, rng.random((60, 784)), 0.0)
    model = DCSVMClassifier(C=10, gamma=0.05).fit(pixels, np.arange(60) % 3)
    found = shapley_values(model, pixels[:20], None if background is None else pixels[-background:], n_jobs=2)
    sums = class_sums(model.set_params(decision_function_shape="ovo").decision_function(pixels[:20]))
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, sums, rtol=1e-9)
    model.set_params(decision_function_shape="ovr")
    assert all(
        np.array_equal(found.values, shapley_values(model, pixels[:20], pixels[-background:], n_jobs=n).values)
        for n in ((1, 3) if background else ())
    )


def test_sparse_rows_and_little_memory_give_the_same_values() -> None:
    rows = np.where(RNG.random((200, 30)) < 0.2, RNG.random((200, 30)), 0.0)
    dense, sparse = (DCSVMRegressor().fit(form(rows), rows.sum(axis=1)) for form in (np.asarray, sp.csr_array))
    expected = shapley_values(dense, rows, rows[:9])
    for found in (
        shapley_values(sparse, sp.csr_array(rows), sp.csr_array(rows[:9])),
        shapley_values(dense, rows, rows[:9], memory_budget=10_000, n_jobs=3),
    ):
        np.testing.assert_allclose(found.values, expected.values, atol=1e-4)
        np.testing.assert_array_equal(found.data, rows)
    alone = shapley_values(dense, rows, rows[:9], memory_budget=10_000, n_jobs=1)
    np.testing.assert_array_equal(alone.values, found.values)


def test_machines_without_support_vectors_have_no_shares() -> None:
    with pytest.warns(UserWarning, match="epsilon=99"):
        ours = DCSVMRegressor(epsilon=99).fit(X, NUMBER)
    for model in (ours, SVR(epsilon=99).fit(X, NUMBER)):
        found = shapley_values(model, X, X[:2])
        assert not found.values.any()
        np.testing.assert_allclose(found.base_values, model.predict(X))
        assert not nearest_support(model, X[0]).shares.any()


def test_names_are_those_of_columns_and_groups() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    model = DCSVMClassifier().fit(table, TWO)
    found = shapley_values(model, table, groups={"first": ["a", 2]})
    assert found.feature_names == ["first", "b", "d"]
    assert np.isnan(found.data[:, 0]).all()
    np.testing.assert_array_equal(found.data[:, 1:], X[:, [1, 3]])
    assert shapley_values(model, table).feature_names == list("abcd")
    assert shapley_values(fitted("two classes"), X).feature_names is None
    same_name = shapley_values(fitted("two classes"), X, groups={1: [0], "1": [2]})
    assert same_name.values.shape[1] == X.shape[1]  # two groups of one column each


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DCSVMClassifier(kernel="poly"), "kernel='poly'.*decision_gradient"),
        (DCSVMClassifier(kernel=lambda a, b: a @ b.T), "kernel=<function"),
        (make_pipeline(PCA(2), SVC()), "PCA.*model\\[-1\\]"),
        (CalibratedClassifierCV(SVC(), cv=2), "calibrated_classifiers_\\[0\\]"),
        (StandardScaler(), "StandardScaler"),
        (TransformedTargetRegressor(SVR(), transformer=StandardScaler()), "explain model.regressor_"),
        (DCPredClassifier(n_clusters=1, n_landmarks=4, pseudo="triangle", random_state=0), "triangle rule"),
    ],
)
def test_what_has_no_closed_form_is_refused(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shapley_values(model.fit(X, THREE > 1), X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": X[:, :3]}, "features"),
        ({"background": X[:0]}, "^background: "),
        ({"n_jobs": 0}, "n_jobs"),
        ({"memory_budget": "x"}, "memory_budget"),
        *(
            ({"groups": groups}, "groups must have each column once")
            for groups in ({"a": [4]}, {"a": [0], "b": [0]}, {"a": ["x"]}, {"a": [1.5]}, {"a": [True, False]})
        ),
        ({"groups": [[0, 1]]}, r"groups must be a dict of names and lists of columns, got \[\[0, 1\]\]"),
    ],
)
def test_wrong_arguments_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shapley_values(fitted("two classes"), **{"X": X, **arguments})


def test_ctrl_c_ends_it() -> None:
    machine, rows = random_machine("rbf", RNG, 1000, 40), RNG.random((2000, 40))
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        shapley_values(machine, rows, rows)
    timer.join()


@pytest.mark.parametrize("n_leaves", [1, 4])
def test_leaves_of_landmarks_are_explained_by_their_own_terms(n_leaves: int) -> None:
    model = DCPredRegressor(kernel="rbf", n_clusters=n_leaves, n_landmarks=4, random_state=0).fit(X, NUMBER)
    found = shapley_values(model, X)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(X), atol=1e-5)
