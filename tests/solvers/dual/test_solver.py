"""The dual solver: optimal, feasible, with a true certificate, within any memory and at any stop."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from naive import dual as naive
from widemargin._native import Stopped
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.data.samples import GramSamples, make_samples
from widemargin.kernels.functions import RBF, CallableKernel, Precomputed
from widemargin.kernels.kernel_operator import KernelOperator
from widemargin.kernels.tiles import entry_work
from widemargin.solvers.dual import in_memory
from widemargin.solvers.dual import solver as dual
from widemargin.solvers.dual.certificate import Limits
from widemargin.solvers.dual.problem import make_terms, one_class_problem, svm_problem
from widemargin.solvers.dual.solver import DualSolver
from widemargin.solvers.dual.stopping import dual_objective_change
from widemargin.solvers.results import DualResult

Vector = NDArray[np.float64]
PLENTY = 2**30


@pytest.fixture
def tiny_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets of 16 rows, so that small problems go through every round and carry-over."""
    monkeypatch.setattr(dual, "WORKING_SET_ROWS", 16)
    monkeypatch.setattr(in_memory, "WORKING_SET_ROWS", 16)


class Problem(NamedTuple):
    X: NDArray[np.floating]
    y: Vector
    upper: Vector
    gamma: float

    @property
    def K(self) -> NDArray[np.float64]:
        return np.asarray(rbf_kernel(self.X.astype(np.float64), gamma=self.gamma))


def make_problem(
    n: int = 60, *, C: float = 1.0, gamma: float = 0.3, noise: float = 1.0, dtype: type = np.float64, seed: int = 0
) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(dtype)
    y = np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    return Problem(X, y, C * rng.choice([0.5, 1.0, 1.5], size=n), gamma)


def make_solver(
    problem: Problem,
    team: ThreadTeam,
    progress: Progress,
    *,
    has_intercept: bool = False,
    tol: float = 1e-3,
    active_bytes: int = PLENTY,
    max_iter: int = -1,
    rows: KernelOperator | None = None,
    **more: Any,
) -> DualSolver:
    rows = rows or KernelOperator(RBF(problem.gamma), make_samples(problem.X, RBF.sample_form), team)
    dual_problem = svm_problem(problem.y, problem.upper, has_intercept=has_intercept)
    limits = Limits(tol, max_iter=max_iter)
    return DualSolver(rows, dual_problem, limits, active_bytes=active_bytes, progress=progress, **more)


def solve(
    problem: Problem, *, start: Vector | None = None, n_jobs: int = 1, max_time: float = 60.0, **options: Any
) -> DualResult:
    with ThreadTeam(n_jobs) as team, Progress(max_time=max_time) as progress:
        solver = make_solver(problem, team, progress, **options)
        return solver.solve(np.zeros(len(problem.y)) if start is None else start)


def check_feasible(problem: Problem, beta: Vector, has_intercept: bool) -> Vector:
    alpha = problem.y * beta
    assert (alpha >= 0).all()
    assert (alpha <= problem.upper).all()
    if has_intercept:
        assert abs(beta.sum()) <= 1e-9 * (1 + alpha.sum())
    return alpha


def check_certificate(problem: Problem, result: DualResult, has_intercept: bool, *, atol: float = 1e-8) -> None:
    """The point is feasible, and its certificate is the naive twin's."""
    alpha, K = check_feasible(problem, result.beta, has_intercept), problem.K
    size = 1 + alpha.sum()
    np.testing.assert_allclose(result.decision, K @ result.beta, atol=atol * size)
    Q, p = naive.signed(K, problem.y), -np.ones(len(alpha))
    worst = naive.violation(Q, p, problem.upper, alpha, problem.y if has_intercept else None)
    assert result.violation == pytest.approx(worst, abs=2 * atol * size)
    primal = naive.primal(K, problem.y, problem.upper, alpha, result.intercept)
    gap = naive.dual_gap(K, problem.y, problem.upper, alpha, result.intercept)
    total = problem.upper.sum()
    assert result.objective == pytest.approx(primal, rel=1e-6, abs=10 * atol * size * total)
    assert result.gap == pytest.approx(gap, rel=1e-6, abs=10 * atol * size * total)
    assert result.gap >= 0


def optimum(problem: Problem, has_intercept: bool) -> float:
    Q, p = naive.signed(problem.K, problem.y), -np.ones(len(problem.y))
    return naive.objective(Q, p, naive.solve_qp(Q, p, problem.upper, problem.y if has_intercept else None, tol=1e-9))


def dual_value(result: DualResult) -> float:
    return result.gap - result.objective


# --- the optimum -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tiny_tiles")
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("active_rows", [0, 20, 60])
def test_the_optimum_does_not_depend_on_what_fits_in_memory(active_rows: int, has_intercept: bool) -> None:
    problem = make_problem(60)
    result = solve(problem, has_intercept=has_intercept, tol=1e-5, active_bytes=8 * active_rows**2)
    check_certificate(problem, result, has_intercept)
    assert result.converged
    assert dual_value(result) == pytest.approx(optimum(problem, has_intercept), rel=1e-6)


def test_few_of_a_class_among_many_with_an_intercept() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9000, 2)), np.full(9000, -1.0)
    y[[10, 4000, 8000]] = 1
    X[y > 0] += 3
    result = solve(Problem(X, y, np.ones(9000), 0.5), has_intercept=True)
    assert result.converged
    assert np.count_nonzero(result.beta[y > 0]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("quantile", [dual._CHANGE_QUANTILE, 0.0])
@pytest.mark.parametrize("has_intercept", [False, True])
def test_rounds_on_the_rows_near_the_margin_reach_the_same_optimum(
    has_intercept: bool, quantile: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the rows left out are too many: with the quantile 0 all that do not violate."""
    problem = make_problem(4000, C=2.0, gamma=0.5, noise=0.2)
    sizes: list[int] = []
    original = DualSolver._solve_shrunk

    def watched(solver: DualSolver, point: Any, certificate: Any, near: Any) -> Any:
        sizes.append(len(near))
        return original(solver, point, certificate, near)

    monkeypatch.setattr(DualSolver, "_solve_shrunk", watched)
    monkeypatch.setattr(dual, "_CHANGE_QUANTILE", quantile)
    near = solve(problem, has_intercept=has_intercept, tol=1e-5)
    assert sizes
    assert max(sizes) <= 2000
    monkeypatch.setattr(dual, "_UNSHRUNK_SHARE", 0.0)
    n_near = len(sizes)
    whole = solve(problem, has_intercept=has_intercept, tol=1e-5)
    assert len(sizes) == n_near
    assert near.converged
    assert dual_value(near) == pytest.approx(dual_value(whole), rel=1e-7)
    check_certificate(problem, near, has_intercept)


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-12, 1e-5, 1e5])
def test_extreme_bounds(C: float, has_intercept: bool) -> None:
    problem = make_problem(30, C=C, gamma=2.0)
    result = solve(problem, has_intercept=has_intercept)
    check_feasible(problem, result.beta, has_intercept)
    assert result.violation < 1e-3
    assert result.gap <= 1e-3 * result.objective


@pytest.mark.parametrize("has_intercept", [False, True])
def test_one_class_only(has_intercept: bool) -> None:
    """With an intercept only beta = 0 is feasible, and it is the optimum."""
    problem = make_problem(20)._replace(y=np.ones(20))
    result = solve(problem, has_intercept=has_intercept)
    assert result.converged
    assert np.isfinite([result.intercept, result.objective, result.gap]).all()
    if has_intercept:
        assert not result.beta.any()


# --- starting and stopping -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tiny_tiles")
@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_start_at_the_optimum_needs_no_working_set(has_intercept: bool) -> None:
    problem = make_problem(50)
    first = solve(problem, has_intercept=has_intercept)
    again = solve(problem, has_intercept=has_intercept, start=first.beta)
    assert first.n_iter > 0
    assert again.n_iter == 0
    assert again.converged
    np.testing.assert_array_equal(again.beta, first.beta)
    check_certificate(problem, again, has_intercept)


def test_the_start_is_not_changed_and_its_decision_values_may_be_given() -> None:
    problem = make_problem(40)
    start = 0.5 * problem.y * problem.upper
    decision = problem.K @ start
    before = start.copy(), decision.copy()
    with ThreadTeam(1) as team, Progress() as progress:
        given_values = make_solver(problem, team, progress).solve(start, (np.arange(40), decision))
        computed = make_solver(problem, team, progress).solve(start)
    np.testing.assert_array_equal(start, before[0])
    np.testing.assert_array_equal(decision, before[1])
    for result in (given_values, computed):
        check_certificate(problem, result, False)
    assert dual_value(given_values) == pytest.approx(dual_value(computed), rel=1e-9)


@pytest.mark.usefixtures("tiny_tiles")
@pytest.mark.parametrize("after", [0, 1, 3, 8])
@pytest.mark.parametrize(("dtype", "has_intercept"), [(np.float32, True), (np.float64, False)])
def test_the_certificate_holds_whenever_the_solver_is_stopped(dtype: type, after: int, has_intercept: bool) -> None:
    problem = make_problem(100, C=10.0, noise=0.5, dtype=dtype)
    calls: Iterator[int] = iter(range(10**9))
    with ThreadTeam(1) as team, Progress(callback=lambda state: next(calls) >= after) as progress:
        result = make_solver(problem, team, progress, has_intercept=has_intercept, tol=1e-9).solve(np.zeros(100))
    check_certificate(problem, result, has_intercept, atol=1e-6 if dtype == np.float32 else 1e-8)
    assert not result.converged
    assert result.objective <= problem.upper.sum() + 1e-9, "no worse than the machine that says nothing"
    assert progress.stopped_by == "callback"


@pytest.mark.usefixtures("tiny_tiles")
@pytest.mark.parametrize("max_iter", [0, 1, 4])
def test_max_iter_counts_working_sets(max_iter: int) -> None:
    problem = make_problem(100, C=10.0)
    result = solve(problem, max_iter=max_iter, tol=1e-9)
    assert result.n_iter == max_iter
    assert not result.converged
    check_certificate(problem, result, False)


@pytest.mark.usefixtures("tiny_tiles")
@pytest.mark.parametrize("has_intercept", [False, True])
def test_the_lower_bound_never_falls(has_intercept: bool) -> None:
    history = solve(make_problem(100, C=5.0), has_intercept=has_intercept).history.as_arrays()
    assert len({len(column) for column in history.values()}) == 1
    assert np.diff(history["lower_bound"]).min() >= -1e-9
    assert (history["objective"] >= history["lower_bound"]).all()


def test_a_small_problem_stopped_below_the_users_tol_has_converged() -> None:
    problem = make_problem(40, C=10.0)
    seen: list[float] = []

    def stop_when_good(state: dict[str, float]) -> bool:
        seen.append(state.get("violation", np.inf))
        return seen[-1] < 0.1

    with ThreadTeam(1) as team, Progress(callback=stop_when_good) as progress:
        result = make_solver(problem, team, progress, tol=0.1).solve(np.zeros(40))
    assert result.violation < 0.1
    assert result.converged


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_kernel_that_returns_no_numbers_is_an_error(bad: float, has_intercept: bool) -> None:
    def broken(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
        K = A @ B.T
        K[K > 4] = bad
        return K

    problem = make_problem(40)
    with ThreadTeam(1) as team, Progress(max_time=5.0) as progress:
        rows = KernelOperator(CallableKernel(broken), make_samples(problem.X), team)
        with pytest.raises(ValueError, match="kernel"):
            make_solver(problem, team, progress, has_intercept=has_intercept, rows=rows).solve(np.zeros(40))


@pytest.mark.usefixtures("tiny_tiles")
@pytest.mark.parametrize("has_intercept", [False, True])
def test_refining_first_gives_the_same_solution(has_intercept: bool) -> None:
    """The leading coordinates are solved alone; the whole goes on from their solution and decision values."""
    problem = make_problem(100)
    m = 40
    leading = Problem(problem.X[:m], problem.y[:m], problem.upper[:m], problem.gamma)
    with ThreadTeam(2) as team, Progress(max_time=60.0) as progress:
        solver, part = (make_solver(p, team, progress, has_intercept=has_intercept) for p in (problem, leading))
        refined = part.solve_sharing_memory(solver, np.arange(m), np.zeros(m))
        np.testing.assert_allclose(refined.decision, problem.K[:m, :m] @ refined.beta, atol=1e-9)
        result = solver.solve(np.concatenate([refined.beta, np.zeros(100 - m)]), (np.arange(m), refined.decision))
    check_certificate(problem, result, has_intercept)
    assert result.converged
    exact = solve(problem, has_intercept=has_intercept, tol=1e-6)
    assert result.objective - result.gap <= exact.objective
    assert result.objective >= exact.objective - exact.gap


@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_solution_by_coarse_entries_is_corrected(has_intercept: bool, tiny_tiles: None) -> None:
    """Entries with errors of 1e-4 cannot certify a violation below tol; exact decision values can."""
    problem, noise = make_problem(200, C=10.0), np.random.default_rng(0).normal(size=(200, 200))
    coarse = problem.K + 1e-4 * (noise + noise.T) / np.sqrt(2)
    with ThreadTeam(1) as team, Progress() as progress:
        rows = KernelOperator(Precomputed(), GramSamples(coarse, np.arange(200)), team)
        solver = make_solver(problem, team, progress, has_intercept=has_intercept, rows=rows, entry_error=1e-4)
        rough = solver.solve(np.zeros(200))
        rough_error = solver.decision_error(rough.beta)
        assert rough_error > 0.25e-3
        with pytest.raises(AssertionError):
            check_certificate(problem, rough, has_intercept, atol=1e-6)
        fine = solver.continue_from(rough, problem.K @ rough.beta)
    check_certificate(problem, fine, has_intercept, atol=1e-6)
    assert fine.converged
    assert 0 < solver.decision_error(fine.beta) < 0.1 * rough_error  # that of the change alone
    assert fine.n_iter > rough.n_iter


@pytest.mark.parametrize(("has_intercept", "is_sorted"), [(False, True), (True, False), (True, True)])
def test_stopped_at_the_start_it_keeps_some_support_vectors(
    has_intercept: bool, is_sorted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_problem(400, C=0.02)
    if is_sorted:
        order = np.argsort(problem.y)
        problem = problem._replace(X=problem.X[order], y=problem.y[order], upper=problem.upper[order])
    with ThreadTeam(1) as team:
        start = make_solver(problem, team, Progress(), has_intercept=has_intercept).solve(np.zeros(400)).beta
        monkeypatch.setattr(dual, "WORK_PER_CHECK", entry_work(100 * 400, 3))  # 100 rows
        with Progress(max_time=0) as progress:
            result = make_solver(problem, team, progress, has_intercept=has_intercept).solve(start)
    kept = np.flatnonzero(result.beta)
    assert 0 < len(kept) < np.count_nonzero(start)
    assert np.all((np.abs(result.beta) <= np.abs(start) + 1e-15) & (result.beta * start >= 0))
    assert not has_intercept or abs(result.beta.sum()) < 1e-9
    np.testing.assert_allclose(result.decision, problem.K @ result.beta, atol=1e-9)
    assert not result.converged
    assert result.objective <= problem.upper.sum()


@pytest.mark.usefixtures("tiny_tiles")
@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_first_update_that_is_stopped_gives_a_point_with_its_own_decision_values(
    has_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_problem(400, C=0.02)

    def stop(*_: Any) -> None:
        raise Stopped

    with ThreadTeam(1) as team, Progress() as progress:
        solver = make_solver(problem, team, progress, has_intercept=has_intercept)
        monkeypatch.setattr(solver, "_n_checks", lambda rows: 3)  # a quarter of the support vectors
        monkeypatch.setattr(solver, "_add_product", stop)
        result = solver.solve(np.zeros(400))
    assert result.beta.any()
    check_certificate(problem, result, has_intercept)


def test_stopped_at_the_start_it_has_no_certificate_where_zero_is_not_feasible(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = one_class_problem(np.ones(400), 0.5)
    monkeypatch.setattr(dual, "WORK_PER_CHECK", entry_work(100 * 400, 3))  # 100 rows
    with ThreadTeam(1) as team, Progress(max_time=0) as progress:
        rows = KernelOperator(RBF(0.3), make_samples(make_problem(400).X, RBF.sample_form), team)
        solver = DualSolver(rows, problem, Limits(1e-3), active_bytes=PLENTY, progress=progress)
        result = solver.solve(problem.sparse_point())
    np.testing.assert_array_equal(result.beta, problem.sparse_point())
    assert not result.has_certificate
    assert not result.converged
    assert result.gap == result.violation == np.inf
    assert result.lower_bound == -np.inf


def test_a_change_of_the_objective_counts_fixed_coordinates() -> None:
    problem = make_problem(30)
    K, y, p = problem.K, problem.y, np.arange(10)
    beta, new = y * problem.upper * 0.5, y * problem.upper * 0.5
    new[p] *= 0.3
    terms = make_terms(svm_problem(y, problem.upper).take(p), np.ones(10))
    change, _ = dual_objective_change(terms, (beta[p], (K @ beta)[p]), new[p], (K @ new)[p])
    values = [0.5 * point @ K @ point - y @ point for point in (beta, new)]
    assert change == pytest.approx(values[1] - values[0], rel=1e-12)
