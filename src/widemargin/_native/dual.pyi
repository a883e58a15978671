"""Working sets of the kernel machine's dual."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import Team

STEPS_PER_ROW: int = 20
BINS: int = 256

class Box:
    """
    A signed dual problem on the rows of one kernel matrix: targets, bounds lo <= 0 <= hi and
    1 / sqrt(diagonal of K), four float64 arrays of one length, which it keeps alive; and epsilon,
    the factor of the 1-norm.
    """

    def __init__(
        self,
        target: NDArray[np.float64],
        lo: NDArray[np.float64],
        hi: NDArray[np.float64],
        scale: NDArray[np.float64],
        epsilon: float = 0.0,
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

class WorkingSet:
    """
    Carry-over between calls: at most `size` of `n_rows` rows; and scratch.
    """

    def __init__(self, size: int, n_rows: int) -> None: ...
    @property
    def rows(self) -> Any:
        """A copy, newest last."""

class Tile32:
    """
    A gathered piece of K with its problem: Q (size, size), the rest (size,).
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
    Minimise 1/2 d'Qd + grad'd over lo <= d <= hi, for Q of unit diagonal; the number of steps.

    tile.step is d; grad, lo and hi are those that are left at d.
    """

def solve_equality_tile(tile: Tile32 | Tile64, tol: float) -> int:
    """
    As `solve_box_tile` with sum(d) = 0; `diagonal` is that of Q, which need not be 1.
    """

class Tile64:
    """
    A gathered piece of K with its problem: Q (size, size), the rest (size,).
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
    box: Box, beta: NDArray[np.float64], f: NDArray[np.float64], equality: bool, out: NDArray[np.float64]
) -> tuple[Any, ...]:
    """
    Write each row's violation of its optimality condition: positive where beta should rise.

    All arrays are (m,), f = K beta. Returns the intercept (0 without the equality) and the violation.
    """

def largest_violators(violation: NDArray[np.float64], side: int, k: int) -> Any:
    """
    Indices of about the k rows of largest violation that ask to rise (side 1), to fall (-1), or both (0).
    """

def solve_active(
    team: Team,
    K: NDArray[np.floating],
    box: Box,
    beta: NDArray[np.float64],
    f: NDArray[np.float64],
    tile: Tile32 | Tile64,
    working_set: WorkingSet,
    tol: float,
    equality: bool,
    max_sets: int,
) -> tuple[Any, ...]:
    """
    Improve a feasible beta (m,) and f = K beta (m,) in place, by working sets on K (m, >= m).

    Until the violation is below tol, after max_sets sets, or when the team is stopped. Returns sets, steps in
    them, intercept and violation left. beta and f belong together whatever ends it, an exception too.
    """

class Subproblems32:
    """
    P problems, each on some rows of K (n, n): problem p has rows[starts[p]:starts[p + 1]], and these
    places of box, beta and f = K[rows, rows] beta (N,), of which beta and f are improved.
    """

    def __init__(
        self,
        K: NDArray[np.float32],
        rows: NDArray[np.int64],
        starts: NDArray[np.int64],
        box: Box,
        beta: NDArray[np.float64],
        f: NDArray[np.float64],
        equality: bool,
    ) -> None: ...
    def solve(
        self, team: Team, tol: NDArray[np.float64], max_sets: NDArray[np.int64], seconds: float
    ) -> tuple[Any, ...]:
        """
        Go on for about so many seconds, a problem to a thread.

        Until violations are below tol (P,), for max_sets (P,) working sets at most. Returns lists: working sets,
        steps in them, violations left, whether nothing could be moved any more.
        """

class Subproblems64:
    """
    P problems, each on some rows of K (n, n): problem p has rows[starts[p]:starts[p + 1]], and these
    places of box, beta and f = K[rows, rows] beta (N,), of which beta and f are improved.
    """

    def __init__(
        self,
        K: NDArray[np.float64],
        rows: NDArray[np.int64],
        starts: NDArray[np.int64],
        box: Box,
        beta: NDArray[np.float64],
        f: NDArray[np.float64],
        equality: bool,
    ) -> None: ...
    def solve(
        self, team: Team, tol: NDArray[np.float64], max_sets: NDArray[np.int64], seconds: float
    ) -> tuple[Any, ...]:
        """
        Go on for about so many seconds, a problem to a thread.

        Until violations are below tol (P,), for max_sets (P,) working sets at most. Returns lists: working sets,
        steps in them, violations left, whether nothing could be moved any more.
        """
