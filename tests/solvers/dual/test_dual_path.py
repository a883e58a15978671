"""Duals along a path of C."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin._types import Vector
from widemargin.solvers.dual.certificate import Limits
from widemargin.solvers.dual.dual_path import DualPath
from widemargin.solvers.dual.in_memory import solve_in_memory
from widemargin.solvers.dual.problem import DualProblem, regression_problem, svm_problem
from widemargin.solvers.results import DualResult

_CS = [0.1, 1.0, 1e3, 3e4]


@pytest.fixture
def K() -> Vector:
    return np.asarray(rbf_kernel(np.random.default_rng(0).normal(size=(80, 3)), gamma=2.0))


def problems() -> list[DualProblem]:
    rng = np.random.default_rng(1)
    y, weights = rng.normal(size=80), rng.uniform(0.5, 2.0, size=80)
    return [svm_problem(np.sign(y), weights, has_intercept=True), regression_problem(y, weights, 0.1)]


@pytest.mark.parametrize("problem", problems(), ids=["classification", "regression"])
def test_results_are_those_from_zero_and_stay_once_no_bound_is_reached(K: Vector, problem: DualProblem) -> None:
    limits = Limits(1e-6)
    with Progress() as progress, ThreadTeam(1) as team:

        def solve(scaled: DualProblem, beta: Vector, decision: Vector) -> DualResult:
            return solve_in_memory(K, scaled, beta, limits, team, progress, decision=decision)

        found = DualPath(problem, solve).follow(_CS, progress)
        for C, result in zip(_CS, found, strict=True):
            alone = DualPath(problem, solve).step(C)
            np.testing.assert_allclose(result.decision, alone.decision, atol=1e-4)
            np.testing.assert_allclose(result.decision, K @ result.beta, atol=1e-10)
    np.testing.assert_array_equal(found[-1].beta, found[-2].beta)
