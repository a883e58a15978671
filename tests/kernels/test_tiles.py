"""Products with kernel matrices by tiles against the dense truth, whatever the tiles and threads."""

from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from naive import kernels as naive
from widemargin._config import config_context
from widemargin._threads import ThreadTeam, blas_limit
from widemargin.data.samples import SampleSubset, make_samples
from widemargin.kernels import scratch
from widemargin.kernels.functions import RBF, Linear
from widemargin.kernels.scratch import Scratch
from widemargin.kernels.tiles import TILE_ROWS, add_kernel_product, fill_gram, fill_with_transpose

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
SMALL_TILES = 1024  # bytes: 64 columns, the least


def data(n: int, dtype: np.dtype, seed: int = 0) -> NDArray[np.floating]:
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(dtype)


@cache
def naive_matrix(n_points: int, n: int, dtype: np.dtype) -> NDArray[np.float64]:
    return naive.rbf(data(n_points, dtype, 0), data(n, dtype, 1), 0.3)


def run_accumulate(n_threads: int, n_points: int, n: int, dtype: np.dtype, block_bytes: int) -> NDArray[np.float64]:
    A, B = (make_samples(data(k, dtype, seed), Linear.sample_form) for seed, k in enumerate((n_points, n)))
    rng = np.random.default_rng(2)
    coef = rng.normal(size=(2, n_points)) * rng.integers(0, 2, size=(2, n_points))
    out = np.ones((2, n))
    with config_context(block_bytes=block_bytes), blas_limit(1), ThreadTeam(n_threads) as team:
        add_kernel_product(RBF(0.3), A, coef, B, out, team)
    expected = 1 + coef @ naive_matrix(n_points, n, dtype)
    np.testing.assert_allclose(out, expected, atol=1e-12 if dtype == DOUBLE else 1e-4)
    return out


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize(("n_points", "n"), [(0, 5), (1, 1), (20, 65), (TILE_ROWS + 3, 70), (5, 0)])
def test_add_kernel_product(n_points: int, n: int, dtype: np.dtype) -> None:
    small = run_accumulate(1, n_points, n, dtype, SMALL_TILES)
    large = run_accumulate(1, n_points, n, dtype, 2**22)
    np.testing.assert_allclose(small, large, atol=1e-12 if dtype == DOUBLE else 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("n_threads", [1, 2])
def test_fill_writes_a_block_and_its_mirror_and_nothing_else(n_threads: int) -> None:
    X, Z = data(300, SINGLE), data(130, SINGLE)[::-1]
    whole = np.full((340, 340), -1.0, SINGLE)
    out, mirror = whole[:300, 210:], whole[210:, :300]
    with config_context(block_bytes=SMALL_TILES), ThreadTeam(n_threads) as team:
        A, B = (make_samples(np.ascontiguousarray(part), "products") for part in (X[:210], Z))
        fill_with_transpose(RBF(0.2), A, B, whole[:210, 210:], whole[210:, :210], team)
    expected = naive.rbf(X[:210], Z, 0.2)
    np.testing.assert_allclose(out[:210], expected, atol=1e-5)
    np.testing.assert_array_equal(mirror[:, :210], out[:210].T)
    assert (whole[:210, :210] == -1).all()
    assert (whole[210:, 210:] == -1).all()


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 3])  # whole rows of short samples need their place in one piece
@pytest.mark.parametrize("n_rows", [1, 65, TILE_ROWS, 2 * TILE_ROWS + 30])
def test_fill_gram_is_symmetric(n_rows: int, room: int) -> None:
    X = data(2 * n_rows, SINGLE)
    index = np.arange(0, 2 * n_rows, 2)
    subset = SampleSubset(make_samples(X, Linear.sample_form), index)
    results = []
    for n_threads in (1, 2):
        out = np.full((n_rows, n_rows + room), -1.0, SINGLE)
        with ThreadTeam(n_threads) as team:
            fill_gram(RBF(0.2), subset, out[:, :n_rows], team)
        assert (out[:, n_rows:] == -1).all()
        results.append(out[:, :n_rows])
    np.testing.assert_allclose(results[0], naive.rbf(X[index], X[index], 0.2), atol=1e-5)
    np.testing.assert_allclose(results[0], results[0].T, atol=1e-6)  # a tile on the diagonal is as exact as it is
    np.testing.assert_array_equal(results[0], results[1])


def test_no_scratch_buffer_is_used_twice_at_once() -> None:
    with Scratch(100) as one, Scratch(50) as two, Scratch(200) as three:
        assert one.nbytes >= 100
        assert two.nbytes >= 50
        assert three.nbytes >= 200
        for k, buffer in enumerate((one, two, three)):
            buffer[:] = k
        assert [int(buffer[0]) for buffer in (one, two, three)] == [0, 1, 2]


def test_little_scratch_is_kept_between_fits() -> None:
    with ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(Scratch(2**23))
    scratch.free_scratch()
    assert 0 < sum(buffer.nbytes for buffer in scratch._scratch) <= 2**24


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_with_sparse_coefficients_is_that_with_dense_ones(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    A, B = (make_samples(rng.standard_normal((n, 3)).astype(dtype), "distances") for n in (700, 90))
    coef = sp.random(40, 700, 0.1, format="csc", random_state=0)
    sparse, dense = np.ones((2, 40, 90))
    with ThreadTeam(2) as team:
        add_kernel_product(RBF(0.5), A, sp.csc_array(coef), B, sparse, team)
        add_kernel_product(RBF(0.5), A, coef.toarray(), B, dense, team)
    np.testing.assert_allclose(sparse, dense, rtol=1e-6 if dtype == np.float32 else 1e-12)
