"""Compile everything ahead of time."""

import numpy as np

from . import (
    coordinate,
    dense,
    elementwise,
    linesearch,
    margins,
    nystrom,
    panels,
    profile,
    simplex_qp,
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
    for data in (np.dtype(np.float32), np.dtype(np.float64)):
        _warm_nystrom(data)
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


def _warm_nystrom(dtype: np.dtype) -> None:
    X, order, leaf = np.ones((2, 2), dtype), np.arange(2), np.zeros(2, np.int32)
    values, sums, F, out = np.ones((1, 2, 2), dtype), np.ones((1, 2), dtype), np.ones((2, 4), dtype), np.ones((2, 1))
    points = workspace.Points(values, sums)
    tree = workspace.Tree(values, sums, np.array([2], np.int32), np.array([[-1, -2]], np.int32))
    rows = workspace.make_rows(X)
    nystrom.meet(rows, order, tree, leaf, points, workspace.SQUARES, F, points, F[:, :2].copy())
    nystrom.bound(F, np.zeros(2, np.int32), values, np.zeros(1, np.int64), 2)
    products, coef, intercept = np.ones((1, 1, 2, 2), dtype), np.ones((1, 1, 4)), np.ones((1, 1))
    nystrom.answer(F, F[:, :2].copy(), order, np.zeros(2, np.int32), coef, products, intercept, out)
    members, leaf = np.zeros((2, panels.LANES), np.int32), np.zeros(2, np.int32)
    panels.gather(leaf, 1, members, np.zeros(2, np.int32))
    panels.descend(X, members[:1], np.zeros(1, np.int32), tree, leaf)
    values, F = np.ones((1, 2, 2), dtype), np.ones((4, panels.LANES), dtype)
    panels.measure(X, members[:1], np.zeros(1, np.int32), values, workspace.SQUARES, values, F)
    coef, intercept, out = np.ones((1, 2, 2)), np.ones((1, 2)), np.ones((2, 2))
    panels.answer(F, members[:1], np.zeros(1, np.int32), coef, np.ones((1, 2, 2, 2), dtype), 2, intercept, out)
