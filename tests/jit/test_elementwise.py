"""Compiled functions of a tile against plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import kernels as naive
from widemargin._jit import elementwise
from widemargin._jit.turns import new_turn

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
quick = settings(max_examples=40, deadline=None, derandomize=True)
shapes = st.tuples(st.integers(0, 5), st.integers(0, 9))


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=shapes,
    d=st.integers(1, 4),
    gamma=st.sampled_from([1e-4, 0.3, 2.0, 30.0]),
)
def test_rbf(seed: int, shape: tuple[int, int], d: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(n, d)).astype(SINGLE) for n in shape)
    G = X @ Z.T
    a, b = gamma * (X * X).sum(axis=1), gamma * (Z * Z).sum(axis=1)
    expected = naive.rbf_of_products(G, a, b, gamma)
    out = G.copy()
    elementwise.rbf(out, a.astype(SINGLE), b.astype(SINGLE), gamma)
    # the exponent is rounded to float32 before it is exponentiated
    exponent = gamma * ((X[:, None].astype(DOUBLE) ** 2).sum(-1) + (Z[None].astype(DOUBLE) ** 2).sum(-1))
    np.testing.assert_array_less(np.abs(out - expected), 4e-7 * (1 + exponent) * expected + 1e-37)


@quick
@given(seed=st.integers(0, 2**32 - 1), shape=shapes, dtype=st.sampled_from([SINGLE, DOUBLE]))
def test_exponent(seed: int, shape: tuple[int, int], dtype: np.dtype) -> None:
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(n, 3)) for n in shape)
    Z[: len(X)] = X[: len(Z)]  # distances that come out a little above or below 0
    a, b = 0.3 * (X * X).sum(axis=1), 0.3 * (Z * Z).sum(axis=1)
    out = np.full(shape, np.nan, dtype)
    elementwise.exponent(X @ Z.T, a, b, 0.3, out)
    assert (out <= 0).all()
    np.testing.assert_allclose(out, np.log(naive.rbf(X, Z, 0.3)), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("exponent", [0.0, 1e-8, 1e-3, 0.3465, 0.3466, 0.7, 1.0, 10.0, 86.9])
def test_rbf_is_as_exact_as_float32(exponent: float) -> None:
    """The distance is given exactly, so that the error is that of the exponential."""
    n = 1000
    squares = np.linspace(exponent, exponent + 0.05, n).astype(SINGLE)
    out = np.zeros((1, n), SINGLE)
    elementwise.rbf(out, np.zeros(1, SINGLE), squares, 1.0)
    rounded = squares.astype(DOUBLE)
    np.testing.assert_allclose(out[0], np.exp(-np.minimum(rounded, 87.0)), rtol=2.5e-7)


@pytest.mark.parametrize("distance", [87.5, 104.0, 1e4, 1e30])
def test_rbf_of_far_points_is_tiny_and_positive(distance: float) -> None:
    out = np.zeros((1, 1), SINGLE)
    elementwise.rbf(out, np.array([distance], SINGLE), np.zeros(1, SINGLE), 1.0)
    assert 0 <= out[0, 0] < 1e-37


def test_rbf_never_exceeds_one() -> None:
    """Rounding can make a squared distance negative."""
    G = np.full((1, 3), 1.0, SINGLE)
    elementwise.rbf(G, np.full(1, 0.99, SINGLE), np.array([0.99, 1.0, 0.5], SINGLE), 1.0)
    assert G[0].tolist() == [1.0, 1.0, 1.0]


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=shapes,
    gamma=st.sampled_from([0.01, 1.0, -2.0]),
    coef0=st.sampled_from([0.0, 1.0, -0.5]),
    degree=st.integers(0, 9),
    dtype=st.sampled_from([SINGLE, DOUBLE]),
)
def test_power(seed: int, shape: tuple[int, int], gamma: float, coef0: float, degree: int, dtype: np.dtype) -> None:
    G = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    base = gamma * G.astype(DOUBLE) + coef0
    expected = np.ones(shape)
    for _ in range(degree):
        expected *= base
    elementwise.power(G, gamma, coef0, degree)
    # an error of the base counts `degree` times
    allowed = (degree + 2) * np.finfo(dtype).eps * (np.abs(base) + abs(coef0) + 1e-30) ** max(degree, 1) * 2
    np.testing.assert_array_less(np.abs(G - expected), allowed + 1e-30)


@quick
@given(seed=st.integers(0, 2**32 - 1), shape=shapes, d=st.integers(0, 20), dtype=st.sampled_from([SINGLE, DOUBLE]))
def test_l1_distances(seed: int, shape: tuple[int, int], d: int, dtype: np.dtype) -> None:
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(n, d)).astype(dtype) for n in shape)
    out = np.full(shape, np.nan, dtype)
    elementwise.l1_distances(X, Z, out)
    expected = np.abs(X[:, None].astype(DOUBLE) - Z[None]).sum(axis=-1)
    np.testing.assert_allclose(out, expected, rtol=20 * np.finfo(dtype).eps)
    np.testing.assert_allclose(np.exp(-0.3 * out), naive.laplacian(X, Z, 0.3), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_signs_of_a_class(dtype: type, size: int) -> None:
    numbers, out = np.array([0, 1, 2, 1, 0, 0, 1], dtype), np.full(7, np.nan)
    elementwise.sign_rows(numbers, 1, size, new_turn(0), out)
    np.testing.assert_array_equal(out, np.where(numbers == 1, 1.0, -1.0))


@pytest.mark.parametrize("size", [1, 4, 100])
def test_sums_and_choices_in_blocks(size: int) -> None:
    numbers, sums = np.random.default_rng(0).normal(size=9), np.full((-(-9 // size), 1), np.nan)
    elementwise.absolute_sums(numbers, size, new_turn(0), sums)
    np.testing.assert_allclose(sums[:, 0], [np.abs(numbers[k : k + size]).sum() for k in range(0, 9, size)])
    chosen, out = np.array([0, 3, 3, 8, 7]), np.full(5, np.nan)
    elementwise.pick_values(numbers, chosen, size, new_turn(0), out)
    np.testing.assert_array_equal(out, numbers[chosen])
