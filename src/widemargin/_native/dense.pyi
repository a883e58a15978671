"""Passes over dense rows: products, copies, second moments."""

import numpy as np
from numpy.typing import NDArray

from . import Team

def matvec(team: Team, X: NDArray[np.floating], w: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Write X w (n,), for X (n, d) with contiguous rows."""

def rmatvec(
    team: Team,
    X: NDArray[np.floating],
    coef: NDArray[np.float64],
    base: NDArray[np.float64] | None,
    out: NDArray[np.float64],
) -> None:
    """
    Write (coef - base) X (k, d), for X (n, d) with contiguous rows, coef (k, n), and base (k, n) or
    None. Most rows of weight 0 are not read.
    """

def take_rows(team: Team, X: NDArray[np.floating], chosen: NDArray[np.int64], out: NDArray[np.floating]) -> None:
    """Write X[chosen] (m, d), for X (n, d) with contiguous rows."""

def matvec_transposed(team: Team, Xt: NDArray[np.floating], w: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """As `matvec`, for X in Fortran order: Xt (d, n)."""

def rmatvec_transposed(
    team: Team,
    Xt: NDArray[np.floating],
    coef: NDArray[np.float64],
    base: NDArray[np.float64] | None,
    out: NDArray[np.float64],
) -> None:
    """As `rmatvec`, for X in Fortran order: Xt (d, n)."""

def take_columns(team: Team, Xt: NDArray[np.floating], chosen: NDArray[np.int64], out: NDArray[np.floating]) -> None:
    """Write Xt.T[chosen] (m, d), in C order."""

def are_finite(team: Team, numbers: NDArray[np.floating]) -> bool:
    """Whether none of the numbers (n,) is NaN or infinite."""

def inner_products(X: NDArray[np.floating], Z: NDArray[np.floating], out: NDArray[np.floating]) -> None:
    """Write X Z' (r, c), for X (r, d) and Z (c, d) with contiguous rows."""

def second_moments(
    team: Team,
    X: NDArray[np.floating],
    chosen: NDArray[np.int64],
    centre: NDArray[np.float64],
    factors: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write A' A (d, d), with A = (X[chosen] - centre) * factors[:, None]."""
