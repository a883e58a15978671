"""TwoStepKernelKMeans: the estimator contract, and clusters that a direct computation finds too."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import TwoStepKernelKMeans


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_finds_what_is_there(form) -> None:
    X, y = make_blobs(1500, centers=4, cluster_std=0.5, random_state=3)
    model = TwoStepKernelKMeans(4, gamma=0.1, n_sample=200, random_state=0).fit(form(X))
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(form(X)), model.labels_)


def test_equal_rows_and_too_many_clusters() -> None:
    model = TwoStepKernelKMeans(3, random_state=0).fit(np.ones((20, 2)))
    assert len(model.labels_) == 20
    with pytest.raises(ValueError, match=r"n_clusters must be at most n_samples=4, got 5"):
        TwoStepKernelKMeans(5).fit(np.eye(4))


def weighted_distances(model: TwoStepKernelKMeans, K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Distances of all rows to the weighted means of the clusters' sample rows, from the whole kernel matrix."""
    columns = []
    for c in range(model.n_clusters_):
        mine = model.sample_indices_[model.sample_labels_ == c]
        share = weights[mine] / weights[mine].sum()
        columns.append(K.diagonal() - 2 * K[:, mine] @ share + share @ K[np.ix_(mine, mine)] @ share)
    return np.sqrt(np.maximum(np.column_stack(columns), 0.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_distances_score_and_inertia(form, dtype) -> None:
    X = form((load_digits().data[:300] / 16).astype(dtype))
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 300) * (np.arange(300) % 3 > 0)
    model = TwoStepKernelKMeans(5, gamma=0.1, n_sample=100, random_state=1).fit(X, sample_weight=weights)
    distances = weighted_distances(model, rbf_kernel(X, gamma=0.1), weights)
    assert model.transform(X).dtype == dtype
    np.testing.assert_allclose(model.transform(X), distances, atol=1e-3 if dtype == np.float32 else 1e-7)
    assert weights[model.sample_indices_].min() > 0
    np.testing.assert_array_equal(model.labels_, distances.argmin(axis=1))
    assert model.inertia_ == pytest.approx(weights @ distances.min(axis=1) ** 2, rel=1e-4)
    assert model.score(X, sample_weight=weights) == pytest.approx(-model.inertia_)
    assert model.get_feature_names_out()[-1] == "twostepkernelkmeans4"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))


def test_a_kernel_matrix_is_clustered_as_its_rows() -> None:
    X = load_digits().data[:400] / 16
    weights = np.random.default_rng(0).integers(0, 3, 200)
    options = {"n_clusters": 4, "n_sample": 100, "random_state": 0}
    rows = TwoStepKernelKMeans(gamma=0.1, **options).fit(X[:200], sample_weight=weights)
    given = TwoStepKernelKMeans(kernel="precomputed", **options)
    given.fit(rbf_kernel(X[:200], gamma=0.1), sample_weight=weights)
    np.testing.assert_array_equal(given.labels_, rows.labels_)
    assert given.inertia_ == pytest.approx(rows.inertia_)
    K = rbf_kernel(X[200:], X[:200], gamma=0.1)
    given = pickle.loads(pickle.dumps(given))
    np.testing.assert_array_equal(given.predict(K), rows.predict(X[200:]))
    np.testing.assert_allclose(given.transform(K), rows.transform(X[200:]), atol=1e-6)
    assert given.score(K) == pytest.approx(rows.score(X[200:]))
    assert given.score(rbf_kernel(X[:200], gamma=0.1), sample_weight=weights) == pytest.approx(-given.inertia_)
    linear = TwoStepKernelKMeans(kernel="precomputed", **options).fit(X[:200] @ X[:200].T)
    for method in (linear.transform, linear.score):
        with pytest.raises(ValueError, match=r"where k\(x, x\) differs between the training rows"):
            method(X[200:] @ X[:200].T)
    with pytest.raises(ValueError, match=r"X must be a square kernel matrix .* got shape \(200, 3\)"):
        given.fit(X[:200, :3])


def test_too_many_clusters_for_the_weights() -> None:
    with pytest.raises(ValueError, match="n_clusters must be at most the number of positive weights=2, got 3"):
        TwoStepKernelKMeans(3).fit(np.eye(4), sample_weight=[1, 0, 0, 2])
    model = TwoStepKernelKMeans(2, random_state=0).fit(np.eye(4), sample_weight=[1, 0, 0, 2])
    assert sorted(model.labels_[[0, 3]]) == [0, 1]
