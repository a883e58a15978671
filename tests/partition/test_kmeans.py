"""k-means: that of the kernel against plain loops, that of the rows against what is there to be found."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from naive import partition as naive
from widemargin._threads import ThreadTeam
from widemargin.partition import kmeans as module
from widemargin.partition.kmeans import _kmeans_plus_plus, feature_distances, kernel_kmeans, kmeans, membership


def gram(m: int, seed: int, gamma: float = 0.5) -> np.ndarray:
    return rbf_kernel(np.random.default_rng(seed).normal(size=(m, 2)), gamma=gamma)


def plus_plus_seeds(K: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The points that `kernel_kmeans` starts from with this seed."""
    return _kmeans_plus_plus(K, K.diagonal(), np.ones(len(K)), k, np.random.default_rng(seed))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_kernel_kmeans_is_lloyd_in_feature_space(k: int, kernel: str) -> None:
    for seed in range(2):
        X = np.random.default_rng(seed).normal(size=(24, 2))
        K = rbf_kernel(X, gamma=0.5) if kernel == "rbf" else polynomial_kernel(X, degree=2)
        labels = kernel_kmeans(K, k, np.random.default_rng(seed))
        np.testing.assert_array_equal(labels, naive.kernel_kmeans(K, plus_plus_seeds(K, k, seed)))


@settings(max_examples=20, deadline=None)
@given(m=st.integers(2, 20), data=st.data(), seed=st.integers(0, 10**6), gamma=st.floats(0.01, 10))
def test_the_objective_is_never_above_that_of_the_seeds(m: int, data: st.DataObject, seed: int, gamma: float) -> None:
    k = data.draw(st.integers(1, m))
    K = gram(m, seed, gamma)
    labels = kernel_kmeans(K, k, np.random.default_rng(seed))
    assert set(labels) == set(range(k))  # no cluster is empty
    found = naive.clustering_objective(K, labels)
    assert found <= naive.seeds_objective(K, plus_plus_seeds(K, k, seed)) + 1e-9


def test_feature_distances_are_those_of_the_double_loop() -> None:
    K, labels = gram(15, 2), np.arange(15) % 4
    truth = naive.centre_distances(K, labels, 4)
    np.testing.assert_allclose(feature_distances(K, labels, 4) + K.diagonal()[:, None], truth, atol=1e-12)
    members = membership(labels, 5)
    np.testing.assert_allclose(members.sum(axis=0), [1, 1, 1, 1, 0])


def test_float32_and_float64_matrices_give_the_same_clusters() -> None:
    X, y = make_blobs(60, centers=3, cluster_std=0.3, random_state=0)
    K = rbf_kernel(X, gamma=0.1)
    one, two = (kernel_kmeans(K.astype(t), 3, np.random.default_rng(0)) for t in (np.float32, np.float64))
    np.testing.assert_array_equal(one, two)
    assert adjusted_rand_score(one, y) == 1.0


@pytest.mark.parametrize("k", [4, 12])
@pytest.mark.parametrize("kind", ["equal rows", "identity", "zeros", "indefinite", "two values"])
def test_odd_matrices_give_k_clusters(kind: str, k: int) -> None:
    A = np.random.default_rng(0).normal(size=(12, 12))
    K = {
        "equal rows": np.ones((12, 12)),
        "identity": np.eye(12),
        "zeros": np.zeros((12, 12)),
        "indefinite": A + A.T,
        "two values": np.kron(np.eye(2), np.ones((6, 6))),
    }[kind]
    labels = kernel_kmeans(K, k, np.random.default_rng(0))
    assert set(labels) == set(range(k))
    if kind == "two values" and k == 4:
        assert not set(labels[:6]) & set(labels[6:])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_kmeans_of_rows_finds_separate_clusters(form: type) -> None:
    X, y = make_blobs(300, centers=3, cluster_std=0.3, random_state=1)
    labels = kmeans(form(X), 3, np.random.default_rng(0))
    assert labels.dtype == np.intp
    assert adjusted_rand_score(labels, y) == 1.0
    np.testing.assert_array_equal(labels, kmeans(form(X), 3, np.random.default_rng(0)))


def test_kmeans_of_rows_uses_weights() -> None:
    """Two points of great weight get a centre each, whatever lies between them."""
    X = np.concatenate([[[0.0], [0.4]], np.linspace(5, 6, 20)[:, None]])
    weights = np.concatenate([[1e6, 1e6], np.full(20, 1e-6)])
    labels = kmeans(X, 2, np.random.default_rng(0), weights)
    assert labels[0] != labels[1]
    plain = kmeans(X, 2, np.random.default_rng(0))
    assert plain[0] == plain[1] != plain[2]


def test_threads_leave_the_filters_of_warnings_as_they_were() -> None:
    """Of the program, whatever order the threads begin and end in, and without their warnings of equal rows."""
    before, rows = list(warnings.filters), np.zeros((200, 3))
    with warnings.catch_warnings(record=True) as caught, ThreadTeam(4) as team:
        warnings.simplefilter("always")
        inside = list(warnings.filters)
        for _ in range(5):
            team.map(lambda k: kmeans(rows, 2 + k % 3, np.random.default_rng(k)), range(40))
        assert warnings.filters == inside
    assert not caught
    assert warnings.filters == before


def test_filters_of_the_context_are_left_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a Python without the GIL, where `warnings.filters` are not those of a `catch_warnings` block."""
    monkeypatch.setattr(module, "_HAS_CONTEXT_FILTERS", True)
    monkeypatch.setattr(module, "_silence", None)
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kmeans(np.zeros((200, 3)), 3, np.random.default_rng(0))
    assert not caught
    assert warnings.filters == before
