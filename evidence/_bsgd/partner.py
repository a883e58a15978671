"""A single search for a merge partner, by the compiled rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin._native import budget as compiled
from widemargin.solvers.sgd.lookup_table import merge_table


class Merger(NamedTuple):
    """The index j of a partner, h of the merged point z = h x_j + (1 - h) x_i, and the squared weight degradation."""

    partner: int
    h: float
    degradation: float


def find_partner(
    i: int, coef: NDArray[np.float64], log_kappa: NDArray[np.float64], rule: str, table_size: int = 400
) -> Merger:
    """The partner of least degradation of point i, of the smallest |coefficient| of one sign; log_kappa is ln k.

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
