"""Objectives, gap and violation of a machine, recomputed from its support vectors, by one function for all competitors.

The primal and the dual value bound the optimum from both sides, whatever the machine says. Plain NumPy on threads;
nothing here comes from the packages under test, except `threadpoolctl`'s limit on BLAS.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

_TILE = (512, 1024)  # fits the second-level cache of today's cores in float32, and measured best there
_BOX_ROWS = 512  # of the boxes around near rows
_FAR = 45.0  # exp(-45) = 3e-20: entries that change no sum of float64 numbers


class Certificate(NamedTuple):
    """The float64 facts about one fitted binary machine."""

    n_support: int
    dual: float  # sum of alpha - 1/2 alpha'Q alpha, of the alpha nearby that is feasible: a lower bound of the optimum
    primal: float
    gap: float  # primal - dual; with an intercept, at the intercept that makes the primal least
    violation: float  # largest projected gradient; with an intercept m(alpha) - M(alpha)
    box: float  # how far the worst alpha lies outside [0, C]
    equality: float  # |y'alpha|; 0 with an intercept


def certify(
    X: NDArray[np.float32],
    y: NDArray[np.int8],
    model: Any,
    *,
    C: float,
    gamma: float,
    intercept: bool,
    kernel: str = "rbf",
) -> Certificate:
    """Recompute dual, primal and gap of a fitted binary machine, in float64.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        The training rows.
    y : ndarray of shape (n,)
        Their labels, +1 or -1.
    model : fitted classifier
        With `support_` and `dual_coef_` in scikit-learn's layout.
    C, gamma : float
    intercept : bool
        Whether the machine has an unregularised intercept, and its dual the constraint y'alpha = 0.
    kernel : {"rbf", "poly"}
        "poly" is (gamma x'z)^3.

    Returns
    -------
    Certificate

    Notes
    -----
    O(n * n_support * n_features) time; a tile of extra memory per core.
    """
    support = np.asarray(model.support_)
    coef = _dense(model.dual_coef_).ravel()
    signs = y.astype(np.float64)
    f = decision_values(X, X[support], coef, gamma, kernel)
    alpha = np.zeros(len(y))
    alpha[support] = coef * signs[support]
    norm = float(coef @ f[support])
    feasible = _feasible(coef, C, intercept)
    moved = feasible != coef
    change = decision_values(X[support], X[support[moved]], (feasible - coef)[moved], gamma, kernel)
    dual = float(np.abs(feasible).sum() - 0.5 * feasible @ (f[support] + change))
    b = _best_intercept(f, signs) if intercept else 0.0
    primal = 0.5 * norm + C * float(np.maximum(0.0, 1.0 - signs * (f + b)).sum())
    return Certificate(
        n_support=len(support),
        dual=dual,
        primal=primal,
        gap=primal - dual,
        violation=_violation(f, signs, alpha, C, intercept),
        box=float(max(0.0, (-alpha).max(), (alpha - C).max())),
        equality=abs(float(coef.sum())),
    )


def _feasible(coef: NDArray[np.float64], C: float, intercept: bool) -> NDArray[np.float64]:
    """Cut coefficients y_i alpha_i to their bounds; a factor makes those of the sign with the larger sum smaller."""
    coef = np.clip(coef, -C, C)
    total = float(np.abs(coef).sum())
    if not intercept or not total:
        return coef
    share = coef.sum() / total  # (1 + share) / 2 of the total is positive
    return coef * np.where(np.sign(coef) == np.sign(share), (1 - abs(share)) / (1 + abs(share)), 1.0)


def decision_values(
    X: NDArray[Any], Z: NDArray[Any], coef: NDArray[np.float64], gamma: float, kernel: str = "rbf"
) -> NDArray[np.float64]:
    """Return sum_j coef_j k(x, z_j) for every row x, in float64, tile by tile on all cores.

    Of an RBF kernel those tiles are left out in which no entry is above exp(-45).
    """
    entries = _ENTRIES[kernel]
    out = np.zeros(len(X))
    if not len(Z):
        return out
    center, far = (np.asarray(Z, np.float64).mean(axis=0), _FAR) if kernel == "rbf" else (np.zeros(X.shape[1]), np.inf)
    Z = np.asarray(Z, np.float64) - center
    z_squares = np.einsum("ij,ij->i", Z, Z)
    parts = _near_rows(Z, _BOX_ROWS)
    lows, highs = (np.array([end(Z[part], axis=0) for part in parts]) for end in (np.min, np.max))

    def fill(tile: NDArray[np.intp]) -> None:
        rows = np.asarray(X[tile], np.float64) - center
        x_squares = np.einsum("ij,ij->i", rows, rows)
        apart = np.maximum(np.maximum(lows - rows.max(axis=0), rows.min(axis=0) - highs), 0.0)
        total = np.zeros(len(rows))
        for k in np.flatnonzero(gamma * (apart**2).sum(axis=1) < far):
            part = parts[k]
            total += entries(rows @ Z[part].T, x_squares, z_squares[part], gamma) @ coef[part]
        out[tile] = total

    with threadpool_limits(1), ThreadPoolExecutor(_n_cores()) as pool:
        list(pool.map(fill, _near_rows(X, _BOX_ROWS)))
    return out


def _near_rows(X: NDArray[Any], most: int) -> list[NDArray[np.intp]]:
    """The rows in parts of at most `most`: halves of halves, along the column of the largest range of each."""
    done, parts = [], [np.arange(len(X))]
    while parts:
        rows = parts.pop()
        if len(rows) <= most:
            done.append(rows)
            continue
        own = X[rows]
        order = np.argsort(own[:, np.argmax(own.max(axis=0) - own.min(axis=0))], kind="stable")
        parts += [rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]]
    return done


def _rbf(
    tile: NDArray[np.float64], x_squares: NDArray[np.float64], z_squares: NDArray[np.float64], gamma: float
) -> NDArray[np.float64]:
    """Make kernel entries of inner products, in place."""
    tile *= 2.0
    tile -= x_squares[:, None]
    tile -= z_squares
    np.minimum(tile, 0.0, out=tile)
    tile *= gamma
    return np.exp(tile, out=tile)


def _cube(
    tile: NDArray[np.float64], x_squares: NDArray[np.float64], z_squares: NDArray[np.float64], gamma: float
) -> NDArray[np.float64]:
    tile *= gamma
    return np.asarray(tile * tile * tile)


_ENTRIES = {"rbf": _rbf, "poly": _cube}


def limit_seconds(X: NDArray[np.float32], n_support: int, *, repeats: int = 3, random_state: int = 0) -> float:
    """Time of the kernel entries that an exact solve needs at least: every support vector's kernel row once.

    n_support x n entries of an RBF kernel in float32, as one matrix product (the norms are two more columns)
    and one exponential, in tiles that stay in the cache, on all cores. Nothing is stored, so that this is a limit and
    not a competitor.

    Returns
    -------
    float
        The median of `repeats` runs, in seconds.
    """
    rng = np.random.default_rng(random_state)
    rows = X[rng.choice(len(X), min(n_support, len(X)), replace=False)]
    scale = np.float32(1.0 / max(1.0, float(np.abs(X).max()) * X.shape[1]))  # exponents near 0: no slow special cases
    ones = np.ones((1, 2), np.float32)
    left = np.hstack([rows * (scale * scale), np.repeat(-ones, len(rows), axis=0)])
    right = np.hstack([X, np.repeat(ones, len(X), axis=0)])
    n_cores = _n_cores()
    tiles = [(r, c) for c in range(0, len(right), 8 * _TILE[1]) for r in range(0, len(left), _TILE[0])]

    def work(share: int) -> None:
        buffer = np.empty(_TILE, np.float32)
        for r, c in tiles[share::n_cores]:
            P = left[r : r + _TILE[0]]
            for low in range(c, min(c + 8 * _TILE[1], len(right)), _TILE[1]):
                Q = right[low : low + _TILE[1]]
                tile = buffer.reshape(-1)[: len(P) * len(Q)].reshape(len(P), len(Q))
                np.matmul(P, Q.T, out=tile)
                np.exp(tile, out=tile)

    times = []
    with threadpool_limits(1), ThreadPoolExecutor(n_cores) as pool:
        list(pool.map(work, range(n_cores)))
        for _ in range(repeats):
            start = time.perf_counter()
            list(pool.map(work, range(n_cores)))
            times.append(time.perf_counter() - start)
    return float(np.median(times))


def _best_intercept(f: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the b of least hinge loss: its slope in b is -C n_plus on the far left, and C more after each y - f."""
    n_positive = int(np.count_nonzero(y > 0))
    return float(np.sort(y - f)[max(n_positive, 1) - 1])


def _violation(
    f: NDArray[np.float64], y: NDArray[np.float64], alpha: NDArray[np.float64], C: float, intercept: bool
) -> float:
    slack = 1e-6 * C  # float32 coefficients: a C that was rounded is still a C
    below, above = alpha < C - slack, alpha > slack
    grad = y * f - 1.0
    if not intercept:
        return float(max(np.max(-grad, where=below, initial=0.0), np.max(grad, where=above, initial=0.0)))
    score = -y * grad
    rises, falls = np.where(y > 0, below, above), np.where(y > 0, above, below)
    return float(np.max(score, where=rises, initial=-np.inf) - np.min(score, where=falls, initial=np.inf))


def _dense(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
