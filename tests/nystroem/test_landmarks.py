"""Landmarks: their choice, their features C, and the kernel C W C' that approximates the exact one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import nystroem as naive
from widemargin.kernels.functions import make_kernel
from widemargin.nystroem.features import nystroem_factor, stack_leaves
from widemargin.nystroem.landmarks import select_landmarks
from widemargin.nystroem.pseudo_landmarks import add_by_triangle_rule, add_products, landmark_features

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
KERNELS = {
    "rbf": (make_kernel("rbf", gamma=0.3), "squared_distance", lambda D: np.exp(-0.3 * D)),
    "laplacian": (make_kernel("laplacian", gamma=0.3), "l1_distance", lambda D: np.exp(-0.3 * D)),
    "poly": (make_kernel("poly", gamma=0.5, degree=3, coef0=1.0), "inner_product", lambda G: (0.5 * G + 1) ** 3),
    "sigmoid": (make_kernel("sigmoid", gamma=0.1, coef0=0.2), "inner_product", lambda G: np.tanh(0.1 * G + 0.2)),
    "linear": (make_kernel("linear"), "inner_product", lambda G: G),
}


def gram(A: np.ndarray, B: np.ndarray, name: str = "rbf") -> np.ndarray:
    _, kind, function = KERNELS[name]
    return function(naive.pairwise(A, B, kind))


def error_of(C: np.ndarray, G: np.ndarray) -> float:
    Z = C @ nystroem_factor(C, G)
    return float(np.linalg.norm(G - Z @ Z.T))


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
def test_selection(form: Any) -> None:
    rng = np.random.default_rng(0)
    weights = np.zeros(200)
    weights[:50] = 1.0
    for method in ("kmeans", "uniform"):
        chosen = select_landmarks(form(X), 7, rng, weights=weights, method=method)
        assert chosen.shape == (7, 4)
        assert chosen.dtype == X.dtype
    rows = {tuple(row) for row in X[:50]}
    assert {tuple(row) for row in select_landmarks(form(X), 9, rng, weights=weights, method="uniform")} <= rows
    assert {tuple(row) for row in select_landmarks(form(X), 60, rng, weights=weights)} == rows


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_the_triangle_rule_bounds_the_kernel(name: str) -> None:
    kernel, kind, function = KERNELS[name]
    features = add_by_triangle_rule(landmark_features(kernel, X[:6]), X[10:15], X)
    power = 2 if kind == "squared_distance" else 1
    D, pseudo_distances = (naive.pairwise(A, X[:6], kind) ** (1 / power) for A in (X, X[10:15]))
    both = [function(naive.bound_distances(D, pseudo_distances.T, lower) ** power) for lower in (True, False)]
    exact = gram(X, X[10:15], name)
    assert np.all(both[0] >= exact - 1e-10)
    assert np.all(both[1] <= exact + 1e-10)
    nearer = min(both, key=lambda estimate: np.square(estimate - exact).sum())
    np.testing.assert_allclose(features.evaluate(X)[:, 6:], nearer, rtol=1e-9)


def test_products() -> None:
    features = add_products(landmark_features(KERNELS["rbf"][0], X[:4]), 100, np.random.default_rng(0))
    C = features.evaluate(X)
    assert C.shape == (200, 4 + 10)  # all of them, each once
    pairs = {tuple(sorted(pair)) for pair in features.pairs[0].T}
    assert len(pairs) == 10
    for t, (a, b) in enumerate(features.pairs[0].T):
        np.testing.assert_allclose(C[:, 4 + t], C[:, a] * C[:, b])
    assert add_products(landmark_features(KERNELS["rbf"][0], X[:4]), 3, np.random.default_rng(0)).n_features == 7


@pytest.mark.slow
def test_w_is_symmetric_positive_semidefinite_and_best() -> None:
    G = gram(X, X)
    C = landmark_features(KERNELS["rbf"][0], X[:10]).evaluate(X)
    F = nystroem_factor(C, G)
    W = F @ F.T
    assert np.array_equal(W, W.T)
    assert np.linalg.eigvalsh(W).min() > -1e-9 * np.abs(W).max()
    inverse = np.linalg.pinv(C)
    best = np.linalg.norm(G - C @ (inverse @ G @ inverse.T) @ C.T)
    classical = np.linalg.norm(G - C @ np.linalg.pinv(gram(X[:10], X[:10])) @ C.T)
    assert error_of(C, G) == pytest.approx(best, rel=1e-9)
    assert best <= classical * (1 + 1e-12)


@pytest.mark.slow
def test_damped_w_is_that_of_ridge_regression() -> None:
    G = gram(X, X)
    C = landmark_features(KERNELS["rbf"][0], X[:10]).evaluate(X)
    F = nystroem_factor(C, G, 0.01)
    inverse = np.linalg.solve(C.T @ C + (0.01 * np.linalg.norm(C, 2)) ** 2 * np.eye(10), C.T)
    np.testing.assert_allclose(F @ F.T, inverse @ G @ inverse.T, rtol=1e-8)


def test_degenerate_features() -> None:
    assert nystroem_factor(np.zeros((5, 3)), np.eye(5)).shape == (3, 0)
    twice = np.repeat(RNG.normal(size=(20, 2)), 2, axis=1)  # every column twice
    F = nystroem_factor(twice, twice @ twice.T)
    assert F.shape == (4, 2)
    np.testing.assert_allclose(twice @ F @ F.T @ twice.T, twice @ twice.T, atol=1e-9)
    small = 1e-9 * twice
    F = nystroem_factor(small, small @ small.T)
    assert F.shape == (4, 2)
    np.testing.assert_allclose(small @ F @ F.T @ small.T, small @ small.T, atol=1e-27)
    indefinite = np.diag([1.0, -1.0, 2.0])
    Z = np.eye(3) @ nystroem_factor(np.eye(3), indefinite)
    np.testing.assert_allclose(Z @ Z.T, np.diag([1.0, 0.0, 2.0]), atol=1e-12)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**16), m=st.integers(1, 4), p=st.integers(1, 5))
def test_lemma_1(seed: int, m: int, p: int) -> None:
    """All products of two landmark values are never worse than pseudo-landmark values regressed on them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 3))
    G = gram(rows, rows)
    features = add_products(landmark_features(KERNELS["rbf"][0], rows[:m]), 10**6, rng)
    C_hat = features.evaluate(rows)
    products = C_hat[:, m:]
    pseudo = gram(rows, rows[rng.choice(40, p)])
    regressed = products @ np.linalg.lstsq(products, pseudo, rcond=None)[0]
    two_step = np.hstack([C_hat[:, :m], regressed])
    assert error_of(C_hat, G) <= error_of(two_step, G) * (1 + 1e-6) + 1e-8


def test_stacked_leaves_keep_their_features() -> None:
    kernel = KERNELS["rbf"][0]
    wide = add_by_triangle_rule(landmark_features(kernel, X[:5]), X[30:34], X)
    narrow = add_by_triangle_rule(landmark_features(kernel, X[5:7]), X[40:42], X)
    stack, columns, _ = stack_leaves([wide, narrow])
    assert stack.landmarks.shape == (2, 5, 4)
    assert stack.pseudo_distances.shape == (2, 5, 4)
    for c, part in enumerate((wide, narrow)):
        one = replace(
            stack,
            landmarks=stack.landmarks[c : c + 1],
            pseudo_distances=stack.pseudo_distances[c : c + 1],
            bounds=stack.bounds[c : c + 1],
            pairs=stack.pairs[c : c + 1],
        )
        np.testing.assert_allclose(one.evaluate(X)[:, columns[c]], part.evaluate(X), rtol=1e-12)
