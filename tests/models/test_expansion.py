"""Kernel expansions against the sum written out."""

import pickle

import numpy as np
import pytest

from widemargin._config import config_context
from widemargin._memory import MemoryPlan
from widemargin.kernels.functions import make_kernel
from widemargin.models.expansion import KernelExpansion

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
GAMMA = 0.4


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_blocks_and_threads_do_not_show(dtype: np.dtype) -> None:
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(20, 4)).astype(dtype), rng.normal(size=(1300, 4)).astype(dtype)
    model = KernelExpansion(make_kernel("rbf", gamma=GAMMA), Z, rng.normal(size=(2, 20)), np.array([1.0, -1.0]))
    whole = model.decision_values(X, n_jobs=1)
    np.testing.assert_array_equal(whole, model.decision_values(X, n_jobs=2))
    with config_context(block_bytes=2**17):
        tiles = model.decision_values(X, n_jobs=1, memory=MemoryPlan(1))
        np.testing.assert_array_equal(tiles, model.decision_values(X, n_jobs=3, memory=MemoryPlan(1)))
    one_by_one = np.concatenate([model.decision_values(X[i : i + 1]) for i in range(40)])
    atol = 1e-12 if dtype == DOUBLE else 2e-5
    np.testing.assert_allclose(tiles, whole, atol=atol)
    np.testing.assert_allclose(one_by_one, whole[:40], atol=atol)


def test_precomputed_uses_the_columns_of_the_support_vectors() -> None:
    K = np.random.default_rng(0).normal(size=(5, 9))
    model = KernelExpansion(make_kernel("precomputed"), np.array([7, 2]), np.array([[1.0, -2.0]]), np.array([0.5]))
    np.testing.assert_allclose(model.decision_values(K)[:, 0], K[:, 7] - 2 * K[:, 2] + 0.5)
    assert model.decision_values(K[:0]).shape == (0, 1)


def test_a_callable_sees_the_points_on_the_left() -> None:
    """The function need not be symmetric in its arguments' shapes."""
    Z, X = np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)
    model = KernelExpansion(make_kernel(lambda A, B: A @ B.T), Z, np.array([[1.0, 0.0, -1.0]]), np.zeros(1))
    np.testing.assert_allclose(model.decision_values(X)[:, 0], X @ (Z[0] - Z[2]))


def test_pickles_hold_the_points_once() -> None:
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(200, 10)), rng.normal(size=(3, 10))
    model = KernelExpansion(make_kernel("rbf", gamma=GAMMA), Z, rng.normal(size=(1, 200)), np.zeros(1))
    values = model.decision_values(X)
    blob = pickle.dumps(model)
    assert len(blob) < 1.5 * Z.nbytes
    np.testing.assert_array_equal(pickle.loads(blob).decision_values(X), values)


def test_new_rows_far_from_the_points() -> None:
    """Centring by the points' mean must not spoil rows elsewhere."""
    Z = np.random.default_rng(0).normal(size=(10, 2)).astype(SINGLE)
    model = KernelExpansion(make_kernel("rbf", gamma=1.0), Z, np.ones((1, 10)), np.zeros(1))
    assert abs(float(model.decision_values(Z + SINGLE.type(1e5))[0, 0])) < 1e-30
