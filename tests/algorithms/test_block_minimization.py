"""Parallel block minimisation: the optimum of one machine, by rounds that never raise the objective."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.svm import SVC, SVR, OneClassSVM

from tests.naive.block_minimization import minimize_blocks
from widemargin._progress import Progress
from widemargin.algorithms import block_minimization, dc_svm
from widemargin.algorithms.block_minimization import BlockMinimizer, RoundSettings
from widemargin.algorithms.dc_svm import KernelProblem
from widemargin.data import LostBlockError
from widemargin.kernels.functions import RBF
from widemargin.solvers.dual import variable_block as block_module
from widemargin.solvers.dual.certificate import Limits
from widemargin.solvers.dual.problem import DualProblem, one_class_problem, regression_problem, svm_problem
from widemargin.solvers.dual.variable_block import Block

RNG = np.random.default_rng(0)
N, GAMMA, C = 150, 0.5, 2.0
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)
VALUES = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=N)
INDEX = [np.sort(part) for part in np.array_split(RNG.permutation(N), 3)]
PROBLEMS = {
    "svm": svm_problem(Y, np.full(N, C)),
    "svm with intercept": svm_problem(Y, np.full(N, C), has_intercept=True),
    "regression": regression_problem(VALUES, np.full(N, C), 0.1),
    "regression with intercept": regression_problem(VALUES, np.full(N, C), 0.1, has_intercept=True),
    "squared losses": regression_problem(VALUES, np.full(N, C), 0.1, is_squared=True),
    "squared losses with intercept": regression_problem(
        VALUES, np.full(N, C), 0.1, has_intercept=True, is_squared=True
    ),
    "one class": one_class_problem(np.ones(N), 0.3),
}


class LocalBlocks:
    """Blocks in this process; `lose` names the blocks that are made anew before the k-th call."""

    def __init__(
        self, problem: DualProblem, settings: block_module.BlockSettings, lose: dict[int, int] | None = None
    ) -> None:
        self.make = lambda p: Block(p, X[INDEX[p]], RBF(GAMMA), problem.take(INDEX[p]), settings)
        self.blocks = [self.make(p) for p in range(len(INDEX))]
        self.lose = lose or {}
        self.n_calls = 0

    def __len__(self) -> int:
        return len(self.blocks)

    def run(self, function: Callable[..., Any], *args: Any, only: Sequence[int] | None = None) -> list[Any]:
        self.n_calls += 1
        if self.n_calls in self.lose:
            p = self.lose[self.n_calls]
            self.blocks[p] = self.make(p)
        return [function(self.blocks[p], *args) for p in (range(len(self)) if only is None else only)]

    def fetch(self, handles: list[Any]) -> list[Any]:
        return handles


def solve_alone(kernel: Any, samples: Any, problem: DualProblem, progress: Progress) -> NDArray[np.float64]:
    data = KernelProblem(kernel, samples, problem)
    return dc_svm.approximate_solution(data, dc_svm.DCSVMSettings(n_jobs=1), progress)


def minimize(name: str, lose: dict[int, int] | None = None, from_zero: bool = False, **changes: Any) -> Any:
    problem = PROBLEMS[name]
    start = block_module.start_at_zero if from_zero else solve_alone
    blocks = LocalBlocks(problem, block_module.BlockSettings(2**28, 1, start=start), lose)
    with Progress() as progress:
        settings = RoundSettings(Limits(**{"tol": 1e-5, "max_relative_gap": 1e-6, **changes}))
        return BlockMinimizer(blocks, problem, INDEX, settings, progress).solve(problem.sparse_point())


def dual_objective(problem: DualProblem, beta: NDArray[np.float64]) -> float:
    K = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    if problem.curvature is not None:
        K += np.diag(problem.curvature)
    return float(0.5 * beta @ K @ beta - problem.target @ beta + problem.epsilon * np.abs(beta).sum())


def optimum_of_libsvm(name: str) -> float | None:
    """The optimal dual objective; LIBSVM always has an intercept."""
    how = {"C": C, "gamma": GAMMA, "tol": 1e-8}
    beta = np.zeros(N)
    if name == "svm with intercept":
        model = SVC(**how).fit(X, Y)
    elif name == "regression with intercept":
        model = SVR(**how, epsilon=0.1).fit(X, VALUES)
    elif name == "one class":
        model = OneClassSVM(nu=0.3, gamma=GAMMA, tol=1e-8).fit(X)
    else:
        return None
    beta[model.support_] = model.dual_coef_[0]
    return dual_objective(PROBLEMS[name], beta)


@pytest.mark.slow
@pytest.mark.parametrize(("joint_rows", "from_zero"), [(4096, False), (45, True)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_optimum(name: str, joint_rows: int, from_zero: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_minimization, "_JOINT_ROWS", joint_rows)
    problem = PROBLEMS[name]
    result = minimize(name, from_zero=from_zero)
    value = dual_objective(problem, result.beta)
    assert result.converged
    assert np.all((result.beta >= problem.lo) & (result.beta <= problem.hi))
    assert -value == pytest.approx(result.objective - result.gap, rel=1e-9)
    assert result.gap <= 1e-6 * abs(result.objective)
    if problem.has_intercept:
        assert result.beta.sum() == pytest.approx(problem.nu * problem.hi.sum(), abs=1e-9)
    if (known := optimum_of_libsvm(name)) is not None:
        assert value == pytest.approx(known, rel=1e-6)
    bounds = result.history.as_arrays()["lower_bound"]
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))


def test_callbacks_get_rounds_and_gaps() -> None:
    problem, states = PROBLEMS["svm"], list[dict[str, float]]()
    blocks = LocalBlocks(problem, block_module.BlockSettings(2**28, 1))
    with Progress(callback=lambda state: bool(states.append(dict(state)))) as progress:
        result = BlockMinimizer(blocks, problem, INDEX, RoundSettings(Limits(1e-3)), progress).solve(np.zeros(N))
    history = result.history.as_arrays()
    gaps = history["objective"] - history["lower_bound"]
    assert [state["round"] for state in states] == list(range(1, len(gaps)))
    np.testing.assert_allclose([state["gap"] for state in states], gaps[:-1], rtol=1e-9)


@pytest.mark.parametrize("name", [pytest.param("svm", marks=pytest.mark.slow), "svm with intercept"])
def test_naive_twin(name: str) -> None:
    problem = PROBLEMS[name]
    K = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    naive = minimize_blocks(K, problem.target, problem.lo, problem.hi, INDEX, problem.has_intercept, 8)
    assert all(after <= before + 1e-9 for before, after in pairwise(naive))
    result = minimize(name)
    assert -(result.objective - result.gap) == pytest.approx(naive[-1], rel=1e-5)


@pytest.mark.slow
def test_blocks_alone_do_not_reach_the_optimum_with_an_intercept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockMinimizer, "_propose_jointly", BlockMinimizer._propose_by_blocks)
    result = minimize("svm with intercept", max_iter=200)
    assert not result.converged
    assert result.gap > 1e-4 * result.objective


@pytest.mark.parametrize(
    ("call", "from_zero"), [(1, True), (2, False), (3, True), (5, False), (8, True), (14, False), (26, True)]
)
def test_lost_blocks_cost_work_and_nothing_else(call: int, from_zero: bool) -> None:
    expected = minimize("svm with intercept", from_zero=from_zero)
    result = minimize("svm with intercept", lose={call: call % 3}, from_zero=from_zero)
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    assert result.objective - result.gap == pytest.approx(
        -dual_objective(PROBLEMS["svm with intercept"], result.beta), rel=1e-9
    )


@pytest.mark.parametrize("call", range(2, 9))
def test_a_first_round_that_is_repeated_solves_lost_blocks_alone(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    solved, approximate_solution = list[int](), dc_svm.approximate_solution

    def count(data: KernelProblem, *args: Any) -> NDArray[np.float64]:
        solved.append(len(data.samples))
        return approximate_solution(data, *args)

    monkeypatch.setattr(dc_svm, "approximate_solution", count)
    assert minimize("svm", lose={call: 1}).converged
    assert len(solved) <= 4


def test_blocks_that_are_lost_again_and_again_are_an_error() -> None:
    with pytest.raises(LostBlockError, match="lost 5 times in one round"):
        minimize("svm", lose=dict.fromkeys(range(8, 200), 0))


def test_float32_rows_are_refined_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.X", X.astype(np.float32))
    result = minimize("svm", tol=1e-8)
    assert result.converged
    assert result.objective == pytest.approx(minimize("svm").objective, rel=1e-6)


def violation_of(problem: DualProblem, beta: NDArray[np.float64]) -> float:
    """The largest projected gradient, from float64 entries of the float32 rows."""
    K = np.exp(-GAMMA * ((X[:, None].astype(float) - X[None]) ** 2).sum(axis=2))
    grad = K @ beta - problem.target
    return float(np.max(np.maximum(np.where(beta < problem.hi, -grad, 0), np.where(beta > problem.lo, grad, 0))))


@pytest.mark.parametrize("lose", [{}, {24: 1}, {30: 2}, {33: 0}])
def test_errors_are_corrected_without_float64_tiles(lose: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.X", X.astype(np.float32))
    corrected, correct = list[int](), Block.correct
    monkeypatch.setattr(
        Block, "correct", lambda block, *args: (corrected.append(len(block.uncertain)), correct(block, *args))[1]
    )
    if not lose:
        monkeypatch.delattr(Block, "use_float64")
    problem, tol = PROBLEMS["svm"], 1e-6  # about twice the noise
    result = minimize("svm", tol=tol, lose=lose)
    assert result.converged
    assert 0 < sum(corrected[:3]) < N
    assert violation_of(problem, result.beta) < 1.2 * tol


def test_corrected_decision_values_are_those_of_float64() -> None:
    rows, problem, beta = X.astype(np.float32), PROBLEMS["svm"], RNG.uniform(size=N) * Y * (RNG.random(N) < 0.5)
    exact = np.exp(-GAMMA * ((rows[:, None].astype(float) - rows[None]) ** 2).sum(axis=2)) @ beta
    blocks = [
        Block(p, rows[mine], RBF(GAMMA), problem.take(mine), block_module.BlockSettings(2**28, 1))
        for p, mine in enumerate(INDEX)
    ]
    for block, mine in zip(blocks, INDEX, strict=True):
        block.begin_restore(beta[mine], 1)
    support = [block.support(1) for block in blocks]
    for block, mine in zip(blocks, INDEX, strict=True):
        block.restore(1, [0, 1, 2], support, 3)
        before = block.decision.copy()
        assert block.begin_correction(5e-3, 0.0) > np.count_nonzero(beta[mine])
        block.correct([2, 0], [support[2], support[0]], 3)
        np.testing.assert_array_equal(block.decision, before)
        block.correct([0, 1], [support[0], support[1]], 3)
        assert block.begin_correction(5e-3, 0.0) == 0
        np.testing.assert_allclose(block.decision[block.is_corrected], exact[mine][block.is_corrected], atol=1e-13)
        np.testing.assert_array_equal(block.decision[~block.is_corrected], before[~block.is_corrected])


def test_all_blocks_have_one_precision() -> None:
    single = block_module.BlockSettings(2**28, 1)
    for precision in (np.float32, np.float64):
        settings = single._replace(dtypes=(np.dtype(precision), np.dtype(np.float32)))
        block = Block(0, X.astype(np.float32), RBF(GAMMA), PROBLEMS["svm"], settings)
        assert block.samples.precision == precision
        assert block.samples.dtype == np.float32


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_block_of_a_stopped_fit_is_not_solved(is_stopped: bool) -> None:
    settings = block_module.BlockSettings(2**28, 1, lambda: is_stopped)
    block = Block(0, X, RBF(GAMMA), PROBLEMS["svm"], settings)
    block.begin_restore(np.zeros(N), 0)
    assert (block.improve(1e-3, None).n_iter == 0) is is_stopped


def test_midpoint_of_optimal_intercepts() -> None:
    """All coefficients are at their bounds, up to rounding of one: balanced weights, and a small C."""
    weights = np.where(Y > 0, 1.0 / (Y > 0).sum(), 1.0 / (Y < 0).sum())
    problem = svm_problem(Y, 0.3 * weights, has_intercept=True)
    blocks = LocalBlocks(problem, block_module.BlockSettings(2**28, 1, start=block_module.start_at_zero))
    with Progress() as progress:
        result = BlockMinimizer(blocks, problem, INDEX, RoundSettings(Limits(1e-3)), progress).solve(np.zeros(N))
    K = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    residual = Y - K @ (0.3 * weights * Y)
    assert result.converged
    assert result.intercept == pytest.approx(0.5 * (residual[Y < 0].max() + residual[Y > 0].min()), abs=1e-6)
