"""Compile everything ahead of time."""

import numpy as np

from . import dual, elementwise, sparse, workspace


def compile_kernels() -> None:
    """Compile every kernel for float32 and float64 data."""
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        _warm_tiles(dtype)
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    for data, tile in ((single, single), (single, double), (double, double)):
        _warm_dual(data, tile)


def _warm_tiles(dtype: np.dtype) -> None:
    X, out = np.ones((2, 2), dtype), np.ones((2, 2), dtype)
    elementwise.power(out, 1.0, 1.0, 2)
    elementwise.l1_distances(X, X, out)
    if dtype == np.float32:
        elementwise.rbf(out, X[0], X[0], 1.0)
    elementwise.exponent(np.ones((2, 2)), np.ones(2), np.ones(2), 1.0, out)
    values, panel = np.ones(4, dtype), np.zeros((2, 2), dtype)
    rows = (values, np.array([0, 1, 0, 1]), np.array([0, 2, 4]))
    sparse.csr_inner(*rows, *rows, panel, out)


def _warm_dual(data: np.dtype, tile: np.dtype) -> None:
    K, ones = np.eye(2, dtype=data), np.ones(2)
    box = workspace.Box(np.array([1.0, -1.0]), np.array([0.0, -1.0]), np.array([1.0, 0.0]), ones)
    beta, decision = np.zeros(2), np.zeros(2)
    point = K, box, beta, decision, workspace.make_tile(2, tile), workspace.make_working_set(2, 2), 1e-3, True
    dual.solve_set(*point)
    dual.solve_active(*point, 9)
    dual.add_rows(K, np.arange(2), ones, decision, 0, 2)
