"""Clustered machines: each combination of the clusters' decision values against its formula, row by row."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import kernels as naive
from widemargin._memory import MemoryPlan
from widemargin._threads import ThreadTeam
from widemargin.data.samples import GramSamples, make_samples
from widemargin.kernels.functions import Precomputed, make_kernel
from widemargin.models import clustered
from widemargin.models.clustered import ClusteredExpansion
from widemargin.partition.routing import InputRouter, KernelRouter, RandomRouter

GAMMA, K = 0.4, 4
RNG = np.random.default_rng(0)
CENTRES = 2.0 * RNG.normal(size=(K, 3))
POINTS = CENTRES[np.repeat(np.arange(K), (5, 0, 7, 3))] + 0.3 * RNG.normal(size=(15, 3))  # one cluster has no points
STARTS = np.array([0, 5, 5, 12, 15])
ROUTED, ROUTED_LABELS = CENTRES[np.arange(12) % K] + 0.2 * RNG.normal(size=(12, 3)), np.arange(12) % K  # the router's
X = CENTRES[np.arange(50) % K] + 0.5 * RNG.normal(size=(50, 3))
X[::5] = (CENTRES[np.arange(10) % K] + CENTRES[np.arange(1, 11) % K]) / 2 + 0.1 * RNG.normal(size=(10, 3))  # between
COEF, INTERCEPT = RNG.normal(size=(2, 15)), RNG.normal(size=(2, K))
SIGMOIDS, LOG_PRIOR = RNG.normal(size=(2, K, 2)), np.array([0.3, -0.7])


def model(combine: str = "soft", routing: str = "kernel", form: Any = np.asarray) -> ClusteredExpansion:
    kernel = make_kernel("rbf", gamma=GAMMA)
    routed = make_samples(form(ROUTED), kernel.sample_form)
    router: Any = {
        "kernel": lambda: KernelRouter(kernel, routed, ROUTED_LABELS),
        "input": lambda: InputRouter(routed, ROUTED_LABELS),
        "random": lambda: RandomRouter(routed, ROUTED_LABELS),
    }[routing]()
    parts = (form(POINTS), STARTS, COEF, INTERCEPT, router, combine, SIGMOIDS.copy(), LOG_PRIOR)
    return ClusteredExpansion(kernel, *parts)


def by_cluster() -> np.ndarray:
    """Every cluster's decision values, of shape (clusters, rows, functions)."""
    G = naive.rbf(X, POINTS, GAMMA)
    parts = [slice(STARTS[c], STARTS[c + 1]) for c in range(K)]
    return np.array([G[:, mine] @ COEF[:, mine].T + INTERCEPT[:, c] for c, mine in enumerate(parts)])


def distances(routing: str) -> np.ndarray:
    """Squared distances of every row and centre, (rows, clusters); of random clusters infinite but for the own one."""
    mine = np.eye(K)[ROUTED_LABELS] / np.bincount(ROUTED_LABELS)
    if routing == "input":
        return np.array([((x - mine.T @ ROUTED) ** 2).sum(axis=1) for x in X])
    if routing == "random":
        labels = model("early", routing).router.route(X, ThreadTeam(1))
        return np.where(np.arange(K) == labels[:, None], 0.0, np.inf)
    spread = mine.T @ naive.rbf(ROUTED, ROUTED, GAMMA) @ mine
    return 1.0 - 2.0 * naive.rbf(X, ROUTED, GAMMA) @ mine + spread.diagonal()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("routing", ["kernel", "input", "random"])
def test_early_is_the_value_of_the_rows_own_cluster(routing: str, form: Any) -> None:
    labels = distances(routing).argmin(axis=1)
    assert len(set(labels)) == K  # rows of the empty cluster get its intercept
    truth = by_cluster()[labels, np.arange(len(X))]
    np.testing.assert_allclose(model("early", routing, form).decision_values(form(X)), truth, atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("routing", ["kernel", "input", "random"])
def test_soft_is_the_mean_with_the_next_cluster_where_uncertain(routing: str, form: Any) -> None:
    values, far = by_cluster(), distances(routing)
    labels, next_to = np.argsort(far, axis=1)[:, :2].T
    np.testing.assert_allclose(values[1], np.broadcast_to(INTERCEPT[:, 1], values[1].shape))
    rows = np.arange(len(X))
    truth = values[labels, rows]
    is_mean = (np.abs(truth) < 0.35).any(axis=1) & (far[rows, labels] > 0.7 * far[rows, next_to])
    assert is_mean.any() == (routing != "random")
    assert not is_mean.all()
    truth[is_mean] = (truth + values[next_to, rows])[is_mean] / 2
    np.testing.assert_allclose(model("soft", routing, form).decision_values(form(X)), truth, atol=1e-10)


def test_naive_sums_over_all_clusters() -> None:
    truth = naive.rbf(X, POINTS, GAMMA) @ COEF.T + INTERCEPT.mean(axis=1)
    np.testing.assert_allclose(model("naive").decision_values(X), truth, atol=1e-10)


def test_bcm_multiplies_the_clusters_probabilities() -> None:
    """p(y|x) ~ prod_c p_c(y|x) / p(y)^(k-1), computed as it stands here."""
    f = by_cluster()
    positive = 1 / (1 + np.exp(SIGMOIDS[:, :, 0].T[:, None] * f + SIGMOIDS[:, :, 1].T[:, None]))
    prior = 1 / (1 + np.exp(-LOG_PRIOR))
    odds = (positive.prod(axis=0) / prior ** (K - 1)) / ((1 - positive).prod(axis=0) / (1 - prior) ** (K - 1))
    np.testing.assert_allclose(model("bcm").decision_values(X), np.log(odds), atol=1e-8)


@pytest.mark.parametrize(
    ("combine", "routing"),
    [("early", "kernel"), ("soft", "kernel"), ("soft", "input"), ("soft", "random"), ("naive", ""), ("bcm", "")],
)
def test_blocks_threads_and_memory_do_not_matter(combine: str, routing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = model(combine, routing or "kernel")
    whole = machine.decision_values(X, n_jobs=1)
    np.testing.assert_array_equal(machine.decision_values(X, n_jobs=2), whole)
    np.testing.assert_allclose(machine.decision_values(X, memory=MemoryPlan(1)), whole, atol=1e-12)
    monkeypatch.setattr(clustered, "BLOCK_ROWS", 7)
    monkeypatch.setattr(clustered, "_MOST_ROWS", 7)
    np.testing.assert_allclose(machine.decision_values(X), whole, atol=1e-12)
    one_by_one = np.concatenate([machine.decision_values(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_allclose(one_by_one, whole, atol=1e-12)
    assert machine.decision_values(X[:0]).shape == (0, 2)


def test_blocks_of_the_committee_have_room_for_the_values_of_all_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def count(machine: Any, rows: Any, *_: Any) -> Any:
        sizes.append(len(rows))
        return 0.0

    monkeypatch.setattr(ClusteredExpansion, "_committee_log_odds", count)
    model("bcm").decision_values(np.tile(X, (100, 1)), memory=MemoryPlan(1_280_000))
    row_bytes = 4 * X[0].nbytes + 8 * INTERCEPT.size  # copies of a row, and two functions of four clusters
    assert max(sizes) == 320_000 // row_bytes
    assert sum(sizes) == 5000


def test_a_cluster_whose_value_is_its_intercept_leaves_the_committee_unchanged() -> None:
    """The intercept has the probability of the prior: the committee with and without cluster 1, without points."""
    machine = model("bcm")
    machine.sigmoids[:, 1, 1] = -machine.sigmoids[:, 1, 0] * INTERCEPT[:, 1] - LOG_PRIOR
    kept = np.array([0, 2, 3])
    without = ClusteredExpansion(
        machine.kernel,
        machine.points,
        np.delete(STARTS, 1),
        COEF,
        INTERCEPT[:, kept],
        machine.router,
        "bcm",
        machine.sigmoids[:, kept],
        LOG_PRIOR,
    )
    np.testing.assert_allclose(machine.decision_values(X), without.decision_values(X), atol=1e-10)


@pytest.mark.parametrize("combine", ["early", "soft", "naive", "bcm"])
@pytest.mark.parametrize("routing", ["kernel", "input", "random"])
def test_pickle_keeps_every_bit(routing: str, combine: str) -> None:
    machine = model(combine, routing)
    before = machine.decision_values(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).decision_values(X), before)


@pytest.mark.parametrize("combine", ["early", "soft", "naive", "bcm"])
def test_a_precomputed_kernel_by_row_numbers(combine: str) -> None:
    """The points of machine and router are numbers of training rows; the matrix has a row for each new one."""
    train = np.concatenate([ROUTED, POINTS])
    norms = KernelRouter(
        make_kernel("rbf", gamma=GAMMA), make_samples(ROUTED, "distances"), ROUTED_LABELS
    ).squared_centre_norms
    router = KernelRouter(Precomputed(), GramSamples(np.empty((0, 0)), np.arange(12)), ROUTED_LABELS, norms)
    machine = ClusteredExpansion(
        Precomputed(), np.arange(12, 27), STARTS, COEF, INTERCEPT, router, combine, SIGMOIDS, LOG_PRIOR
    )
    truth = model(combine).decision_values(X)
    if combine == "soft":  # the own cluster alone: the matrix has no k(x, x), so no ratio of distances
        truth = by_cluster()[distances("kernel").argmin(axis=1), np.arange(len(X))]
    np.testing.assert_allclose(machine.decision_values(naive.rbf(X, train, GAMMA)), truth, atol=1e-9)


@pytest.mark.parametrize("combine", ["early", "soft", "naive", "bcm"])
@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_gradients_are_those_of_the_decision_values(combine: str, form: Any) -> None:
    machine = model(combine)
    machine.coef = form(COEF)
    step = 1e-6
    differences = [
        machine.decision_values(X + step * e) - machine.decision_values(X - step * e) for e in np.eye(X.shape[1])
    ]
    gradients = machine.decision_gradients(X)
    np.testing.assert_allclose(gradients, np.stack(differences, axis=-1) / (2 * step), atol=1e-7)
    np.testing.assert_array_equal(machine.decision_gradients(X, n_jobs=3, memory=MemoryPlan(1)), gradients)
