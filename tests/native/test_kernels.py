"""Compiled functions of a tile against plain formulas."""

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
quick = settings(max_examples=20, deadline=None, derandomize=True)
shapes = st.tuples(st.integers(0, 5), st.integers(0, 9))


def rows_of(X: np.ndarray, *, is_sparse: bool) -> Any:
    return make_csr(sp.csr_array(X)) if is_sparse else X


def squares_of(X: np.ndarray) -> np.ndarray:
    return (X.astype(DOUBLE) ** 2).sum(axis=1)


def points(name: str, X: np.ndarray, *, is_sparse: bool) -> tuple[Any, Any]:
    """The rows of a dense array, given as they are or as CSR, and what tells the kernels apart."""
    return rows_of(X, is_sparse=is_sparse), squares_of(X) if name == "rbf" else None


def fill(name: str, X: np.ndarray, Z: np.ndarray, gamma: float, out: np.ndarray, *, is_sparse: bool) -> None:
    kernels.kernel_matrix(*points(name, X, is_sparse=is_sparse), *points(name, Z, is_sparse=is_sparse), gamma, out)


def add_product(
    name: str, X: np.ndarray, coef: np.ndarray, Z: np.ndarray, gamma: float, out: np.ndarray, *, is_sparse: bool
) -> None:
    x, z = (points(name, V, is_sparse=is_sparse) for V in (X, Z))
    kernels.add_kernel_product(*x, coef, *z, gamma, out)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("dtype", "out_dtype"), [(SINGLE, SINGLE), (DOUBLE, SINGLE), (DOUBLE, DOUBLE)])
@pytest.mark.parametrize(("r", "c", "d"), [(0, 3, 2), (4, 5, 0), (97, 130, 40), (30, 70, 1100)])
def test_kernel_of_rows(
    r: int, c: int, d: int, dtype: np.dtype, out_dtype: np.dtype, is_sparse: bool, name: str
) -> None:
    rng = np.random.default_rng(r + d)
    X, Z = (rng.normal(size=(n, d)).astype(dtype) * (rng.uniform(size=(n, d)) < 0.3) for n in (r, c))
    Z[: min(r, c) : 2] = X[: min(r, c) : 2]  # distances that come out a little above or below 0
    gamma = 1 / max(d, 1)
    expected = {"rbf": naive.rbf, "laplacian": naive.laplacian}[name](X, Z, gamma)
    out = np.full((r, c + 2), np.nan, out_dtype)
    fill(name, X, Z, gamma, out[:, 1:-1], is_sparse=is_sparse)
    exact = {"atol": 1e-12} if out_dtype == DOUBLE else {"atol": 1e-6}
    np.testing.assert_allclose(out[:, 1:-1], expected, **exact)
    assert (out[:, 1:-1] <= 1).all()
    assert np.isnan(out[:, [0, -1]]).all()
    if dtype == out_dtype:
        coef, sums = rng.normal(size=(2, r)) * (rng.uniform(size=(2, r)) < 0.7), rng.normal(size=(2, c))
        total = sums + coef @ out[:, 1:-1].astype(DOUBLE)
        add_product(name, X, coef, Z, gamma, sums, is_sparse=is_sparse)
        np.testing.assert_allclose(sums, total, atol=1e-11)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_kernel_of_a_row_does_not_depend_on_the_rows_beside_it(dtype: np.dtype, is_sparse: bool, name: str) -> None:
    rng = np.random.default_rng(0)
    X, gamma = rng.normal(size=(150, 600)).astype(dtype), 1 / 600
    coef = rng.normal(size=(1, 150))
    whole, one = np.empty((150, 150), dtype), np.empty((1, 1), dtype)
    sums, sum_of_one = np.zeros((1, 150)), np.zeros((1, 1))
    fill(name, X, X, gamma, whole, is_sparse=is_sparse)
    add_product(name, X, coef, X, gamma, sums, is_sparse=is_sparse)
    for i, j in [(0, 0), (149, 3), (7, 149), (60, 64)]:
        fill(name, X[i : i + 1], X[j : j + 1], gamma, one, is_sparse=is_sparse)
        assert one[0, 0] == whole[i, j]
        sum_of_one[:] = 0.0
        add_product(name, X, coef, X[j : j + 1], gamma, sum_of_one, is_sparse=is_sparse)
        assert sum_of_one[0, 0] == sums[0, j]


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=shapes,
    d=st.integers(0, 20),
    dtype=st.sampled_from([SINGLE, DOUBLE]),
    offset=st.sampled_from([0.0, 1000.0]),
)
def test_l1_distances_of_dense_rows_keep_their_digits(
    seed: int, shape: tuple[int, int], d: int, dtype: np.dtype, offset: float
) -> None:
    rng = np.random.default_rng(seed)
    X, Z = ((offset + rng.normal(size=(n, d))).astype(dtype) for n in shape)
    out, expected = np.full(shape, np.nan, dtype), naive.laplacian(X, Z, 0.3)
    fill("laplacian", X, Z, 0.3, out, is_sparse=False)
    np.testing.assert_allclose(out, expected, rtol=20 * np.finfo(dtype).eps * (1 - np.log(expected.min(initial=1.0))))


@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_l1_distances_of_wide_sparse_rows(is_sorted: bool, width: type) -> None:
    """Columns far apart, explicit zeros, and common columns with numbers of both signs."""
    rng, d = np.random.default_rng(3), 2**27
    columns, values = np.sort(rng.choice(d, 40, replace=False)), rng.normal(size=(3, 40))
    values[rng.random((3, 40)) < 0.5] = 0.0
    order = np.arange(40) if is_sorted else rng.permutation(40)
    arrays = values[:, order].ravel(), np.tile(columns[order], 3).astype(width), np.arange(0, 121, 40).astype(width)
    X, out = make_csr(sp.csr_array(arrays, (3, d))), np.full((3, 3), np.nan)
    kernels.kernel_matrix(X, None, X, None, 0.1, out)
    np.testing.assert_allclose(out, naive.laplacian(values, values, 0.1), atol=1e-12)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize(("r", "c"), [(0, 3), (1, 5), (4, 4), (67, 130), (200, 9)])
def test_transpose(r: int, c: int, dtype: np.dtype) -> None:
    A, out = np.random.default_rng(r).normal(size=(r, c + 1)).astype(dtype)[:, 1:], np.full((c, r + 2), np.nan, dtype)
    kernels.copy_transposed(A, out[:, 1:-1])
    np.testing.assert_array_equal(out[:, 1:-1], A.T)
    assert np.isnan(out[:, [0, -1]]).all()


@pytest.mark.parametrize("exponent", [0.0, 1e-3, 0.3465, 0.3466, 10.0, 86.9])
def test_exponential_is_as_exact_as_float32(exponent: float) -> None:
    X, out = np.linspace(exponent, exponent + 0.05, 1000).astype(SINGLE)[:, None], np.empty((1000, 1), SINGLE)
    fill("laplacian", X, np.zeros((1, 1), SINGLE), 1.0, out, is_sparse=False)
    allowed = 2.5e-7 + (5e-8 * exponent if LEVEL == "v2" else 0.0)  # without fused multiply-adds
    np.testing.assert_allclose(out, np.exp(-X.astype(DOUBLE)), rtol=allowed)


def test_exponential_of_far_points_is_tiny_and_positive() -> None:
    X, out = np.array([[87.5], [104.0], [1e4], [1e30]], SINGLE), np.empty((4, 1), SINGLE)
    fill("laplacian", X, np.zeros((1, 1), SINGLE), 1.0, out, is_sparse=False)
    assert ((out >= 0) & (out < 1e-37)).all()


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
    expected = naive.polynomial(G.reshape(-1, 1), [[1.0]], gamma, degree, coef0).reshape(shape)
    kernels.polynomial(G, gamma, coef0, degree)
    # an error of the base counts `degree` times
    allowed = (degree + 2) * np.finfo(dtype).eps * (np.abs(base) + abs(coef0) + 1e-30) ** max(degree, 1) * 2
    np.testing.assert_array_less(np.abs(G - expected), allowed + 1e-30)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_rows_may_be_part_of_a_wider_array(dtype: np.dtype) -> None:
    whole = np.random.default_rng(0).normal(size=(4, 6)).astype(dtype)
    part = whole[:, 1:4]
    expected = (0.5 * part + 1) ** 3
    kernels.polynomial(part, 0.5, 1.0, 3)
    np.testing.assert_allclose(whole[:, 1:4], expected, rtol=1e-5)


def test_squares_are_of_both_and_a_degree_is_not_negative() -> None:
    X, Z = np.zeros((2, 3)), np.zeros((4, 3))
    with pytest.raises(ValueError, match="squares must be of both"):
        kernels.kernel_matrix(X, np.zeros(2), Z, None, 1.0, np.zeros((2, 4)))
    with pytest.raises(ValueError, match="degree must be at least 0, got -1"):
        kernels.polynomial(X, 1.0, 0.0, -1)
