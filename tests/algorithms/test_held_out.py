"""Held-out decision values of all folds and Cs: as machines trained on each fold by themselves."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from naive.kernels import rbf
from naive.tuning import held_out_values
from widemargin._native import Stopped
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.algorithms import held_out
from widemargin.algorithms.held_out import Fold, HeldOutSolver
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF
from widemargin.kernels.tiles import fill_gram
from widemargin.solvers.dual.certificate import Limits
from widemargin.solvers.dual.problem import svm_problem

Vector = NDArray[np.float64]
CS, GAMMA = (0.3, 3.0, 30.0), 0.7


def make_data(n: int, n_classes: int) -> tuple[Vector, NDArray[np.intp]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), np.linspace(-1, 1, n_classes + 1)[1:-1])


def make_machines(y: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], Vector]]:
    """For every pair of classes: its rows, and signs (n,), 0 elsewhere."""
    pairs = list(combinations(range(y.max() + 1), 2))
    signs = [np.where(y == a, 1.0, np.where(y == b, -1.0, 0.0)) for a, b in pairs]
    return [(np.flatnonzero(s), s) for s in signs]


def shared(
    X: Any,
    y: Any,
    tests: list[NDArray[np.intp]],
    max_time: float | None = None,
    memory_budget: int = 2**30,
    *,
    has_intercept: bool = False,
    tol: float = 1e-7,
) -> list[Vector]:
    machines = make_machines(y)
    folds = []
    for test in tests:
        upper = np.ones(len(y))
        upper[test] = 0.0
        problems = [svm_problem(signs[rows], upper[rows], has_intercept=has_intercept) for rows, signs in machines]
        folds.append(Fold(test, problems, CS))
    with Progress(max_time=max_time) as progress, ThreadTeam(1) as team:
        solver = HeldOutSolver([rows for rows, _ in machines], Limits(tol), memory_budget, progress, team)
        return solver.held_out_values(RBF(GAMMA), make_samples(X, "distances"), folds)


@pytest.mark.slow
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_are_those_of_machines_trained_fold_by_fold(n_classes: int, has_intercept: bool) -> None:
    X, y = make_data(60, n_classes)
    tests = np.array_split(np.random.default_rng(1).permutation(60), 3)
    found = shared(X, y, tests, has_intercept=has_intercept)
    K = rbf(X, X, GAMMA)
    for test, values in zip(tests, found, strict=True):
        for p, (_, signs) in enumerate(make_machines(y)):
            wanted = held_out_values(K, signs, np.ones(60), test, CS, has_intercept=has_intercept)
            np.testing.assert_allclose(values[:, :, p], wanted, atol=1e-5)


@pytest.mark.parametrize("budget", [0, 2**30])
def test_what_a_stopped_search_has_not_solved_is_nan(budget: int) -> None:
    X, y = make_data(600, 2)
    (values,) = shared(X, y, [np.arange(100)], max_time=0.0, memory_budget=budget)
    assert values.shape == (3, 100, 1)
    assert np.isnan(values).all()


def test_a_stop_before_the_starts_of_the_next_c_leaves_the_values_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise Stopped

    monkeypatch.setattr(held_out, "scaled_starts", stop)
    X, y = make_data(1200, 2)
    for values in shared(X, y, [np.arange(100), np.arange(100, 150)], memory_budget=2**22, tol=1e-3):
        assert np.isfinite(values[0]).all()
        assert np.isnan(values[1:]).all()


@pytest.mark.slow
def test_machines_have_no_matrix_beside_that_of_all_rows_where_both_exceed_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filled: list[int] = []

    def fill(kernel: Any, samples: Any, K: Any, team: Any) -> None:
        filled.append(K.nbytes)
        fill_gram(kernel, samples, K, team)

    monkeypatch.setattr(held_out, "fill_gram", fill)
    X, y = make_data(900, 3)
    tests, n_bytes = [np.arange(300), np.arange(300, 600)], 900**2 * 4
    scarce = shared(X.astype(np.float32), y, tests, tol=1e-5, memory_budget=n_bytes + 2**20)
    assert filled == [n_bytes]
    ample = shared(X.astype(np.float32), y, tests, tol=1e-5)
    assert len(filled) == 5  # K of all rows again, and of each pair
    np.testing.assert_allclose(np.concatenate(scarce, 1), np.concatenate(ample, 1), atol=1e-3)
