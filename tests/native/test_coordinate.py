"""Dual coordinate ascent against single steps in NumPy, and what must hold after any epoch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import cutting_plane as naive
from widemargin._native import Stopped, Team, csr, linear
from widemargin.data.csr import make_csr

ALONE = Team(1)


def sparse_rows(X: np.ndarray) -> csr.CSRMatrix:
    return make_csr(sp.csr_array(X))


def far(make: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    """The same rows at the head of more data than a cache holds: they are asked for in advance."""
    return lambda X: make(np.concatenate([X, np.ones((2**20, X.shape[1]), X.dtype)]))


FORMS: dict[str, Any] = {"dense": np.asarray, "csr": sparse_rows}


def problem(seed: int, n: int = 60, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.7)
    X[3] = 0.0
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0) * rng.uniform(0.5, 2, n)


def squared_norms(rows: Any, n: int) -> np.ndarray:
    out = np.empty(n)
    linear.squared_norms(rows, out)
    return out


class Point:
    """A dual point, and epochs on it."""

    def __init__(self, rows: Any, signed: np.ndarray, d: int, sigma: float = 0.0, *, is_squared: bool = False) -> None:
        self.rows, self.signed, self.sigma, self.is_squared = rows, signed, sigma, is_squared
        self.squared_norms = squared_norms(rows, len(signed))
        self.alpha, self.w = np.zeros(len(signed)), np.zeros(d + 1)
        self.order = np.arange(len(signed))
        self.shrink = np.inf, -np.inf

    def epoch(self, C: float, team: Team = ALONE) -> None:
        kept, *self.shrink, self.gap = linear.ascent_epoch(
            team,
            self.rows,
            self.signed,
            self.squared_norms,
            C,
            self.sigma,
            self.alpha,
            self.w,
            self.order,
            *self.shrink,
            is_squared=self.is_squared,
        )
        self.order = self.order[:kept]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sigma", [0.0, 0.3])
@pytest.mark.parametrize("is_squared", [False, True])
def test_an_epoch_is_its_steps(form: str, sigma: float, is_squared: bool) -> None:
    X, signed = problem(0)
    point = Point(FORMS[form](X), signed, 5, sigma, is_squared=is_squared)
    alpha, w = np.zeros(60), np.zeros(6)
    for epoch in range(3):
        point.shrink = np.inf, -np.inf  # no shrinking
        point.order = np.random.default_rng(epoch).permutation(60)
        visited = point.order.tolist()
        point.epoch(2.0)
        assert point.order.tolist() == visited
        with np.errstate(divide="ignore"):
            naive.ascend(X, signed, 2.0, sigma, alpha, w, visited, is_squared=is_squared)
        np.testing.assert_allclose(point.alpha, alpha, atol=1e-10)
        np.testing.assert_allclose(point.w, w, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_the_gap_of_an_epoch_without_steps_is_the_duality_gap(form: str, sigma: float) -> None:
    X, signed = problem(6)
    point = Point(FORMS[form](X), signed, 5, sigma)
    for _ in range(400):
        point.shrink, point.order = (np.inf, -np.inf), np.arange(60)
        point.epoch(2.0)
    alpha, w = point.alpha.copy(), point.w.copy()
    point.shrink, point.order = (np.inf, -np.inf), np.arange(60)
    point.epoch(2.0)
    np.testing.assert_allclose(point.alpha, alpha, atol=1e-6)
    y = np.sign(signed)
    primal = 0.5 * w[:5] @ w[:5] + 2.0 * np.abs(signed) @ np.maximum(0, 1 - y * (X @ w[:5] + w[5]))
    dual = alpha.sum() - 0.5 * w[:5] @ w[:5] - w[5] * (y @ alpha)
    assert np.isclose(point.gap, primal - dual, atol=1e-4 * primal)


@pytest.mark.parametrize(("form", "dtype"), [("dense", np.float32), ("csr", np.float64)])
@pytest.mark.parametrize("C", [0.01, 100.0])
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
def test_a_stopped_epoch_leaves_a_dual_point(form: str) -> None:
    """It is stopped somewhere, by the clock; w is that of alpha, and rows not visited are as they were."""
    rng, n = np.random.default_rng(7), 400_000
    X, signed = rng.normal(size=(n, 5)), rng.choice([-1.0, 1.0], n)
    point, team = Point(FORMS[form](X), signed, 5, 0.3), Team(1)
    point.epoch(1.0, team)
    team.stop()
    before = point.alpha.copy()
    with pytest.raises(Stopped):
        point.epoch(1.0, team)
    np.testing.assert_array_equal(point.alpha, before)
    team.resume()
    team.stop_after(1e-3)  # an epoch takes longer
    with pytest.raises(Stopped):
        point.epoch(1.0, team)
    signs = point.alpha * signed
    np.testing.assert_allclose(point.w, np.append(signs @ X, 0.3 * signs.sum()), atol=1e-8)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_rows_that_no_cache_holds(form: str) -> None:
    """They are asked for in advance, and that changes nothing."""
    X, signed = problem(3)
    rows = far(FORMS[form])(X)
    n, order = len(rows), np.random.default_rng(0).permutation(60)
    alpha, w, weights = np.zeros(n), np.zeros(6), np.append(signed, np.ones(n - 60))
    linear.ascent_epoch(ALONE, rows, weights, squared_norms(rows, n), 1.0, 0.0, alpha, w, order.copy(), np.inf, -np.inf)
    near, v = np.zeros(60), np.zeros(6)
    few = FORMS[form](X)
    linear.ascent_epoch(ALONE, few, signed, squared_norms(few, 60), 1.0, 0.0, near, v, order.copy(), np.inf, -np.inf)
    np.testing.assert_array_equal(alpha[:60], near)
    np.testing.assert_array_equal(w, v)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (7, 0), (5, 9)])
def test_values_are_counted_and_squared(form: str, dtype: type, shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).normal(size=shape).astype(dtype)
    rows = FORMS[form](X)
    assert linear.count_values(rows) == X.size
    np.testing.assert_allclose(squared_norms(rows, len(X)), (X.astype(np.float64) ** 2).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_the_order_is_of_rows_and_has_memory_of_its_own(form: str) -> None:
    X, signed = problem(4)
    rows = FORMS[form](X)

    def ascend(order: Any, alpha: Any = None, w: Any = None) -> Any:
        point = np.zeros(60) if alpha is None else alpha, np.zeros(6) if w is None else w
        return linear.ascent_epoch(ALONE, rows, signed, np.ones(60), 1.0, 0.0, *point, order, np.inf, -np.inf)

    order = np.arange(60)
    assert ascend(order.copy())[0] == 60
    assert ascend(np.empty(0, np.int64))[0] == 0
    for index in (-1, 60, 2**62, -(2**62)):
        with pytest.raises(IndexError, match=r"order\[2\] must be in \[0, 60\)"):
            ascend(np.array([0, 59, index]))
    with pytest.raises(ValueError, match="order and alpha must not share memory"):
        ascend(order, alpha=order.view(np.float64))
    with pytest.raises(ValueError, match="order and w must not share memory"):
        ascend(order, w=order.view(np.float64)[10:16])
