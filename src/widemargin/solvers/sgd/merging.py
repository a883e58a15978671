"""Budget maintenance: what is done to a machine of budget + 1 support vectors, and the search for merge partners.

Three kinds of maintenance, of Wang, Crammer and Vucetic (JMLR 13, 2012):

    merge        replace two support vectors of one sign by one between them (Gaussian kernel): the one of smallest
                 |coefficient| and the partner for which the weight degradation is least
    removal      drop the support vector of least |coefficient|^2 k(x, x); of equals the oldest
    projection   drop a support vector after its projection onto the span of the others is added to them: the one for
                 which the weight degradation is least

Four compiled rules of Glasmachers and Qaadan (2018) give h and the weight degradation for every partner:

    lookup-wd    the degradation from a look-up table; h, from another table, for the chosen partner alone
    lookup-h     h from a look-up table, the degradation computed from it
    gss          h by golden section search over [1/2, 1] to 0.01, and one step of Newton's method
    gss-precise  the same to 1e-10

`ALGORITHM_1` names the search as published, over [0, 1] to 0.01 without Newton's step, in NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._native import budget as compiled
from .lookup_table import merge_table

RULES = ("lookup-wd", "lookup-h", "gss", "gss-precise")
ALGORITHM_1 = "gss-paper"
MAINTENANCE = ("merge", "removal", "projection")


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
    """Solve p searches for a partner, each among support vectors of its own.

    Parameters
    ----------
    own : ndarray of shape (p,), float64
        Coefficients of the support vectors that a partner is searched for.
    coef : ndarray of shape (p, n), float64
        Coefficients of their merge candidates: of the same sign, and none smaller in magnitude.
    log_kappa : ndarray of shape (p, n)
        ln k(x, candidate) <= 0.
    sizes : ndarray of shape (p,), int64, or None
        Number of candidates of each: the first columns of its row; None: n.
    rule, table_size : as for `find_partner`

    Returns
    -------
    ndarray of shape (p,), int64
        Columns of the partners: -1 without a candidate.
    ndarray of shape (p, 2), float64
        h and the squared weight degradation.
    """
    sizes = np.full(len(own), coef.shape[1], np.int64) if sizes is None else sizes
    partners, found = np.empty(len(own), np.int64), np.empty((len(own), 2))
    tables, exponents = merge_table(table_size).tables, np.ascontiguousarray(log_kappa, np.float32)
    compiled.find_partners(own, np.ascontiguousarray(coef), exponents, sizes, tables, rule, partners, found)
    return partners, found
