"""The training problems of leaves, against scikit-learn's machines on the same coordinates."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC

from widemargin._memory import MemoryPlan
from widemargin._progress import Progress
from widemargin.algorithms.ocas import train_hinges
from widemargin.nystroem import leaf_problems as local
from widemargin.nystroem.leaf_problems import DistillationProblem, HingeProblem, RidgeProblem

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(150, 4))
ROWS = np.arange(30, 150)
LABELS = np.sign(Z[:, 0] + Z[:, 1] ** 2 - 0.8 + 0.3 * RNG.normal(size=150))
PROGRESS = Progress()


def primal(w: np.ndarray, signs: np.ndarray, C: float) -> float:
    return float(0.5 * w @ w + C * np.maximum(0, 1 - signs * (Z[ROWS] @ w)).sum())


@pytest.mark.parametrize("largest", [6000, 10])
def test_hinge_machines(monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    monkeypatch.setattr(local, "_MAX_DUAL_ROWS", largest)
    signs = np.array([LABELS, -LABELS, np.ones(150)])
    fit = HingeProblem(signs, np.full(150, 2.0), 1e-4, train_hinges).fit(Z[ROWS], ROWS, PROGRESS, MemoryPlan(2**26))
    assert fit.converged
    np.testing.assert_allclose(fit.weights[0], -fit.weights[1], atol=1e-3)
    np.testing.assert_array_equal([*fit.weights[2], fit.intercept[2]], [0, 0, 0, 0, 1])
    values = [primal(w, s[ROWS], 2.0) for w, s in zip(fit.weights[:2], signs, strict=False)]
    assert fit.objective == pytest.approx(sum(values), rel=1e-4)
    assert fit.gap <= 0.01 * fit.objective
    augmented = np.hstack([Z[ROWS], np.zeros((120, 1))])
    rival = SVC(C=2.0, kernel="precomputed", tol=1e-6).fit(augmented @ augmented.T, LABELS[ROWS])
    with_intercept = rival.dual_coef_[0] @ Z[ROWS][rival.support_]
    assert values[0] <= primal(with_intercept, LABELS[ROWS], 2.0) * (1 + 1e-6)


def test_the_exact_hinge_machine() -> None:
    K = np.exp(-0.5 * np.square(Z[ROWS, None] - Z[None, ROWS]).sum(axis=2))
    task = HingeProblem(LABELS[None], np.full(150, 2.0), 1e-3, train_hinges)
    alpha, values = task.exact_solution(K, ROWS, PROGRESS)
    assert np.mean((values[0] > 0) == (LABELS[ROWS] > 0)) > 0.9
    assert np.all(values[0] * LABELS[ROWS] <= 1.1 + (alpha == 0) * 9)  # support vectors are within the margin
    assert np.all((alpha >= 0) & (alpha <= 4 + 1e-9))
    assert 0 < np.count_nonzero(alpha) < 120
    alike = HingeProblem(np.ones((1, 150)), np.full(150, 2.0), 1e-3, train_hinges).exact_solution(K, ROWS, PROGRESS)
    assert not np.any(alike.landmark_weights)
    np.testing.assert_array_equal(alike.values, np.zeros((1, 120)))


def test_ridge_machines() -> None:
    y, weights = RNG.normal(size=(2, 150)), RNG.uniform(0.5, 2, 150)
    task = RidgeProblem(y, 0.7, weights)
    fit = task.fit(Z[ROWS], ROWS, PROGRESS, MemoryPlan(2**26))
    rival = KernelRidge(alpha=0.7).fit(Z[ROWS], y[:, ROWS].T, sample_weight=weights[ROWS])
    np.testing.assert_allclose(Z[ROWS] @ fit.weights.T, rival.predict(Z[ROWS]), atol=1e-10)
    K = np.exp(-0.5 * np.square(Z[ROWS, None] - Z[None, ROWS]).sum(axis=2))
    rival = KernelRidge(alpha=0.7, kernel="precomputed").fit(K, y[:, ROWS].T, sample_weight=weights[ROWS])
    landmark_weights, values = task.exact_solution(K, ROWS, PROGRESS)
    np.testing.assert_allclose(values.T, rival.predict(K), atol=1e-10)
    np.testing.assert_allclose(landmark_weights, np.square(rival.dual_coef_).sum(axis=1), rtol=1e-8)


@pytest.mark.parametrize("rows", [np.arange(150), np.arange(3)])  # more and fewer rows than columns
@pytest.mark.parametrize("penalty", [0.7, 1e-18])
def test_ridge_machines_with_an_intercept(rows: NDArray[np.intp], penalty: float) -> None:
    """Against one linear system in the weights and the intercepts."""
    y, weights = RNG.normal(size=(2, 150)) + 5.0, RNG.uniform(0.5, 2, 150)
    task, s = RidgeProblem(y, penalty, weights, has_intercept=True), weights[rows, None]
    fit = task.fit(Z[rows], rows, PROGRESS, MemoryPlan(2**26))
    C = np.column_stack([Z[rows], np.ones(len(rows))])
    system = C.T @ (s * C) + penalty * np.diag(np.append(np.ones(Z.shape[1]), 0.0))
    if penalty < 1e-9:
        expected = (np.linalg.lstsq(np.sqrt(s) * C, np.sqrt(s) * y[:, rows].T, rcond=None)[0]).T
    else:
        expected = np.linalg.solve(system, C.T @ (s * y[:, rows].T)).T
    values = fit.weights @ Z[rows].T + fit.intercept[:, None]
    np.testing.assert_allclose(values, expected @ C.T, atol=1e-8)
    assert fit.objective == pytest.approx(float(np.sum((y[:, rows] - values) ** 2 @ s)), abs=1e-6 + penalty * 1e3)
    constant = task.constant(rows)
    np.testing.assert_allclose(constant.intercept, y[:, rows] @ s[:, 0] / s.sum())
    K = np.exp(-0.5 * np.square(Z[rows, None] - Z[None, rows]).sum(axis=2))
    if penalty > 1e-9:
        landmark_weights, exact = task.exact_solution(K, rows, PROGRESS)
        A = np.block(
            [[K + np.diag(penalty / s[:, 0]), np.ones((len(rows), 1))], [np.ones((1, len(rows))), np.zeros((1, 1))]]
        )
        solution = np.linalg.solve(A, np.vstack([y[:, rows].T, np.zeros((1, 2))]))
        np.testing.assert_allclose(landmark_weights, np.square(solution[:-1]).sum(axis=1), rtol=1e-8)
        np.testing.assert_allclose(exact.T, K @ solution[:-1] + solution[-1], atol=1e-8)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
def test_a_penalty_that_is_lost_in_the_normal_equations(shape: tuple[int, int]) -> None:
    n, n_columns = shape
    task = RidgeProblem(np.array([np.arange(n), np.ones(n)]), 1e-18, np.ones(n))
    fit = task.fit(np.ones(shape), np.arange(n), PROGRESS, MemoryPlan(2**26))
    means = np.array([[(n - 1) / 2], [1.0]])
    np.testing.assert_allclose(fit.weights, np.repeat(means / n_columns, n_columns, axis=1), atol=1e-5)


@pytest.mark.parametrize("n_columns", [4, 200])
def test_distillation(n_columns: int) -> None:
    """Exact without noise; with noise, even for more columns than rows, nearer to the truth than the mean is."""
    C = RNG.normal(size=(150, n_columns)) + 3.0
    truth = C[:, :2] @ np.array([[1.0, -2.0], [0.5, 1.0]]) + [4.0, -1.0]
    fit = DistillationProblem(truth.T, np.zeros(150)).fit(C[ROWS], ROWS, PROGRESS, MemoryPlan(2**26))
    np.testing.assert_allclose(C[ROWS] @ fit.weights.T + fit.intercept, truth[ROWS], atol=1e-2 * truth.std())
    if n_columns == 4:
        rival = LinearRegression().fit(C[ROWS], truth[ROWS])
        np.testing.assert_allclose(fit.weights, rival.coef_, atol=1e-6)
        assert fit.objective < 1e-6
    noisy = truth + RNG.normal(size=truth.shape)
    fit = DistillationProblem(noisy.T, np.zeros(150)).fit(C[ROWS], ROWS, PROGRESS, MemoryPlan(2**26))
    held = np.setdiff1d(np.arange(150), ROWS)
    error = np.square(C[held] @ fit.weights.T + fit.intercept - truth[held]).mean()
    assert error < np.square(truth[held] - truth[ROWS].mean(axis=0)).mean()


def test_distillation_of_a_constant() -> None:
    fit = DistillationProblem(np.full((1, 150), 2.5), np.zeros(150)).fit(
        np.ones((120, 3)), ROWS, PROGRESS, MemoryPlan(2**26)
    )
    np.testing.assert_allclose(np.ones((5, 3)) @ fit.weights.T + fit.intercept, 2.5)
