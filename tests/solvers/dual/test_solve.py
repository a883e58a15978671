"""The exact solution of a binary problem and of pairs: precision, memory and threads."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from naive import dual as naive
from widemargin._progress import Progress
from widemargin.algorithms import dc_svm_levels as dc_svm
from widemargin.algorithms.dc_svm_levels import DCSVMSettings, KernelProblem, train_machine
from widemargin.algorithms.pairs_and_targets import SeveralMachines
from widemargin.algorithms.trained_machines import TrainedMachine, TrainedMachines
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF, Precomputed
from widemargin.solvers.dual import float64_correction
from widemargin.solvers.dual.problem import PairProblems, svm_problem
from widemargin.solvers.dual.solver import DualSolver

Vector = NDArray[np.float64]
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def truth(X: NDArray[np.floating], gamma: float) -> NDArray[np.float64]:
    return np.asarray(rbf_kernel(X.astype(DOUBLE), gamma=gamma))


def problem(n: int, dtype: np.dtype = SINGLE, *, noise: float = 0.5, seed: int = 0) -> tuple[NDArray[Any], Vector]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(dtype)
    return X, np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1.0, -1.0)


def fit(
    X: NDArray[Any],
    y: Vector,
    C: float,
    gamma: float,
    *,
    has_intercept: bool = False,
    callback: Any = None,
    max_time: float = 60.0,
    **settings: Any,
) -> TrainedMachine:
    problem = svm_problem(y, np.full(len(y), C), has_intercept=has_intercept)
    data = KernelProblem(RBF(gamma), make_samples(X, RBF.sample_form), problem)
    with Progress(max_time=max_time, callback=callback) as progress:
        return train_machine(data, DCSVMSettings(**{"n_jobs": 1, **settings}), progress, np.random.default_rng(0))


def train_pairs(
    kernel: Any,
    samples: Any,
    classes: Any,
    upper: Vector,
    settings: DCSVMSettings,
    progress: Progress,
    *,
    has_intercept: bool = False,
) -> TrainedMachines:
    problems = PairProblems(classes, upper, has_intercept=has_intercept)
    return SeveralMachines(kernel, samples, problems, settings, progress, np.random.default_rng(0)).run()


def true_violation(X: NDArray[Any], y: Vector, C: float, gamma: float, beta: Vector) -> float:
    Q = naive.signed(truth(X, gamma), y)
    return naive.violation(Q, -np.ones(len(y)), np.full(len(y), C), y * beta)


@pytest.fixture(autouse=True)
def by_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dc_svm, "_FULL_MATRIX_ENTRIES", 0)


@pytest.fixture
def precisions(monkeypatch: pytest.MonkeyPatch) -> list[np.dtype]:
    seen: list[np.dtype] = []
    original = dc_svm.KernelOperator

    def watched(kernel: Any, samples: Any, *rest: Any) -> Any:
        seen.append(samples.precision)
        return original(kernel, samples, *rest)

    for module in (dc_svm, float64_correction):
        monkeypatch.setattr(module, "KernelOperator", watched)
    return seen


@pytest.mark.slow
def test_large_bounds_are_corrected_in_float64(precisions: list[np.dtype]) -> None:
    C, gamma = 3e4, 0.3
    X, y = problem(700)
    result = fit(X, y, C, gamma).result
    assert precisions == [SINGLE, DOUBLE, DOUBLE]
    assert result.converged
    assert true_violation(X, y, C, gamma, result.beta) < 1.01e-3  # of the data as given, not as centring rounds them


@pytest.mark.slow
def test_the_correction_computes_uncertain_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with beta = 0 far from the margin keep their decision values; all others get float64 ones."""
    C, gamma = 3e4, 0.3
    X, y = problem(3000)
    seen: list[tuple[Any, np.ndarray]] = []
    original = DualSolver.continue_from

    def watched(solver: Any, result: Any, decision: np.ndarray) -> Any:
        seen.append((result, decision))
        return original(solver, result, decision)

    monkeypatch.setattr(DualSolver, "continue_from", watched)
    assert fit(X, y, C, gamma).result.converged
    rough, decision = seen[0]
    change = np.abs(decision - rough.decision)
    left = change == 0.0
    assert left.any()
    assert change.any()
    assert not rough.beta[left].any()
    assert np.abs(rough.decision[left] - y[left]).min() > 5 * change.max()


@pytest.mark.parametrize(("dtype", "C"), [(SINGLE, 1.0), (DOUBLE, 1e5)])
def test_where_tiles_are_exact_enough_nothing_is_corrected(
    dtype: np.dtype, C: float, precisions: list[np.dtype]
) -> None:
    X, y = problem(60, dtype)
    assert fit(X, y, C, 0.3).result.converged
    assert precisions == [dtype]


def test_stopped_before_the_correction_the_certificate_still_holds() -> None:
    C, gamma = 1e5, 0.01
    X, y = problem(150)
    K, upper = truth(X, gamma), np.full(150, C)
    result = fit(X, y, C, gamma, max_iter=400).result
    alpha = y * result.beta
    assert result.objective == pytest.approx(naive.primal(K, y, upper, alpha), rel=1e-3)
    assert result.gap > 0.5 * naive.dual_gap(K, y, upper, alpha)


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("kind", ["rbf", "precomputed"])
def test_pairs_are_the_binary_problems_on_their_rows(kind: str, has_intercept: bool) -> None:
    rng = np.random.default_rng(1)
    X, classes = rng.normal(size=(45, 2)), rng.permutation(np.arange(45) % 3)
    upper, gamma = rng.choice([0.5, 1.0], size=45), 0.7
    K = truth(X, gamma)
    kernel = RBF(gamma) if kind == "rbf" else Precomputed()
    samples = make_samples(X if kind == "rbf" else K, kernel.sample_form)
    settings = DCSVMSettings(n_jobs=2)
    with Progress() as progress:
        machines = train_pairs(kernel, samples, classes, upper, settings, progress, has_intercept=has_intercept)
    assert len(machines) == 3
    for (i, j), machine in zip([(0, 1), (0, 2), (1, 2)], machines, strict=True):
        rows = np.flatnonzero((classes == i) | (classes == j))
        y = np.where(classes[rows] == i, 1.0, -1.0)
        beta = np.zeros(45)
        beta[machine.rows] = machine.result.beta
        assert sorted(machine.rows) == list(rows)
        Q, p = naive.signed(K[np.ix_(rows, rows)], y), -np.ones(len(rows))
        alpha = naive.solve_qp(Q, p, upper[rows], y if has_intercept else None)
        result = machine.result
        assert result.gap - result.objective == pytest.approx(naive.objective(Q, p, alpha), rel=1e-7)
        np.testing.assert_allclose(y * beta[rows], alpha, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "has_level"), [(0.0, False), (1.0, True)])
def test_no_level_where_few_support_vectors_are_expected(noise: float, has_level: bool) -> None:
    X, y = problem(9000, noise=noise)
    machine = fit(X, y, 1000.0, 0.02, n_levels="auto")
    assert [level["n_clusters"] for level in machine.levels] == [16] * has_level
    n_support = np.count_nonzero(machine.result.beta)
    assert (n_support > 9000 / 16) == has_level
    assert [level["level"] for level in fit(X, y, 1000.0, 0.02, n_levels=1).levels] == [1]  # one that was asked for
    assert [level["level"] for level in fit(X, y, 1000.0, 0.02, n_levels="auto", stop_level=1).levels] == [1]
