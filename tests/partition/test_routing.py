"""Router: the training set and new rows are routed by one rule, and it is the one that is written down."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import kernels as naive
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.entry_precision import ensure_precision
from widemargin.kernels.functions import Precomputed, make_kernel
from widemargin.partition.routing import InputRouter, KernelRouter

GAMMA = 0.3
FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": lambda X: sp.csr_array(X),
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def sparse_rows(n: int, d: int = 40, seed: int = 0) -> np.ndarray:
    """Rows of which nine tenths are zeros: dense ones are held as CSR."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < 0.1, rng.normal(size=(n, d)), 0.0)


def rows_of(kind: str, n: int) -> np.ndarray:
    return sparse_rows(n) if kind == "mostly zeros" else np.random.default_rng(0).normal(size=(n, 3)) + 2.0


def make_router(name: str, kernel: Any, samples: Any, chosen: np.ndarray, labels: np.ndarray) -> Any:
    points = samples.take(chosen)
    if name == "kernel":
        return KernelRouter(kernel, points, labels)
    return InputRouter(points, labels)


def test_a_kernel_router_is_pickled_without_the_matrix_of_its_points() -> None:
    X, team = np.random.default_rng(0).normal(size=(900, 3)), ThreadTeam(1)
    kernel, labels = make_kernel("rbf", gamma=GAMMA), np.arange(300) % 4
    points = make_samples(X, kernel.sample_form).take(np.arange(300))
    router = KernelRouter(kernel, points, np.zeros(300, np.intp)).with_labels(labels)
    pickled = pickle.dumps(router)
    assert len(pickled) < 0.1 * router.gram.nbytes
    again = pickle.loads(pickled)
    np.testing.assert_array_equal(again.route(X, team), router.route(X, team))
    np.testing.assert_array_equal(again.gram, router.gram)


@pytest.mark.parametrize(
    ("form", "rows"),
    [("float64", "dense"), ("float32", "mostly zeros"), ("csr", "mostly zeros"), ("csr float32", "dense")],
)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
@pytest.mark.parametrize("name", ["kernel", "input"])
def test_training_rows_are_routed_to_where_they_were_assigned(name: str, kernel: str, form: str, rows: str) -> None:
    X = FORMS[form](rows_of(rows, 150))
    k = make_kernel(kernel, gamma=GAMMA, degree=2, coef0=1.0)
    samples = ensure_precision(k, make_samples(X, k.sample_form))
    chosen, labels = np.arange(0, 150, 4), np.arange(38) % 5
    router = make_router(name, k, samples, chosen, labels)
    team = ThreadTeam(1)
    assigned = router.assign(samples, team)
    assert assigned.shape == (150,)
    assert router.n_clusters == 5
    np.testing.assert_array_equal(router.route(X, team), assigned)
    # and a few at a time, as predict may
    np.testing.assert_array_equal(
        np.concatenate([router.route(X[i : i + 7], team) for i in range(0, 150, 7)]), assigned
    )


def test_a_precomputed_matrix_routes_by_its_columns() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    K = naive.rbf(X, X, GAMMA)
    chosen, labels = np.arange(1, 80, 3), np.arange(27) % 4
    given = KernelRouter(Precomputed(), make_samples(K, "entries").take(chosen), labels)
    team, kernel = ThreadTeam(1), make_kernel("rbf", gamma=GAMMA)
    assigned = given.assign(make_samples(K, "entries"), team)
    np.testing.assert_array_equal(given.route(K, team), assigned)
    np.testing.assert_array_equal(given.route(K[10:20], team), assigned[10:20])
    own = KernelRouter(kernel, make_samples(X, kernel.sample_form).take(chosen), labels)
    np.testing.assert_array_equal(own.route(X, team), assigned)


def test_kernel_clusters_are_nearest_means_in_feature_space() -> None:
    X, Z = np.random.default_rng(1).normal(size=(2, 60, 3))
    labels = np.arange(60) % 6
    kernel = make_kernel("rbf", gamma=GAMMA)
    router = KernelRouter(kernel, make_samples(X, kernel.sample_form), labels)
    K, cross = naive.rbf(X, X, GAMMA), naive.rbf(Z, X, GAMMA)
    means = [labels == c for c in range(6)]
    norms = np.array([K[np.ix_(mine, mine)].mean() for mine in means])
    truth = np.array([1.0 - 2.0 * cross[:, mine].mean(axis=1) + s for mine, s in zip(means, norms, strict=True)])
    np.testing.assert_allclose(router.squared_centre_norms, norms, rtol=1e-12)
    np.testing.assert_array_equal(router.route(Z, ThreadTeam(1)), truth.argmin(axis=0))
    # routers that only route are given the norms and never see the points' own matrix
    lean = KernelRouter(kernel, make_samples(X, kernel.sample_form), labels, norms)
    np.testing.assert_array_equal(lean.route(Z, ThreadTeam(1)), truth.argmin(axis=0))
    assert "gram" not in vars(lean)


@pytest.mark.parametrize("name", ["kernel", "input"])
def test_the_next_cluster_and_the_ratio_of_distances(name: str) -> None:
    X, Z = np.random.default_rng(1).normal(size=(2, 60, 3))
    labels, kernel, team = np.arange(60) % 6, make_kernel("rbf", gamma=GAMMA), ThreadTeam(1)
    router = make_router(name, kernel, make_samples(X, kernel.sample_form), np.arange(60), labels)
    mine = np.eye(6)[labels] / 10
    if name == "kernel":
        K = naive.rbf(X, X, GAMMA)
        far = 1.0 - 2.0 * naive.rbf(Z, X, GAMMA) @ mine + (mine.T @ K @ mine).diagonal()
    else:
        far = np.array([((z - mine.T @ X) ** 2).sum(axis=1) for z in Z])
    own, samples = router.route_with_samples(Z, team)
    second, ratio = router.next_cluster(samples, own, team)
    np.testing.assert_array_equal(np.stack([own, second]), np.argsort(far, axis=1)[:, :2].T)
    nearest = np.sort(far, axis=1)
    np.testing.assert_allclose(ratio, nearest[:, 0] / nearest[:, 1], rtol=1e-9)


@pytest.mark.parametrize("name", ["kernel", "input"])
def test_of_one_cluster_there_is_no_next_one(name: str) -> None:
    X, kernel, team = np.random.default_rng(1).normal(size=(9, 3)), make_kernel("rbf", gamma=GAMMA), ThreadTeam(1)
    router = make_router(name, kernel, make_samples(X, kernel.sample_form), np.arange(9), np.zeros(9, int))
    assert not router.next_cluster(make_samples(X, kernel.sample_form), np.zeros(9, int), team)[1].any()


@pytest.mark.parametrize("name", ["kernel", "input"])
def test_rows_at_two_equal_centres(name: str) -> None:
    """0 / 0: the ratio is 1."""
    X, kernel, team = np.zeros((8, 3)), make_kernel("rbf", gamma=GAMMA), ThreadTeam(1)
    router = make_router(name, kernel, make_samples(X, kernel.sample_form), np.arange(8), np.arange(8) % 2)
    own, samples = router.route_with_samples(X, team)
    second, ratio = router.next_cluster(samples, own, team)
    np.testing.assert_array_equal(second, 1 - own)
    np.testing.assert_array_equal(ratio, np.ones(8))


@pytest.mark.parametrize(("form", "offset"), [("float64", 0.0), ("float32", 1000.0), ("csr float32", 0.0)])
def test_input_clusters_are_nearest_means_of_rows(form: str, offset: float) -> None:
    X, Z = (np.random.default_rng(1).normal(size=(2, 60, 3)) + offset).round(2)
    labels = np.arange(60) % 6
    X[:, 0] += labels
    router = InputRouter(make_samples(FORMS[form](X), "distances"), labels)
    centres = np.array([X[labels == c].mean(axis=0) for c in range(6)])
    distances = ((Z[:, None] - centres) ** 2).sum(axis=2)
    chosen = router.route(FORMS[form](Z), ThreadTeam(1))
    assert np.all(distances[np.arange(60), chosen] <= distances.min(axis=1) + 1e-3)
    assert np.mean(chosen == distances.argmin(axis=1)) > 0.97


@pytest.mark.parametrize("name", ["kernel", "input"])
def test_distances_differ_from_the_true_ones_by_a_term_of_each_point(name: str) -> None:
    X, labels = np.random.default_rng(2).normal(size=(30, 3)), np.arange(30) % 3
    kernel = make_kernel("rbf", gamma=GAMMA)
    router = make_router(name, kernel, make_samples(X, kernel.sample_form), np.arange(30), labels)
    K = naive.rbf(X, X, GAMMA) if name == "kernel" else X @ X.T
    means = [labels == c for c in range(3)]
    truth = np.array([K.diagonal() - 2 * K[:, m].mean(axis=1) + K[np.ix_(m, m)].mean() for m in means]).T
    rest = truth - router.distances()
    np.testing.assert_allclose(rest - rest[:, :1], 0, atol=1e-10)


@pytest.mark.parametrize("name", ["kernel", "input"])
def test_other_labels_and_splits(name: str) -> None:
    X = np.concatenate([np.random.default_rng(0).normal(c, 0.1, (10, 2)) for c in (0, 3, 6)])
    kernel = make_kernel("rbf", gamma=1.0)
    router = make_router(name, kernel, make_samples(X, kernel.sample_form), np.arange(30), np.repeat([0, 1], (10, 20)))
    parts = router.split(np.arange(10, 30), 2, np.random.default_rng(0))
    assert np.bincount(parts).tolist() == [10, 10]
    other = router.with_labels(np.repeat([0, 1, 2], 10))
    assert (router.n_clusters, other.n_clusters) == (2, 3)
    assert other.name == name
    assert len(set(parts[:10])) == len(set(parts[10:])) == 1
    np.testing.assert_array_equal(other.route(X, ThreadTeam(1)), np.repeat([0, 1, 2], 10))
    np.testing.assert_array_equal(router.route(X[:10], ThreadTeam(1)), np.zeros(10))  # unchanged


@pytest.mark.parametrize("name", ["kernel", "input"])
def test_threads_do_not_change_the_routing(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float32)
    kernel = make_kernel("rbf", gamma=GAMMA)
    router = make_router(name, kernel, make_samples(X, kernel.sample_form), np.arange(40), np.arange(40) % 4)
    with ThreadTeam(2) as team:
        np.testing.assert_array_equal(router.route(X, team), router.route(X, ThreadTeam(1)))
    assert router.route(X[:0], ThreadTeam(1)).shape == (0,)
