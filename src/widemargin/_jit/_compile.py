"""Compile everything ahead of time."""

import numpy as np

from . import (
    budget,
    coordinate,
    dense,
    dual,
    elementwise,
    fixed,
    linesearch,
    margins,
    profile,
    simplex_qp,
    sparse,
    turns,
    workspace,
)


def compile_kernels() -> None:
    """Compile every kernel for float32 and float64 data."""
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        _warm_tiles(dtype)
        _warm_passes(dtype)
    _warm_planes()
    _warm_signs()
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    for data, tile in ((single, single), (single, double), (double, double)):
        _warm_dual(data, tile)
    _warm_budget()
    turn, flag = turns.new_turn(1), np.zeros(1, np.int64)
    turns.begin(flag, 1, turn)
    turns.wait_for_work(turns.still_busy(turn), flag, 1, 0)
    turns.wait_for_helpers(turns.still_busy(turn), 1)


def _warm_tiles(dtype: np.dtype) -> None:
    X, out = np.ones((2, 2), dtype), np.ones((2, 2), dtype)
    elementwise.power(out, 1.0, 1.0, 2)
    elementwise.l1_distances(X, X, out)
    if dtype == np.float32:
        elementwise.rbf(out, X[0], X[0], 1.0)
    elementwise.exponent(np.ones((2, 2)), np.ones(2), np.ones(2), 1.0, out)
    values, panel = np.ones(4, dtype), np.zeros((2, sparse.PANEL_BYTES // dtype.itemsize), dtype)
    rows = (values, np.array([0, 1, 0, 1], np.int32), np.array([0, 2, 4]))
    sparse.csr_inner(*rows, *rows, panel, out)
    sparse.count_nonzeros(X, np.zeros(3, np.int64))
    sparse.copy_nonzeros(X, np.zeros(5, dtype), np.zeros(5, np.int32))


def _warm_dual(data: np.dtype, tile: np.dtype) -> None:
    K, ones = np.eye(2, dtype=data), np.ones(2)
    box = workspace.Box(np.array([1.0, -1.0]), np.array([0.0, -1.0]), np.array([1.0, 0.0]), ones)
    beta, decision = np.zeros(2), np.zeros(2)
    point = K, box, beta, decision, workspace.make_tile(2, tile), workspace.make_working_set(2, 2), 1e-3, True
    dual.solve_set(*point)
    dual.solve_active(*point, 9)
    dual.add_rows(K, np.arange(2), ones, decision, 0, 2)


def _warm_passes(dtype: np.dtype) -> None:
    X, ones, coef, index = _fixed(np.ones((3, 2), dtype)), np.ones(2), np.ones((1, 3)), np.zeros(3, np.int64)
    dense.take_rows(X, index, np.ones((3, 2), dtype))
    dense.row_outputs(X, ones, np.ones(3))
    dense.row_sum(X, coef, index, np.ones((1, 2)))
    dense.all_taken_rows(X, index, 2, turns.new_turn(0), np.ones((3, 2), dtype))
    dense.all_row_outputs(X, ones, 2, turns.new_turn(0), np.ones(3))
    dense.all_row_sums(X, coef, coef, 2, turns.new_turn(0), np.ones((2, 1, 2)))
    dense.all_moments(X, index, ones, np.ones(3), 2, turns.new_turn(0), np.ones((2, 2, 2)))
    dense.are_finite(X.reshape(-1), dtype.type(0), 2, turns.new_turn(0))
    for columns in (_fixed(np.ones((3, 2), dtype, "F")), _fixed(np.ones((4, 2), dtype, "F"))[:3]):  # all, and a block
        dense.column_outputs(columns, ones, np.ones(3))
        dense.column_sum(columns, coef, index, np.ones((1, 2)))
    for width in (np.int32, np.int64):
        indices, indptr = np.array([0, 1] * 3, width), np.array([0, 2, 4, 6], width)
        rows = X.reshape(-1), _fixed(indices), _fixed(indptr)
        sparse.csr_outputs(*rows, np.ones((1, 2)), 2, turns.new_turn(0), np.ones((1, 3)))
        sparse.csr_row_sums(*rows, coef, coef, 2, 1, turns.new_turn(0), np.ones((2, 1, 2)))
        _warm_ascent(workspace.Rows(*rows[:2], _fixed(indptr.astype(np.int64))))


def _fixed(array: np.ndarray) -> np.ndarray:
    """Read-only, as solvers hand over what is not theirs."""
    array.flags.writeable = False
    return array


def _warm_ascent(rows: workspace.Rows) -> None:
    border = np.array([np.inf, -np.inf])
    coordinate.ascend(rows, np.ones(3), 1.0, 0.0, np.zeros(3), np.zeros(3), np.arange(3), border)
    coordinate.add_rows(rows, np.ones(3), np.zeros(3))


def _warm_planes() -> None:
    f, signed, index = np.zeros(2), np.array([1.0, -1.0]), np.arange(2)
    simplex_qp.solve_simplex(np.eye(2), f, np.ones(2), np.ones(2), np.eye(2), np.ones(2), index, 1.0, 1)
    blocks = 2, turns.new_turn(0)
    part = np.zeros(1, np.int64), np.zeros((1, 2), np.int64)
    linesearch.near_corner(f, 0.0, signed, 1.0, *blocks, index, *part)
    linesearch.rounded_hinges(f, 0.0, signed, 1.0, 1.0, 1.0, *blocks, np.ones(2), np.ones((1, 4)))
    linesearch.rounded_sides(f, 0.0, signed, 1.0, *blocks, np.ones((1, 3)))
    ends, found = (f, signed, (0.0, 0.0), signed), (np.ones(2), np.ones(2))
    linesearch.scan_hinges(*ends, 0.0, 1.0, *blocks, *found, *part, np.ones(1))
    linesearch.find_root(np.ones(2), np.ones(2), 1.0, -1.0, 0.0)
    linesearch.advance_hinges(f, signed, signed, 0.5, 0.5, *blocks, np.ones(2), np.ones((1, 2)))
    elementwise.absolute_sums(f, *blocks, np.ones((1, 1)))
    elementwise.pick_values(f, np.arange(2), *blocks, np.ones(2))
    profile.find_quantile(signed.copy(), np.ones(2), 1.0)
    between = (f, signed, 0.5, signed, -1.0, 1.0)
    profile.values_between(*between, *blocks, np.ones(2), *found, *part, np.ones((1, 2)))
    profile.advance_profile(f, signed, signed, 0.5, 0.0, signed, 0.0, *blocks, np.ones(2), np.ones((1, 5)))
    profile.share_border(signed, signed, 0.0, 0.0, 1.0, np.ones(2))
    F, target, s = np.zeros((2, 2)), np.eye(2), np.ones(2)
    margins.advance_margins(F, target, index, s, 0.5, 0.5, np.ones((2, 2)))
    margins.margin_slope(F, target, index, s, index, 0.5)
    margins.settle_margins(F, target, index, s, index, 0.0, 1.0)


def _warm_signs() -> None:
    for numbers in (np.zeros(2, np.int8), np.zeros(2, np.int64)):
        elementwise.sign_rows(numbers, 0, 2, turns.new_turn(0), np.ones(2))


def _warm_budget() -> None:
    X, order, push = np.eye(3, dtype=np.float32), np.arange(3), np.array([1.0, -1.0, 1.0])
    rows = workspace.Rows(X.ravel(), np.empty(0, np.int32), np.empty(0, np.int64))
    for array in rows:
        array.setflags(write=False)  # as the solver hands them over
    machine = workspace.make_budgeted(3, 2)
    rule = workspace.StepRule(1.0, None, 2, 1.0, 0.0)
    tables = workspace.make_tables(np.ones((2, 2, 2), np.float32))
    budget.merge_steps(rows, order, push, machine, tables, rule)
    budget.find_partner(1.0, 0, 2, np.ones(2), machine.work, tables, 0.01)
    coef, inverse, diagonal = np.zeros((2, 5)), np.zeros((5, 5)), np.ones(5)
    K = np.eye(3, 5, dtype=np.float32)
    rule = rule._replace(rule=fixed.PROJECTION)
    fixed.fixed_steps(K, 2, diagonal, push, coef, inverse, machine.counts, machine.sums, rule)
