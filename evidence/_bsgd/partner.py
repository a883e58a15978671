"""A single search for a merge partner, by the compiled rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin._native import budget as compiled
from widemargin.solvers.sgd.lookup_table import merge_table


class Merger(NamedTuple):
    """A partner and the solution of the merging problem with it.

    Attributes
    ----------
    partner : int
        Index j.
    h : float
        z = h x_j + (1 - h) x_i.
    degradation : float
        Squared weight degradation.
    """

    partner: int
    h: float
    degradation: float


def find_partner(
    i: int, coef: NDArray[np.float64], log_kappa: NDArray[np.float64], rule: str, table_size: int = 400
) -> Merger:
    """The partner of support vector i of least weight degradation, among support vectors of its sign.

    Parameters
    ----------
    i : int
        The support vector of smallest |coefficient|.
    coef : ndarray of shape (n,), float64
        Coefficients of one sign; n >= 2.
    log_kappa : ndarray of shape (n,)
        ln k(x_i, x_j) <= 0.
    rule : {"lookup-wd", "lookup-h", "gss", "gss-precise"}
    table_size : int

    Returns
    -------
    Merger

    Examples
    --------
    >>> find_partner(0, np.array([1.0, 2.0, 2.0]), np.array([0.0, -0.5, -0.1]), "lookup-wd").partner
    2
    """
    others = np.delete(np.asarray(coef, np.float64), i)[None]
    exponents = np.delete(log_kappa, i)[None].astype(np.float32)
    n, j, found = np.array([others.size]), np.empty(1, np.int64), np.empty((1, 2))
    compiled.find_partners(np.array([coef[i]]), others, exponents, n, merge_table(table_size).native, rule, j, found)
    return Merger(int(j[0] + (j[0] >= i)), *found[0].tolist())
