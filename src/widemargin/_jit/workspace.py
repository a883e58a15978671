"""Named tuples of arrays that cross the border into compiled code."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

PRODUCTS, SQUARES, DIFFERENCES = range(3)  # what is summed over the features of two points: x u, (x - u)^2, |x - u|


class Rows(NamedTuple):
    """Rows to stream over: CSR arrays, or a dense array that has no starts and is read as if every value had a column.

    A dense row's zeros are skipped, so both cost their non-zeros.
    """

    data: np.ndarray  # (nnz,); a dense array's values, row by row
    columns: np.ndarray  # (nnz,) int32 or int64; (0,) for a dense array
    starts: np.ndarray  # (n + 1,) int64; (0,) for a dense array


def make_rows(X: Any) -> Rows:
    """The rows of a C-contiguous or CSR array, without a copy of its values."""
    if hasattr(X, "indptr"):
        return Rows(X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False))
    return Rows(X.reshape(-1), np.empty(0, np.int32), np.empty(0, np.int64))


class Points(NamedTuple):
    """k groups of m points that rows are compared with."""

    values: np.ndarray  # (k, m, d)
    at_zero: np.ndarray  # (k, m): what the zero row measures


class Tree(NamedTuple):
    """A tree of centres that routes a row to a leaf; node 0 is the root."""

    centres: np.ndarray  # (n_nodes, b, d)
    at_zero: np.ndarray  # (n_nodes, b): squared norms
    sizes: np.ndarray  # (n_nodes,) int32: children of each node
    children: np.ndarray  # (n_nodes, b) int32: a node, or -1 - leaf


def no_points(d: int, dtype: Any) -> Points:
    """Nothing to compare rows of d features with."""
    return Points(np.empty((1, 0, d), dtype), np.empty((1, 0), dtype))


class Tables(NamedTuple):
    """h and the root of wd at the nodes of a grid, each beside its successor in m.

    A cell's corners are 16 bytes in a row, one load; every node is there twice, not four times: less cache to miss.
    """

    pairs: np.ndarray  # (2, t - 1, t, 2) float32: of nodes (i, j) and (i + 1, j)
    cells: np.ndarray  # (2, (t - 1) t - 1) complex128, the same memory: item i t + j is that pair and the next one


class Search(NamedTuple):
    """Scratch of the search for a partner among at most n_slots points."""

    rows: np.ndarray  # (10, n_slots) float32
    bits: np.ndarray  # (10, n_slots) int32: the same memory
    parts: np.ndarray  # (4 n_slots,) float32: four values a partner
    powers: np.ndarray  # (4 n_slots,) float32: of 2, for their exponentials
    power_bits: np.ndarray  # (4 n_slots,) int32: the same memory
    found: np.ndarray  # (n_slots,) complex128: cells
    corners: np.ndarray  # (4 n_slots,) float32: the same memory


class Budgeted(NamedTuple):
    """A machine of at most `budget` points, feature-major so that one row meets all points at once.

    The true coefficients are ``slots[0] / (lam t)`` after t steps: in these units no step has to scale them. `slots[1]`
    is the same sum with every term times the clock at which it came. The clock is the sum over steps of weight / t,
    so that ``clock slots[0] - slots[1]`` is lam times the weighted sum over steps of the true coefficients. Points of
    positive coefficient fill the slots from the front, those of negative ones from the back.
    """

    points: np.ndarray  # (d, n_slots) float32: x_j less `shift`, divided by slots[3, j]
    slots: (
        np.ndarray
    )  # (4, n_slots) float64: coefficient, zero in empty slots; its lag; gamma |x|^2; factor of the point
    counts: np.ndarray  # (6,) int64: steps, slots used at the front and at the back, violations, mergers, removals
    sums: np.ndarray  # (7,) float64, see make_sums
    shift: np.ndarray  # (d,) float32
    hand: np.ndarray  # (5,) float64, scratch: what `slots` would hold of the row in hand; a bound on |coefficients|
    x: np.ndarray  # (d,) float32, scratch: the non-zeros of the row in hand
    columns: np.ndarray  # (d,) int32, scratch: their columns
    work: Search


class StepRule(NamedTuple):
    """What a step does: numbers that do not change during a pass."""

    gamma: float
    rule: int | float | None  # of making room; for mergers, the precision that find_partner wants
    budget: int
    inverse_lam: float
    intercept: float  # 1.0 or 0.0


def make_budgeted(n_features: int, budget: int) -> Budgeted:
    """An empty machine; the slots are one more than the budget, rounded up to an odd number of vectors of 16.

    Odd, as one point is a column: at a stride of a power of two its values would fight for a few sets of the cache.
    """
    n_slots = 16 * (budget // 16 + 1 | 1)
    return Budgeted(
        points=aligned((n_features, n_slots), np.float32),
        slots=aligned((4, n_slots), np.float64),
        counts=np.zeros(6, np.int64),
        sums=make_sums(),
        shift=np.zeros(n_features, np.float32),
        hand=np.zeros(5),
        x=np.zeros(n_features, np.float32),
        columns=np.zeros(n_features, np.int32),
        work=make_search(n_slots),
    )


def make_sums() -> np.ndarray:
    """The sums before the first step: of the intercept and its lag; clock, latest weight and sum of weights; losses."""
    return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


def make_search(n_slots: int) -> Search:
    """Scratch for n_slots points."""
    found, rows = aligned((n_slots,), np.complex128), aligned((10, n_slots), np.float32)
    parts, powers = aligned((2, 4 * n_slots), np.float32)
    corners = found.view(np.float32)
    return Search(rows, rows.view(np.int32), parts, powers, powers.view(np.int32), found, corners)


def aligned(shape: tuple[int, ...], dtype: Any, make: Callable[..., np.ndarray] = np.zeros) -> np.ndarray:
    """Zeros, or what `make` makes, that begin a line of the cache: a register across two of them is read twice."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = make(size + 64, np.uint8)
    first = -memory.ctypes.data % 64
    return np.ndarray(shape, dtype, memory, offset=first)


def make_tables(grids: np.ndarray) -> Tables:
    """Values at the nodes, (2, t, t) float32, in the form that compiled look-ups want."""
    t = grids.shape[1]
    pairs = aligned((2, t - 1, t, 2), np.float32)
    pairs[..., 0], pairs[..., 1] = grids[:, :-1], grids[:, 1:]
    cells = np.ndarray((2, (t - 1) * t - 1), np.complex128, pairs, strides=(8 * (t - 1) * t, 8))
    return Tables(pairs, cells)
