"""Newton steps on working sets: the optimum of ill-conditioned problems, and an end where precision ends."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import dual as naive
from widemargin.solvers.dual.certificate import Limits, certify
from widemargin.solvers.dual.in_memory import WORKING_SET_ROWS
from widemargin.solvers.dual.newton import solve_newton_sets
from widemargin.solvers.dual.problem import make_terms, svm_problem
from widemargin.solvers.dual.stopping import CoordinateStallTest, dual_objective_change

Vector = NDArray[np.float64]


def linear_problem(n: int, d: int, seed: int, noise: float = 1.0) -> tuple[Vector, Vector]:
    """Rows of a linear kernel of rank d, and labels that are not separable where there are many rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1, d)
    y = np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    return X @ X.T, y


def always() -> bool:
    return True


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(2, 25),
    d=st.integers(1, 6),
    C=st.sampled_from([1e-2, 1.0, 30.0]),
    size=st.sampled_from([8, 512]),
    has_intercept=st.booleans(),
)
def test_the_optimum_is_the_naive_one(seed: int, n: int, d: int, C: float, size: int, has_intercept: bool) -> None:
    K, y = linear_problem(n, d, seed)
    upper = np.full(n, C)
    terms, beta, f = make_terms(svm_problem(y, upper), K.diagonal().copy()), np.zeros(n), np.zeros(n)
    solve_newton_sets(K, terms, beta, f, size, Limits(1e-7, np.inf), always, has_intercept=has_intercept)
    np.testing.assert_allclose(f, K @ beta, atol=1e-9 * (1 + np.abs(K).max() * np.abs(beta).sum()))
    assert (terms.lo <= beta).all()
    assert (beta <= terms.hi).all()
    assert abs(beta.sum()) <= 1e-9 * (1 + np.abs(beta).sum()) or not has_intercept
    Q, p, alpha, signs = naive.signed(K, y), -np.ones(n), y * beta, y if has_intercept else None
    assert naive.violation(Q, p, upper, alpha, signs) < 1e-6
    best = naive.solve_qp(Q, p, upper, signs, tol=1e-8)
    assert naive.objective(Q, p, alpha) <= naive.objective(Q, p, best) + 1e-6 * (1 + C)


def test_it_starts_from_any_point_with_fixed_coordinates_outside() -> None:
    """f = K beta + c, where c are the terms of fixed coordinates outside the matrix."""
    K, y = linear_problem(60, 5, 1)
    rng = np.random.default_rng(0)
    terms = make_terms(svm_problem(y, np.full(60, 10.0)), K.diagonal().copy())
    beta = np.clip(rng.normal(size=60) * 5, terms.lo, terms.hi)
    outside = rng.normal(size=60)
    f = K @ beta + outside
    solve_newton_sets(K, terms, beta, f, 512, Limits(1e-8, np.inf), always, has_intercept=False)
    np.testing.assert_allclose(f, K @ beta + outside, rtol=1e-9, atol=1e-6)
    assert certify(terms, beta, f, np.empty(60), has_intercept=False, tol=1e-8).violation < 1e-6


def test_it_stops_between_steps() -> None:
    K, y = linear_problem(300, 10, 2)
    terms, asked = make_terms(svm_problem(y, np.full(300, 1e4)), K.diagonal().copy()), []
    beta, f = np.zeros(300), np.zeros(300)

    def go_on() -> bool:
        asked.append(1)
        return len(asked) < 10

    solve_newton_sets(K, terms, beta, f, 512, Limits(1e-3, np.inf), go_on, has_intercept=False)
    assert len(asked) <= 13
    np.testing.assert_allclose(f, K @ beta, rtol=1e-9, atol=1e-9 * np.abs(f).max())


@pytest.mark.parametrize("kind", ["indefinite", "float32"])
def test_a_matrix_that_is_not_semidefinite_ends_it(kind: str) -> None:
    rng = np.random.default_rng(0)
    A: Any = rng.normal(size=(80, 80))
    K = A + A.T + 10 * np.eye(80) if kind == "indefinite" else (A[:, :3] @ A[:, :3].T).astype(np.float32)
    y = np.where(rng.random(80) < 0.5, 1.0, -1.0)
    terms = make_terms(svm_problem(y, np.full(80, 1e3)), K.diagonal().astype(np.float64))
    beta, f = np.zeros(80), np.zeros(80)
    solve_newton_sets(K, terms, beta, f, 512, Limits(1e-12, np.inf), always, has_intercept=False)
    assert np.isfinite(f).all()
    assert dual_objective_change(terms, (np.zeros(80), np.zeros(80)), beta, f)[0] < 0


def test_which_problems_have_stalled() -> None:
    K, y = linear_problem(WORKING_SET_ROWS + 1, 3, 0)
    n = len(y)
    terms = make_terms(svm_problem(y, np.ones(n)), K.diagonal().copy())
    crawls, beta = CoordinateStallTest(WORKING_SET_ROWS), y * 1e-6
    f = K @ beta
    assert not crawls.observe(terms, beta, f, 1.0, 100)
    for look in range(9):
        assert not crawls.observe(terms, beta, f, 0.9, 200 + look)
    assert crawls.observe(terms, beta, f, 0.9, 300)  # ten looks without progress
    assert not crawls.observe(terms, 2 * beta, 2 * f, 0.9, 400)  # the objective falls
    for _ in range(9):
        assert not crawls.observe(terms, beta, f, 0.9, 500)
    assert not crawls.observe(terms, beta, f, 0.4, 600)  # the violation does
    assert crawls.observe(terms, beta, f, 0.4, 30 * 20 * WORKING_SET_ROWS)  # working sets end at their limit
    small = make_terms(svm_problem(y[:9], np.ones(9)), K.diagonal()[:9].copy())
    assert CoordinateStallTest(WORKING_SET_ROWS).observe(small, beta[:9], f[:9], 1.0, 5)
