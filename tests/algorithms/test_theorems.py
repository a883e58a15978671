"""The theorems of the papers hold for what the algorithms compute, on random problems.

DC-SVM: Theorem 3. DC-Pred++: Theorems 1 to 3, with the constants of the Gaussian kernel written out. OCAS: Theorem 1,
the bound on the number of iterations, and the improvement of the lower bound that its proof counts.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import DCSVMClassifier, OCASClassifier
from widemargin.nystroem.landmarks import select_landmarks

Vector = NDArray[np.float64]

few = settings(max_examples=12, deadline=None)
seeds = st.integers(0, 10**6)


def problem(seed: int, n: int = 60, d: int = 3) -> tuple[Vector, Vector]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) + 0.7 * y[:, None], y


def dual_variables(K: Vector, y: Vector, C: float) -> Vector:
    """alpha of the machine without intercept, to 1e-8."""
    model = DCSVMClassifier(C=C, kernel="precomputed", fit_intercept=False, tol=1e-8).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


@pytest.mark.slow
@few
@given(seeds, st.sampled_from([2, 4, 8]), st.sampled_from([0.1, 1.0, 10.0]))
def test_theorem_3_of_dc_svm(seed: int, k: int, C: float) -> None:
    X, y = problem(seed)
    K, labels = rbf_kernel(X, gamma=2.0), np.random.default_rng(seed).integers(k, size=len(y))
    K_within = K * (labels[:, None] == labels)
    alpha, local = dual_variables(K, y, C), dual_variables(K_within, y, C)
    Q = K * np.outer(y, y)
    found = np.flatnonzero((alpha > 0) | (local > 0))
    between = np.abs(K - K_within)[np.ix_(found, found)].sum()  # D over the support vectors of both

    def f(a: Vector) -> float:
        return float(0.5 * a @ Q @ a - a.sum())

    assert -1e-6 <= f(local) - f(alpha) <= 0.5 * C**2 * between + 1e-6
    assert np.sum((alpha - local) ** 2) <= C**2 * between / eigvalsh(K)[0] + 1e-6


def nystroem(X: Vector, landmarks: Vector, gamma: float) -> Vector:
    """C W^+ C': the kernel matrix approximated from landmarks."""
    C = rbf_kernel(X, landmarks, gamma=gamma)
    return np.asarray(C @ np.linalg.pinv(rbf_kernel(landmarks, gamma=gamma), rcond=1e-10) @ C.T)


def weighted_error(weights: Vector, G: Vector, approximation: Vector) -> float:
    """Delta = sum_i |a_i| |G_i - approximation_i|, over columns."""
    return float(np.abs(weights) @ np.linalg.norm(G - approximation, axis=0))


def landmarks_for(X: Vector, weights: Vector, m: int, seed: int) -> Vector:
    chosen = select_landmarks(X.astype(np.float32), m, np.random.default_rng(seed), weights=weights**2)
    return np.asarray(chosen, np.float64)


@pytest.mark.slow
@few
@given(seeds, st.sampled_from([3, 10, 30]), st.sampled_from([0.01, 1.0]))
def test_theorem_1_of_dc_pred(seed: int, m: int, lam: float) -> None:
    X, y = problem(seed)
    G = rbf_kernel(X, gamma=0.5)
    alpha = np.linalg.solve(G + lam * np.eye(len(y)), y)
    approximation = nystroem(X, landmarks_for(X, alpha, m, seed), 0.5)
    other = np.linalg.solve(approximation + lam * np.eye(len(y)), y)
    for weights in (alpha, other):
        assert np.linalg.norm(alpha - other) <= weighted_error(weights, G, approximation) / lam + 1e-8


@pytest.mark.slow
@few
@given(seeds, st.sampled_from([3, 10, 30]), st.sampled_from([0.1, 5.0]))
def test_theorem_2_of_dc_pred(seed: int, m: int, C: float) -> None:
    """|alpha - alpha'| <= theta^2 |W| (1 + rho) Delta, theta^2 = 1 / the least eigenvalue of G, whatever the landmarks.

    rho is the largest eigenvalue of G, W the inverse of the landmarks' kernel matrix; theta^2 Delta alone is enough.
    """
    X, y = problem(seed, d=8)
    G = rbf_kernel(X, gamma=0.5)
    alpha = dual_variables(G, y, C)
    landmarks = landmarks_for(X, alpha, m, seed)
    approximation = nystroem(X, landmarks, 0.5)
    other = dual_variables((approximation + approximation.T) / 2, y, C)
    sharper = weighted_error(other, G, approximation) / eigvalsh(G)[0]
    W = np.linalg.pinv(rbf_kernel(landmarks, gamma=0.5), rcond=1e-10)
    assert np.linalg.norm(alpha - other) <= sharper + 1e-5
    assert sharper <= np.linalg.norm(W, 2) * (1 + eigvalsh(G)[-1]) * sharper


@pytest.mark.slow
@few
@given(seeds, st.sampled_from([2, 8, 25]), st.sampled_from([0.05, 0.5]))
def test_theorem_3_of_dc_pred(seed: int, m: int, gamma: float) -> None:
    """Delta <= n sqrt(2 gamma D2), D2 = sum_i a_i^2 |x_i - u_(i)|^2 the weighted k-means objective; k(x, x) = 1."""
    X, y = problem(seed)
    alpha = dual_variables(rbf_kernel(X, gamma=gamma), y, 1.0)
    U = landmarks_for(X, alpha, m, seed)
    squares = np.square(X[:, None] - U).sum(axis=2).min(axis=1)
    bound = len(X) * np.sqrt(2 * gamma * np.sum(alpha**2 * squares))
    assert weighted_error(alpha, rbf_kernel(X, gamma=gamma), nystroem(X, U, gamma)) <= bound + 1e-6


def plain_ocas(X: Any, y: Vector, C: float, tol: float) -> OCASClassifier:
    return OCASClassifier(C=C / len(y), tol=tol, fit_intercept=False, acceleration=None, max_iter=10**5).fit(X, y)


@few
@given(seeds, st.sampled_from([0.2, 1.0, 30.0]), st.sampled_from([0.3, 0.05, 0.001]))
def test_theorem_1_of_ocas(seed: int, C: float, tol: float) -> None:
    """At most max(2 C / eps, 8 C^3 Q^2 / eps^2) iterations, C that of the mean loss, Q the largest norm of a row."""
    X, y = problem(seed, n=200)
    model = plain_ocas(X, y, C, tol)
    eps, Q2 = tol * model.objective_, np.square(X).sum(axis=1).max()  # objective_ is the least: F - F_t <= tol F holds
    assert model.converged_
    assert model.n_iter_ <= max(2 * C / eps, 8 * C**3 * Q2 / eps**2) + 1


@pytest.mark.parametrize("C", [1.0, 30.0, 1000.0])
def test_every_plane_improves_the_lower_bound_as_the_proof_says(C: float) -> None:
    X, y = problem(3, n=300)
    history = plain_ocas(X, y, C, 1e-4).history_
    bound, gap = np.array(history["lower_bound"]), np.array(history["objective"]) - np.array(history["lower_bound"])
    Q2 = np.square(X).sum(axis=1).max()
    least = np.minimum(gap / 2, gap**2 / (8 * C**2 * Q2))[:-1]
    assert len(bound) > 3
    assert np.all(np.diff(bound) >= least - 1e-9 * bound[-1])
