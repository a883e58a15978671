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

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._config import cache_folder
from ..._native import budget as compiled
from ..._types import Array, Vector

Grid = NDArray[np.float32]

_VERSION = 2  # raise it with any change of the values: it is part of the cached file's name
_GOLDEN = 0.6180339887498949


class MergeTable(NamedTuple):
    """The grids (2, size, size) of h and of the root of wd over m in [1/2, 1] and kappa in [0, 1].

    `native` are the grids in the layout of the compiled look-ups, which read the four corners of a cell by one load.
    """

    grids: Grid
    native: Any


@lru_cache(maxsize=4)
def merge_table(size: int = 400) -> MergeTable:
    """The table of `size` x `size` nodes, at least 2 a side: from memory, from the cache folder, or computed.

    400 nodes a side take 1.3 MB, and 2.6 MB as pairs of nodes. Computed in about 0.2 s and written to the cache folder.
    A file is named after version and size and begins with its checksum; one whose checksum is wrong is replaced. Where
    the folder cannot be written to, nothing is cached.
    """
    path = cache_folder() / f"merge-table-{_VERSION}-{size}.bin"
    grids = _read_cached(path, size)
    if grids is None:
        grids = tabulate(size)
        _write_cached(path, grids)
    grids.setflags(write=False)
    return MergeTable(grids, compiled.MergeGrids(grids))


def tabulate(size: int) -> Grid:
    """h and the root of wd (2, size, size) at every node, by golden section search to 1e-10 in h.

    47 passes of two exponentials over the nodes, in float64. Differences of s below its rounding, 1e-16, leave h itself
    exact to about 1e-8.
    """
    m, kappa = np.linspace(0.5, 1, size)[:, None], np.linspace(0, 1, size)[None]
    log_kappa = np.log(np.maximum(kappa, 1e-300))
    # that of the paper
    h, s = golden_section(lambda h: merged_coef(h, m, log_kappa), np.full((size, size), 0.5), 0.5, 1e-10)
    wd = np.maximum(m**2 + (1 - m) ** 2 + 2 * m * (1 - m) * kappa - s**2, 0)
    h[:, -1], wd[:, -1] = m[:, 0], 0  # of equal points every h is best; their mean is the limit
    return np.stack([h, np.sqrt(wd)]).astype(np.float32)


def merged_coef(h: Vector, m: Vector, log_kappa: Array) -> Vector:
    """s(h) = m kappa^((1 - h)^2) + (1 - m) kappa^(h^2): the coefficient of z for a_i + a_j = 1; arrays broadcast."""
    return np.asarray(m * np.exp((1 - h) ** 2 * log_kappa) + (1 - m) * np.exp(h**2 * log_kappa))


def golden_section(f: Callable[[Vector], Vector], low: Vector, width: float, precision: float) -> tuple[Vector, Vector]:
    """Maximise functions of one variable, all at once: brackets [low, low + width] differ, their common width does not.

    f gives the functions' values at one point each, from an array of the shape of `low` to another. Brackets end with
    the width `precision`. Returns the better inner point of each last bracket, and the value there.
    """
    left, right = low + (1 - _GOLDEN) * width, low + _GOLDEN * width
    at_left, at_right = f(left), f(right)
    while width > precision:
        is_left = at_left > at_right
        low = np.where(is_left, low, left)
        width *= _GOLDEN
        new = low + np.where(is_left, 1 - _GOLDEN, _GOLDEN) * width
        at_new = f(new)
        left, right = np.where(is_left, new, right), np.where(is_left, left, new)
        at_left, at_right = np.where(is_left, at_new, at_right), np.where(is_left, at_left, at_new)
    return np.where(at_left > at_right, left, right), np.maximum(at_left, at_right)


def _digest(size: int, values: bytes) -> bytes:
    return hashlib.sha256(f"{_VERSION} {size} ".encode() + values).digest()


def _read_cached(path: Path, size: int) -> Grid | None:
    """The cached grids, or None without a file of the right length and checksum."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    check, values = content[:32], content[32:]
    if len(values) != 2 * size * size * 4 or check != _digest(size, values):
        return None
    return np.frombuffer(values, "<f4").astype(np.float32).reshape(2, size, size)


def _write_cached(path: Path, grids: Grid) -> None:
    """Write the file under another name and rename it: other processes may read and write it at the same time."""
    values = grids.astype("<f4").tobytes()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(grids.shape[1], values) + values)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
