"""Small solvers of linear machines."""

import numpy as np
from numpy.typing import NDArray

from . import Team, csr

def solve_simplex_qp(
    H: NDArray[np.float64], b: NDArray[np.float64], beta: NDArray[np.float64], tol: float, max_rounds: int
) -> tuple[int, float]:
    """
    Minimise 1/2 beta' H beta - b' beta over beta >= 0, its sum unchanged, to a duality gap of tol, in place.
    H (>= t, >= t): its head counts. Return the number of rounds, and the gap that is left.
    """

class MulticlassHinge:
    """
    Crammer and Singer's sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i), f (K, n).
    """

    def __init__(self, y: NDArray[np.int64], s: NDArray[np.float64], n_classes: int) -> None: ...
    def advance(
        self,
        team: Team,
        f: NDArray[np.float64],
        target: NDArray[np.float64],
        step: float,
        mu: float,
        coef: NDArray[np.float64],
    ) -> tuple[float, float]:
        """
        Move f to f + step (target - f), write the weights coef (K, n) of the plane at a part mu of the way
        further, and return the risk at f and the plane's offset.
        """

    def slope(
        self, team: Team, f: NDArray[np.float64], target: NDArray[np.float64], rows: NDArray[np.int64], k: float
    ) -> float:
        """
        The derivative just after k of the risk of some rows along the line from f to target.
        """

    def drop_linear_rows(
        self,
        team: Team,
        f: NDArray[np.float64],
        target: NDArray[np.float64],
        rows: NDArray[np.int64],
        lo: float,
        hi: float,
    ) -> tuple[int, float]:
        """
        Move to the front the rows whose worst class may change for lo <= k <= hi; return how many, and what the
        others add to the derivative.
        """

def ascent_epoch(
    X: NDArray[np.floating] | csr.CSRMatrix,
    signed_weights: NDArray[np.float64],
    C: float,
    sigma: float,
    alpha: NDArray[np.float64],
    w: NDArray[np.float64],
    order: NDArray[np.int64],
    shrink_above: float,
    shrink_below: float,
) -> tuple[int, float, float]:
    """
    One epoch of dual coordinate ascent over the rows in `order`, replaced at its head by those that are not set
    aside. Return how many these are, and the projected gradients beyond which the next epoch may set rows aside.
    """

def add_rows(X: NDArray[np.floating] | csr.CSRMatrix, coef: NDArray[np.float64], w: NDArray[np.float64]) -> None:
    """Add rows, weighted by coef (n,), to the head of w (d + 1,)."""

def squared_norm(X: NDArray[np.floating] | csr.CSRMatrix) -> float:
    """The sum of the squares of all values."""

def count_values(X: NDArray[np.floating] | csr.CSRMatrix) -> int:
    """How many values are stored."""
