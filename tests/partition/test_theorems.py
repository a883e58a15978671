"""What lies between clusters, and what the paper proves from it: Lemma 1, Theorems 1 and 2."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import dual as qp
from naive import kernels
from naive import partition as naive
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.algorithms.dc_svm_levels import DCSVMSettings, KernelProblem, train_machine
from widemargin.algorithms.trained_machines import TrainedMachine
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF
from widemargin.kernels.kernel_operator import KernelOperator
from widemargin.partition.divide import ClusteringSettings, Division, divide
from widemargin.partition.routing import InputRouter
from widemargin.solvers.dual.problem import svm_problem


def problem(n: int, seed: int, centres: int = 3, spread: float = 1.0) -> tuple[Any, Any, Any]:
    """Rows around a few centres, noisy labels, upper bounds of all sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 0.6 + spread * rng.normal(size=(centres, 2))[np.arange(n) % centres]
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y, rng.choice([0.2, 1.0, 3.0], n)


def division_of(X: Any, labels: Any) -> Division:
    points = make_samples(X)
    return Division(InputRouter(points, np.asarray(labels)), np.asarray(labels), np.arange(len(X)))


def glue(kernel: Any, X: Any, y: Any, upper: Any, labels: Any, *, has_intercept: bool = False) -> TrainedMachine:
    settings = DCSVMSettings(n_jobs=1, n_levels=1, stop_level=1, tol=1e-9)
    problem = svm_problem(y, upper, has_intercept=has_intercept)
    data = KernelProblem(kernel, make_samples(X, kernel.sample_form), problem)
    with Progress() as progress:
        return train_machine(data, settings, progress, np.random.default_rng(0), division=division_of(X, labels))


@pytest.mark.parametrize(("seed", "weighted"), [(0, False), (1, True)])
def test_lemma_1_glued_solution_solves_the_dual_of_the_kernel_within_clusters(seed: int, weighted: bool) -> None:
    X, y, upper = problem(40, seed)
    upper = upper if weighted else np.ones(40)
    labels = np.random.default_rng(seed).integers(5, size=40)
    glued = glue(RBF(0.5), X, y, upper, labels).result
    Q = qp.signed(naive.within_clusters(kernels.rbf(X, X, 0.5), labels), y)
    p = -np.ones(40)
    assert qp.violation(Q, p, upper, y * glued.beta) < 1e-7
    truth = qp.objective(Q, p, qp.solve_qp(Q, p, upper))
    assert glued.gap - glued.objective == pytest.approx(truth, rel=1e-9)


def test_lemma_1_with_an_intercept_has_one_for_each_cluster() -> None:
    X, y, upper = problem(45, 1)
    labels = np.arange(45) % 3
    machine = glue(RBF(0.5), X, y, upper, labels, has_intercept=True)
    K = kernels.rbf(X, X, 0.5)
    for c in range(3):
        rows = np.flatnonzero(labels == c)
        Q, alpha = qp.signed(K[np.ix_(rows, rows)], y[rows]), (y * machine.result.beta)[rows]
        assert np.all((alpha >= 0) & (alpha <= upper[rows]))
        assert abs(machine.result.beta[rows].sum()) < 1e-9  # so the whole is feasible too, and not below the optimum
        assert qp.violation(Q, -np.ones(len(rows)), upper[rows], alpha, y[rows]) < 1e-7
    assert machine.intercepts.shape == (3,)
    assert len(set(machine.intercepts)) == 3


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(6, 40),
    k=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    gamma=st.floats(0.02, 20.0),
    C=st.floats(0.01, 30.0),
    weighted=st.booleans(),
    method=st.sampled_from(["kernel", "input", "any"]),
)
def test_theorem_1(n: int, k: int, seed: int, gamma: float, C: float, weighted: bool, method: str) -> None:
    """0 <= f(glued) - f(optimum) <= half the mass between clusters."""
    X, y, upper = problem(n, seed)
    upper = C * upper if weighted else np.full(n, C)
    kernel, rng = RBF(gamma), np.random.default_rng(seed)
    samples = make_samples(X, kernel.sample_form)
    if method == "any":  # sizes as they fall, some empty
        labels = rng.integers(k, size=n)
        labels[0] = k - 1
    else:
        labels = divide(KernelOperator(kernel, samples, ThreadTeam(1)), ClusteringSettings(k, method), rng).labels
    with Progress() as progress:
        best = train_machine(
            KernelProblem(kernel, samples, svm_problem(y, upper)), DCSVMSettings(n_jobs=1, tol=1e-9), progress, rng
        ).result
    glued = glue(kernel, X, y, upper, labels).result
    Q, p = qp.signed(kernels.rbf(X, X, gamma), y), -np.ones(n)
    difference = qp.objective(Q, p, y * glued.beta) - qp.objective(Q, p, y * best.beta)
    bound = 0.5 * naive.between_cluster_mass(kernels.rbf(X, X, gamma), labels, upper)
    noise = 1e-8 * upper.sum() + 1e-12
    assert -noise <= difference <= bound + noise


def test_theorem_1_against_a_generic_solver_and_close_to_its_bound() -> None:
    """Two equal points of one class in clusters of their own: all of the bound is needed but a half of it."""
    X, y, upper = np.zeros((2, 1)), np.ones(2), np.ones(2)
    glued = glue(RBF(1.0), X, y, upper, [0, 1]).result
    Q = qp.signed(np.ones((2, 2)), y)
    f = qp.objective(Q, -np.ones(2), y * glued.beta)
    best = qp.objective(Q, -np.ones(2), qp.solve_qp(Q, -np.ones(2), upper))
    assert f - best == pytest.approx(0.5)  # 0 against -1/2
    assert naive.between_cluster_mass(np.ones((2, 2)), np.arange(2), upper) == pytest.approx(2.0)


@pytest.mark.slow
def test_theorem_2_points_are_no_support_vectors() -> None:
    """alpha_i = 0 in its cluster and a gradient above C D (1 + sqrt(n) Kmax / sqrt(sigma_n D)): 0 in the whole.

    The gradient is that of the dual with the kernel within clusters, sigma_n the least eigenvalue of K.
    """
    claimed = not_trivial = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        distance = 2.5 + 0.25 * seed  # from clusters that touch to such as hardly know of each other
        centres = distance * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
        labels = np.arange(48) % 4
        X = centres[labels] + rng.normal(size=(48, 2)) * 0.35
        y = np.where((X - centres[labels]) @ [1.0, 0.3] > 0, 1.0, -1.0)
        K, C = kernels.rbf(X, X, 2.0) + 0.2 * np.eye(48), 5.0  # lifted: sigma_n is not tiny
        Q, p, upper = qp.signed(K, y), -np.ones(48), np.full(48, C)
        within = qp.signed(naive.within_clusters(K, labels), y)
        part, whole = qp.solve_qp(within, p, upper), qp.solve_qp(Q, p, upper)
        mass = naive.between_cluster_mass(K, labels, np.ones(48))
        sigma = np.linalg.eigvalsh(K)[0]
        bound = C * mass * (1 + np.sqrt(48) * K.max() / np.sqrt(sigma * mass))
        outside = (part == 0) & (within @ part + p > bound)
        assert not whole[outside].any()
        claimed += int(outside.sum())
        not_trivial += int(outside.any() and np.abs(part - whole).max() > 1e-9)
    assert claimed >= 10  # the claim is about something
    assert not_trivial >= 2
