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

from .._jit import budget as compiled
from .._jit.workspace import make_search
from .table import merge_table

RULES: dict[str, float | None] = {  # the precision that compiled.find_partner wants
    "lookup-wd": None,
    "lookup-h": 0.0,
    "gss": 1e-2,
    "gss-precise": 1e-10,
}
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
    others = np.delete(np.asarray(coef, np.float64), i)
    work = make_search(len(others))
    work.rows[compiled.EXPONENT], work.rows[compiled.KAPPA] = (np.delete(v, i) for v in (log_kappa, np.exp(log_kappa)))
    tables = merge_table(table_size).tables
    j, h, degradation = compiled.find_partner(float(coef[i]), 0, len(others), others, work, tables, RULES[rule])
    return Merger(j + (j >= i), h, degradation)


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
