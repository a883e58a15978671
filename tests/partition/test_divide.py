"""Divisions: balanced by rules that routing repeats, from the candidates that were given."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import Precomputed, make_kernel
from widemargin.kernels.kernel_operator import KernelOperator
from widemargin.partition.divide import ClusteringSettings, Division, clustering_level, divide, divisions

METHODS = ("kernel", "input")
RBF = make_kernel("rbf", gamma=0.5)


def cut(
    X: Any,
    k: int,
    method: str = "kernel",
    seed: int = 0,
    n_jobs: int = 1,
    kernel: Any = RBF,
    n_sample: int = 1000,
    **more: Any,
) -> Division:
    with ThreadTeam(n_jobs) as team:
        rows = KernelOperator(kernel, make_samples(X, kernel.sample_form), team)
        return divide(rows, ClusteringSettings(k, method, n_sample), np.random.default_rng(seed), **more)


def lopsided(n: int = 3000) -> np.ndarray:
    """A dense lump with 95 of 100 rows, and a few rows far away from it and from each other."""
    rng = np.random.default_rng(0)
    return rng.permutation(np.concatenate([rng.normal(0, 0.5, (n * 19 // 20, 2)), rng.normal(0, 20, (n // 20, 2))]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("method", METHODS)
def test_labels_are_the_routers_own_assignment(method: str, form: Any) -> None:
    X = form(np.random.default_rng(0).normal(size=(600, 3)))
    division = cut(X, 8, method, n_sample=100)
    team = ThreadTeam(1)
    np.testing.assert_array_equal(division.router.assign(make_samples(X, RBF.sample_form), team), division.labels)
    np.testing.assert_array_equal(division.router.route(X, team), division.labels)
    assert division.router.name == method
    assert len(division.sample_indices) == len(division.router.labels) == 100
    assert np.all(np.diff(division.sample_indices) > 0)
    assert division.labels.max() < division.router.n_clusters


@pytest.mark.parametrize(("method", "k"), [("kernel", 4), ("kernel", 16), ("input", 16), ("input", 64)])
def test_clusters_are_balanced(method: str, k: int) -> None:
    X = lopsided()
    sizes = np.bincount(cut(X, k, method).labels)
    mean = len(X) / k
    assert sizes.max() <= 3.0 * mean
    assert sizes.min() >= 0.125 * mean
    assert 0.5 * k <= len(sizes) <= 2.5 * k


def test_a_cluster_of_nearly_all_rows_is_split_again() -> None:
    """k-means alone, without the balance, leaves nearly all rows in one cluster here."""
    X = np.concatenate([np.random.default_rng(0).normal(0, 0.1, (990, 2)), 100 * np.eye(2)[np.arange(10) % 2]])
    sizes = np.bincount(cut(X, 4, "input").labels)
    assert sizes.max() <= 750
    assert len(sizes) >= 2


@pytest.mark.parametrize("method", METHODS)
def test_candidates_are_where_the_sample_comes_from(method: str) -> None:
    X = np.random.default_rng(0).normal(size=(1000, 2))
    candidates = np.arange(300, 400)
    division = cut(X, 4, method, candidates=candidates, n_sample=60)
    assert set(division.sample_indices) <= set(candidates)
    assert len(division.sample_indices) == 60
    few = cut(X, 4, method, candidates=candidates[:39], n_sample=60)  # less than ten for each cluster
    assert len(few.sample_indices) == 60
    assert not set(few.sample_indices) <= set(candidates)


def test_at_least_ten_points_for_a_cluster() -> None:
    X = np.random.default_rng(0).normal(size=(1000, 2))
    assert len(cut(X, 8, n_sample=1).sample_indices) == 80
    assert len(cut(X[:50], 8, n_sample=1).sample_indices) == 50


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [1, 2, 30])
def test_from_one_cluster_to_one_for_each_row(k: int, method: str) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    division = cut(X, k, method)
    assert len(np.unique(division.labels)) == k if k != 2 else len(np.unique(division.labels)) >= 1


@pytest.mark.parametrize("k", [1, 3, 16])
def test_equal_rows(k: int) -> None:
    division = cut(np.ones((40, 2)), k)
    assert division.labels.shape == (40,)
    assert division.labels.max() < division.router.n_clusters
    assert len(np.unique(division.labels)) == 1  # equal rows cannot be told apart


def test_copies_of_a_few_points_stay_together() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 50, axis=0)
    labels = cut(X, 12).labels.reshape(3, 50)
    np.testing.assert_array_equal(labels, np.broadcast_to(labels[:, :1], (3, 50)))


def test_matrices_that_are_not_positive_semidefinite() -> None:
    A = np.random.default_rng(0).normal(size=(90, 90))
    division = cut(A + A.T, 9, kernel=Precomputed())
    assert division.labels.shape == (90,)


def test_a_given_matrix_is_divided_as_its_kernel() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    given = cut(rbf_kernel(X, gamma=0.5), 5, kernel=Precomputed(), n_sample=80)
    np.testing.assert_array_equal(given.labels, cut(X, 5, n_sample=80).labels)


@pytest.mark.parametrize("method", METHODS)
def test_one_seed_one_division(method: str) -> None:
    X = lopsided()
    one, two, other = cut(X, 16, method), cut(X, 16, method, n_jobs=2), cut(X, 16, method, seed=1)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.sample_indices, two.sample_indices)
    assert not np.array_equal(one.sample_indices, other.sample_indices)


@pytest.mark.parametrize(("method", "k"), [("kernel", 4), ("input", 16)])
def test_clusters_keep_more_of_the_kernel_than_chance(method: str, k: int) -> None:
    X = np.random.default_rng(0).normal(size=(800, 2))
    K, labels, chance = rbf_kernel(X, gamma=0.5), cut(X, k, method).labels, np.arange(800) % k
    assert K[labels[:, None] != labels].sum() < 0.9 * K[chance[:, None] != chance].sum()


@pytest.mark.parametrize(
    ("n", "level"), [(0, 0), (2000, 0), (2001, 1), (8001, 2), (450_000, 4), (3_000_000, 5), (10**9, 5)]
)
def test_an_automatic_level_has_clusters_of_2000_rows_or_as_many_as_there_can_be(n: int, level: int) -> None:
    """A level below would be divided into the same 500 clusters."""
    assert clustering_level(n, 4) == level


@pytest.mark.parametrize("method", ["kernel", "input"])
def test_a_division_asks_whether_to_go_on(method: str) -> None:
    """So that the bar of a fit shows this time, too: while it clusters, and before each round of balancing."""
    rng, n_asked = np.random.default_rng(0), 0

    def go_on() -> bool:
        nonlocal n_asked
        n_asked += 1
        return True

    X = rng.exponential(size=(2000, 2)) ** 3
    with ThreadTeam(1) as team:
        rows = KernelOperator(RBF, make_samples(X, "distances"), team)
        rounds = list(divisions(rows, ClusteringSettings(20, method), rng, go_on=go_on))
    assert n_asked >= len(rounds) > 1
