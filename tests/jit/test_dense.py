"""Passes over dense rows against matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin._jit import dense
from widemargin._jit.turns import new_turn


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (7, 5), (30, 4), (33, 0)])
def test_outputs_and_sums(n: int, d: int, dtype: type) -> None:
    rng = np.random.default_rng(n + d)
    X, w = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=d)
    coef = rng.normal(size=(3, n)) * rng.choice([0.0, 1.0], size=(3, n))
    exact = X.astype(np.float64)
    for outputs, add, data in (
        (dense.row_outputs, dense.row_sum, X),
        (dense.column_outputs, dense.column_sum, np.asfortranarray(X)),
    ):
        out, total = np.full(n, np.nan), np.ones((3, d))
        outputs(data, w, out)
        add(data, coef, np.full(n + 50, 2**40), total)  # a scratch for larger blocks
        in_parts = np.ones((3, d))
        add(data, coef, np.empty(5, np.int64), in_parts)
        np.testing.assert_allclose(in_parts, total, atol=1e-13)
        np.testing.assert_allclose(out, exact @ w, atol=1e-13)
        np.testing.assert_allclose(total, 1 + coef @ exact, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 1100])
@pytest.mark.parametrize("size", [1, 6, 2000])
def test_passes_in_blocks(n: int, size: int, dtype: type) -> None:
    rng = np.random.default_rng(n)
    X, w, coef, since = rng.normal(size=(n, 5)).astype(dtype), rng.normal(size=5), *rng.normal(size=(2, 2, n))
    since[:, ::3] = coef[:, ::3]
    out, sums = np.full(n, np.nan), np.full((-(-n // size), 2, 5), np.nan)
    dense.all_row_outputs(X, w, size, new_turn(0), out)
    chosen = rng.integers(0, n, 2 * n)
    taken = np.full((2 * n, 5), np.nan, dtype)
    dense.all_taken_rows(X, chosen, size, new_turn(0), taken)
    np.testing.assert_array_equal(taken, X[chosen])
    np.testing.assert_allclose(out, X.astype(np.float64) @ w, atol=1e-13)
    for before, weights in ((since, coef - since), (coef[:, :0], coef)):
        dense.all_row_sums(X, coef, before, size, new_turn(0), sums)
        each = [weights[:, k : k + size] @ X[k : k + size].astype(np.float64) for k in range(0, n, size)]
        np.testing.assert_allclose(sums, each, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 500, 3000])
def test_what_is_not_finite_is_found(size: int, dtype: type) -> None:
    numbers, zero = np.random.default_rng(0).normal(size=2100).astype(dtype), dtype(0)
    numbers[::7] = np.finfo(dtype).max
    assert dense.are_finite(numbers, zero, size, new_turn(0))
    for place, value in ((0, np.nan), (1023, np.inf), (1024, -np.inf), (2099, np.nan)):
        spoilt = numbers.copy()
        spoilt[place] = value
        assert not dense.are_finite(spoilt, zero, size, new_turn(0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "size"), [(0, 4), (3, 4), (4, 4), (21, 4)])
def test_moments_of_some_rows(m: int, size: int, dtype: type) -> None:
    rng = np.random.default_rng(m)
    X, chosen = rng.normal(size=(9, 3)).astype(dtype), rng.integers(0, 9, m)
    centre, factors, moments = rng.normal(size=3), rng.normal(size=m), np.full((-(-m // size), 3, 3), np.nan)
    dense.all_moments(X, chosen, centre, factors, size, new_turn(0), moments)
    scaled = (X[chosen] - centre) * factors[:, None]
    np.testing.assert_allclose(moments.sum(axis=0), scaled.T @ scaled, atol=1e-13)


def test_rows_of_weight_zero_are_skipped() -> None:
    """Where they are the most of narrow rows, or rows are wide."""
    for n_zeros, d in ((5, 2), (1, 200)):
        X = np.full((n_zeros + 2, d), np.nan)
        X[0], X[-1] = 1.0, 3.0
        coef = np.zeros((1, n_zeros + 2))
        coef[0, 0], coef[0, -1] = 1.0, 2.0
        for add, data in ((dense.row_sum, X), (dense.column_sum, np.asfortranarray(X))):
            total = np.zeros((1, d))
            add(data, coef, np.empty(n_zeros + 2, np.int64), total)
            np.testing.assert_array_equal(total, np.full((1, d), 7.0))


@pytest.mark.parametrize("d", [0, 1, 7, 40])
@pytest.mark.parametrize("n_chosen", [0, 1, 30])
def test_rows_are_copied(d: int, n_chosen: int) -> None:
    X = np.random.default_rng(d).normal(size=(50, d)).astype(np.float32)
    chosen = np.sort(np.random.default_rng(n_chosen).choice(50, n_chosen, replace=False))
    out = np.full((n_chosen, d), np.nan, np.float32)
    dense.take_rows(X, chosen, out)
    np.testing.assert_array_equal(out, X[chosen])
