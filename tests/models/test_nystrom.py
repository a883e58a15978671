"""Trees of Nystroem machines: decision values against plain loops, however rows come."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import nystrom as naive
from widemargin.kernels.functions import make_kernel
from widemargin.landmarks.features import join_features
from widemargin.landmarks.pseudo import plain, triangle
from widemargin.models import nystrom
from widemargin.models.nystrom import NystromForest, NystromTree
from widemargin.partition.hierarchy import grow, single_leaf

GAMMA, D, Q = 0.3, 5, 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, D)) * (RNG.random((300, D)) < 0.7)
KERNEL: Any = make_kernel("rbf", gamma=GAMMA)


def make_tree(k: int, m: int, p: int = 0, *, products: bool = False, slopes: bool = True, d: int = D) -> NystromTree:
    rows = X[:, :d]
    tree, labels = grow(rows, k, np.random.default_rng(k)) if k > 1 else (single_leaf(rows), np.zeros(300, int))
    parts = [plain(KERNEL, rows[labels == c][:m]) for c in range(tree.n_leaves)]
    parts = [triangle(part, rows[7 : 7 + p], rows) if p else part for part in parts]
    features, _, _ = join_features(parts)
    k, m = tree.n_leaves, features.landmarks.shape[1]
    form = (k, Q, m, m) if products else (k, Q, 0, 0)
    return NystromTree(
        tree,
        features,
        RNG.normal(size=(k, Q, features.n_values)),
        np.tril(RNG.normal(size=form)),
        RNG.normal(size=(k, Q if slopes else 0, d)),
        RNG.normal(size=(k, Q)),
    )


def by_hand(tree: NystromTree, rows: np.ndarray) -> np.ndarray:
    leaves = naive.route(rows, *(getattr(tree.tree, name) for name in ("centres", "sizes", "children")))
    out = np.empty((len(rows), Q))
    for i, c in enumerate(leaves):
        D2 = naive.measure(rows[i : i + 1], tree.features.landmarks[c], "squares")
        f = np.exp(-GAMMA * D2)[0]
        for q in range(Q):
            slope = tree.slopes[c, q] if tree.slopes.shape[1] else np.zeros(rows.shape[1])
            coef = tree.coef[c, q, : len(f)]
            out[i, q] = naive.answer(f, coef, tree.products[c, q], slope, rows[i], tree.intercept[c, q])
            if tree.features.anchors.shape[2]:
                lower = tree.features.rules[c] == 0
                far = naive.bound(np.sqrt(D2), tree.features.anchors[c], lower)[0]
                out[i, q] += tree.coef[c, q, len(f) :] @ np.exp(-GAMMA * far**2)
    return out


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@pytest.mark.parametrize(
    "shape",
    [
        {"k": 4, "m": 3},
        {"k": 4, "m": 3, "p": 2},
        {"k": 4, "m": 3, "products": True},
        {"k": 4, "m": 3, "slopes": False},
        {"k": 20, "m": 4, "p": 3, "products": True},
    ],
)
def test_decision_values(shape: dict[str, Any], form: Any) -> None:
    tree = make_tree(**shape)
    np.testing.assert_allclose(
        NystromForest([tree]).decide(form(X)), by_hand(tree, X), atol=1e-6 if "p" in shape else 1e-9
    )


@pytest.mark.parametrize("slopes", [False, True])
def test_one_leaf_of_many_landmarks_by_matrix_products(slopes: bool) -> None:
    tree = make_tree(1, 40, slopes=slopes)
    assert tree.is_flat
    forest = NystromForest([tree])
    truth = forest.decide(sp.csr_array(X))  # row by row
    np.testing.assert_allclose(forest.decide(X), truth, atol=1e-9)


def test_trees_are_averaged() -> None:
    trees = [make_tree(4, 3), make_tree(3, 5)]
    truth = np.mean([by_hand(tree, X) for tree in trees], axis=0)
    np.testing.assert_allclose(NystromForest(trees).decide(X), truth, atol=1e-9)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
def test_rows_are_projected_first(form: Any) -> None:
    projection = np.linalg.qr(RNG.normal(size=(D, 3)))[0]
    tree = make_tree(4, 3, d=3)
    forest = NystromForest([tree], projection)
    np.testing.assert_allclose(forest.decide(form(X)), by_hand(tree, X @ projection), atol=1e-9)
    assert forest.n_operations == pytest.approx(3 + tree.n_operations * 3 / D)


def test_blocks_threads_and_orders_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = NystromForest([make_tree(20, 4, 3, products=True), make_tree(1, 40)])
    truth = forest.decide(X, n_jobs=1)
    monkeypatch.setattr(nystrom, "_BLOCK_ROWS", (7, 7))
    np.testing.assert_allclose(forest.decide(X, n_jobs=2), truth, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(nystrom, "_CACHED_BYTES", 0)
    np.testing.assert_allclose(forest.decide(X, n_jobs=2), truth, rtol=1e-12, atol=1e-12)
    assert forest.decide(X[:0]).shape == (0, Q)


def test_rows_side_by_side_are_answered_as_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = RNG.normal(size=(700, D))
    forest = NystromForest([make_tree(4, 3, products=True), make_tree(3, 5), make_tree(1, 2)])
    assert all(tree.takes_panels(700) for tree in forest.trees)
    side_by_side = forest.decide(batch)
    monkeypatch.setattr(nystrom, "_NARROW_ROWS", (100, 100))
    np.testing.assert_allclose(forest.decide(batch, n_jobs=2), side_by_side, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(nystrom, "_NARROW", 0)
    np.testing.assert_allclose(forest.decide(batch), side_by_side, rtol=1e-9, atol=1e-9)


def test_single_rows() -> None:
    forest = NystromForest([make_tree(4, 3, 2, products=True), make_tree(3, 5)])
    decide = forest.as_function()
    first, second = decide(X[0]), decide(X[1])
    np.testing.assert_allclose([first, second], forest.decide(X[:2]), rtol=1e-12)
    np.testing.assert_allclose(decide(X[:, ::-1][2, ::-1]), forest.decide(X[2:3])[0], rtol=1e-12)  # not contiguous


def test_arrays_are_all_there_is() -> None:
    tree = make_tree(4, 3, 2, products=True)
    again = NystromTree.from_arrays(KERNEL, tree.arrays)
    np.testing.assert_array_equal(NystromForest([again]).decide(X), NystromForest([tree]).decide(X))
    forest = pickle.loads(pickle.dumps(NystromForest([tree])))
    np.testing.assert_array_equal(forest.decide(X), NystromForest([tree]).decide(X))
    assert forest.nbytes == sum(array.nbytes for array in tree.arrays.values())


def test_operations() -> None:
    tree = make_tree(4, 3, 2)
    per_row = tree.tree.n_distances + 3 + Q + (3 * 2 + Q * 5) / D
    assert tree.n_operations == pytest.approx(per_row)
