"""Folds solved side by side, on entries in common: each is solved as well as alone, C by C."""

from itertools import chain
from typing import Any

import numpy as np
import pytest

from naive import kernels as naive
from widemargin import DCSVMClassifier, DCSVMClassifierCV
from widemargin._native import Stopped
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels import boxed_rows
from widemargin.kernels.active_matrix import ActiveMatrix
from widemargin.kernels.entry_precision import entry_error
from widemargin.kernels.functions import RBF
from widemargin.kernels.kernel_operator import KernelOperator
from widemargin.solvers.dual import in_memory, side_by_side, solver
from widemargin.solvers.dual.certificate import Limits
from widemargin.solvers.dual.dual_path import scale_bounds
from widemargin.solvers.dual.problem import DualProblem, regression_problem, svm_problem
from widemargin.solvers.dual.side_by_side import scaled_starts, solve_side_by_side
from widemargin.solvers.dual.solver import DualSolver, zero_point
from widemargin.solvers.results import DualResult

TOL = 1e-4
CS = 0.5, 2.0, 3.0


@pytest.fixture(params=["matrix", "local"])
def gamma(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """Of a kernel whose active set has a matrix, or whose entries are computed from the rows and kept."""
    monkeypatch.setattr(solver, "WORKING_SET_ROWS", 32)
    monkeypatch.setattr(in_memory, "WORKING_SET_ROWS", 32)
    if request.param == "matrix":
        return 2.0
    monkeypatch.setattr(solver, "LEAST_ROWS", 0)
    monkeypatch.setattr(boxed_rows, "LEAST_ROWS", 50)
    return 400.0


def make_folds(n: int, *, has_intercept: bool, is_regression: bool) -> tuple[np.ndarray, list[DualProblem]]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 3)).astype(np.float32)
    value = np.sin(9 * X[:, 0]) + 0.5 * rng.normal(size=n)
    folds = []
    for k in range(3):
        weights = rng.choice([0.5, 1.0, 1.5], size=n)
        weights[k::3] = 0.0
        if is_regression:
            folds.append(regression_problem(value, weights, 0.1, has_intercept=has_intercept))
        else:
            folds.append(svm_problem(np.where(value > 0, 1.0, -1.0), weights, has_intercept=has_intercept))
    return X, folds


def solve_path(
    X: np.ndarray, folds: list[DualProblem], gamma: float, *, n_jobs: int = 1, active_bytes: int = 2**28, **options: Any
) -> list[list[DualResult]]:
    results: list[list[DualResult]] = []
    with ThreadTeam(n_jobs) as team, Progress(**{"max_time": 60.0, **options}) as progress:
        operator = KernelOperator(RBF(gamma), make_samples(X, RBF.sample_form), team)
        matrix = ActiveMatrix(operator, active_bytes)
        for c, C in enumerate(CS):
            solvers = [
                DualSolver(operator, scale_bounds(fold, C), Limits(TOL), active_matrix=matrix, progress=progress)
                for fold in folds
            ]
            starts = [zero_point(len(X)) for _ in folds]
            if c:
                starts = scaled_starts(solvers, results[-1], C / CS[c - 1], [0.0] * len(folds))
            check_starts(solvers, [start.beta for start in starts])
            results.append(solve_side_by_side(solvers, starts))
    return results


def check_starts(solvers: list[DualSolver], starts: list[np.ndarray]) -> None:
    for one, beta in zip(solvers, starts, strict=True):
        assert (beta >= one.problem.lo).all()
        assert (beta <= one.problem.hi).all()
        if one.problem.has_intercept:
            assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()


@pytest.mark.parametrize(("has_intercept", "is_regression"), [(False, True), (True, False)])
def test_each_fold_is_solved_as_alone(gamma: float, has_intercept: bool, is_regression: bool) -> None:
    X, folds = make_folds(250, has_intercept=has_intercept, is_regression=is_regression)
    for C, together in zip(CS, solve_path(X, folds, gamma), strict=True):
        for fold, result in zip(folds, together, strict=True):
            with ThreadTeam(1) as team, Progress(max_time=60.0) as progress:
                operator = KernelOperator(RBF(gamma), make_samples(X, RBF.sample_form), team)
                own = DualSolver(
                    operator, scale_bounds(fold, C), Limits(0.1 * TOL), active_bytes=2**28, progress=progress
                )
                alone = own.solve(np.zeros(len(X)))
                np.testing.assert_allclose(result.decision, own.decision_values(result.beta), atol=1e-4)
            assert result.converged
            assert not result.beta[fold.hi == fold.lo].any()
            assert result.objective == pytest.approx(alone.objective, rel=1e-4)


@pytest.mark.slow
def test_few_rows_of_a_local_kernel_need_no_more_than_the_active_matrix() -> None:
    """Where it has room for fewer rows than those that have a matrix elsewhere."""
    X = np.random.default_rng(0).uniform(size=(9000, 2)).astype(np.float32)
    y = np.where(np.sin(9 * X[:, 0]) > X[:, 1], 1, -1)
    search = DCSVMClassifierCV([1.0, 10.0], [3000.0], kernels="rbf", cv=2, search="exact", exhaustive=True, refit=False)
    scores = [search.set_params(memory_budget=budget).fit(X, y).scores_ for budget in ("24MB", "2GB")]
    np.testing.assert_allclose(*scores, atol=1e-3)
    few, many = (DCSVMClassifier(gamma=3000.0, memory_budget=budget).fit(X, y) for budget in ("24MB", "2GB"))
    assert few.objective_ == pytest.approx(many.objective_, rel=1e-4)  # both gaps are larger


@pytest.mark.parametrize("has_weights", [False, True])
def test_coordinates_at_a_bound_are_at_the_next_one(has_weights: bool) -> None:
    """Also where C times the weight is rounded, which no change of beta must come from."""
    rng = np.random.default_rng(0)
    weights = rng.choice([0.7, 1.0, 1.3], size=900) if has_weights else np.ones(900)
    y = np.where(rng.random(900) < 0.5, 1.0, -1.0)
    X = rng.uniform(size=(900, 3)).astype(np.float32)
    with ThreadTeam(1) as team, Progress(max_time=60.0) as progress:
        operator = KernelOperator(RBF(0.1), make_samples(X, RBF.sample_form), team)
        problem = svm_problem(y, weights, has_intercept=True)
        for C, factor in ((0.1, 3.0), (0.3, 10.0 / 3.0), (0.7, 1.0 / 0.7)):
            one, next_one = (
                DualSolver(operator, scale_bounds(problem, c), Limits(TOL), active_bytes=2**28, progress=progress)
                for c in (C, C * factor)
            )
            result = one.solve(np.zeros(900))
            is_bound = (result.beta != 0.0) & ((result.beta == one.problem.lo) | (result.beta == one.problem.hi))
            (start,) = scaled_starts([next_one], [result], factor, [result.beta])
            np.testing.assert_array_equal(next_one.float64_beta, factor * result.beta)
            assert np.count_nonzero(is_bound) > 450
            check_starts([next_one], [start.beta])
            expected = np.where(result.beta > 0.0, next_one.problem.hi, next_one.problem.lo)
            np.testing.assert_array_equal(start.beta[is_bound], expected[is_bound])
            np.testing.assert_allclose(start.decision, next_one.decision_values(start.beta), atol=1e-4)


@pytest.mark.parametrize("active_bytes", [2**28, 4 * 150**2])
def test_results_do_not_depend_on_the_threads(gamma: float, active_bytes: int) -> None:
    X, folds = make_folds(600, has_intercept=True, is_regression=False)
    one, two = (solve_path(X, folds, gamma, n_jobs=n_jobs, active_bytes=active_bytes) for n_jobs in (1, 2))
    for a, b in zip(chain(*one), chain(*two), strict=True):
        np.testing.assert_array_equal(a.beta, b.beta)
        assert a.converged


def test_a_stop_returns_feasible_points_with_their_certificates(gamma: float) -> None:
    X, folds = make_folds(900, has_intercept=True, is_regression=False)
    n_calls = iter(range(10**6))
    results = solve_path(X, folds, gamma, callback=lambda _: next(n_calls) > 4)
    assert any(not result.converged for result in results[0])
    for fold, result in zip(folds, results[0], strict=True):
        assert (result.beta >= 0.5 * fold.lo).all()
        assert (result.beta <= 0.5 * fold.hi).all()
        assert result.gap >= 0.0


@pytest.mark.parametrize(("max_relative_gap", "is_loose"), [(1e-3, True), (1e-6, False)])
def test_rounds_end_by_the_gap(max_relative_gap: float, is_loose: bool) -> None:
    """A small gap ends them where the violation may be large; a large one takes them to violations far below."""
    limits = Limits(0.1, max_relative_gap)
    X, folds = make_folds(700, has_intercept=True, is_regression=False)
    with ThreadTeam(1) as team, Progress(max_time=60.0) as progress:
        operator = KernelOperator(RBF(2.0), make_samples(X, RBF.sample_form), team)
        matrix = ActiveMatrix(operator, 2**28)
        problems = [scale_bounds(fold, 3000.0) for fold in folds]
        duals = [DualSolver(operator, each, limits, active_matrix=matrix, progress=progress) for each in problems]
        results = solve_side_by_side(duals, [zero_point(len(X)) for _ in folds])
    assert all(result.converged and result.gap <= max_relative_gap * result.objective for result in results)
    assert (max(result.violation for result in results) > 1e-3) == is_loose


@pytest.mark.parametrize(("C", "is_rough"), [(1e-2, False), (30.0, True)])
def test_float64_corrects_what_could_change_gaps(C: float, is_rough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of entries with an error of 1e-5. At a small C all coordinates are at a bound, where errors change no gap."""
    X, folds = make_folds(700, has_intercept=False, is_regression=False)
    n_corrections, correct = 0, side_by_side._float64_points

    def count(*args: Any) -> Any:
        nonlocal n_corrections
        n_corrections += 1
        return correct(*args)

    monkeypatch.setattr(side_by_side, "_float64_points", count)
    with ThreadTeam(1) as team, Progress(max_time=60.0) as progress:
        operator = KernelOperator(RBF(0.1), make_samples(X, RBF.sample_form), team)
        matrix = ActiveMatrix(operator, 2**28)
        how: dict[str, Any] = {"active_matrix": matrix, "progress": progress, "entry_error": 1e-5}
        duals = [DualSolver(operator, scale_bounds(fold, C), Limits(0.01, 1e-3), **how) for fold in folds]
        results = solve_side_by_side(duals, [zero_point(len(X)) for _ in folds])
    assert all(result.converged for result in results)
    assert (n_corrections > 0) == is_rough


def test_decision_values_are_those_of_float64_where_rounding_could_change_gaps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stop meanwhile leaves the points as they are, not converged."""
    gamma, (X, folds) = 2.0, make_folds(700, has_intercept=True, is_regression=False)
    K = naive.rbf(X, X, gamma)
    with ThreadTeam(1) as team, Progress(max_time=60.0) as progress:
        samples = make_samples(X, RBF.sample_form)
        operator, error = KernelOperator(RBF(gamma), samples, team), entry_error(RBF(gamma), samples)

        def solve() -> list[DualResult]:
            matrix = ActiveMatrix(operator, 2**28)
            how: dict[str, Any] = {"active_matrix": matrix, "progress": progress, "entry_error": error}
            solvers = [DualSolver(operator, scale_bounds(fold, 3000.0), Limits(TOL, TOL), **how) for fold in folds]
            return solve_side_by_side(solvers, [zero_point(len(X)) for _ in folds])

        for result in solve():
            assert result.converged
            np.testing.assert_allclose(result.decision, K @ result.beta, atol=TOL)

        def stop(*_: Any) -> None:
            raise Stopped

        monkeypatch.setattr(side_by_side, "_float64_points", stop)
        for result in solve():
            assert not result.converged
            assert np.abs(result.decision - K @ result.beta).max() > TOL
