"""Trees of clusters: every row is where routing finds it, and leaves are of like size."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import nystroem as naive
from widemargin.partition import hierarchy
from widemargin.partition.hierarchy import count_levels, grow, single_leaf

X = np.random.default_rng(0).normal(size=(600, 4))


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@pytest.mark.parametrize("k", [1, 12, 150])
def test_rows_are_routed_to_their_leaves(k: int, form: Any) -> None:
    tree, labels = grow(form(X), k, np.random.default_rng(1), lambda: True)
    np.testing.assert_array_equal(tree.route(form(X)), labels)
    assert tree.n_leaves == labels.max() + 1 == len(np.unique(labels))
    assert 0.7 * k <= tree.n_leaves <= 1.4 * k
    if k > 1:
        np.testing.assert_array_equal(labels, naive.route(X, tree.centres, tree.sizes, tree.children))
        assert np.bincount(labels).max() < 8 * len(X) / k
        assert tree.n_distances <= count_levels(k) * 12 * 2


@pytest.mark.slow
def test_no_node_has_more_than_12_children_where_one_cluster_has_most_rows() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([0.3 * rng.normal(size=(4800, 2)), rng.uniform(-60, 60, (1200, 2))])
    tree, labels = grow(rows, 100, np.random.default_rng(0), lambda: True)
    assert tree.sizes.max() <= 12
    assert tree.n_distances <= 3 * 12
    np.testing.assert_array_equal(tree.route(rows), labels)


def test_equal_rows_make_fewer_leaves() -> None:
    rows = np.repeat(X[:3], 20, axis=0)
    tree, labels = grow(rows, 10, np.random.default_rng(0), lambda: True)
    assert tree.n_leaves <= 3
    np.testing.assert_array_equal(tree.route(rows), labels)
    tree, labels = grow(np.ones((5, 2)), 4, np.random.default_rng(0), lambda: True)
    assert tree.n_leaves == 1
    assert not labels.any()


def test_a_centre_that_is_no_rows_nearest_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding can leave a child without rows where they are near one another, or one with all of them."""
    centroids, far = hierarchy.centroids, np.full((1, 4), 1e6)
    monkeypatch.setattr(hierarchy, "centroids", lambda *batch: np.concatenate([centroids(*batch), far]))
    tree, labels = grow(X, 30, np.random.default_rng(0), lambda: True)
    assert tree.n_leaves == len(np.unique(labels)) > 12
    np.testing.assert_array_equal(tree.route(X), labels)
    monkeypatch.setattr(hierarchy, "centroids", lambda batch, _: np.concatenate([batch[:1], far]))
    tree, labels = grow(X, 30, np.random.default_rng(0), lambda: True)
    assert tree.n_leaves == 1
    assert not labels.any()


def test_one_leaf_takes_all() -> None:
    tree = single_leaf(X)
    assert tree.n_leaves == 1
    assert tree.n_distances == 0
    assert not tree.route(X).any()


def test_trees_are_pickled_as_arrays() -> None:
    tree, labels = grow(X, 20, np.random.default_rng(0), lambda: True)
    tree.route(X)
    again = pickle.loads(pickle.dumps(tree))
    assert set(again.__dict__) == {"centres", "sizes", "children"}
    np.testing.assert_array_equal(again.route(X), labels)
