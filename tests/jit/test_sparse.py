"""Compiled CSR primitives against loops over the non-zeros."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import sparse as naive
from widemargin._jit import sparse
from widemargin._jit.turns import new_turn

quick = settings(max_examples=60, deadline=None, derandomize=True)


def random_rows(rng: np.random.Generator, n: int, d: int, dtype: type, *, repeats: bool) -> naive.Rows:
    """CSR rows in any order of columns, with explicit zeros, empty rows and, if asked for, repeated columns."""
    counts = rng.integers(0, d + 1, size=n)
    columns = [rng.choice(d, size=k, replace=repeats) for k in counts]
    indices = np.concatenate([np.zeros(0, np.int64), *columns]).astype(np.int64)
    data = rng.normal(size=len(indices)) * rng.choice([0.0, 1.0, 1.0], size=len(indices))
    return data.astype(dtype), indices, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@quick
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(0, 6), d=st.integers(0, 7), dtype=st.sampled_from([np.float32, float])
)
def test_the_nonzeros_of_a_dense_array(seed: int, n: int, d: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * rng.choice([-0.0, 0.0, 1.0, np.nan], size=(n, d))).astype(dtype)
    expected = sp.csr_array(X)
    indptr = np.full(n + 1, -1)
    sparse.count_nonzeros(X, indptr)
    np.testing.assert_array_equal(indptr, expected.indptr)
    data, indices = np.zeros(expected.nnz + 1, dtype), np.zeros(expected.nnz + 1, np.int32)
    sparse.copy_nonzeros(X, data, indices)
    np.testing.assert_array_equal(data[:-1], expected.data)
    np.testing.assert_array_equal(indices[:-1], expected.indices)


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    r=st.integers(0, 6),
    c=st.integers(0, 9),
    d=st.integers(1, 12),
    width=st.integers(1, 12),
    dtype=st.sampled_from([np.float32, np.float64]),
    repeats=st.booleans(),
)
def test_csr_inner(seed: int, r: int, c: int, d: int, width: int, dtype: type, repeats: bool) -> None:
    rng = np.random.default_rng(seed)
    one, other = (random_rows(rng, n, d, dtype, repeats=repeats) for n in (r, c))
    panel, out = np.zeros((d, width), dtype), np.full((r, c), np.nan, dtype)
    sparse.csr_inner(*one, *other, panel, out)
    expected = naive.csr_inner(one, other, d)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4 if dtype == np.float32 else 1e-12)
    assert not panel.any(), "the panel is given back clean"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("c", "d"), [(1, 1), (63, 500), (64, 192), (65, 193), (200, 400)])
def test_panels_as_wide_as_registers(c: int, d: int, dtype: type) -> None:
    rng = np.random.default_rng(c)
    one, other = (random_rows(rng, n, d, dtype, repeats=False) for n in (7, c))
    panel, out = np.zeros((d, sparse.PANEL_BYTES // np.dtype(dtype).itemsize), dtype), np.full((7, c), np.nan, dtype)
    sparse.csr_inner(*one, *other, panel, out)
    expected = naive.csr_inner(one, other, d)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4 if dtype == np.float32 else 1e-12)
    assert not panel.any(), "the panel is given back clean"


@pytest.mark.parametrize("n", [3, 4, 5, 8, 9])
def test_rows_of_more_non_zeros_than_one_pass_takes(n: int) -> None:
    row = np.arange(1.0, n + 1), np.arange(n), np.array([0, n])
    out = np.empty((1, 1))
    sparse.csr_inner(*row, *row, np.zeros((n, 1)), out)
    assert out[0, 0] == n * (n + 1) * (2 * n + 1) / 6


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 9),
    d=st.integers(1, 12),
    k=st.integers(1, 4),
    dtype=st.sampled_from([np.float32, np.float64]),
    width=st.sampled_from([np.int32, np.int64]),
    repeats=st.booleans(),
)
def test_outputs_and_sums(seed: int, n: int, d: int, k: int, dtype: type, width: type, repeats: bool) -> None:
    rng = np.random.default_rng(seed)
    data, indices, indptr = random_rows(rng, n, d, dtype, repeats=repeats)
    rows = data, indices.astype(width), indptr.astype(width)
    exact = naive.to_dense((data, indices, indptr), d)
    W, coef = rng.normal(size=(k, d)), rng.normal(size=(k, n)) * rng.choice([0.0, 1.0], size=(k, n))
    out = np.full((k, n), np.nan)
    sparse.csr_outputs(*rows, W, 2, new_turn(0), out)
    np.testing.assert_allclose(out, W @ exact.T, atol=1e-12)
    since = coef * rng.choice([0.0, 0.5, 1.0], size=(k, n))
    for before, weights in ((since, coef - since), (coef[:, :0], coef)):
        for group in (1, 3):
            sums = np.full((-(-n // 2), k, d), np.nan)
            sparse.csr_row_sums(*rows, coef, before, 2, group, new_turn(0), sums)
            each = [weights[:, i : i + 2] @ exact[i : i + 2] for i in range(0, n, 2)]
            np.testing.assert_allclose(sums, np.reshape(each, sums.shape), atol=1e-12)
