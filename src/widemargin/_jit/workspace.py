"""Named tuples of arrays that cross the border into compiled code."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Box(NamedTuple):
    """A signed dual problem on the rows of one kernel matrix: four float64 arrays of shape (m,)."""

    target: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    scale: np.ndarray  # 1 / sqrt(diagonal of K)


class Tile(NamedTuple):
    """Scratch for a working set of at most q rows, all of one dtype; `bits` views `gain` as integers."""

    Q: np.ndarray
    diagonal: np.ndarray
    grad: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    step: np.ndarray
    gain: np.ndarray
    bits: np.ndarray


class WorkingSet(NamedTuple):
    """Carry-over between calls: rows (q,) int64, newest last, `filled` (1,) of them; violation (m,) is scratch.

    The last call's outcome: the rows that `changed` (q,) int64, by what `change` (q,).
    """

    rows: np.ndarray
    filled: np.ndarray
    violation: np.ndarray
    changed: np.ndarray
    change: np.ndarray


def make_tile(size: int, dtype: np.dtype) -> Tile:
    """Allocate the scratch of a working set of `size` rows."""
    diagonal, grad, lo, hi, step, gain = (np.zeros(size, dtype) for _ in range(6))
    bits = gain.view(f"i{gain.itemsize}")
    return Tile(np.zeros((size, size), dtype), diagonal, grad, lo, hi, step, gain, bits)


def make_working_set(size: int, n_rows: int) -> WorkingSet:
    """An empty working set of at most `size` out of `n_rows` rows."""
    rows, changed = np.zeros((2, size), np.int64)
    return WorkingSet(rows, np.zeros(1, np.int64), np.zeros(n_rows), changed, np.zeros(size))


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
