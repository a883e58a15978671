"""Problems on parts of one kernel matrix: as each by itself, whatever the threads and the slices of time."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from naive import dual as naive
from widemargin._native import dual
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF
from widemargin.solvers.dual import subproblems
from widemargin.solvers.dual.certificate import Limits
from widemargin.solvers.dual.problem import svm_problem
from widemargin.solvers.dual.subproblems import (
    Subproblem,
    join_subproblems,
    solve_on_full_matrix,
    solve_subproblems,
)
from widemargin.solvers.results import DualResult, DualResults

Vector = NDArray[np.float64]


def make_matrix(n: int, gamma: float = 0.3, dtype: Any = np.float64) -> NDArray[Any]:
    return rbf_kernel(np.random.default_rng(0).normal(size=(n, 3)), gamma=gamma).astype(dtype)


def make_parts(n: int, sizes: list[int], C: float = 1.0, *, has_intercept: bool = False) -> list[Subproblem]:
    rng = np.random.default_rng(1)
    parts = []
    for size in sizes:
        y = np.where(rng.random(size) < 0.5, 1.0, -1.0)
        y[:2] = 1, -1
        problem = svm_problem(y, np.full(size, C), has_intercept=has_intercept)
        parts.append(Subproblem(rng.permutation(n)[:size], problem, np.zeros(size)))
    return parts


def solve(K: NDArray[Any], parts: list[Subproblem], n_jobs: int = 1, max_iter: int = -1) -> DualResults:
    limits = Limits(1e-3, max_iter=max_iter)
    with ThreadTeam(n_jobs) as team, Progress() as progress:
        return solve_subproblems(K, join_subproblems(parts), limits, team, progress)


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_is_solved_as_by_itself(has_intercept: bool, dtype: Any) -> None:
    K, parts = make_matrix(80, dtype=dtype), make_parts(80, [40, 3, 80, 25], has_intercept=has_intercept)
    for part, result in zip(parts, solve(K, parts), strict=True):
        square = K[np.ix_(part.rows, part.rows)].astype(np.float64)
        y, upper = part.problem.target, part.problem.hi - part.problem.lo
        Q, p, alpha = naive.signed(square, y), -np.ones(len(y)), y * result.beta
        assert naive.violation(Q, p, upper, alpha, y if has_intercept else None) < 1e-6
        assert result.converged
        np.testing.assert_allclose(result.decision, square @ result.beta, atol=1e-6)
        assert abs(result.beta.sum()) < 1e-9 or not has_intercept


@pytest.mark.slow
def test_threads_and_slices_of_time_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    K, parts = make_matrix(700), make_parts(700, [600, 550, 30, 700], C=10.0)
    whole = solve(K, parts)
    monkeypatch.setattr(subproblems, "SECONDS_PER_CHECK", 1e-4)
    for n_jobs in (1, 2, 3):
        for one, other in zip(whole, solve(K, parts, n_jobs), strict=True):
            np.testing.assert_array_equal(one.beta, other.beta)
            assert one.n_iter == other.n_iter


def test_a_start_at_the_optimum_needs_no_working_set() -> None:
    K, parts = make_matrix(60), make_parts(60, [60, 30])
    solved = solve(K, parts)
    again = solve(K, [part._replace(start=result.beta) for part, result in zip(parts, solved, strict=True)])
    assert [result.n_iter for result in again] == [0, 0]


def test_working_sets_are_limited() -> None:
    K, parts = make_matrix(700), make_parts(700, [700, 600], C=1e4)
    results = solve(K, parts, max_iter=2)
    assert [result.n_iter for result in results] == [2, 2]
    assert not any(result.converged for result in results)
    assert all(result.gap > 0 for result in results)


def solve_coarse(max_iter: int = -1) -> tuple[NDArray[np.float32], Vector, DualResult]:
    """Rows, labels and solution of a problem whose violations float32 entries hide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 0, 1.0, -1.0)
    part = join_subproblems([Subproblem(np.arange(300), svm_problem(y, np.full(300, 3e4)), np.zeros(300))])
    samples, limits = make_samples(X, RBF.sample_form), Limits(1e-3, max_iter=max_iter)
    with ThreadTeam(1) as team, Progress() as progress:
        return X, y, solve_on_full_matrix(RBF(0.3), samples, part, limits, team, progress)[0]


def test_violations_that_float32_hides_are_solved_in_float64() -> None:
    X, y, result = solve_coarse()
    K = rbf_kernel(X.astype(np.float64), gamma=0.3)
    assert len(result.history) == 2
    assert naive.violation(naive.signed(K, y), -np.ones(300), np.full(300, 3e4), y * result.beta) < 1.01e-3


def test_what_is_not_corrected_in_time_has_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    original = subproblems.solve_subproblems

    def solve_and_stop(*arguments: Any, **how: Any) -> DualResults:
        results = original(*arguments, **how)
        arguments[-1]._stop("max_time")
        return results

    monkeypatch.setattr(subproblems, "solve_subproblems", solve_and_stop)
    result = solve_coarse()[2]
    assert len(result.history) == 1
    assert not result.converged


@pytest.mark.parametrize("max_iter", [1, 20])
def test_working_sets_of_both_precisions_count(max_iter: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In `n_iter`, and towards `max_iter`."""
    advance, n_sets = subproblems._Batch.advance, 0

    def count(batch: Any, team: ThreadTeam, seconds_left: float) -> bool:
        nonlocal n_sets
        before = batch.sets.sum()
        is_left = advance(batch, team, seconds_left)
        n_sets += batch.sets.sum() - before
        return is_left

    monkeypatch.setattr(subproblems._Batch, "advance", count)
    result = solve_coarse(max_iter)[2]
    assert len(result.history) == 2
    assert result.n_iter == n_sets <= max_iter


def test_nan_in_the_kernel_is_an_error() -> None:
    K = make_matrix(20)
    K[3, 4] = K[4, 3] = np.nan
    with pytest.raises(ValueError, match="kernel must be finite"):
        solve(K, make_parts(20, [20], C=100.0))


def test_lying_arguments_are_refused() -> None:
    K, n = np.eye(5), 4
    terms = dual.SeparableTerms(*(np.ones(n) * s for s in (1.0, -1.0, 1.0, 1.0)))
    rows, starts, beta, f = np.arange(n), np.array([0, 2, n]), np.zeros(n), np.zeros(n)
    for wrong in ([0, 1, 2, 5], [0, 1, 2, -1]):
        with pytest.raises(IndexError):
            dual.Subproblems64(K, np.array(wrong), starts, terms, beta, f, False)
    for wrong in ([0, 3, 2, n], [1, n], [0, 3], []):
        with pytest.raises(ValueError, match="starts"):
            dual.Subproblems64(K, rows, np.array(wrong, np.int64), terms, beta, f, False)
    with pytest.raises(TypeError):
        dual.Subproblems64(K.astype(np.float32), rows, starts, terms, beta, f, False)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_pairs_without_time_are_machines_of_their_classes_means(has_intercept: bool) -> None:
    """The point of the smallest dual along its gradient at zero, and its certificate; an empty problem stays empty."""
    K, parts = make_matrix(80), make_parts(80, [40, 3, 80], C=0.02, has_intercept=has_intercept)
    parts.append(Subproblem(np.empty(0, np.intp), parts[0].problem.take(slice(0, 0)), np.empty(0)))
    with ThreadTeam(1) as team, Progress(max_time=0) as progress:
        results = solve_subproblems(K, join_subproblems(parts), Limits(1e-3), team, progress)
    for part, result in zip(parts[:3], results, strict=False):
        square, y = K[np.ix_(part.rows, part.rows)], part.problem.target
        step = y - y.mean() if has_intercept else y
        room = np.min(np.where(step > 0, part.problem.hi, part.problem.lo) / step)
        beta = min(y @ step / (step @ square @ step), room) * step
        np.testing.assert_allclose(result.beta, beta, atol=1e-14)
        np.testing.assert_allclose(result.decision, square @ beta, atol=1e-12)
        objective = 0.5 * beta @ square @ beta
        objective += 0.02 * np.maximum(0.0, 1.0 - y * (square @ beta + result.intercept)).sum()
        assert result.objective == pytest.approx(objective)
        assert 0.0 <= result.gap < 0.02 * len(y)  # that of zero
        assert result.converged == (result.violation < 1e-3)
