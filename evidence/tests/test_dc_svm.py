"""What the DC-SVM experiments compute themselves is right. The figures are theirs to measure."""

import itertools
from importlib import import_module

import numpy as np
import pytest

from widemargin.datasets import load_patches


def test_cascade_keeps_support_vectors_alone():
    X, y = load_patches(600)
    cascade = import_module("evidence._dc_svm.cascade").CascadeSVC(C=4.0, gamma=1.0, n_parts=8).fit(X, y)
    assert [parts for parts, _ in cascade.layers_] == [8, 4, 2, 1]
    found = [set(rows) for _, rows in cascade.layers_]
    assert all(later <= earlier for earlier, later in itertools.pairwise(found))
    assert cascade.score(X, y) > 0.9


@pytest.mark.parametrize("whiten", [True, False])
def test_kmeans_features_are_kernel_values(whiten):
    X, _ = load_patches(200)
    approximate = import_module("evidence._dc_svm.approximate")
    Z = approximate.KMeansFeatures(n_components=400, gamma=1.0, whiten=whiten).fit_transform(X)
    squares = np.square(X[:, None] - X).sum(axis=2)
    if whiten:  # as many centres as rows: Nystroem's approximation is exact
        np.testing.assert_allclose(Z @ Z.T, np.exp(-squares), atol=0.05)
    else:
        assert Z.shape == (200, 200)
        np.testing.assert_allclose(np.sort(Z.max(axis=1)), 1.0, atol=0.05)
