"""Products without the entries that round to nothing are the whole products, within a hundredth of their rounding."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from naive import kernels as naive
from widemargin._threads import ThreadTeam
from widemargin.data.samples import Samples, make_samples
from widemargin.kernels.boxed_rows import BoxedRows, add_local_product, box_rows
from widemargin.kernels.functions import RBF, ExponentialKernel, Laplacian, Linear
from widemargin.kernels.tiles import add_kernel_product

KERNELS = [RBF(40.0), Laplacian(40.0)]
N_ROWS = 4500


def clustered_rows(n: int, seed: int) -> NDArray[np.float64]:
    """Rows in [0, 1]^3 with one of eight indicators: far from those with another indicator."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 11))
    X[:, :3] = rng.uniform(size=(n, 3)) * (rng.uniform(size=(n, 3)) < 0.7)
    X[np.arange(n), 3 + rng.integers(8, size=n)] = 1.0
    return X


def samples(kernel: ExponentialKernel, n: int, seed: int, form: str, dtype: str) -> Samples:
    X = clustered_rows(n, seed).astype(dtype)
    return make_samples(sp.csr_array(X) if form == "csr" else np.ascontiguousarray(X), kernel.sample_form)


def coefficients(n: int, k: int = 2) -> NDArray[np.float64]:
    return np.random.default_rng(5).normal(size=(k, n))


def boxed(kernel: ExponentialKernel, A: Samples, coef: NDArray[np.float64]) -> BoxedRows:
    found = box_rows(kernel, A, coef)
    assert found is not None
    return found


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_product_is_the_whole_one_within_the_stated_error(kernel: Any, form: str, dtype: str) -> None:
    A, B, coef = samples(kernel, N_ROWS, 0, form, dtype), samples(kernel, 700, 1, form, dtype), coefficients(N_ROWS)
    out, whole = np.ones((2, len(B))), np.ones((2, len(B)))
    with ThreadTeam(2) as team:
        boxed(kernel, A, coef).add_product(B, out, team)
        add_kernel_product(kernel, A, coef, B, whole, team)
    norm, eps = np.linalg.norm(coef, axis=1), float(np.finfo(dtype).eps)
    assert np.all(np.abs(out - whole) <= 0.01 * eps * norm[:, None] + 1e-13 * np.abs(coef).sum(axis=1)[:, None])


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "form"), [(KERNELS[0], "csr"), (KERNELS[1], "dense")])
def test_entries_of_far_batches_alone_are_left_out(kernel: Any, form: str) -> None:
    A, B, coef = samples(kernel, N_ROWS, 0, form, "f8"), samples(kernel, 60, 1, form, "f8"), coefficients(N_ROWS)
    found, out = boxed(kernel, A, coef), np.zeros((2, len(B)))
    starts, lows, highs, limit = found.boxes
    with ThreadTeam(1) as team:
        found.add_product(B, out, team)
    X, Z = found.rows.toarray(), B.toarray()
    expected, n_near = naive.near_product(X, starts, lows, highs, limit, found.coef, Z, found.kernel)
    np.testing.assert_allclose(out, expected, atol=1e-11)
    assert 0 < n_near < 0.8 * len(A) * len(B)
    assert np.all(np.diff(starts) > 0)
    for b in range(len(starts) - 1):
        batch = X[starts[b] : starts[b + 1]]
        assert np.all(lows[:, b] <= batch)
        assert np.all(batch <= highs[:, b])


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_row_alone_has_the_value_that_it_has_among_others(kernel: Any, form: str) -> None:
    A, B, coef = samples(kernel, N_ROWS, 0, form, "f4"), samples(kernel, 3000, 1, form, "f4"), coefficients(N_ROWS)
    found, out, parts = boxed(kernel, A, coef), np.zeros((2, len(B))), np.zeros((2, len(B)))
    with ThreadTeam(2) as team:
        found.add_product(B, out, team)
    with ThreadTeam(1) as team:
        for first, end in ((0, 1), (1, 40), (40, 2999), (2999, 3000)):
            found.add_product(B.take(np.arange(first, end)), parts[:, first:end], team)
    np.testing.assert_array_equal(out, parts)


def test_only_many_rows_of_local_kernels_are_boxed() -> None:
    def is_boxed(kernel: Any, n: int, dtype: str = "f4") -> bool:
        A = samples(KERNELS[0], n, 0, "dense", dtype)
        return box_rows(kernel, A, coefficients(n)) is not None

    assert is_boxed(RBF(40.0), N_ROWS)
    assert not is_boxed(RBF(0.4), N_ROWS)
    assert not is_boxed(RBF(40.0), 1000)
    assert not is_boxed(Linear(), N_ROWS)


def test_all_coefficients_zero_and_no_rows_at_all() -> None:
    A, B = samples(KERNELS[0], N_ROWS, 0, "dense", "f4"), samples(KERNELS[0], 5, 1, "dense", "f4")
    out, zero = np.ones((1, 5)), np.zeros((1, N_ROWS))
    with ThreadTeam(1) as team:
        add_local_product(KERNELS[0], A, zero, B, out, team)
        add_local_product(KERNELS[0], A, zero, B.take(np.arange(0)), out[:, :0], team)
    np.testing.assert_array_equal(out, 1.0)
