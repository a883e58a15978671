"""Clustered machines: their decision values against the formula, row by row."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import kernels as naive
from widemargin._memory import MemoryPlan
from widemargin.data.samples import GramSamples, make_samples
from widemargin.kernels.functions import Precomputed, make_kernel
from widemargin.models import clustered
from widemargin.models.clustered import ClusteredExpansion
from widemargin.partition.routing import InputRouter, KernelRouter

GAMMA, K = 0.4, 4
RNG = np.random.default_rng(0)
CENTRES = 2.0 * RNG.normal(size=(K, 3))
POINTS = CENTRES[np.repeat(np.arange(K), (5, 0, 7, 3))] + 0.3 * RNG.normal(size=(15, 3))  # one cluster has no points
STARTS = np.array([0, 5, 5, 12, 15])
ROUTED, ROUTED_LABELS = CENTRES[np.arange(12) % K] + 0.2 * RNG.normal(size=(12, 3)), np.arange(12) % K  # the router's
X = CENTRES[np.arange(50) % K] + 0.5 * RNG.normal(size=(50, 3))
X[::5] = (CENTRES[np.arange(10) % K] + CENTRES[np.arange(1, 11) % K]) / 2 + 0.1 * RNG.normal(size=(10, 3))  # between
COEF, INTERCEPT = RNG.normal(size=(2, 15)), RNG.normal(size=(2, K))


def model(averages: bool = True, routing: str = "kernel", form: Any = np.asarray) -> ClusteredExpansion:
    kernel = make_kernel("rbf", gamma=GAMMA)
    routed = make_samples(form(ROUTED), kernel.sample_form)
    router: Any = {
        "kernel": lambda: KernelRouter(kernel, routed, ROUTED_LABELS),
        "input": lambda: InputRouter(routed, ROUTED_LABELS),
    }[routing]()
    parts = (form(POINTS), STARTS, COEF, INTERCEPT, router, averages)
    return ClusteredExpansion(kernel, *parts)


def by_cluster() -> np.ndarray:
    """Every cluster's decision values, of shape (clusters, rows, functions)."""
    G = naive.rbf(X, POINTS, GAMMA)
    parts = [slice(STARTS[c], STARTS[c + 1]) for c in range(K)]
    return np.array([G[:, mine] @ COEF[:, mine].T + INTERCEPT[:, c] for c, mine in enumerate(parts)])


def distances(routing: str) -> np.ndarray:
    """Squared distances of every row and centre, (rows, clusters)."""
    mine = np.eye(K)[ROUTED_LABELS] / np.bincount(ROUTED_LABELS)
    if routing == "input":
        return np.array([((x - mine.T @ ROUTED) ** 2).sum(axis=1) for x in X])
    spread = mine.T @ naive.rbf(ROUTED, ROUTED, GAMMA) @ mine
    return 1.0 - 2.0 * naive.rbf(X, ROUTED, GAMMA) @ mine + spread.diagonal()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("routing", ["kernel", "input"])
def test_early_is_the_value_of_the_rows_own_cluster(routing: str, form: Any) -> None:
    labels = distances(routing).argmin(axis=1)
    assert len(set(labels)) == K  # rows of the empty cluster get its intercept
    truth = by_cluster()[labels, np.arange(len(X))]
    np.testing.assert_allclose(model(False, routing, form).decision_values(form(X)), truth, atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("routing", ["kernel", "input"])
def test_the_average_is_the_mean_with_the_next_cluster_where_uncertain(routing: str, form: Any) -> None:
    values, far = by_cluster(), distances(routing)
    labels, next_to = np.argsort(far, axis=1)[:, :2].T
    np.testing.assert_allclose(values[1], np.broadcast_to(INTERCEPT[:, 1], values[1].shape))
    rows = np.arange(len(X))
    truth = values[labels, rows]
    is_mean = (np.abs(truth) < 0.35).any(axis=1) & (far[rows, labels] > 0.7 * far[rows, next_to])
    assert is_mean.any()
    assert not is_mean.all()
    truth[is_mean] = (truth + values[next_to, rows])[is_mean] / 2
    np.testing.assert_allclose(model(True, routing, form).decision_values(form(X)), truth, atol=1e-10)


@pytest.mark.parametrize(("averages", "routing"), [(False, "kernel"), (True, "kernel"), (True, "input")])
def test_blocks_threads_and_memory_do_not_matter(averages: bool, routing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = model(averages, routing)
    whole = machine.decision_values(X, n_jobs=1)
    np.testing.assert_array_equal(machine.decision_values(X, n_jobs=2), whole)
    np.testing.assert_allclose(machine.decision_values(X, memory=MemoryPlan(1)), whole, atol=1e-12)
    monkeypatch.setattr(clustered, "BLOCK_ROWS", 7)
    monkeypatch.setattr(clustered, "_MOST_ROWS", 7)
    np.testing.assert_allclose(machine.decision_values(X), whole, atol=1e-12)
    one_by_one = np.concatenate([machine.decision_values(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_allclose(one_by_one, whole, atol=1e-12)
    assert machine.decision_values(X[:0]).shape == (0, 2)


@pytest.mark.parametrize(("routing", "averages"), [("kernel", True), ("input", False)])
def test_pickle_keeps_every_bit(routing: str, averages: bool) -> None:
    machine = model(averages, routing)
    before = machine.decision_values(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).decision_values(X), before)


@pytest.mark.parametrize("averages", [False, True])
def test_a_precomputed_kernel_by_row_numbers(averages: bool) -> None:
    """The points of machine and router are numbers of training rows; the matrix has a row for each new one."""
    train = np.concatenate([ROUTED, POINTS])
    norms = KernelRouter(
        make_kernel("rbf", gamma=GAMMA), make_samples(ROUTED, "distances"), ROUTED_LABELS
    ).squared_centre_norms
    router = KernelRouter(Precomputed(), GramSamples(np.empty((0, 0)), np.arange(12)), ROUTED_LABELS, norms)
    machine = ClusteredExpansion(Precomputed(), np.arange(12, 27), STARTS, COEF, INTERCEPT, router, averages)
    # The own cluster alone: the matrix has no k(x, x), so no ratio of distances.
    truth = model(averages=False).decision_values(X)
    np.testing.assert_allclose(machine.decision_values(naive.rbf(X, train, GAMMA)), truth, atol=1e-9)


@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_gradients_are_those_of_the_decision_values(averages: bool, form: Any) -> None:
    machine = model(averages)
    machine.coef = form(COEF)
    step = 1e-6
    differences = [
        machine.decision_values(X + step * e) - machine.decision_values(X - step * e) for e in np.eye(X.shape[1])
    ]
    gradients = machine.decision_gradients(X)
    np.testing.assert_allclose(gradients, np.stack(differences, axis=-1) / (2 * step), atol=1e-7)
    np.testing.assert_array_equal(machine.decision_gradients(X, n_jobs=3, memory=MemoryPlan(1)), gradients)
