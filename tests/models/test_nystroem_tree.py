"""Trees of Nystroem machines: decision values against plain loops, however rows come."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import nystroem as naive
from widemargin import DCPredClassifier, LandmarkNystroem
from widemargin._threads import row_blocks
from widemargin.kernels.functions import make_kernel
from widemargin.models import nystroem_tree
from widemargin.models.nystroem_tree import NystroemForest, NystroemTree
from widemargin.nystroem.features import stack_leaves
from widemargin.nystroem.pseudo_landmarks import add_by_triangle_rule, landmark_features
from widemargin.partition.hierarchy import grow, single_leaf

GAMMA, D, Q = 0.3, 5, 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, D)) * (RNG.random((300, D)) < 0.7)
KERNEL: Any = make_kernel("rbf", gamma=GAMMA)


def make_tree(k: int, m: int, p: int = 0, *, products: bool = False, slopes: bool = True, d: int = D) -> NystroemTree:
    rows = X[:, :d]
    tree, labels = (
        grow(rows, k, np.random.default_rng(k), lambda: True) if k > 1 else (single_leaf(rows), np.zeros(300, int))
    )
    parts = [landmark_features(KERNEL, rows[labels == c][:m]) for c in range(tree.n_leaves)]
    parts = [add_by_triangle_rule(part, rows[7 : 7 + p], rows) if p else part for part in parts]
    features, _, _ = stack_leaves(parts)
    k, m = tree.n_leaves, features.landmarks.shape[1]
    form = (k, Q, m, m) if products else (k, Q, 0, 0)
    return NystroemTree(
        tree,
        features,
        RNG.normal(size=(k, Q, features.n_kernel_values)),
        np.tril(RNG.normal(size=form)),
        RNG.normal(size=(k, Q if slopes else 0, d)),
        RNG.normal(size=(k, Q)),
    )


def by_hand(tree: NystroemTree, rows: np.ndarray) -> np.ndarray:
    return naive.decision_values(tree.arrays | {"products": tree.products}, rows, GAMMA)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@pytest.mark.parametrize(
    "shape",
    [
        {"k": 4, "m": 3},
        {"k": 4, "m": 3, "slopes": False},
        {"k": 20, "m": 4, "p": 3, "products": True},
        {"k": 1, "m": 40, "slopes": False},
    ],
)
def test_decision_values(shape: dict[str, Any], form: Any) -> None:
    tree = make_tree(**shape)
    np.testing.assert_allclose(
        NystroemForest([tree]).decision_values(form(X)), by_hand(tree, X), atol=1e-6 if "p" in shape else 1e-9
    )


def test_trees_are_averaged() -> None:
    trees = [make_tree(4, 3), make_tree(3, 5)]
    truth = np.mean([by_hand(tree, X) for tree in trees], axis=0)
    np.testing.assert_allclose(NystroemForest(trees).decision_values(X), truth, atol=1e-9)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
def test_rows_are_projected_first(form: Any) -> None:
    projection = np.linalg.qr(RNG.normal(size=(D, 3)))[0]
    tree = make_tree(4, 3, d=3)
    forest = NystroemForest([tree], projection)
    np.testing.assert_allclose(forest.decision_values(form(X)), by_hand(tree, X @ projection), atol=1e-9)
    assert forest.n_operations == pytest.approx(3 + tree.n_operations * 3 / D)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@pytest.mark.parametrize("has_projection", [False, True])
def test_threads_change_nothing(form: Any, has_projection: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nystroem_tree, "SMALL_WORK", 0)
    monkeypatch.setattr(nystroem_tree, "row_blocks", lambda n: row_blocks(n, 100))
    rows, projection = form(np.tile(X, (9, 1))), np.linalg.qr(RNG.normal(size=(D, D)))[0]
    trees = [make_tree(20, 4, 3, products=True), make_tree(1, 40)]
    forest = NystroemForest(trees, projection if has_projection else None)
    truth = forest.decision_values(rows, n_jobs=1)
    np.testing.assert_array_equal(forest.decision_values(rows, n_jobs=2), truth)
    np.testing.assert_allclose(forest.decision_values(rows[:50]), truth[:50], rtol=1e-9, atol=1e-9)
    assert forest.decision_values(rows[:0]).shape == (0, Q)


def test_single_rows() -> None:
    forest = NystroemForest([make_tree(4, 3, 2, products=True), make_tree(3, 5)])
    decide = forest.as_function()
    first, second = decide(X[0]), decide(X[1])
    np.testing.assert_allclose([first, second], forest.decision_values(X[:2]), rtol=1e-12)
    np.testing.assert_allclose(
        decide(X[:, ::-1][2, ::-1]), forest.decision_values(X[2:3])[0], rtol=1e-12
    )  # not contiguous


def test_arrays_and_pickles_restore_the_tree() -> None:
    tree = make_tree(4, 3, 2, products=True)
    again = NystroemTree.from_arrays(KERNEL, tree.arrays)
    np.testing.assert_array_equal(NystroemForest([again]).decision_values(X), NystroemForest([tree]).decision_values(X))
    forest = pickle.loads(pickle.dumps(NystroemForest([tree])))
    np.testing.assert_array_equal(forest.decision_values(X), NystroemForest([tree]).decision_values(X))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("products", lambda a: a[:, :, :1]),  # packed triangles, which only this check unpacks
        ("products", lambda a: a[:1]),
        ("products", lambda a: a.astype(object)),
        ("intercept", lambda a: None),
    ],
)
def test_saved_arrays_that_do_not_fit_one_another(name: str, change: Any) -> None:
    arrays = make_tree(4, 3, 2, products=True).arrays
    with pytest.raises(ValueError, match="arrays of a tree of Nystroem machines do not fit one another"):
        NystroemTree.from_arrays(KERNEL, {**arrays, name: change(arrays[name])})
    del arrays[name]
    with pytest.raises(ValueError, match=name):
        NystroemTree.from_arrays(KERNEL, arrays)


def test_prediction_cost() -> None:
    tree = make_tree(4, 3, 2)
    per_row = tree.tree.n_distances + 3 + Q + (3 * 2 + Q * 5) / D
    assert tree.n_operations == pytest.approx(per_row)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "dtype"), [(np.asarray, np.float32), (sp.csr_array, np.float64)])
@pytest.mark.parametrize("m", [1, 9, 40, 70])  # registers of a row of a tile: from half of one to several
def test_a_row_has_the_same_values_whatever_the_others(m: int, form: Any, dtype: type) -> None:
    rows = np.random.default_rng(m).normal(size=(400, 19)).astype(dtype)
    labels = rows[:, 0] * rows[:, 1] > 0
    for options in ({"n_clusters": 1}, {"n_clusters": 3, "pseudo": "triangle"}):
        model = DCPredClassifier(n_landmarks=m, gamma=0.1, random_state=0, **options).fit(form(rows), labels)
        values = model.decision_function(form(rows))
        single = [model.decision_function(form(rows[i : i + 1]))[0] for i in range(0, 400, 20)]
        np.testing.assert_array_equal(single, values[::20])
        np.testing.assert_array_equal(model.decision_function(form(rows[5:])), values[5:])
        np.testing.assert_array_equal(model.set_params(n_jobs=1).decision_function(form(rows)), values)


def test_coordinates_of_a_row_are_the_same_whatever_the_others() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 12)).astype(np.float32)
    model = LandmarkNystroem(50, random_state=0).fit(rows)
    coordinates = model.transform(rows)
    np.testing.assert_array_equal(np.vstack([model.transform(row[None]) for row in rows[:40]]), coordinates[:40])
    np.testing.assert_array_equal(model.transform(rows[7:]), coordinates[7:])
