"""TwoStepKernelKMeans: the estimator contract, and clusters that a direct computation finds too."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import TwoStepKernelKMeans


@parametrize_with_checks([TwoStepKernelKMeans(n_clusters=2, random_state=0)])
def test_keeps_the_estimator_contract(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_finds_what_is_there(form) -> None:
    X, y = make_blobs(1500, centers=4, cluster_std=0.5, random_state=3)
    model = TwoStepKernelKMeans(4, gamma=0.1, n_sample=200, random_state=0).fit(form(X))
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(form(X)), model.labels_)


def test_assigns_to_the_nearest_mean_in_feature_space() -> None:
    X = load_digits().data[:600] / 16
    model = TwoStepKernelKMeans(5, gamma=0.1, n_sample=100, random_state=1).fit(X)
    gram = np.exp(-0.1 * ((X[:, None] - X[model.sample_indices_]) ** 2).sum(-1))
    distances = []
    for c in range(model.n_clusters_):
        mine = model.sample_labels_ == c
        within = gram[model.sample_indices_][np.ix_(mine, mine)]
        distances.append(within.mean() - 2 * gram[:, mine].mean(axis=1))
    np.testing.assert_array_equal(np.argmin(distances, axis=0), model.labels_)


def test_clusters_neither_starve_nor_swallow() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.3, (3000, 3)), rng.normal(5, 2.0, (200, 3))])
    sizes = np.bincount(TwoStepKernelKMeans(16, gamma=0.5, random_state=0).fit(X).labels_)
    assert sizes.max() <= 3.5 * len(X) / 16
    assert sizes.min() >= 0.1 * len(X) / 16


def test_equal_rows_and_too_many_clusters() -> None:
    model = TwoStepKernelKMeans(3, random_state=0).fit(np.ones((20, 2)))
    assert len(model.labels_) == 20
    with pytest.raises(ValueError, match=r"n_clusters must be at most n_samples=4, got 5"):
        TwoStepKernelKMeans(5).fit(np.eye(4))
