"""Kernel rows under a cache of any size are the rows of the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import kernels as naive
from widemargin._config import config_context
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.cache import KernelRows
from widemargin.kernels.functions import RBF

N = 12
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
quick = settings(max_examples=60, deadline=None, derandomize=True)
subsets = st.lists(st.integers(0, N - 1), unique=True, max_size=N)
calls = st.lists(st.tuples(subsets, st.booleans()), min_size=1, max_size=8)


def make_rows(team: ThreadTeam, n_rows: float, dtype: np.dtype = DOUBLE, n: int = N) -> KernelRows:
    X = np.random.default_rng(0).normal(size=(n, 3)).astype(dtype)
    return KernelRows(RBF(0.3), make_samples(X, RBF.sample_form), int(n_rows * n * dtype.itemsize), team)


def dense(n: int = N, dtype: np.dtype = DOUBLE) -> NDArray[np.float64]:
    X = np.random.default_rng(0).normal(size=(n, 3)).astype(dtype)
    return naive.rbf(X, X, 0.3)


@quick
@given(calls=calls, capacity=st.sampled_from([0, 0.9, 1, 3, N - 1, N, 3 * N]), dtype=st.sampled_from([SINGLE, DOUBLE]))
def test_any_sequence_of_products_and_squares(
    calls: list[tuple[list[int], bool]], capacity: float, dtype: np.dtype
) -> None:
    K, rng = dense(dtype=dtype), np.random.default_rng(1)
    atol = 1e-12 if dtype == DOUBLE else 1e-5
    with ThreadTeam(1) as team:
        rows = make_rows(team, capacity, dtype)
        assert len(rows) == N
        f, expected = np.zeros(N), np.zeros(N)
        for k, (chosen, keep) in enumerate(calls):
            index, coef = np.array(chosen, np.intp), rng.normal(size=len(chosen))
            rows.add_product(index, coef, f, keep=keep)
            expected += coef @ K[index]
            np.testing.assert_allclose(f, expected, atol=atol)
            other = np.array(calls[k - 1][0], np.intp)
            kept = other[rows.is_cached(other)]
            out = np.full((len(kept), len(index)), np.nan, dtype)
            rows.copy(kept, index, out)
            np.testing.assert_allclose(out, K[np.ix_(kept, index)], atol=atol)
        assert len(rows._store) <= capacity
        check_books(rows, K, atol)


def check_books(rows: KernelRows, K: NDArray[np.float64], atol: float) -> None:
    """Every cached row is the row of K that it stands for."""
    for row, slot in enumerate(rows._slot):
        if slot >= 0:
            assert rows._row[slot] == row
            np.testing.assert_allclose(rows._store[slot], K[row], atol=atol)


def test_kept_rows_are_not_computed_again() -> None:
    with ThreadTeam(1) as team:
        rows = make_rows(team, N)
        index, f = np.arange(5), np.zeros(N)
        for _ in range(3):
            rows.add_product(index, np.ones(5), f)
        assert rows.n_entries == 5 * N
        assert rows.is_cached(np.arange(6)).tolist() == [True] * 5 + [False]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("capacity", [0, 2, N])
def test_leading_columns_are_not_computed_again(capacity: int, keep: bool) -> None:
    """f holds the part of the first columns; afterwards the kept rows are whole, the known part copied."""
    K, p, chosen, coef = dense(), 7, np.array([5, 0, 3]), np.array([1.0, -2.0, 0.5])
    wide = np.hstack([K[:p, :p], np.full((p, 2), np.nan)])  # only the leading columns count
    with ThreadTeam(1) as team:
        rows = make_rows(team, capacity)
        f = np.zeros(N)
        f[:p] = coef @ K[chosen, :p]
        rows.add_product(chosen, coef, f, keep=keep, n_known=p, K_known=wide)
        np.testing.assert_allclose(f, coef @ K[chosen], atol=1e-12)
        assert rows.n_entries == 3 * (N - p)
        assert rows.is_cached(chosen).sum() == (min(capacity, 3) if keep else 0)
        check_books(rows, K, 1e-12)


@pytest.mark.parametrize("columns", [[], [3], [1, 4, 2, 11]])
def test_products_in_some_columns(columns: list[int]) -> None:
    index, coef, f = np.array([5, 0, 3]), np.array([1.0, -2.0, 0.5]), np.ones(N)
    with ThreadTeam(1) as team:
        rows = make_rows(team, 0)
        rows.add_product_to(np.array(columns, np.intp), index, coef, f)
    expected = np.ones(N)
    expected[columns] += coef @ dense()[np.ix_(index, columns)]
    np.testing.assert_allclose(f, expected, atol=1e-12)
    assert rows.n_entries == 3 * len(columns)


def test_rows_that_are_not_to_be_kept_are_not() -> None:
    with ThreadTeam(1) as team:
        rows = make_rows(team, N)
        rows.add_product(np.arange(5), np.ones(5), np.zeros(N), keep=False)
        assert (rows._slot == -1).all()


def test_more_rows_than_fit_do_not_evict_each_other() -> None:
    """A scan over 6 rows with room for 4 keeps 4 of them, every time."""
    with ThreadTeam(1) as team:
        rows = make_rows(team, 4)
        for _ in range(5):
            rows.add_product(np.arange(6), np.ones(6), np.zeros(N))
        assert rows.n_entries == (6 + 4 * 2) * N


def test_idle_rows_make_room() -> None:
    with ThreadTeam(1) as team:
        rows = make_rows(team, 2)
        f = np.zeros(N)
        for index in ([0, 1], [2, 3], [2, 3], [2, 3]):
            rows.add_product(np.array(index), np.ones(2), f)
        assert set(np.flatnonzero(rows._slot >= 0)) == {2, 3}


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_the_cache_holds_no_more_bytes_than_it_may(dtype: np.dtype) -> None:
    with ThreadTeam(1) as team:
        for n_bytes in (0, 1, 100, 1000, 10**6):
            rows = KernelRows(RBF(1.0), make_samples(np.eye(N, dtype=dtype), RBF.sample_form), n_bytes, team)
            assert rows._store.nbytes <= n_bytes


def test_the_number_of_threads_does_not_show() -> None:
    results = []
    for n_threads in (1, 2):
        with config_context(block_bytes=1024), ThreadTeam(n_threads) as team:
            rows, rng, f = make_rows(team, 20, SINGLE, n=150), np.random.default_rng(3), np.zeros(150)
            for _ in range(4):
                rows.add_product(rng.permutation(150)[:30], rng.normal(size=30), f)
            results.append((f, rows._store.copy(), rows.n_entries))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert results[0][2] == results[1][2]
