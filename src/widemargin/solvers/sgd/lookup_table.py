r"""The merging problem of two support vectors, and its solution on a grid: the look-up table.

Support vectors x_i, x_j with coefficients a_i, a_j of one sign and kernel value kappa = k(x_i, x_j) are replaced by
z = h x_j + (1 - h) x_i. With m = a_j / (a_i + a_j), the Gaussian kernel gives k(x_j, z) = kappa^((1 - h)^2), k(x_i, z)
= kappa^(h^2), the best coefficient a_z = (a_i + a_j) s(h) with s(h) = m kappa^((1 - h)^2) + (1 - m) kappa^(h^2), and
the squared weight degradation

    |a_i phi(x_i) + a_j phi(x_j) - a_z phi(z)|^2 = a_i^2 + a_j^2 + 2 a_i a_j kappa - a_z^2
                                                 = (a_i + a_j)^2 wd(m, kappa),
    wd = m^2 + (1 - m)^2 + 2 m (1 - m) kappa - max_h s(h)^2.

So h and wd are functions of two numbers in [0, 1], and the degradation scales with the *square* of a_i + a_j.
Exchanging the points turns m into 1 - m and h into 1 - h: the table covers m in [1/2, 1] alone, where h is continuous.
(Over the whole square h jumps at m = 1/2, kappa < exp(-2), between two equal maxima of s, and wd has a kink there.) On
that half the maximum lies in [1/2, 1] and s has no other one there, since the sign of s' is that of ln(m / (1 - m)) -
2 artanh(u) - u ln(kappa) with u = 2 h - 1, concave in u and not negative at 0.

The table holds the *root* of wd, which falls like 1 - kappa near kappa = 1 and like 1 - m near m = 1, along straight
lines: bilinear interpolation keeps the relative error small where wd itself vanishes quadratically, and roots have the
order of their squares.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._native import budget as compiled
from ..._types import Vector

Grid = NDArray[np.float32]

_NEWTON_STEPS = 15  # h is exact to 1e-6 then, also where s is flattest, near m = 1/2, kappa = exp(-2)


class MergeTable(NamedTuple):
    """The grids (2, size, size) of h and of the root of wd over m in [1/2, 1] and kappa in [0, 1].

    `native` are the grids in the layout of the compiled look-ups, which read the four corners of a cell by one load.
    """

    grids: Grid
    native: Any


@lru_cache(maxsize=4)
def merge_table(size: int = 400) -> MergeTable:
    """The table of `size` x `size` nodes, at least 2 a side: from memory, or computed.

    400 nodes a side take 1.3 MB, and 2.6 MB as pairs of nodes; they are computed in less than 0.1 s.
    """
    grids = tabulate(size)
    grids.setflags(write=False)
    return MergeTable(grids, compiled.MergeGrids(grids))


def tabulate(size: int) -> Grid:
    """h and the root of wd (2, size, size) at every node."""
    m, kappa = np.linspace(0.5, 1, size)[:, None], np.linspace(0, 1, size)[None]
    h, wd = best_merger(m, kappa)
    h[:, -1], wd[:, -1] = m[:, 0], 0  # of equal points every h is best; their mean is the limit
    return np.stack([h, np.sqrt(wd)]).astype(np.float32)


def best_merger(m: Vector, kappa: Vector) -> tuple[Vector, Vector]:
    """h and wd of pairs (m, kappa) with m >= 1/2; arrays broadcast.

    With v = 2 artanh(u), v >= 0, the maximum of s is at the root of ln(m / (1 - m)) - ln(kappa) tanh(v / 2) - v. This
    is concave, and negative beyond the root: Newton's steps from beyond fall to it. The paper searches by golden
    sections.
    """
    log_odds, rate = np.log(m / np.maximum(1 - m, 1e-300)), -np.log(np.maximum(kappa, 1e-300))
    v = log_odds + rate
    for _ in range(_NEWTON_STEPS):
        u = np.tanh(v / 2)
        v -= (v - log_odds - rate * u) / np.maximum(1 - rate * (1 - u**2) / 2, 1e-12)
    h = (1 + np.tanh(v / 2)) / 2
    s = m * kappa ** ((1 - h) ** 2) + (1 - m) * kappa ** (h**2)
    return h, np.maximum(m**2 + (1 - m) ** 2 + 2 * m * (1 - m) * kappa - s**2, 0)
