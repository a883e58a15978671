"""Kernel functions by tiles against their naive twins: dense, CSR, Gram and callables, float32 and float64."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels

from naive import kernels as naive
from widemargin.data.samples import Samples, make_samples
from widemargin.kernels.entry_precision import ensure_precision, entry_error
from widemargin.kernels.functions import KERNELS, RBF, CallableKernel, Kernel, Linear, Precomputed, make_kernel
from widemargin.nystroem.features import LandmarkFeatures

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
NAMES = ["linear", "rbf", "laplacian", "poly", "sigmoid"]


def fill(kernel: Kernel, A: Samples, B: Samples) -> NDArray[np.floating]:
    out = np.full((len(A), len(B)), np.nan, A.dtype)
    kernel.fill(A, B, out)
    return out


@pytest.mark.parametrize(("form", "dtype"), [(np.asarray, SINGLE), (sp.csr_array, DOUBLE)])
@pytest.mark.parametrize("name", NAMES)
def test_tiles_and_diagonals(name: str, form: Any, dtype: np.dtype) -> None:
    rng, how = np.random.default_rng(0), {"gamma": 0.5, "degree": 4, "coef0": -0.5}
    X = (rng.normal(size=(13, 5)) * rng.integers(0, 2, size=(13, 5))).astype(dtype)
    kernel = make_kernel(name, **how)
    samples = make_samples(form(X), kernel.sample_form)
    K = pairwise_kernels(X.astype(DOUBLE), metric=name, filter_params=True, **how)
    tile = fill(kernel, samples.take(slice(0, 6)), samples.take(np.arange(6, 13)))
    np.testing.assert_allclose(tile, K[:6, 6:], rtol=1e-5, atol=1e-4 if dtype == SINGLE else 1e-11)
    np.testing.assert_allclose(kernel.diagonal(samples), K.diagonal(), rtol=1e-5, atol=1e-6)
    assert kernel.diagonal(samples).dtype == DOUBLE


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_rbf_far_from_the_origin(dtype: np.dtype) -> None:
    """A shift does not change distances; inner products in float32 would lose all their digits."""
    rng = np.random.default_rng(0)
    X = (1000 + rng.normal(size=(20, 5))).astype(dtype)
    samples = make_samples(X, RBF.sample_form)
    np.testing.assert_allclose(fill(RBF(0.5), samples, samples), naive.rbf(X, X, 0.5), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_float64_products_under_float32_tiles(is_sparse: bool) -> None:
    """Groups of points far from each other: norms are large beside the distances within a group."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(8, 3)) * 1000
    X = (centres[rng.integers(0, 8, 64)] + 0.1 * rng.normal(size=(64, 3))).astype(SINGLE)
    X = X[np.lexsort(X.T)]
    rough = make_samples(sp.csr_array(X) if is_sparse else X, RBF.sample_form)
    kernel, truth = RBF(10.0), naive.rbf(X, X, 10.0)
    fine = ensure_precision(kernel, rough)
    assert (fine.precision, fine.dtype) == (DOUBLE, SINGLE)
    assert np.abs(fill(kernel, rough, rough) - truth).max() > 0.1
    # centring rounds the rows themselves to float32: half a unit of their last place
    np.testing.assert_allclose(fill(kernel, fine, fine), truth, atol=1e-3)
    assert entry_error(kernel, fine) < entry_error(kernel, rough)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_laplacian_far_from_the_origin(is_sparse: bool) -> None:
    """L1 distances of sparse rows come from their norms, and need float64 here; those of dense rows do not."""
    X = (1000 + np.random.default_rng(0).normal(size=(40, 5))).astype(SINGLE)
    kernel = make_kernel("laplacian", gamma=0.5)
    samples = ensure_precision(kernel, make_samples(sp.csr_array(X) if is_sparse else X, kernel.sample_form))
    assert samples.precision == (DOUBLE if is_sparse else SINGLE)
    np.testing.assert_allclose(fill(kernel, samples, samples), naive.laplacian(X, X, 0.5), atol=1e-6)


def test_laplacian_takes_dense_rows_that_are_mostly_zeros_as_sparse_ones() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 40)) * (rng.random((30, 40)) < 0.1)
    kernel = make_kernel("laplacian", gamma=0.5)
    samples = make_samples(X, kernel.sample_form)
    assert samples.is_sparse
    np.testing.assert_allclose(fill(kernel, samples, samples), naive.laplacian(X, X, 0.5), atol=1e-12)


def test_entry_error_of_periodic_data() -> None:
    """All rows at a fixed stride, and those that follow them, are near the origin; the others are far from it."""
    X = np.random.default_rng(0).normal(size=(63 * 16 + 1, 3)).astype(SINGLE)
    X[np.arange(len(X)) % 16 > 1] += 1000
    X[np.arange(len(X)) % 16 > 8] -= 2000
    samples = make_samples(X, RBF.sample_form)
    assert entry_error(RBF(1.0), samples) > 1e-4
    assert ensure_precision(RBF(1.0), samples).precision == DOUBLE


def test_entry_error_of_float64_and_of_no_rows_is_zero() -> None:
    X = np.random.default_rng(0).normal(size=(5, 2))
    assert entry_error(RBF(1.0), make_samples(X, RBF.sample_form)) == 0
    assert entry_error(RBF(1.0), make_samples(np.zeros((0, 2), SINGLE), RBF.sample_form)) == 0
    single = make_samples(X.astype(SINGLE), RBF.sample_form)
    assert 0 < entry_error(RBF(1.0), single) < 1e-6
    assert ensure_precision(RBF(1.0), single) is single


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_callable_gets_the_users_own_rows(is_sparse: bool) -> None:
    seen: list[Any] = []

    def product(A: Any, B: Any) -> NDArray[np.floating]:
        seen.append(A)
        return np.asarray((A @ B.T).toarray() if sp.issparse(A) else A @ B.T)

    X = np.array([[1000.0, 1.0], [1001.0, 0.0], [0.0, 2.0]])
    kernel = make_kernel(product)
    samples = make_samples(sp.csr_array(X) if is_sparse else X, kernel.sample_form)
    np.testing.assert_array_equal(fill(kernel, samples.take(slice(0, 2)), samples), X[:2] @ X.T)
    np.testing.assert_array_equal(kernel.diagonal(samples), (X * X).sum(axis=1))
    assert all(sp.issparse(A) == is_sparse for A in seen)


def test_a_callable_of_the_wrong_shape_is_named() -> None:
    samples = make_samples(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"kernel: the callable returned shape \(2, 2\) .* \(3, 3\)"):
        CallableKernel(lambda A, B: A.T @ B).diagonal(samples)
    with pytest.raises(ValueError, match=r"kernel: the callable returned shape \(2, 2\) .* \(3, 3\)"):
        fill(CallableKernel(lambda A, B: A.T @ B), samples, samples)


def test_precomputed_entries_are_copied() -> None:
    K = np.arange(16.0, dtype=SINGLE).reshape(4, 4)
    samples = make_samples(K, Precomputed.sample_form)
    np.testing.assert_array_equal(fill(Precomputed(), samples.take(np.array([2, 1])), samples), K[[2, 1]])
    np.testing.assert_array_equal(Precomputed().diagonal(samples), K.diagonal())


def test_make_kernel() -> None:
    assert make_kernel("rbf", gamma=0.5) == RBF(0.5)
    assert make_kernel("linear") == Linear()
    with pytest.raises(ValueError, match="kernel must be one of .* got 'gauss'"):
        make_kernel("gauss")


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_has_a_compiled_form_of_its_name(name: str) -> None:
    kernel: Any = make_kernel(name, gamma=0.5, degree=2, coef0=1.0)
    x, u = np.array([[0.3, -0.2, 0.9]]), np.array([[0.5, 0.1, -0.4]])
    value = np.empty((1, 1))
    features = LandmarkFeatures(
        kernel, u[None], np.empty((1, 1, 0)), np.zeros(1, np.int64), np.empty((1, 2, 0), np.int32)
    )
    samples = make_samples(np.vstack([x, u]), kernel.sample_form)
    kernel.fill(samples.take(slice(0, 1)), samples.take(slice(1, 2)), value)
    np.testing.assert_allclose(features.evaluate(x), value, rtol=1e-12)


@pytest.mark.parametrize("name", [*NAMES, "precomputed"])
def test_a_tile_may_be_empty(name: str) -> None:
    kernel = make_kernel(name)
    samples = make_samples(np.ones((3, 3)), kernel.sample_form)
    assert fill(kernel, samples.take(slice(0, 0)), samples).shape == (0, 3)
