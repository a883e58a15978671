"""
Linear machines: the master problem, Crammer and Singer's risk, dual coordinate ascent.
"""

import numpy as np
from numpy.typing import NDArray

from . import Team, csr

def solve_simplex_qp(
    H: NDArray[np.float64], b: NDArray[np.float64], beta: NDArray[np.float64], tol: float, max_rounds: int
) -> tuple[int, float]:
    """
    Minimise 1/2 beta' H beta - b' beta in place, over beta >= 0 with sum(beta) unchanged, to a duality gap of tol.
    b and beta (t,); of H (>= t, >= t) the first t rows and columns are read. Returns the number of rounds and
    the gap that is left.
    """

class MulticlassHinge:
    """
    Crammer and Singer's risk sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i) of decision
    values f (q, n), for classes y (n,) in [0, q) and sample weights s (n,).
    """

    def __init__(self, y: NDArray[np.int64], s: NDArray[np.float64], n_classes: int) -> None: ...
    def advance(
        self,
        team: Team,
        f: NDArray[np.float64],
        f_end: NDArray[np.float64],
        step: float,
        mu: float,
        coef: NDArray[np.float64],
    ) -> tuple[float, float]:
        """
        Replace f by f + step (f_end - f), write the row weights coef (q, n) of the cutting plane at f + mu
        (f_end - f), and return the risk at the new f and the plane's offset.
        """

    def slope(
        self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], rows: NDArray[np.int64], k: float
    ) -> float:
        """
        The right derivative, in k, of the risk of some rows at f + k (f_end - f).
        """

    def drop_linear_rows(
        self,
        team: Team,
        f: NDArray[np.float64],
        f_end: NDArray[np.float64],
        rows: NDArray[np.int64],
        lo: float,
        hi: float,
    ) -> tuple[int, float]:
        """
        Move the rows whose loss at f + k (f_end - f) is not linear in k over [lo, hi] to the front of `rows`;
        return their number, and the sum of the dropped rows' derivatives.
        """

def ascent_epoch(
    team: Team,
    X: NDArray[np.floating] | csr.CSRMatrix,
    signed_weights: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    C: float,
    sigma: float,
    alpha: NDArray[np.float64],
    w: NDArray[np.float64],
    order: NDArray[np.int64],
    shrink_above: float,
    shrink_below: float,
    is_squared: bool = False,
) -> tuple[int, float, float, float]:
    """
    One epoch of dual coordinate ascent over the rows in `order`, with shrinking: the rows that are not shrunk
    become the first entries of `order`. is_squared: of squared hinges. squared_norms (n,): |x_i|^2. Returns the number of rows not shrunk, the
    projected gradients beyond which the next epoch shrinks variables at a bound, and the duality gap: a sum of terms
    as they were when their rows were visited. Runs in the calling thread; if the team is stopped, Stopped is raised
    within 1,024 rows, with w that belongs to alpha.
    """

def multiclass_epoch(
    team: Team,
    X: NDArray[np.floating] | csr.CSRMatrix,
    y: NDArray[np.int64],
    s: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    C: float,
    constant: float,
    beta: NDArray[np.float64],
    W: NDArray[np.float64],
    order: NDArray[np.int64],
) -> float:
    """
    One epoch of dual coordinate ascent for Crammer and Singer's hinge over the rows in `order`. beta (n, k) and
    W (d + 1, k) = [X, constant]' beta are updated; y (n,) classes in [0, k); s (n,) weights; squared_norms (n,):
    |x_i|^2. Returns the duality gap: a sum of terms as they were when their rows were visited. Runs in the calling
    thread; if the team is stopped, Stopped is raised within 256 rows, with W that belongs to beta.
    """

def add_rows(X: NDArray[np.floating] | csr.CSRMatrix, coef: NDArray[np.float64], w: NDArray[np.float64]) -> None:
    """
    w[:d] += coef X, coef (n,), w (d + 1,). Rows of coefficient 0 are not read.
    """

def squared_norms(X: NDArray[np.floating] | csr.CSRMatrix, out: NDArray[np.float64]) -> None:
    """Write out (n,), |x_i|^2 of the rows."""

def count_values(X: NDArray[np.floating] | csr.CSRMatrix) -> int:
    """The number of values stored: n d, or the non-zeros."""
