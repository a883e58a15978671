"""Gradients of kernel expansions against the sums written out, dense and sparse, float32 and float64."""

from typing import Any

import numpy as np
import pytest

from naive import kernels as naive
from widemargin._config import config_context
from widemargin._native import gradients as native
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import make_kernel
from widemargin.kernels.gradients import add_kernel_gradients

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
NAMES = ["linear", "rbf", "laplacian", "poly", "sigmoid"]


def gradients(kernel: Any, X: Any, Z: Any, coef: Any, n_jobs: int = 1) -> np.ndarray:
    points, rows = make_samples(Z, kernel.sample_form).pair_with(X)
    out = np.zeros((X.shape[0], coef.shape[0], X.shape[1]))
    with ThreadTeam(n_jobs) as team:
        add_kernel_gradients(kernel, rows, points, coef, out, team)
    return out


@pytest.mark.parametrize("name", NAMES)
def test_blocks_and_threads_do_not_show(name: str) -> None:
    rng = np.random.default_rng(0)
    Z, X, coef = rng.normal(size=(600, 4)), rng.normal(size=(900, 4)), rng.normal(size=(2, 600))
    kernel = make_kernel(name, gamma=0.3)
    with config_context(block_bytes=2**17):
        found = gradients(kernel, X, Z, coef)
        np.testing.assert_array_equal(found, gradients(kernel, X, Z, coef, n_jobs=3))
    truth = [naive.gradient(name, X[i], Z, coef[1], gamma=0.3, coef0=0.0) for i in (0, 450, 899)]
    np.testing.assert_allclose(found[[0, 450, 899], 1], truth, atol=1e-9)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize(("c", "r", "d"), [(0, 3, 2), (3, 0, 2), (1, 1, 1), (5, 40, 3), (4, 33, 11)])
def test_signed_sums(c: int, r: int, d: int, dtype: np.dtype) -> None:
    rng = np.random.default_rng(r + d)
    X, Z = (rng.integers(-2, 3, size=(n, d)).astype(dtype) for n in (c, r))
    W, out = rng.normal(size=(c, r + 2)).astype(dtype), rng.normal(size=(c, 2, d))
    # no einsum: of an empty operand it reads a value that is not there, times 0, which may be NaN
    truth = out[:, 1] + (W[:, 1:-1, None] * np.sign(X[:, None] - Z)).sum(axis=1)
    native.add_signed_sums(X, np.ascontiguousarray(Z.T), W[:, 1:-1], out[:, 1])
    np.testing.assert_allclose(out[:, 1], truth, atol=1e-12 if dtype == DOUBLE else 1e-5)
