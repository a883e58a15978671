"""Dual coordinate ascent against single steps in NumPy, and what must hold after any epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import cutting_plane as naive
from widemargin._jit import coordinate
from widemargin._jit.workspace import Rows, make_rows


def far(rows: Rows) -> Rows:
    """The same rows at the head of more data than a cache holds: they are asked for in advance."""
    return rows._replace(data=np.concatenate([rows.data, np.zeros(2**21 + 1)]).astype(rows.data.dtype))


FORMS: dict[str, Any] = {
    "dense": make_rows,
    "csr": lambda X: make_rows(sp.csr_array(X)),
    "far dense": lambda X: far(make_rows(X)),
    "far csr": lambda X: far(make_rows(sp.csr_array(X))),
}


def problem(seed: int, n: int = 60, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.7)
    X[3] = 0.0
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0) * rng.uniform(0.5, 2, n)


class Point:
    """A dual point, and epochs on it."""

    def __init__(self, rows: Rows, signed: np.ndarray, d: int, sigma: float = 0.0) -> None:
        self.rows, self.signed, self.sigma = rows, signed, sigma
        self.alpha, self.w = np.zeros(len(signed)), np.zeros(d + 1)
        self.order = np.arange(len(signed))
        self.border = np.array([np.inf, -np.inf])

    def epoch(self, C: float) -> None:
        kept = coordinate.ascend(self.rows, self.signed, C, self.sigma, self.alpha, self.w, self.order, self.border)
        self.order = self.order[:kept]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_an_epoch_is_its_steps(form: str, sigma: float) -> None:
    X, signed = problem(0)
    point = Point(FORMS[form](X), signed, 5, sigma)
    alpha, w = np.zeros(60), np.zeros(6)
    for epoch in range(3):
        point.border[:] = np.inf, -np.inf  # nothing is set aside
        point.order = np.random.default_rng(epoch).permutation(60)
        visited = point.order.tolist()
        point.epoch(2.0)
        assert point.order.tolist() == visited
        with np.errstate(divide="ignore"):
            naive.ascend(X, signed, 2.0, sigma, alpha, w, visited)
        np.testing.assert_allclose(point.alpha, alpha, atol=1e-10)
        np.testing.assert_allclose(point.w, w, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_dual_never_falls_and_meets_the_primal(form: str, dtype: type, C: float) -> None:
    X, signed = problem(1)
    X = X.astype(dtype)
    point, values = Point(FORMS[form](X), signed, 5), []
    for epoch in range(3000 if C > 1 else 300):
        if epoch % 20 == 0:
            point.order = np.arange(60)  # those that were set aside are looked at again
        point.epoch(C)
        assert np.all((point.alpha >= 0) & (point.alpha <= C * np.abs(signed)))
        values.append(point.alpha.sum() - 0.5 * point.w @ point.w)
    assert np.all(np.diff(values) >= -1e-9 * C)
    np.testing.assert_allclose(point.w[:-1], (point.alpha * np.sign(signed)) @ X, rtol=1e-6, atol=1e-6)
    hinges = np.maximum(0, 1 - np.sign(signed) * (X @ point.w[:-1]))
    primal = 0.5 * point.w @ point.w + C * np.abs(signed) @ hinges
    assert primal - values[-1] <= 1e-4 * primal


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_added(form: str) -> None:
    X, coef = problem(2)
    coef[::3], w = 0.0, np.ones(6)
    coordinate.add_rows(FORMS[form](X), coef, w)
    np.testing.assert_allclose(w, 1.0 + np.append(coef @ X, 0.0), atol=1e-12)
