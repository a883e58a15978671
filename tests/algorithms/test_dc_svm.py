"""`train` with levels against Algorithm 1 of the paper, step by step."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.svm import SVC

from naive import dc_svm as naive
from naive.kernels import rbf
from widemargin import _progress
from widemargin._memory import MemoryPlan
from widemargin._progress import Progress
from widemargin.algorithms import dc_svm_levels as dc_svm
from widemargin.algorithms.dc_svm_levels import DCSVMSettings, KernelProblem, train_machine
from widemargin.algorithms.pairs_and_targets import SeveralMachines
from widemargin.data.samples import Samples, make_samples
from widemargin.kernels.functions import RBF
from widemargin.partition.divide import Division
from widemargin.partition.routing import InputRouter
from widemargin.solvers.dual.in_memory import WorkingSetSolver
from widemargin.solvers.dual.problem import PairProblems, one_class_problem, svm_problem

N, C, GAMMA = 800, 0.5, 40.0


@pytest.fixture(scope="module")
def noisy() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of a wave with one label in five at random: most of them are support vectors."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(N, 2))
    y = np.where(np.sin(3 * X[:, 0]) > X[:, 1], 1.0, -1.0)
    return X, np.where(rng.random(N) < 0.2, -y, y)


@pytest.mark.slow
def test_levels_refine_and_whole_are_algorithm_1(noisy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level's candidates, number of clusters and alpha; alpha after the refine step; alpha at the end."""
    X, y = noisy
    divisions, solved, refined = [], [], []

    def divide(rows: Any, clustering: Any, rng: Any, *, candidates: Any, go_on: Any) -> Any:
        division = real_divide(rows, clustering, rng, candidates=candidates, go_on=go_on)
        divisions.append((candidates, clustering.method, clustering.k, division.labels))
        return division

    def join(rows: Any, parts: Any, n: int, elapsed: float) -> Any:
        solved.append(real_join(rows, parts, n, elapsed))
        return solved[-1]

    def refine(solver: Any, whole: Any, rows: Any, beta: Any) -> Any:
        refined.append(real_refine(solver, whole, rows, beta))
        return refined[-1]

    real_divide, real_join, real_refine = dc_svm.divide, dc_svm.join_results, dc_svm.DualSolver.solve_sharing_memory
    monkeypatch.setattr(dc_svm, "divide", divide)
    monkeypatch.setattr(dc_svm, "join_results", join)
    monkeypatch.setattr(dc_svm.DualSolver, "solve_sharing_memory", refine)
    monkeypatch.setattr(dc_svm, "START_TOL", 1e-7)  # of levels and refine step
    settings = DCSVMSettings(tol=1e-7, n_levels=2, partition="kernel", n_sample=200, n_jobs=1)
    data = KernelProblem(RBF(GAMMA), make_samples(X, "distances"), svm_problem(y, np.full(N, C)))
    with Progress() as progress:
        machine = train_machine(data, settings, progress, np.random.default_rng(0))

    given = iter(divisions)
    truth = naive.train(rbf(X, X, GAMMA), y, C, 2, 4, lambda rows, k: next(given)[3], tol=1e-7)
    levels, after_refine, alpha = truth
    assert len(divisions) == len(solved) == len(levels) == 2
    for level, (candidates, method, k, _), result in zip(levels, divisions, solved, strict=True):
        rows = np.arange(N) if candidates is None else candidates
        np.testing.assert_array_equal(rows, level.candidates)  # all rows, then the support vectors: adaptive clustering
        assert (method, k) == ("kernel", level.n_clusters)
        np.testing.assert_allclose(y * result.beta, level.alpha, atol=1e-4)
    support = np.flatnonzero(levels[-1].alpha > 0)
    assert len(support) > 512  # fewer are the first active set of the whole problem, without a refine step
    (result,) = refined
    np.testing.assert_allclose(y[support] * result.beta, after_refine[support], atol=1e-4)
    np.testing.assert_allclose(y * machine.result.beta, alpha, atol=1e-4)
    assert machine.result.converged


@pytest.mark.slow
@pytest.mark.parametrize("has_sum", [False, True])
def test_each_cluster_of_an_early_machine_is_solved_to_its_own_optimum(noisy: Any, has_sum: bool) -> None:
    """With an intercept, clusters of a second level must not keep the sums of the first level's coefficients."""
    X, y = noisy
    svm = svm_problem(y, np.full(N, C), has_intercept=True)
    problem = one_class_problem(np.full(N, 1.0), 0.3) if has_sum else svm
    settings = DCSVMSettings(tol=1e-6, n_levels=2, stop_level=1, partition="input", n_jobs=1)
    with Progress() as progress:
        data = KernelProblem(RBF(GAMMA), make_samples(X, "distances"), problem)
        machine = train_machine(data, settings, progress, np.random.default_rng(0))
    assert machine.division is not None
    objective = 0.0
    for cluster in range(4):
        rows = np.flatnonzero(machine.division.labels == cluster)
        K, part = rbf(X[rows], X[rows], GAMMA), problem.take(rows)
        beta, b = machine.result.beta[rows], machine.intercepts[cluster]
        assert beta.sum() == pytest.approx(part.nu * part.hi.sum(), abs=1e-9)
        if not has_sum:
            values = K @ beta
            objective += 0.5 * beta @ values + C * np.maximum(0.0, 1.0 - y[rows] * (values + b)).sum()
            fitted = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y[rows])
            np.testing.assert_allclose(fitted.decision_function(K), values + b, atol=1e-3)
    if not has_sum:
        assert machine.result.objective == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize("max_time", [None, 600.0])
def test_the_estimate_of_a_level_is_of_its_clusters(
    noisy: Any, max_time: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a cluster of m rows takes m^2 / 10,000 seconds: after each one the seconds of all others.

    With a limit, which is no estimate, the small clusters are solved first.
    """
    X, y = noisy
    sizes, now, left = [500, 150, 100, 50], 0.0, []
    solve, advance = dc_svm.DCSVMTraining._solve_cluster, Progress.advance

    def solve_slowly(training: Any, rows: Any, *args: Any) -> Any:
        nonlocal now
        now += len(rows) ** 2 / 10_000
        return solve(training, rows, *args)

    def look(progress: Progress, work: float = 1) -> None:
        advance(progress, work)
        left.append(progress.remaining)

    monkeypatch.setattr(_progress, "perf_counter", lambda: now)
    monkeypatch.setattr(dc_svm.DCSVMTraining, "_solve_cluster", solve_slowly)
    monkeypatch.setattr(Progress, "advance", look)
    samples, labels = make_samples(X, "distances"), np.repeat(np.arange(4), sizes)
    division = Division(InputRouter(samples, labels), labels, np.arange(N))
    settings = DCSVMSettings(n_levels=1, stop_level=1, n_jobs=1)
    data = KernelProblem(RBF(GAMMA), samples, svm_problem(y, np.full(N, C)))
    with Progress(max_time=max_time) as progress:
        train_machine(data, settings, progress, np.random.default_rng(0), division=division)
    seconds = np.square(sizes if max_time is None else sizes[::-1]) / 10_000
    np.testing.assert_allclose(left, seconds.sum() - np.cumsum(seconds), atol=1e-9)


def test_clusters_in_memory_keep_max_iter(noisy: Any) -> None:
    X, y = noisy
    settings = DCSVMSettings(max_iter=1, n_levels=1, stop_level=1, n_jobs=1)
    with Progress() as progress:
        data = KernelProblem(RBF(GAMMA), make_samples(X, "distances"), svm_problem(y, np.full(N, 100.0)))
        machine = train_machine(data, settings, progress, np.random.default_rng(0))
    assert machine.result.n_iter <= 4
    assert not machine.result.converged


@pytest.mark.parametrize("max_iter", [-1, 1])
def test_working_sets_of_the_refine_step_count(max_iter: int, noisy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In `n_iter`, and towards `max_iter`; those of levels do not."""
    X, y = noisy
    n_sets, is_refined = 0, False
    solve, refine = WorkingSetSolver.solve, dc_svm.DualSolver.solve_sharing_memory

    def count(solver: Any, *args: Any) -> bool:
        nonlocal n_sets
        before = solver.n_iter
        is_done = solve(solver, *args)
        n_sets += solver.n_iter - before
        return is_done

    def refine_and_count(*args: Any) -> Any:
        nonlocal n_sets, is_refined
        n_sets, is_refined = 0, True
        return refine(*args)

    monkeypatch.setattr(WorkingSetSolver, "solve", count)
    monkeypatch.setattr(dc_svm.DualSolver, "solve_sharing_memory", refine_and_count)
    monkeypatch.setattr(dc_svm, "START_TOL", 1e-7)  # of levels and refine step
    settings = DCSVMSettings(1e-7, max_iter=max_iter, n_levels=1, partition="kernel", n_sample=200, n_jobs=1)
    data = KernelProblem(RBF(GAMMA), make_samples(X, "distances"), svm_problem(y, np.full(N, C)))
    with Progress() as progress:
        machine = train_machine(data, settings, progress, np.random.default_rng(0))
    assert is_refined
    assert machine.result.n_iter == n_sets


def test_an_automatic_level_is_for_dense_rows_and_local_kernels() -> None:
    X = np.random.default_rng(0).normal(size=(6000, 2))
    dense, sparse = make_samples(X, "distances"), make_samples(sp.csr_array(X), "distances")
    wide, local = RBF(0.1), RBF(1e4)
    assert list(DCSVMSettings(n_levels="auto").planned_levels(wide, dense)) == [1]
    assert list(DCSVMSettings(n_levels="auto").planned_levels(wide, sparse)) == []
    assert list(DCSVMSettings(n_levels="auto").planned_levels(local, sparse)) == [1]
    assert list(DCSVMSettings(n_levels="auto", stop_level=2).planned_levels(wide, sparse)) == [2]


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "expected"), [(2**30, [2]), (2**20, [2, 1])])
def test_levels_follow_while_the_support_vectors_do_not_fit_in_memory(budget: int, expected: list[int]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3)).astype(np.float32)
    samples, y = make_samples(X, "distances"), np.sign(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=9000))
    data = KernelProblem(RBF(2.0), samples, svm_problem(y, np.ones(9000)))
    settings = DCSVMSettings(n_jobs=1, n_levels="auto", memory=MemoryPlan(budget))
    with Progress() as progress:
        machine = train_machine(data, settings, progress, np.random.default_rng(0))
    assert [level["level"] for level in machine.levels] == expected
    assert machine.result.converged


class _StoppingRBF(RBF):
    """The RBF kernel, which stops a fit at its second tile and counts those that follow."""

    progress: ClassVar[Progress]
    n_tiles: ClassVar[int] = 0

    def fill(self, A: Any, B: Any, out: Any) -> None:
        super().fill(A, B, out)
        _StoppingRBF.n_tiles += 1
        if _StoppingRBF.n_tiles == 2:
            self.progress._stop("max_time")


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Iterator[Progress]:
    with Progress() as progress:
        monkeypatch.setattr(_StoppingRBF, "progress", progress, raising=False)
        monkeypatch.setattr(_StoppingRBF, "n_tiles", 0)
        yield progress


def wide_rows(n: int) -> tuple[Samples, NDArray[np.float64]]:
    """Rows so long that their kernel matrix is computed in tiles of 256 rows and columns; the classes +1 and -1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 70))
    return make_samples(X, "distances"), np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)


@pytest.mark.parametrize("stop_level", [0, 1])
def test_a_stop_ends_a_cluster_at_its_next_tile(stop_level: int, stopping: Progress) -> None:
    """Of the sample that says whether a level pays, after a probe of some rows, and of a level's cluster."""
    samples, y = wide_rows(5000)
    settings = DCSVMSettings(n_levels="auto", stop_level=stop_level, n_jobs=1)
    data = KernelProblem(_StoppingRBF(0.01), samples, svm_problem(y, np.full(len(y), C)))
    machine = train_machine(data, settings, stopping, np.random.default_rng(0))
    assert _StoppingRBF.n_tiles == 2 + (stop_level == 0)
    assert not machine.result.beta.any()
    assert machine.result.gap == machine.result.objective == pytest.approx(C * len(y))


@pytest.mark.parametrize(("n", "k"), [(900, 3), (3000, 6)])
def test_a_stop_ends_all_pairs_at_the_next_tile(n: int, k: int, stopping: Progress) -> None:
    """Of the kernel matrix that all pairs share, and of one for each pair: ten tiles each."""
    samples, _ = wide_rows(n)
    classes, upper = np.arange(n) % k, np.full(n, C)
    problems = PairProblems(classes, upper, has_intercept=False)
    settings = DCSVMSettings(n_levels="auto", n_jobs=1)
    rng, kernel = np.random.default_rng(0), _StoppingRBF(0.01)
    machines = SeveralMachines(kernel, samples, problems, settings, stopping, rng).run()
    assert _StoppingRBF.n_tiles == 2
    assert {len(machine.result.history) for machine in machines} == {1}
    assert not any(machine.result.beta.any() for machine in machines)
