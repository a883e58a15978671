"""
The dual of kernel machines: KKT violations, working sets, coordinate pairs.

STEPS_PER_ROW: steps of one solve of a tile, at most, divided by the tile's size. BINS: of the
histogram of `largest_violators`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import Team

STEPS_PER_ROW: int = 20
BINS: int = 256

class SeparableTerms:
    """
    The dual's terms of single coordinates, sum_i curvature_i beta_i^2 / 2 + epsilon |beta_i|
    - target_i beta_i on lo_i <= beta_i <= hi_i, lo_i <= 0 <= hi_i, and the scale
    1 / sqrt(K_ii + curvature_i) that gives tiles a unit diagonal: float64 arrays (m,), which it keeps
    alive. No curvature is one of zero.
    """

    def __init__(
        self,
        target: NDArray[np.float64],
        lo: NDArray[np.float64],
        hi: NDArray[np.float64],
        scale: NDArray[np.float64],
        epsilon: float = 0.0,
        curvature: NDArray[np.float64] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def target(self) -> NDArray[np.float64]: ...
    @property
    def lo(self) -> NDArray[np.float64]: ...
    @property
    def hi(self) -> NDArray[np.float64]: ...
    @property
    def scale(self) -> NDArray[np.float64]: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def curvature(self) -> NDArray[np.float64] | None: ...

class WorkingSet:
    """
    A working set of at most `size` of `n_rows` coordinates, kept from one call to the next, and scratch.
    """

    def __init__(self, size: int, n_rows: int) -> None: ...
    @property
    def rows(self) -> Any:
        """The rows of the last working set, newest last; a copy."""

class EntryRows:
    """
    Rows X (m, d) whose kernel matrix is exp(-gamma |x - z|^2), with squares (m,): |x|^2; or
    exp(-gamma |x - z|_1), with None. Computed sums leave out entries between a row and blocks of 256
    rows whose box is at a (squared) distance above `limit`.
    """

    def __init__(
        self, X: NDArray[np.float32], squares: NDArray[np.float64] | None, gamma: float, limit: float = float("inf")
    ) -> None: ...
    def __len__(self) -> int: ...

class Tile32:
    """
    A working set's quadratic program: Q (size, size); diagonal, grad, lo, hi and step (size,).
    """

    def __init__(self, size: int) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def Q(self) -> NDArray[np.float32]: ...
    @property
    def diagonal(self) -> NDArray[np.float32]: ...
    @property
    def grad(self) -> NDArray[np.float32]: ...
    @property
    def lo(self) -> NDArray[np.float32]: ...
    @property
    def hi(self) -> NDArray[np.float32]: ...
    @property
    def step(self) -> NDArray[np.float32]: ...

def solve_box_tile(tile: Tile32 | Tile64, tol: float) -> int:
    """
    Minimise 1/2 d'Qd + grad'd over lo <= d <= hi, for Q of unit diagonal, to a violation of tol. Returns the number
    of steps; tile.step is d, grad becomes Qd + grad, lo and hi are shifted by -d.
    """

def solve_equality_tile(tile: Tile32 | Tile64, tol: float) -> int:
    """
    The same with sum(d) = 0; `diagonal` is that of Q, of any positive values.
    """

class Tile64:
    """
    A working set's quadratic program: Q (size, size); diagonal, grad, lo, hi and step (size,).
    """

    def __init__(self, size: int) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def Q(self) -> NDArray[np.float64]: ...
    @property
    def diagonal(self) -> NDArray[np.float64]: ...
    @property
    def grad(self) -> NDArray[np.float64]: ...
    @property
    def lo(self) -> NDArray[np.float64]: ...
    @property
    def hi(self) -> NDArray[np.float64]: ...
    @property
    def step(self) -> NDArray[np.float64]: ...

def kkt_violation(
    terms: SeparableTerms,
    beta: NDArray[np.float64],
    f: NDArray[np.float64],
    has_intercept: bool,
    out: NDArray[np.float64],
) -> tuple[Any, ...]:
    """
    Write the KKT violation of each coordinate, positive where beta should rise; all arrays (m,), f = K beta. Returns
    the intercept (0 in a problem without one) and the violation that is compared with a tolerance.
    """

def largest_violators(violation: NDArray[np.float64], side: int, k: int) -> Any:
    """
    Indices of the k largest violations (m,), exact to 1/256 of the largest: positive ones (side 1), negative ones (-1),
    or by absolute value (0).
    """

def solve_from_rows(
    team: Team,
    rows: EntryRows,
    terms: SeparableTerms,
    beta: NDArray[np.float64],
    f: NDArray[np.float64],
    tile: Tile32,
    working_set: WorkingSet,
    tol: float,
    has_intercept: bool,
    max_sets: int,
) -> tuple[Any, ...]:
    """
    As solve_working_sets, on the kernel matrix of `rows`: no matrix is in memory, all entries are computed.
    """

def solve_working_sets(
    team: Team,
    K: NDArray[np.floating],
    terms: SeparableTerms,
    beta: NDArray[np.float64],
    f: NDArray[np.float64],
    tile: Tile32 | Tile64,
    working_set: WorkingSet,
    tol: float,
    has_intercept: bool,
    max_sets: int,
    rows: EntryRows | None = None,
) -> tuple[Any, ...]:
    """
    Solve the dual on K (m, >= m) by working sets, from a feasible beta (m,) and f = K beta (m,), in place.

    rows: those whose kernel matrix K is; entries of a Tile32 are then computed from them instead of read.
    Ends when the violation is below tol, after max_sets working sets, or when the team is stopped. Returns the
    numbers of working sets and of steps in them, the intercept, the violation. f = K beta holds after an exception
    too.
    """

class Subproblems32:
    """
    P duals on principal submatrices of K (n, n): problem p has the rows[starts[p]:starts[p + 1]] of K and
    this slice of terms, beta and f = K[rows, rows] beta (N,); beta and f are updated in place.
    """

    def __init__(
        self,
        K: NDArray[np.float32],
        rows: NDArray[np.int64],
        starts: NDArray[np.int64],
        terms: SeparableTerms,
        beta: NDArray[np.float64],
        f: NDArray[np.float64],
        has_intercept: bool,
    ) -> None: ...
    def compute_decision_values(self) -> None:
        """f = K[rows, rows] beta, of each problem."""

    def solve(
        self, team: Team, tol: NDArray[np.float64], max_sets: NDArray[np.int64], seconds: float
    ) -> tuple[Any, ...]:
        """
        Solve each problem to a violation below tol (P,) in at most max_sets (P,) working sets, each problem in one
        thread; stop after about `seconds`. Returns lists: working sets, steps in them, violations, and whether the
        last working set made no step although the violation is not below tol.
        """

class Subproblems64:
    """
    P duals on principal submatrices of K (n, n): problem p has the rows[starts[p]:starts[p + 1]] of K and
    this slice of terms, beta and f = K[rows, rows] beta (N,); beta and f are updated in place.
    """

    def __init__(
        self,
        K: NDArray[np.float64],
        rows: NDArray[np.int64],
        starts: NDArray[np.int64],
        terms: SeparableTerms,
        beta: NDArray[np.float64],
        f: NDArray[np.float64],
        has_intercept: bool,
    ) -> None: ...
    def compute_decision_values(self) -> None:
        """f = K[rows, rows] beta, of each problem."""

    def solve(
        self, team: Team, tol: NDArray[np.float64], max_sets: NDArray[np.int64], seconds: float
    ) -> tuple[Any, ...]:
        """
        Solve each problem to a violation below tol (P,) in at most max_sets (P,) working sets, each problem in one
        thread; stop after about `seconds`. Returns lists: working sets, steps in them, violations, and whether the
        last working set made no step although the violation is not below tol.
        """
