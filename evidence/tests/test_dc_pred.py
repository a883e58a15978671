"""What the DC-Pred++ benchmark computes itself is right: rivals, costs. The figures are its own to measure."""

import itertools
from importlib import import_module

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from widemargin.datasets import load_patches


@pytest.fixture(scope="module")
def data():
    X, labels = load_patches(300)
    return X, (2 * labels - 1).astype(np.int8)


def test_all_rows_as_landmarks_make_the_exact_machine(data):
    X, y = data
    model = import_module("evidence._dc_pred.rivals").Landmarks(len(X), gamma=1.0, C=1.0, method="uniform").fit(X, y)
    K = rbf_kernel(X.astype(np.float64), gamma=1.0)
    values, vectors = np.linalg.eigh(K)
    exact = LinearSVC(C=1.0, dual=False, tol=1e-8).fit(vectors * np.sqrt(np.maximum(values, 0)), y)
    expected = exact.decision_function(vectors * np.sqrt(np.maximum(values, 0)))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=0.02)


def test_fourier_features_approach_the_kernel(data):
    X, y = data
    model = import_module("evidence._dc_pred.rivals").Fourier(20_000, gamma=1.0).fit(X, y)
    Z = model._features(X[:50]) * np.sqrt(2 / 20_000)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X[:50], gamma=1.0), atol=0.05)


@pytest.mark.parametrize("name", ["Landmarks", "Fourier", "Fastfood"])
def test_ridge_regression_is_the_closed_form(data, name):
    X, _ = data
    y = X[:, 0].astype(np.float64)
    rivals = import_module("evidence._dc_pred.rivals")
    model = getattr(rivals, name)(30, gamma=0.5, C=10.0, is_ridge=True).fit(X, y)
    weights, intercept = rivals.fit_linear(X.astype(np.float64), y, 10.0, True)
    residuals = y - X @ weights - intercept
    np.testing.assert_allclose(10.0 * X.T @ residuals, weights, atol=1e-3)  # the gradient is zero
    assert residuals.sum() == pytest.approx(0.0, abs=1e-3)
    assert np.mean(np.square(model.decision_function(X) - y)) < 0.5 * y.var()


def test_slopes_of_ldkl_are_differences():
    rng = np.random.default_rng(0)
    ldkl = import_module("evidence._dc_pred.ldkl")
    X, signs = rng.normal(size=(20, 3)), np.where(rng.normal(size=20) > 0, 1.0, -1.0)
    parts = [rng.normal(size=(k, 3)) for k in (3, 7, 7)]

    def loss() -> float:
        turn = np.tanh(1.7 * X @ parts[0].T)
        way = ldkl._Tree(*parts)._ways(turn).astype(np.float64)
        f = (way * (X @ parts[2].T) * np.tanh(X @ parts[1].T)).sum(axis=1)
        return float(np.maximum(0, 1 - signs * f).mean())

    slopes = ldkl._Tree(*parts).slopes(X, signs, 1.7)
    for part, slope in zip(parts, slopes, strict=True):
        for at in np.ndindex(part.shape):
            kept, differences = part[at], []
            for step in (1e-3, -1e-3):
                part[at] = kept + step
                differences.append(loss())
            part[at] = kept
            assert (differences[0] - differences[1]) / 2e-3 == pytest.approx(slope[at], abs=2e-3)


def test_ldkl_walks_the_tree(data):
    X, y = data
    model = import_module("evidence._dc_pred.ldkl").LDKL(depth=2, epochs=20).fit(X, y)
    expected = np.zeros(10)
    for i, x in enumerate(X[:10]):
        node = 0
        for _ in range(3):
            ask, gate, linear = model.nodes_[node] @ x + model.constants_[node]
            expected[i] += np.tanh(gate) * linear
            node = 2 * node + (1 if ask > 0 else 2)
    np.testing.assert_allclose(model.decision_function(X[:10]), expected, rtol=1e-3, atol=1e-4)
    assert np.mean((model.decision_function(X) > 0) == (y > 0)) > 0.8


def test_cost_is_a_ratio_to_the_linear_machine(data):
    linear = import_module("evidence._dc_pred.cost").Linear(data[0])
    assert len(linear.rows) == 10_000
    (row,) = linear.multiples([lambda rows: [linear._model.decision_function(rows) for _ in range(5)]])
    assert row["multiple"] == pytest.approx(row["predict_us"] / row["linear_us"])
    assert row["multiple"] > 1


def test_the_linear_machine_is_timed_alone_before_and_after_the_others(data, monkeypatch):
    linear, called = import_module("evidence._dc_pred.cost").Linear(data[0]), []
    monkeypatch.setattr(linear, "_linear", lambda rows: called.append("linear"))
    rows = linear.multiples([lambda rows: called.append("first"), lambda rows: called.append("second")])
    order = [called[0]] + [name for last, name in itertools.pairwise(called) if name != last]
    assert order[:4] == ["linear", "first", "second", "linear"]
    assert len({row["linear_us"] for row in rows}) == 1


def test_settings_of_an_earlier_run_are_found():
    regression = import_module("evidence._dc_pred.regression")
    rows = [{"machine": "DC-Pred++", "options": "n_clusters=1 n_landmarks=2 n_trees=1 gamma=0.06 C=10.0"}]
    size = {"n_clusters": 1, "n_landmarks": 2, "n_trees": 1}
    for label in ("DC-Pred++", "DC-Pred++ as published"):
        assert regression._known(label, size, rows).options == {**size, "gamma": 0.06, "C": 10.0}
    assert regression._known("Nyström", {"m": 5}, rows) is None


def test_regression_is_compared_over_seeds():
    row = import_module("evidence._dc_pred.regression")._over_seeds([1.0, 3.0])
    assert row == {"rmse": 2.0, "rmse_std": 1.0, "seeds": 2}


def test_pseudo_landmarks_are_compared_at_equal_cost():
    plain, cheap = {"set": "a", "machine": "landmarks alone"}, {"set": "a", "machine": "+ triangle"}
    rows = [
        {**plain, "m": 1, "multiple": 1.0, "operations": 1, "error": 0.4},
        {**plain, "m": 2, "multiple": 4.0, "operations": 16, "error": 0.1},
        {**cheap, "m": 1, "multiple": 2.0, "operations": 4, "error": 0.1},
        {**cheap, "m": 2, "multiple": 9.0, "operations": 99, "error": 0.01},
    ]
    (gain,) = import_module("evidence._dc_pred.approximation").gains(rows)
    assert gain["times_closer"] == pytest.approx(2.0)
    assert gain["times_closer_counted"] == pytest.approx(2.0)


def test_regression_is_judged_at_no_higher_cost():
    rows = [
        {"set": "a", "machine": who, "options": "", "multiple": x, "operations": 1 / x, "rmse": y}
        for who, x, y in (
            ("DC-Pred++", 2.0, 0.5),
            ("DC-Pred++", 4.0, 0.3),
            ("DC-Pred++ as published", 2.0, 0.35),
            ("Nyström", 3.0, 0.4),
            ("Nyström", 1.0, 0.9),
        )
    ]
    regression = import_module("evidence._dc_pred.regression")
    first, second = regression.verdicts(rows)
    assert (first["ours_multiple"], first["ours_lower_multiple"]) == (0.5, False)
    assert (second["ours_multiple"], second["ours_lower_multiple"]) == (None, False)
    assert (first["published_lower_multiple"], second["published_lower_multiple"]) == (True, False)
    assert (first["ours_operations"], first["ours_lower_operations"]) == (0.3, True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_libsvm_predicts_from_intelex_support_vectors(n_classes):
    svm = pytest.importorskip("sklearnex.svm")
    X, _ = load_patches(400)
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.arange(1, n_classes) / n_classes))
    theirs = svm.SVC(C=5.0, gamma=0.5).fit(X, y)
    ours = import_module("evidence._dc_pred.compression").as_svc(theirs)
    assert type(ours) is SVC
    own = SVC(C=5.0, gamma=0.5).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), own.decision_function(X), atol=0.02)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
