"""Passes over dense rows, against matrix products."""

from typing import Any

import numpy as np
import pytest

from widemargin._native import Team, dense

TEAM = Team(1)
SHAPES = [(0, 3), (7, 5), (33, 0), (1100, 70), (40, 5000), (300, 2049), (20_000, 3)]


def passes(X: np.ndarray) -> list[tuple[Any, Any, np.ndarray]]:
    """Products and rmatvec by rows and by columns: of whole arrays, and of slices of larger ones."""
    n, d = X.shape
    wide, tall = np.full((n, d + 3), np.nan, X.dtype), np.full((n + 3, d), np.nan, X.dtype, "F")
    wide[:, 2 : d + 2], tall[1 : n + 1] = X, X
    return [
        (dense.matvec, dense.rmatvec, X),
        (dense.matvec, dense.rmatvec, wide[:, 2 : d + 2]),
        (dense.matvec_transposed, dense.rmatvec_transposed, np.asfortranarray(X).T),
        (dense.matvec_transposed, dense.rmatvec_transposed, tall[1 : n + 1].T),
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_matvec_and_rmatvec(n: int, d: int, dtype: type) -> None:
    rng = np.random.default_rng(n + d)
    X, W = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(3, d))
    exact = X.astype(np.float64)
    for share in (0.1, 0.9):
        coef = rng.normal(size=(3, n)) * (rng.uniform(size=(3, n)) < share)
        base = coef * rng.choice([0.5, 1.0], (3, n))
        for matvec, rmatvec, data in passes(X):
            out, total, change = np.full((3, n), np.nan), np.full((3, d), np.nan), np.full((3, d), np.nan)
            matvec(TEAM, data, W, out)
            rmatvec(TEAM, data, coef, None, total)
            rmatvec(TEAM, data, coef, base, change)
            np.testing.assert_allclose(out, W @ exact.T, atol=1e-11)
            np.testing.assert_allclose(total, coef @ exact, atol=1e-11)
            np.testing.assert_allclose(change, (coef - base) @ exact, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 33, 2050])
def test_products_depend_neither_on_a_rows_place_nor_on_the_number_of_rows_or_vectors(d: int, dtype: type) -> None:
    rng = np.random.default_rng(d)
    X, W = np.tile(rng.normal(size=d).astype(dtype), (1030, 1)), rng.normal(size=(7, d))
    for matvec, _, data in passes(X):
        for k in (1, 2, 7):
            for n in (1, 2, 3, 5, 1030):
                out = np.empty((k, n))
                matvec(TEAM, data[:, :n] if matvec is dense.matvec_transposed else data[:n], W[:k], out)
                if (k, n) == (1, 1):
                    expected = out[0, 0]
                np.testing.assert_array_equal(out[0], expected)


def test_coefficients_of_a_block_of_columns() -> None:
    X, coef = np.random.default_rng(0).normal(size=(50, 4)), np.random.default_rng(1).normal(size=(2, 90))
    total = np.empty((2, 4))
    dense.rmatvec(TEAM, X, coef[:, 10:60], coef[:, 40:], total)
    np.testing.assert_allclose(total, (coef[:, 10:60] - coef[:, 40:]) @ X, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "d", "dtype"), [(30_000, 7, np.float32), (3000, 200, np.float64), (300, 4100, np.float32)]
)
def test_results_do_not_depend_on_the_number_of_threads(n: int, d: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    X, W, coef = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(2, d)), rng.normal(size=(2, n))
    chosen, factors, few = rng.integers(0, n, n), rng.normal(size=n), X[:, :200].copy()
    results: list[list[np.ndarray]] = []
    for n_threads in (1, 2, 3):
        team, out, total = Team(n_threads), np.empty((2, n)), np.empty((2, d))
        taken, moments = np.empty((n, d), dtype), np.empty((few.shape[1],) * 2)
        results.append([])
        for matvec, rmatvec, data in passes(X):
            matvec(team, data, W, out)
            rmatvec(team, data, coef, None, total)
            results[-1] += [out.copy(), total.copy()]
        dense.take_rows(team, X, chosen, taken)
        results[-1].append(taken)
        dense.second_moments(team, few, chosen, np.zeros(len(moments)), factors, moments)
        results[-1].append(moments)
    for one, two, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_not_finite_are_found(dtype: type) -> None:
    numbers = np.random.default_rng(0).normal(size=600_000).astype(dtype)
    numbers[::7] = np.finfo(dtype).max
    numbers[1::7] = -np.finfo(dtype).max
    numbers[2::7] = np.finfo(dtype).smallest_subnormal
    for team in (Team(1), Team(2)):
        assert dense.are_finite(team, numbers)
        assert dense.are_finite(team, numbers[:0])
        for place, value in ((0, np.nan), (1023, np.inf), (1024, -np.inf), (300_000, -np.nan), (599_999, np.nan)):
            spoilt = numbers.copy()
            spoilt[place] = value
            assert not dense.are_finite(team, spoilt)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [0, 3, 300])
def test_moments_of_some_rows(m: int, dtype: type) -> None:
    for d in (0, 1, 3, 8, 9, 24, 25, 50, 100):
        rng = np.random.default_rng(m + d)
        X, chosen = rng.normal(size=(90, d + 2)).astype(dtype)[:, 1:-1], rng.integers(0, 90, m)
        centre, factors, moments = rng.normal(size=d), rng.normal(size=m), np.full((d, d), np.nan)
        dense.second_moments(TEAM, X, chosen, centre, factors, moments)
        scaled = (X[chosen] - centre) * factors[:, None]
        np.testing.assert_allclose(moments, scaled.T @ scaled, rtol=1e-12, atol=1e-11)
        np.testing.assert_array_equal(moments, moments.T)


def test_rows_of_weight_zero_are_skipped() -> None:
    """If most rows have weight zero, or rows are wide."""
    for n_zeros, d in ((5, 2), (5, 200), (1, 200)):
        X = np.full((n_zeros + 2, d), np.nan)
        X[0], X[-1] = 1.0, 3.0
        coef = np.zeros((1, n_zeros + 2))
        coef[0, 0], coef[0, -1] = 1.0, 2.0
        for _, rmatvec, data in passes(X)[: 4 if n_zeros > 1 else 2]:
            total = np.empty((1, d))
            rmatvec(TEAM, data, coef, None, total)
            np.testing.assert_array_equal(total, np.full((1, d), 7.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [0, 7, 8, 17, 3000])
def test_rows_are_copied(d: int, dtype: type) -> None:
    X = np.random.default_rng(d).normal(size=(50, d)).astype(dtype)
    for n_chosen in (0, 1, 30, 3000 if d < 100 else 300):
        chosen = np.random.default_rng(n_chosen).integers(0, 50, n_chosen)
        for take, data in ((dense.take_rows, X), (dense.take_columns, np.asfortranarray(X).T)):
            out = np.full((n_chosen, d), np.nan, dtype)
            take(TEAM, data, chosen, out)
            np.testing.assert_array_equal(out, X[chosen])


X = np.ones((6, 4))


@pytest.mark.parametrize("index", [-1, 6, 2**62])
def test_indices_out_of_range_are_named(index: int) -> None:
    for take, data in ((dense.take_rows, X), (dense.take_columns, np.asfortranarray(X).T)):
        with pytest.raises(IndexError, match=r"chosen\[1\] must be in \[0, 6\)"):
            take(TEAM, data, np.array([0, index]), np.empty((2, 4)))


def test_indices_that_share_memory_with_out_are_refused() -> None:
    out = np.zeros((4, 4))
    chosen = out.reshape(-1)[:4].view(np.int64)
    for take, data in ((dense.take_rows, X), (dense.take_columns, np.asfortranarray(X).T)):
        with pytest.raises(ValueError, match="chosen and out must not share memory"):
            take(TEAM, data, chosen, out)
    with pytest.raises(ValueError, match="chosen and out must not share memory"):
        dense.second_moments(TEAM, X, chosen, np.zeros(4), np.ones(4), out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("r", "c", "d"),
    [(0, 5, 3), (4, 0, 3), (3, 4, 0), (13, 129, 700), (50, 33, 1025), (49, 9, 600)],
)
def test_inner_products(r: int, c: int, d: int, dtype: type) -> None:
    rng = np.random.default_rng(r + c + d)
    X, Z = rng.normal(size=(r + 1, d + 2)).astype(dtype)[1:, 1 : d + 1], rng.normal(size=(c, d)).astype(dtype)
    out = np.full((r, c + 3), np.nan, dtype)
    dense.inner_products(X, Z, out[:, 1 : c + 1])
    exact = X.astype(np.float64) @ Z.T.astype(np.float64)
    np.testing.assert_allclose(out[:, 1 : c + 1], exact, atol=(d + 1) * np.finfo(dtype).eps * 10)
    assert np.isnan(out[:, 0]).all()
    assert np.isnan(out[:, c + 1 :]).all()


def test_an_inner_product_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(0)
    X, Z = (rng.normal(size=(n, 600)).astype(np.float32) for n in (20, 150))
    whole, alone = np.empty((20, 150), np.float32), np.empty((1, 1), np.float32)
    dense.inner_products(X, Z, whole)
    for i, j in [(0, 0), (19, 149), (7, 130), (12, 63)]:
        dense.inner_products(X[i : i + 1], Z[j : j + 1], alone)
        assert alone[0, 0] == whole[i, j]
