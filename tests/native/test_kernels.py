"""Compiled functions of a tile against plain formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import kernels as naive
from widemargin._native import LEVEL, kernels
from widemargin.data.csr import make_csr

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
quick = settings(max_examples=40, deadline=None, derandomize=True)
shapes = st.tuples(st.integers(0, 5), st.integers(0, 9))


@quick
@given(seed=st.integers(0, 2**32 - 1), shape=shapes, factor=st.sampled_from([-1e-4, -0.3, -2.0, -30.0]))
def test_exponential(seed: int, shape: tuple[int, int], factor: float) -> None:
    G = np.random.default_rng(seed).exponential(size=shape).astype(SINGLE)
    exponent = factor * G.astype(DOUBLE)
    kernels.exponential(G, factor)
    # the exponent is rounded to float32 before it is exponentiated
    np.testing.assert_array_less(np.abs(G - np.exp(exponent)), 4e-7 * (1 - exponent) * np.exp(exponent) + 1e-37)


def rows_of(X: np.ndarray, *, is_sparse: bool) -> Any:
    return make_csr(sp.csr_array(X)) if is_sparse else X


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("dtype", "out_dtype"), [(SINGLE, SINGLE), (DOUBLE, SINGLE), (DOUBLE, DOUBLE)])
@pytest.mark.parametrize(("r", "c", "d"), [(0, 3, 2), (3, 0, 2), (1, 1, 1), (50, 17, 3), (97, 130, 40), (60, 70, 1100)])
def test_rbf_of_rows(r: int, c: int, d: int, dtype: np.dtype, out_dtype: np.dtype, is_sparse: bool) -> None:
    rng = np.random.default_rng(r + d)
    X, Z = (rng.normal(size=(n, d)).astype(dtype) * (rng.uniform(size=(n, d)) < 0.3) for n in (r, c))
    Z[: min(r, c) : 2] = X[: min(r, c) : 2]  # distances that come out a little above or below 0
    a, b = ((V.astype(DOUBLE) ** 2).sum(axis=1) for V in (X, Z))
    expected = naive.rbf(X, Z, 1 / d)
    out = np.full((r, c + 2), np.nan, out_dtype)
    x, z = rows_of(X, is_sparse=is_sparse), rows_of(Z, is_sparse=is_sparse)
    kernels.rbf_matrix(x, a, z, b, 1 / d, out[:, 1:-1])
    exact = {"atol": 1e-12} if out_dtype == DOUBLE else {"atol": 1e-6}
    np.testing.assert_allclose(out[:, 1:-1], expected, **exact)
    assert (out[:, 1:-1] <= 1).all()
    assert np.isnan(out[:, [0, -1]]).all()
    if dtype == out_dtype:
        coef, sums = rng.normal(size=(2, r)) * (rng.uniform(size=(2, r)) < 0.7), rng.normal(size=(2, c))
        total = sums + coef @ out[:, 1:-1].astype(DOUBLE)
        kernels.add_rbf_product(x, a, coef, z, b, 1 / d, sums)
        np.testing.assert_allclose(sums, total, atol=1e-11)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rbf_of_a_row_does_not_depend_on_the_rows_beside_it(is_sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 300)).astype(SINGLE)
    squares, coef = (X.astype(DOUBLE) ** 2).sum(axis=1), rng.normal(size=(1, 150))
    whole, one = np.empty((150, 150), SINGLE), np.empty((1, 1), SINGLE)
    sums, sum_of_one = np.zeros((1, 150)), np.zeros((1, 1))
    view = rows_of(X, is_sparse=is_sparse)
    kernels.rbf_matrix(view, squares, view, squares, 1 / 300, whole)
    kernels.add_rbf_product(view, squares, coef, view, squares, 1 / 300, sums)
    for i, j in [(0, 0), (149, 3), (7, 149), (60, 64)]:
        x, z = (rows_of(X[k : k + 1], is_sparse=is_sparse) for k in (i, j))
        kernels.rbf_matrix(x, squares[i : i + 1], z, squares[j : j + 1], 1 / 300, one)
        assert one[0, 0] == whole[i, j]
        sum_of_one[:] = 0.0
        kernels.add_rbf_product(view, squares, coef, z, squares[j : j + 1], 1 / 300, sum_of_one)
        assert sum_of_one[0, 0] == sums[0, j]


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize(("r", "c"), [(0, 3), (1, 5), (4, 4), (67, 130), (200, 9)])
def test_transpose(r: int, c: int, dtype: np.dtype) -> None:
    A, out = np.random.default_rng(r).normal(size=(r, c + 1)).astype(dtype)[:, 1:], np.full((c, r + 2), np.nan, dtype)
    kernels.copy_transposed(A, out[:, 1:-1])
    np.testing.assert_array_equal(out[:, 1:-1], A.T)
    assert np.isnan(out[:, [0, -1]]).all()


@pytest.mark.parametrize("exponent", [0.0, 1e-8, 1e-3, 0.3465, 0.3466, 0.7, 1.0, 10.0, 86.9])
def test_exponential_is_as_exact_as_float32(exponent: float) -> None:
    out = np.linspace(exponent, exponent + 0.05, 1000).astype(SINGLE)[None]
    rounded = out[0].astype(DOUBLE)
    kernels.exponential(out, -1.0)
    allowed = 2.5e-7 + (5e-8 * exponent if LEVEL == "v2" else 0.0)  # without fused multiply-adds
    np.testing.assert_allclose(out[0], np.exp(-np.minimum(rounded, 87.0)), rtol=allowed)


@pytest.mark.parametrize("distance", [87.5, 104.0, 1e4, 1e30])
def test_exponential_of_far_points_is_tiny_and_positive(distance: float) -> None:
    out = np.full((1, 1), distance, SINGLE)
    kernels.exponential(out, -1.0)
    assert 0 <= out[0, 0] < 1e-37


def test_exponential_never_exceeds_one() -> None:
    G = np.array([[-0.02, -0.01, -0.51]], SINGLE)
    kernels.exponential(G, -1.0)
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
def test_polynomial(
    seed: int, shape: tuple[int, int], gamma: float, coef0: float, degree: int, dtype: np.dtype
) -> None:
    G = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    base = gamma * G.astype(DOUBLE) + coef0
    expected = np.ones(shape)
    for _ in range(degree):
        expected *= base
    kernels.polynomial(G, gamma, coef0, degree)
    # an error of the base counts `degree` times
    allowed = (degree + 2) * np.finfo(dtype).eps * (np.abs(base) + abs(coef0) + 1e-30) ** max(degree, 1) * 2
    np.testing.assert_array_less(np.abs(G - expected), allowed + 1e-30)


@quick
@given(seed=st.integers(0, 2**32 - 1), shape=shapes, d=st.integers(0, 20), dtype=st.sampled_from([SINGLE, DOUBLE]))
def test_l1_distances(seed: int, shape: tuple[int, int], d: int, dtype: np.dtype) -> None:
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(n, d)).astype(dtype) for n in shape)
    out = np.full(shape, np.nan, dtype)
    kernels.l1_distances(X, Z, out)
    expected = np.abs(X[:, None].astype(DOUBLE) - Z[None]).sum(axis=-1)
    np.testing.assert_allclose(out, expected, rtol=20 * np.finfo(dtype).eps)
    np.testing.assert_allclose(np.exp(-0.3 * out), naive.laplacian(X, Z, 0.3), rtol=1e-5)


def test_wrong_arguments() -> None:
    G = np.zeros((2, 3), SINGLE)
    for wrong in (G.astype(DOUBLE), G[0], G.tolist(), None, G[None]):
        with pytest.raises(TypeError):
            kernels.exponential(wrong, -1.0)
    G.flags.writeable = False
    with pytest.raises(TypeError):
        kernels.exponential(G, -1.0)


@pytest.mark.parametrize("view", [slice(None, None, -1), slice(None, None, 2)])
def test_strided_rows_are_refused(view: slice) -> None:
    G = np.zeros((4, 4), SINGLE)
    with pytest.raises(ValueError, match="G must have contiguous rows"):
        kernels.exponential(G[:, view], -1.0)
    with pytest.raises(ValueError, match="G must have contiguous rows"):
        kernels.polynomial(G[:, view], 1.0, 0.0, 2)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_rows_may_be_part_of_a_wider_array(dtype: np.dtype) -> None:
    whole = np.random.default_rng(0).normal(size=(4, 6)).astype(dtype)
    part = whole[:, 1:4]
    expected = (0.5 * part + 1) ** 3
    kernels.polynomial(part, 0.5, 1.0, 3)
    np.testing.assert_allclose(whole[:, 1:4], expected, rtol=1e-5)


def test_sizes_of_distances_must_fit() -> None:
    X, Z = np.zeros((2, 3)), np.zeros((4, 3))
    for x, z, shape in ((X, Z[:, :2].copy(), (2, 4)), (X, Z, (2, 3)), (X, Z, (3, 4)), (X, Z, (0, 4))):
        with pytest.raises(ValueError, match="must be"):
            kernels.l1_distances(x, z, np.zeros(shape))
    with pytest.raises(ValueError, match="degree must be at least 0, got -1"):
        kernels.polynomial(X, 1.0, 0.0, -1)
