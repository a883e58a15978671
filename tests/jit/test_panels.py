"""The loops over panels against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from naive import nystrom as naive
from widemargin._jit import panels, workspace

RNG = np.random.default_rng(0)
LANES = panels.LANES
KINDS = {"products": workspace.PRODUCTS, "squares": workspace.SQUARES, "differences": workspace.DIFFERENCES}


def gathered(label: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    most = len(label) // LANES + n_groups
    rows, group = np.full((most, LANES), -1, np.int32), np.full(most, -1, np.int32)
    n_panels = panels.gather(label.astype(np.int32), n_groups, rows, group)
    return rows[:n_panels], group[:n_panels]


@pytest.mark.parametrize("n", [0, 1, LANES, LANES + 1, 5 * LANES])
@pytest.mark.parametrize("n_groups", [1, 3, 9])
def test_gathering(n: int, n_groups: int) -> None:
    label = RNG.integers(-1, n_groups, n)
    rows, group = gathered(label, n_groups)
    truth = naive.gather(label, n_groups, LANES)
    assert group.tolist() == [c for c, _ in truth]
    assert rows.tolist() == [mine for _, mine in truth]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 4, 7])
def test_descending(dtype: type, d: int) -> None:
    X = RNG.normal(size=(150, d)).astype(dtype)
    centres = RNG.normal(size=(3, 4, d)).astype(dtype)
    sizes = np.array([3, 4, 2], np.int32)
    children = np.array([[1, -1, 2, -9], [-2, -3, -4, -5], [-6, -7, -9, -9]], np.int32)  # beyond a size: never taken
    tree = workspace.Tree(centres, np.square(centres).sum(axis=2), sizes, children)
    label = np.zeros(150, np.int32)
    for _ in range(2):
        panels.descend(X, *gathered(label, 3), tree, label)
    np.testing.assert_array_equal(-1 - label, naive.route(X.astype(float), centres, sizes, children))
    assert len(set(label)) > 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "q", "d"), [(1, 0, 3), (2, 1, 4), (5, 2, 9)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_measuring(kind: str, m: int, q: int, d: int, dtype: type) -> None:
    X, leaf = RNG.normal(size=(100, d)).astype(dtype), RNG.integers(0, 3, 100)
    U, slopes = RNG.normal(size=(3, m, d)).astype(dtype), RNG.normal(size=(3, q, d)).astype(dtype)
    rows, of = gathered(leaf, 3)
    F = np.full((len(rows) * (m + q), LANES), np.nan, dtype)
    panels.measure(X, rows, of, U, KINDS[kind], slopes, F)
    for p, (mine, c) in enumerate(zip(rows, of, strict=True)):
        measures, lines = F[p * m : (p + 1) * m], F[len(rows) * m :][p * q : (p + 1) * q]
        atol = 1e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(
            measures.T, naive.measure(X[mine].astype(float), U[c].astype(float), kind), atol=atol
        )
        np.testing.assert_allclose(lines.T, X[mine] @ slopes[c].T, atol=atol)


@pytest.mark.parametrize(("has_products", "has_slopes"), [(False, False), (True, False), (False, True), (True, True)])
def test_answers(has_products: bool, has_slopes: bool) -> None:
    n, q, k, d, m = 90, 2, 3, 4, 6
    X, leaf, values = RNG.normal(size=(n, d)), RNG.integers(0, k, n), RNG.normal(size=(n, m))
    coef, intercept = RNG.normal(size=(k, q, m)), RNG.normal(size=(k, q))
    products = np.tril(RNG.normal(size=(k, q, m, m))) if has_products else np.zeros((k, q, 0, 0))
    slopes = RNG.normal(size=(k, q, d)) if has_slopes else np.zeros((k, q, d))
    rows, of = gathered(leaf, k)
    lines = [X[mine] @ slopes[c].T for mine, c in zip(rows, of, strict=True)] if has_slopes else []
    F = np.vstack([values[mine].T for mine in rows] + [line.T for line in lines])
    out = np.full((n, q), np.nan)
    panels.answer(F, rows, of, coef, products, q * has_slopes, intercept, out)
    for i, c in enumerate(leaf):
        truth = [
            naive.answer(values[i], coef[c, j], products[c, j], slopes[c, j], X[i], intercept[c, j]) for j in range(q)
        ]
        np.testing.assert_allclose(out[i], truth, atol=1e-10)
