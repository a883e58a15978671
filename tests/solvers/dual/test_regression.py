"""The dual with the 1-norm (regression) and with sum(beta) = s > 0 (one-class machine)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from naive import dual as naive
from widemargin._memory import MemoryPlan
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.algorithms import dc_svm_levels as dc_svm
from widemargin.algorithms.dc_svm_levels import DCSVMSettings, KernelProblem, train_machine
from widemargin.algorithms.trained_machines import TrainedMachine
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF
from widemargin.solvers.dual.certificate import Limits, certify
from widemargin.solvers.dual.in_memory import uncertified_result
from widemargin.solvers.dual.newton import solve_newton_sets
from widemargin.solvers.dual.problem import DualProblem, make_terms, one_class_problem, regression_problem, svm_problem
from widemargin.solvers.dual.subproblems import Subproblem, join_subproblems, solve_subproblems

Vector = NDArray[np.float64]
GAMMA = 0.3


def kernel_matrix(X: NDArray[Any]) -> Vector:
    return np.asarray(rbf_kernel(X.astype(np.float64), gamma=GAMMA))


def samples_of(n: int, seed: int = 0) -> tuple[Vector, Vector]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=n)


def value(K: Vector, y: Vector, epsilon: float, beta: Vector) -> float:
    return float(0.5 * beta @ K @ beta - y @ beta + epsilon * np.abs(beta).sum())


def twin(K: Vector, y: Vector, upper: Vector, epsilon: float, *, has_intercept: bool) -> Vector:
    """beta = alpha - alpha* of the textbook problem in 2 n variables."""
    Q, p = np.block([[K, -K], [-K, K]]), np.concatenate([epsilon - y, epsilon + y])
    bounds, signs = np.concatenate([upper, upper]), np.repeat([1.0, -1.0], len(y))
    both = naive.solve_qp(Q, p, bounds, signs if has_intercept else None)
    return both[: len(y)] - both[len(y) :]


def primal(K: Vector, y: Vector, upper: Vector, epsilon: float, beta: Vector, b: float, power: int = 1) -> float:
    return float(0.5 * beta @ K @ beta + upper @ np.maximum(np.abs(y - K @ beta - b) - epsilon, 0.0) ** power)


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9, 1.0])
def test_a_point_near_another_is_feasible(nu: float) -> None:
    rng = np.random.default_rng(0)
    weights, beta = rng.uniform(0.5, 2.0, 50), np.zeros(50)
    beta[:20] = weights[:20] * rng.uniform(0.1, 1.0, 20)
    problem = one_class_problem(weights, nu)
    point = problem.nearby_point(beta)
    assert point.sum() == pytest.approx(nu * weights.sum(), rel=1e-12)
    assert np.all(point >= 0)
    assert np.all(point <= weights)
    if point[20:].any():  # others are raised only where these are at their bounds
        np.testing.assert_allclose(point[:20], weights[:20])
    np.testing.assert_allclose(problem.nearby_point(point), point, rtol=1e-12, atol=1e-12)


def test_a_point_of_sum_zero_leaves_all_but_one_coordinate_at_their_bounds() -> None:
    rng = np.random.default_rng(0)
    y = np.sign(rng.normal(size=60))
    problem = svm_problem(y, rng.uniform(0.5, 2.0, 60))
    beta = np.where(rng.random(60) < 0.7, problem.lo + problem.hi, 0.0)
    point = problem.nearby_point(beta)
    assert point.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.all((problem.lo <= point) & (point <= problem.hi))
    assert np.count_nonzero((point != 0.0) & (point != problem.lo) & (point != problem.hi)) <= 1
    assert np.count_nonzero(point != beta) < 30


def fit(X: NDArray[Any], problem: DualProblem, start: Vector | None = None, **changes: Any) -> TrainedMachine:
    data = KernelProblem(RBF(GAMMA), make_samples(X, RBF.sample_form), problem)
    before = None if start is None else TrainedMachine.exact(uncertified_result(start, 0.0))
    with Progress() as progress:
        return train_machine(
            data, DCSVMSettings(**{"n_jobs": 1, **changes}), progress, np.random.default_rng(0), before=before
        )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 40),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    epsilon=st.sampled_from([0.0, 0.05, 0.5, 10.0]),
    has_intercept=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_optimum_is_that_of_the_textbook_problem(
    n: int, C: float, epsilon: float, has_intercept: bool, seed: int
) -> None:
    X, y = samples_of(n, seed)
    K, upper = kernel_matrix(X), C * np.random.default_rng(seed).uniform(0.5, 2.0, n)
    problem = regression_problem(y, upper, epsilon, has_intercept=has_intercept)
    part = join_subproblems([Subproblem(np.arange(n), problem, np.zeros(n))])
    with ThreadTeam(1) as team, Progress() as progress:
        (result,) = solve_subproblems(K, part, Limits(1e-6), team, progress)
    best = value(K, y, epsilon, twin(K, y, upper, epsilon, has_intercept=has_intercept))
    assert value(K, y, epsilon, result.beta) == pytest.approx(best, rel=1e-7, abs=1e-7)
    assert np.all(np.abs(result.beta) <= upper)
    assert abs(result.beta.sum()) < 1e-9 or not has_intercept
    assert result.converged
    assert result.objective == pytest.approx(primal(K, y, upper, epsilon, result.beta, result.intercept))
    assert result.objective - result.gap <= -best + 1e-9


@pytest.mark.parametrize(("C", "epsilon", "has_intercept"), [(1.0, 0.1, True), (50.0, 0.02, False)])
def test_rounds_on_an_active_set(
    monkeypatch: pytest.MonkeyPatch, C: float, epsilon: float, has_intercept: bool
) -> None:
    monkeypatch.setattr(dc_svm, "_FULL_MATRIX_ENTRIES", 0)
    X, y = samples_of(900)
    problem = regression_problem(y, np.full(900, C), epsilon, has_intercept=has_intercept)
    result = fit(X, problem, memory=MemoryPlan(2**22), tol=1e-4).result
    K = kernel_matrix(X)
    again = fit(X, problem, result.beta, tol=1e-7).result
    assert result.converged
    assert again.converged
    assert value(K, y, epsilon, result.beta) == pytest.approx(value(K, y, epsilon, again.beta), rel=1e-5)
    np.testing.assert_allclose(result.decision, K @ result.beta, atol=1e-7)
    assert primal(K, y, problem.hi, epsilon, again.beta, again.intercept) == pytest.approx(again.objective)
    assert again.gap < 1e-4 * again.objective


@pytest.mark.parametrize("is_squared", [False, True])
@pytest.mark.parametrize("has_intercept", [False, True])
def test_newton_sets(has_intercept: bool, is_squared: bool) -> None:
    n = 60
    X, y = samples_of(n)
    K, upper = X @ X.T, np.full(n, 1e3)  # of rank 3
    problem = regression_problem(y, upper, 0.05, has_intercept=has_intercept, is_squared=is_squared)
    terms, beta, decision = make_terms(problem, K.diagonal().copy()), np.zeros(n), np.zeros(n)
    limits = Limits(1e-9, np.inf)
    solve_newton_sets(K, terms, beta, decision, 512, limits, lambda: True, has_intercept=has_intercept)
    found = certify(terms, beta, decision, np.empty(n), has_intercept=has_intercept, tol=1e-9)
    assert found.violation < 1e-8
    assert 0 <= found.gap < (1e-9 if is_squared else 1e-6) * found.primal_objective
    objective = primal(K, y, upper, 0.05, beta, found.intercept, 2 if is_squared else 1)
    assert objective == pytest.approx(found.primal_objective)


@pytest.mark.parametrize("n", [80, 1500])
def test_a_sum_that_is_not_zero(n: int) -> None:
    X, _ = samples_of(n)
    K, nu = kernel_matrix(X), 0.3
    start = np.zeros(n)
    start[: int(nu * n)] = 1.0
    problem = DualProblem(np.zeros(n), np.zeros(n), np.ones(n), has_intercept=True)
    result = fit(X, problem, start).result
    assert result.converged
    assert result.beta.sum() == pytest.approx(nu * n)
    score = K @ result.beta + result.intercept
    objective = 0.5 * result.beta @ K @ result.beta + nu * n * result.intercept + np.maximum(0.0, -score).sum()
    assert result.objective == pytest.approx(objective, rel=1e-6)
    assert np.mean(score < 0) == pytest.approx(nu, abs=0.02)


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 40),
    C=st.sampled_from([1e-3, 1.0, 1e3]),
    epsilon=st.sampled_from([0.0, 0.1, 1.0]),
    has_intercept=st.booleans(),
    seed=st.integers(0, 99),
)
@example(n=5, C=1e-3, epsilon=1.0, has_intercept=True, seed=25)  # Newton steps alone go to and fro
def test_certificate_of_squared_losses(n: int, C: float, epsilon: float, has_intercept: bool, seed: int) -> None:
    """At a point near zero, where all residuals are within what the bounds allow."""
    X, y = samples_of(n, seed)
    rng, y = np.random.default_rng(seed), y + 3.0
    K, upper = kernel_matrix(X), C * rng.uniform(0.5, 2.0, n)
    problem = regression_problem(y, upper, epsilon, has_intercept=has_intercept, is_squared=True)
    beta = 1e-3 * min(1.0, C) * rng.normal(size=n)
    beta -= has_intercept * beta.mean()
    terms = make_terms(problem, K.diagonal().copy())
    found = certify(terms, beta, K @ beta, np.empty(n), has_intercept=has_intercept, tol=1e-3)
    dual_value = value(K + np.diag(0.5 / upper), y, epsilon, beta)
    assert found.lower_bound == pytest.approx(-dual_value, rel=1e-9, abs=1e-12 * (1 + found.primal_objective))
    b = found.intercept
    if primal(K, y, upper, epsilon, 0 * beta, b, 2) > primal(K, y, upper, epsilon, beta, b, 2):
        assert found.primal_objective == pytest.approx(primal(K, y, upper, epsilon, beta, b, 2), rel=1e-9, abs=1e-12)
    if has_intercept:
        around = [primal(K, y, upper, epsilon, beta, b + step, 2) for step in (-1e-4, 1e-4)]
        assert primal(K, y, upper, epsilon, beta, b, 2) <= min(around) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("C", "epsilon", "budget", "has_intercept"), [(1.0, 0.0, 2**20, False), (50.0, 0.1, 2**22, True)]
)
def test_squared_losses_on_an_active_set(
    monkeypatch: pytest.MonkeyPatch, C: float, epsilon: float, has_intercept: bool, budget: int
) -> None:
    monkeypatch.setattr(dc_svm, "_FULL_MATRIX_ENTRIES", 0)
    X, y = samples_of(900)
    upper = np.full(900, C)
    problem = regression_problem(y, upper, epsilon, has_intercept=has_intercept, is_squared=True)
    K = kernel_matrix(X)
    for levels in (0, 1):
        result = fit(X.astype(np.float32), problem, memory=MemoryPlan(budget), tol=1e-5, n_levels=levels).result
        assert result.converged
        assert result.gap < 1e-6 * result.objective
        found = primal(K, y, upper, epsilon, result.beta, result.intercept, 2)
        assert found == pytest.approx(result.objective, rel=1e-4)


def test_an_intercept_that_any_of_many_would_be_is_their_midpoint() -> None:
    """Within a tube wider than all targets no loss depends on it."""
    y, upper = samples_of(30)[1], np.full(30, 2.0)
    terms = make_terms(regression_problem(y, upper, 50.0, has_intercept=True, is_squared=True), np.ones(30))
    found = certify(terms, np.zeros(30), np.zeros(30), np.empty(30), has_intercept=True, tol=1e-3)
    assert found.intercept == pytest.approx(0.5 * (y.min() + y.max()))
    assert found.primal_objective == found.gap == 0.0
