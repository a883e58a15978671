"""The loops of local Nystroem machines against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import nystrom as naive
from widemargin._jit import nystrom, workspace
from widemargin.partition.hierarchy import single_leaf

RNG = np.random.default_rng(0)
FORMS = [np.ascontiguousarray, sp.csr_array]
KINDS = {"products": workspace.PRODUCTS, "squares": workspace.SQUARES, "differences": workspace.DIFFERENCES}


def some_rows(n: int, d: int, dtype: type = np.float64) -> np.ndarray:
    return (RNG.normal(size=(n, d)) * (RNG.random((n, d)) < 0.6)).astype(dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_routing(form: Any, dtype: type) -> None:
    X = some_rows(40, 5, dtype)
    centres = RNG.normal(size=(3, 4, 5)).astype(dtype)
    sizes = np.array([3, 4, 2], np.int32)
    children = np.array([[1, -1, 2, -9], [-2, -3, -4, -5], [-6, -7, -9, -9]], np.int32)  # beyond a size: never taken
    tree = workspace.Tree(centres, np.square(centres).sum(axis=2), sizes, children)
    order = RNG.permutation(40)[:25]
    leaf = np.empty(25, np.int32)
    points, empty = workspace.no_points(5, dtype), np.empty((25, 0), dtype)
    nystrom.meet(workspace.make_rows(form(X)), order, tree, leaf, points, workspace.SQUARES, empty, points, empty)
    np.testing.assert_array_equal(leaf, naive.route(X[order].astype(float), centres, sizes, children))
    assert len(set(leaf)) > 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_measuring(form: Any, kind: str, m: int, dtype: type) -> None:
    X, U = some_rows(9, 6, dtype), RNG.normal(size=(2, m, 6)).astype(dtype)
    at_zero = np.array([naive.measure(np.zeros((1, 6)), u, kind)[0] for u in U]).astype(dtype)
    order, leaf = np.array([3, 0, 8]), np.array([1, 0, 1], np.int32)
    F = np.full((3, m + 2), np.nan, dtype)
    tree, slopes, linear = single_leaf(X).arrays, workspace.no_points(6, dtype), np.empty((3, 0), dtype)
    points = workspace.Points(U, at_zero)
    nystrom.meet(workspace.make_rows(form(X)), order, tree, leaf, points, KINDS[kind], F, slopes, linear)
    truth = [
        naive.measure(X[i : i + 1].astype(float), U[c].astype(float), kind)[0] for i, c in zip(order, leaf, strict=True)
    ]
    np.testing.assert_allclose(F[:, :m], truth, atol=1e-5 if dtype == np.float32 else 1e-12)
    assert np.isnan(F[:, m:]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_routed", [True, False])
def test_routing_and_measuring_at_once(form: Any, is_routed: bool) -> None:
    X, U, slopes = some_rows(20, 5), RNG.normal(size=(3, 4, 5)), RNG.normal(size=(3, 2, 5))
    centres = RNG.normal(size=(int(is_routed), 3, 5))
    sizes, children = np.full(len(centres), 3, np.int32), np.tile(np.int32([-1, -2, -3]), (len(centres), 1))
    order, leaf = RNG.permutation(20)[:9], RNG.integers(0, 3, 9).astype(np.int32)
    truth = naive.route(X[order], centres, sizes, children) if is_routed else leaf.copy()
    points, lines = workspace.Points(U, np.square(U).sum(axis=2)), workspace.Points(slopes, np.zeros((3, 2)))
    tree = workspace.Tree(centres, np.square(centres).sum(axis=2), sizes, children)
    F, linear = np.empty((9, 4)), np.empty((9, 2))
    nystrom.meet(workspace.make_rows(form(X)), order, tree, leaf, points, workspace.SQUARES, F, lines, linear)
    np.testing.assert_array_equal(leaf, truth)
    for i, c, f, g in zip(order, truth, F, linear, strict=True):
        np.testing.assert_allclose(f, naive.measure(X[i : i + 1], U[c], "squares")[0], atol=1e-12)
        np.testing.assert_allclose(g, slopes[c] @ X[i], atol=1e-12)


@pytest.mark.parametrize("power", [1, 2])
def test_bounds_hold_the_distance_between_them(power: int) -> None:
    X, U, V = RNG.normal(size=(20, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(6, 3))
    norm = np.linalg.norm
    D, true = (np.array([[norm(x - z) for z in Z] for x in X]) for Z in (U, V))
    anchors = np.array([[norm(u - v) for v in V] for u in U])
    estimates = []
    for rule in (nystrom.LOWER, nystrom.UPPER):
        F = np.hstack([D**power, np.zeros((20, 6))])
        nystrom.bound(F, np.zeros(20, np.int32), anchors[None], np.array([rule]), power)
        estimates.append(F[:, 4:] ** (1 / power))
        np.testing.assert_allclose(estimates[-1], naive.bound(D, anchors, rule == nystrom.LOWER), rtol=1e-12)
        np.testing.assert_allclose(F[:, :4], D**power)
    assert np.all(estimates[0] <= true + 1e-12)
    assert np.all(true <= estimates[1] + 1e-12)


@pytest.mark.parametrize(("has_products", "has_slopes"), [(False, False), (True, False), (False, True), (True, True)])
def test_answers(has_products: bool, has_slopes: bool) -> None:
    n, r, q, k, d, m = 7, 5, 2, 3, 4, 3
    F, X, order, leaf = RNG.normal(size=(n, r)), RNG.normal(size=(n, d)), RNG.permutation(n), RNG.integers(0, k, n)
    coef, intercept = RNG.normal(size=(k, q, r)), RNG.normal(size=(k, q))
    products = np.tril(RNG.normal(size=(k, q, m, m))) if has_products else np.zeros((k, q, 0, 0))
    slopes = RNG.normal(size=(k, q, d)) if has_slopes else np.zeros((k, q, d))
    linear = np.einsum("rd,rqd->rq", X, slopes[leaf]) if has_slopes else np.empty((n, 0))
    out = np.full((n, q), np.nan)
    nystrom.answer(F, linear, order, leaf.astype(np.int32), coef, products, intercept, out)
    for i in range(n):
        for j in range(q):
            c = leaf[i]
            f = F[i, : len(products[c, j])] if has_products else F[i]
            truth = naive.answer(f, coef[c, j, : len(f)], products[c, j], slopes[c, j], X[i], intercept[c, j])
            truth += coef[c, j, len(f) :] @ F[i, len(f) :]
            assert out[order[i], j] == pytest.approx(truth, rel=1e-10)
