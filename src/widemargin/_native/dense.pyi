"""Passes over dense rows: products, sums, copies, moments."""

import numpy as np
from numpy.typing import NDArray

from . import Team

def row_outputs(team: Team, X: NDArray[np.floating], w: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Write X w (n,), for X (n, d) with contiguous rows."""

def column_outputs(team: Team, Xt: NDArray[np.floating], w: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """As `row_outputs`, from the transpose (d, n)."""

def row_sums(
    team: Team,
    X: NDArray[np.floating],
    coef: NDArray[np.float64],
    since: NDArray[np.float64] | None,
    out: NDArray[np.float64],
) -> None:
    """
    Write (coef - since) X (k, d), for X (n, d) with contiguous rows. since (k, n) or None. Most rows of weight 0
    are not read.
    """

def column_sums(
    team: Team,
    Xt: NDArray[np.floating],
    coef: NDArray[np.float64],
    since: NDArray[np.float64] | None,
    out: NDArray[np.float64],
) -> None:
    """As `row_sums`, from the transpose (d, n)."""

def take_rows(team: Team, X: NDArray[np.floating], chosen: NDArray[np.int64], out: NDArray[np.floating]) -> None:
    """Write X[chosen], for X (n, d) with contiguous rows."""

def take_columns(team: Team, Xt: NDArray[np.floating], chosen: NDArray[np.int64], out: NDArray[np.floating]) -> None:
    """Write Xt.T[chosen], in C order."""

def are_finite(team: Team, numbers: NDArray[np.floating]) -> bool:
    """Whether there is neither NaN nor infinity."""

def moments(
    team: Team,
    X: NDArray[np.floating],
    chosen: NDArray[np.int64],
    centre: NDArray[np.float64],
    factors: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write A' A (d, d), with A = (X[chosen] - centre) * factors[:, None]."""
