"""Compile everything ahead of time."""

import numpy as np

from . import budget, dual, elementwise, fixed, sparse, workspace


def compile_kernels() -> None:
    """Compile every kernel for float32 and float64 data."""
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        _warm_tiles(dtype)
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    for data, tile in ((single, single), (single, double), (double, double)):
        _warm_dual(data, tile)
    _warm_budget()


def _warm_tiles(dtype: np.dtype) -> None:
    X, out = np.ones((2, 2), dtype), np.ones((2, 2), dtype)
    elementwise.power(out, 1.0, 1.0, 2)
    elementwise.l1_distances(X, X, out)
    if dtype == np.float32:
        elementwise.rbf(out, X[0], X[0], 1.0)
    values, panel = np.ones(4, dtype), np.zeros((2, 2), dtype)
    rows = (values, np.array([0, 1, 0, 1]), np.array([0, 2, 4]))
    sparse.csr_inner(*rows, *rows, panel, out)


def _warm_dual(data: np.dtype, tile: np.dtype) -> None:
    K, ones = np.eye(2, dtype=data), np.ones(2)
    box = workspace.Box(np.array([1.0, -1.0]), np.array([0.0, -1.0]), np.array([1.0, 0.0]), ones)
    beta, decision = np.zeros(2), np.zeros(2)
    dual.solve_active(
        K, box, beta, decision, workspace.make_tile(2, tile), workspace.make_working_set(2, 2), 1e-3, True, 9
    )
    dual.add_rows(K, np.arange(2), ones, decision)


def _warm_budget() -> None:
    X, order, push = np.eye(3, dtype=np.float32), np.arange(3), np.array([1.0, -1.0, 1.0])
    rows = workspace.Rows(X.ravel(), np.empty(0, np.int32), np.empty(0, np.int64))
    machine = workspace.make_budgeted(3, 2)
    rule = workspace.StepRule(1.0, budget.LOOKUP_WD, 2, 1.0, 0.0)
    tables = workspace.make_tables(np.ones((2, 1, 1, 4), np.float32))
    budget.merge_steps(rows, order, push, machine, tables, rule)
    budget.find_partner(0, 0, 2, np.ones(2), machine.work, tables, budget.GSS)
    coef, inverse, diagonal = np.zeros((2, 5)), np.zeros((5, 5)), np.ones(5)
    K = np.eye(3, 5, dtype=np.float32)
    rule = rule._replace(rule=fixed.PROJECTION)
    fixed.fixed_steps(K, 2, diagonal, push, coef, inverse, machine.counts, machine.sums, rule)
