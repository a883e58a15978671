"""The rivals written for the papers' benchmarks: each against an oracle or its optimality conditions."""

import itertools
from importlib import import_module

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.optimize import check_grad, nnls
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from evidence import _fastfood as fastfood
from evidence._dc_pred import rivals
from evidence._dc_pred.reduced_set import ReducedSet
from evidence._dc_svm.cascade import CascadeSVC
from evidence._dc_svm.spsvm import SpSVM
from measuring.recompute import certify
from widemargin import DCSVMClassifier
from widemargin.datasets import load_patches


@pytest.fixture(scope="module")
def data():
    X, labels = load_patches(300)
    return X, (2 * labels - 1).astype(np.int8)


def test_greedy_coordinate_descent_finds_the_dual_optimum(data):
    pytest.importorskip("numba")
    X, y = data
    GreedySVC = import_module("evidence._dc_svm.greedy").GreedySVC
    exact = DCSVMClassifier(C=4.0, gamma=1.0, tol=1e-4, fit_intercept=False).fit(X, y)

    def dual(model):
        coef = model.dual_coef_[0]
        return np.abs(coef).sum() - 0.5 * coef @ model.decision_function(model.support_vectors_)

    for n_levels in (0, 2):
        model = GreedySVC(4.0, 1.0, 1e-2, n_levels=n_levels).fit(X, y)
        assert dual(model) == pytest.approx(dual(exact), rel=1e-3)
        assert len(model.levels_) == n_levels


def test_fastfood_approaches_the_kernel():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3, 8)).astype(np.float32)
    np.testing.assert_allclose(fastfood.hadamard(Z), Z @ hadamard(8), atol=1e-5)
    X = rng.normal(size=(40, 6)).astype(np.float32)
    F = fastfood.FastfoodFeatures(20_000, gamma=0.1).fit_transform(X)
    np.testing.assert_allclose(F @ F.T, np.exp(-0.1 * np.square(X[:, None] - X).sum(axis=2)), atol=0.05)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_lasvm_finds_libsvms_dual_optimum_in_many_passes(data, kernel):
    pytest.importorskip("numba")
    X, y = data
    about = {"C": 2.0, "gamma": 0.5, "intercept": True, "kernel": kernel}
    exact = SVC(C=2.0, kernel=kernel, gamma=0.5, coef0=0.0, tol=1e-6).fit(X, y)
    LaSVM = import_module("evidence._dc_svm.lasvm").LaSVM
    best = certify(X, y, exact, **about).dual
    once, model = (LaSVM(2.0, 0.5, kernel, tol=1e-4, n_epochs=n_epochs).fit(X, y) for n_epochs in (1, 100))
    assert 0.95 * best < certify(X, y, once, **about).dual <= best * (1 + 1e-6)
    facts = certify(X, y, model, **about)
    assert facts.dual == pytest.approx(best, rel=1e-5)
    assert facts.violation < 1e-2
    values = exact.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), values, atol=2e-3 * np.abs(values).max())


def test_spsvm_is_the_squared_hinge_machine_on_its_basis(data):
    X, y = data
    for n_basis in (20, len(X)):
        model = SpSVM(C=2.0, gamma=1.0, n_basis=n_basis).fit(X, y)
        K = rbf_kernel(X.astype(np.float64), gamma=1.0)
        own = K[np.ix_(model.support_, model.support_)]
        values, vectors = np.linalg.eigh(own)  # inner products of Z are those of the projections on the basis
        kept = values > 1e-9
        Z = K[:, model.support_] @ (vectors[:, kept] / np.sqrt(values[kept]))
        exact = LinearSVC(C=1.0, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-8).fit(Z, y)
        w = exact.coef_[0]
        best = 0.5 * w @ w + np.square(np.maximum(0, 1 - y * (Z @ w))).sum()
        assert model.objective_ == pytest.approx(best, rel=1e-3)
        assert len(np.unique(model.support_)) == n_basis


def test_rows_of_aesvm_have_the_others_near_their_hull(data):
    pytest.importorskip("numba")
    X, y = data
    AESVM = import_module("evidence._dc_pred.aesvm").AESVM
    model = AESVM(gamma=0.3, C=2.0, distance=0.05).fit(X, y)
    assert len(model.rows_) < 0.7 * len(X)
    assert model.weights_.sum() == pytest.approx(len(X))
    K = rbf_kernel(X.astype(np.float64), gamma=0.3)
    for label in (-1, 1):
        corners = model.rows_[y[model.rows_] == label]
        L = np.linalg.cholesky(K + 1e-10 * np.eye(len(K)))  # rows of L are the points in feature space
        A = np.vstack([L[corners].T, 1e3 * np.ones(len(corners))])  # and the weights sum to one
        for t in np.flatnonzero(y == label)[::5]:
            assert nnls(A, np.append(L[t], 1e3))[1] ** 2 <= 0.05 + 1e-3
    exact = DCSVMClassifier(C=2.0, gamma=0.3, fit_intercept=False, tol=1e-5).fit(X, y)
    whole = AESVM(gamma=0.3, C=2.0, distance=0.0).fit(X, y)
    np.testing.assert_allclose(whole.decision_function(X), exact.decision_function(X), atol=0.02)
    assert np.mean((model.decision_function(X) > 0) == (y > 0)) > 0.9


def test_reduced_set_approaches_the_machine(data):
    X, y = data
    exact = DCSVMClassifier(C=5.0, gamma=0.3).fit(X, y)
    values = exact.decision_function(X)
    points, coef = exact.support_vectors_.astype(np.float64), exact.dual_coef_[0]

    def distance(machine):
        Z, beta = machine.model_.points.astype(np.float64), machine.model_.coef[0]
        own, cross = rbf_kernel(Z, gamma=0.3), rbf_kernel(Z, points, gamma=0.3)
        return beta @ own @ beta - 2 * beta @ cross @ coef + coef @ rbf_kernel(points, gamma=0.3) @ coef

    for m in (2, 10):
        greedy, reduced = (ReducedSet(m, 0.3, 5.0, n_iter=n_iter).reduce(exact) for n_iter in (0, 200))
        assert distance(reduced) < 0.9 * distance(greedy)
    assert np.square(reduced.decision_function(X) - values).mean() < 0.1 * values.var()


def test_slopes_of_the_reduced_set_are_differences(data):
    rng = np.random.default_rng(0)
    points, coef, Z = rng.normal(size=(30, 3)), rng.normal(size=30), rng.normal(size=(4, 3))
    distance = ReducedSet(4, 0.5, 1.0).distance_to(points, coef)
    assert check_grad(lambda z: distance(z)[0], lambda z: distance(z)[1], Z.ravel()) < 1e-4


def test_cascade_keeps_support_vectors_alone():
    X, y = load_patches(600)
    cascade = CascadeSVC(C=4.0, gamma=1.0, n_parts=8).fit(X, y)
    assert [parts for parts, _ in cascade.layers_] == [8, 4, 2, 1]
    found = [set(rows) for _, rows in cascade.layers_]
    assert all(later <= earlier for earlier, later in itertools.pairwise(found))
    assert cascade.score(X, y) > 0.9


def test_all_rows_as_landmarks_make_the_exact_machine(data):
    X, y = data
    model = rivals.Landmarks(len(X), gamma=1.0, C=1.0, method="uniform").fit(X, y)
    K = rbf_kernel(X.astype(np.float64), gamma=1.0)
    values, vectors = np.linalg.eigh(K)
    exact = LinearSVC(C=1.0, dual=False, tol=1e-8).fit(vectors * np.sqrt(np.maximum(values, 0)), y)
    expected = exact.decision_function(vectors * np.sqrt(np.maximum(values, 0)))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=0.02)


def test_fourier_features_approach_the_kernel(data):
    X, y = data
    model = rivals.Fourier(20_000, gamma=1.0).fit(X, y)
    Z = model._features(X[:50]) * np.sqrt(2 / 20_000)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X[:50], gamma=1.0), atol=0.05)


@pytest.mark.parametrize("name", ["Landmarks", "Fourier", "Fastfood"])
def test_ridge_regression_is_the_closed_form(data, name):
    X, _ = data
    y = X[:, 0].astype(np.float64)
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
    parts = rng.normal(size=(17, 3))

    def loss(parts) -> float:
        turns, gates, linear = np.split(parts, [3, 10])
        way = ldkl._Tree(turns, gates, linear)._ways(np.tanh(1.7 * X @ turns.T)).astype(np.float64)
        f = (way * (X @ linear.T) * np.tanh(X @ gates.T)).sum(axis=1)
        return float(np.maximum(0, 1 - signs * f).mean())

    slopes = np.concatenate(ldkl._Tree(*np.split(parts, [3, 10])).slopes(X, signs, 1.7))
    differences = [loss(parts + step) - loss(parts - step) for step in 1e-3 * np.eye(51).reshape(51, 17, 3)]
    np.testing.assert_allclose(slopes.ravel(), np.array(differences) / 2e-3, atol=2e-3)


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
