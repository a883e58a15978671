"""How room is made when a machine has one point more than its budget.

Three ways, of Wang, Crammer and Vucetic (JMLR 13, 2012):

    merge        replace two points of one sign by one between them (Gaussian kernel): two points become one that
                 moves through the input space. The point of smallest |coefficient| meets its best partner
    removal      drop the point that weighs least, |coefficient|^2 k(x, x); of equals the oldest
    projection   drop a point after adding its best approximation by the others to their coefficients: the point
                 whose dropping changes the machine least

and four rules of Glasmachers and Qaadan (2018) to find h, and with it a merger's degradation, for every partner:

    lookup-wd    read the degradation from a table; h, from another one, for the chosen partner alone
    lookup-h     read h from a table and compute the degradation from it
    gss          golden section search for h, to 0.01, and one step of Newton's method
    gss-precise  the same, to 1e-10
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._native import budget as compiled
from .lookup_table import merge_table

RULES = ("lookup-wd", "lookup-h", "gss", "gss-precise")
MAINTENANCE = ("merge", "removal", "projection")


class Merger(NamedTuple):
    """What a rule decides.

    Attributes
    ----------
    partner : int
        Index j.
    h : float
        z = h x_j + (1 - h) x_i.
    degradation : float
        Squared norm of the change.
    """

    partner: int
    h: float
    degradation: float


def find_partner(
    i: int, coef: NDArray[np.float64], log_kappa: NDArray[np.float64], rule: str, table_size: int = 400
) -> Merger:
    """The partner of point i among points of its sign.

    Parameters
    ----------
    i : int
        The point of smallest |coefficient|.
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
    own = np.array([coef[i]], np.float64)
    others = np.delete(np.asarray(coef, np.float64), i)[None]
    (j,), ((h, degradation),) = find_partners(own, others, np.delete(log_kappa, i)[None], None, rule, table_size)
    return Merger(int(j + (j >= i)), float(h), float(degradation))


def find_partners(
    own: NDArray[np.float64],
    coef: NDArray[np.float64],
    log_kappa: NDArray[np.floating],
    sizes: NDArray[np.int64] | None,
    rule: str,
    table_size: int = 400,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The partners of many candidates, each among points of its own.

    Parameters
    ----------
    own : ndarray of shape (p,), float64
        The candidates' coefficients.
    coef : ndarray of shape (p, n), float64
        Of possible partners: of their candidate's sign, and none smaller.
    log_kappa : ndarray of shape (p, n)
        ln k(candidate, partner) <= 0.
    sizes : ndarray of shape (p,), int64, or None
        How many of the columns count; None: all.
    rule, table_size : as for `find_partner`

    Returns
    -------
    ndarray of shape (p,), int64
        Partners: -1 where there is none.
    ndarray of shape (p, 2), float64
        h and the squared degradation.
    """
    sizes = np.full(len(own), coef.shape[1], np.int64) if sizes is None else sizes
    partners, found = np.empty(len(own), np.int64), np.empty((len(own), 2))
    tables, exponents = merge_table(table_size).tables, np.ascontiguousarray(log_kappa, np.float32)
    compiled.find_partners(own, np.ascontiguousarray(coef), exponents, sizes, tables, rule, partners, found)
    return partners, found


def merge_points(
    x_i: NDArray[np.floating],
    x_j: NDArray[np.floating],
    coef: tuple[float, float],
    h: float,
    gamma: float,
) -> tuple[NDArray[np.floating], float]:
    """z = h x_j + (1 - h) x_i, and the coefficient with which it replaces both best.

    Parameters
    ----------
    x_i, x_j : ndarray of shape (n_features,)
    coef : (float, float)
        Coefficients of x_i and x_j, of one sign.
    h : float
    gamma : float
        Of the Gaussian kernel.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> merge_points(x, x, (1.0, 3.0), 0.7, gamma=2.0)  # equal points: coefficients add up
    (array([1., 2.]), 4.0)
    """
    log_kappa = -gamma * float(np.sum((x_i - x_j) ** 2))
    a_z = coef[1] * np.exp((1 - h) ** 2 * log_kappa) + coef[0] * np.exp(h**2 * log_kappa)
    return h * x_j + (1 - h) * x_i, float(a_z)
