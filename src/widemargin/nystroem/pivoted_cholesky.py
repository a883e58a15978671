"""Landmarks by randomly pivoted Cholesky: rows drawn by how badly those before approximate them.

Solve    rows S of a kernel matrix K (n, n) such that the trace of K - K[:, S] K[S, S]^-1 K[S, :] is small
Given    the samples; m, the number of rows; weights of the rows' errors
Returns  S, in the order in which they were drawn
Method   Each row is drawn with probability proportional to its weighted residual K_ii - |F_i|^2, with F (n, k) the
         partial Cholesky factor of the rows before. Several rows at a time are proposed with the same probabilities;
         each is then accepted with probability residual now / residual when proposed, which has the same distribution
         as one row after the other.
Cost     m n kernel entries, m^2 n / 2 multiply-adds; memory: m n values
Source   Chen, Epperly, Tropp, Webber 2023, arXiv 2207.06503; in blocks: Epperly, Tropp, Webber 2024, arXiv 2410.03969,
         algorithm 4
Twin     tests/naive/nystroem.py::pivoted_residual
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from .._threads import ThreadTeam, raise_if_stopped, row_blocks
from .._types import Array, Matrix, RowIndices, Vector
from ..data.samples import Samples
from ..kernels.functions import Kernel
from ..kernels.tiles import tile_columns

_ROUNDS = 8  # propose m / 8 rows at a time, or
_LEAST_PROPOSED = 16  # so many: the factor of 16 rows takes as long as that of one, 128 are seldom all accepted
_ROUNDING = 100.0  # residual / (K_ii times the machine epsilon) up to which it may be rounding


def pivot_rows(
    kernel: Kernel,
    samples: Samples,
    m: int,
    rng: np.random.Generator,
    team: ThreadTeam,
    *,
    weights: Vector,
    go_on: Callable[[], bool],
) -> RowIndices:
    """Draw at most m rows by randomly pivoted Cholesky: fewer if they leave nothing but rounding errors.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    m : int
    rng : numpy.random.Generator
    team : ThreadTeam
        The rows do not depend on its number of threads.
    weights : ndarray of shape (n,)
        >= 0: of the rows' errors in the trace.
    go_on : callable
        Called before each round.

    Returns
    -------
    ndarray of shape (at most m,), int
        Distinct row numbers.

    Raises
    ------
    Stopped
        Once `go_on` returns False.
    """
    residual = np.array(kernel.diagonal(samples), np.float64)
    least = _ROUNDING * np.finfo(samples.dtype).eps * np.abs(residual)
    F, pivots = np.empty((m, len(samples)), samples.dtype), np.empty(0, np.intp)
    while len(pivots) < m:
        residual[residual <= least] = 0.0
        total = float(weights @ residual)
        if not total > 0.0:
            break
        raise_if_stopped(go_on)
        k = len(pivots)
        proposed = rng.choice(len(samples), max(_LEAST_PROPOSED, m // _ROUNDS), p=weights * residual / total)
        batch = samples.take(proposed)
        H = np.empty((len(batch), len(batch)), samples.dtype)
        kernel.fill(batch, batch, H)
        known = F[:k, proposed].astype(np.float64)
        R = H - known.T @ known
        accepted, L = _accept(R, residual[proposed], least[proposed], rng)
        residual[proposed] = R.diagonal()  # with fewer rounding errors than the sums had
        accepted, L = accepted[: m - k], L[: m - k, : m - k]
        chosen = proposed[accepted]
        _extend(kernel, samples, F[: k + len(chosen)], chosen, known[:, accepted], L, residual, team)
        residual[chosen] = 0.0
        pivots = np.append(pivots, chosen)
    return pivots


def _accept(R: Matrix, proposed: Vector, least: Vector, rng: np.random.Generator) -> tuple[RowIndices, Matrix]:
    """Which proposed rows (b,) are accepted, one after the other, and their Cholesky factor.

    R (b, b) is the residual matrix of the proposed rows; the residuals `proposed` (b,) are those of the draw.
    """
    accepted, columns = [], []
    for i, draw in enumerate(rng.uniform(size=len(R))):
        if R[i, i] > least[i] and draw * proposed[i] < R[i, i]:
            column = R[:, i] / np.sqrt(R[i, i])
            R = R - np.outer(column, column)
            accepted.append(i)
            columns.append(column)
    rows = np.array(accepted, np.intp)
    return rows, np.tril(np.reshape(columns, (-1, len(R))).T[rows])


def _extend(
    kernel: Kernel,
    samples: Samples,
    F: Array,
    chosen: RowIndices,
    known: Matrix,
    L: Matrix,
    residual: Vector,
    team: ThreadTeam,
) -> None:
    """Write the last rows of F' (k + b, n), of the `chosen` rows (b,), and subtract their squares from `residual`.

    They are L^-1 (K[chosen] - known' F'), with the leading rows of F' at the chosen ones, `known` (k, b).
    """
    k, batch, G = len(known), samples.take(chosen), known.T.astype(F.dtype)

    def columns_of(columns: slice) -> None:
        team.check()
        points = samples.take(columns)
        block = np.empty((len(batch), len(points)), F.dtype)
        kernel.fill(batch, points, block)
        block -= G @ F[:k, columns]
        F[k:, columns] = solve_triangular(L, block, lower=True, check_finite=False)
        residual[columns] -= np.square(F[k:, columns], dtype=np.float64).sum(axis=0)

    if len(chosen):
        team.map(columns_of, row_blocks(len(samples), tile_columns(F.dtype)))
