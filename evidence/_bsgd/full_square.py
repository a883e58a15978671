"""BSGD with the look-up table as published, which holds h and wd themselves for all m and kappa of the unit square."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from measuring.problems import Problem
from widemargin.solvers.sgd.lookup_table import best_merger

_NODES = 400


def merge(m: Any, kappa: Any) -> tuple[Any, Any]:
    """h and wd of pairs (m, kappa), which broadcast; those of m < 1/2 are those of 1 - m with the points exchanged."""
    h, wd = best_merger(np.maximum(m, 1 - m), kappa)
    return np.where(np.asarray(m) < 0.5, 1 - h, h), wd


@cache
def tables() -> tuple[Any, Any]:
    """h and wd at 400 x 400 nodes (m, kappa)."""
    nodes = np.linspace(0, 1, _NODES)
    return merge(nodes[:, None], nodes[None])


@numba.njit(cache=True)
def interpolate(grid: Any, x: float, y: float) -> float:
    """Bilinear interpolation on the unit square."""
    last = len(grid) - 1
    i, j = min(int(x * last), last - 1), min(int(y * last), last - 1)
    u, v = x * last - i, y * last - j
    low = (1 - v) * grid[i, j] + v * grid[i, j + 1]
    return (1 - u) * low + u * ((1 - v) * grid[i + 1, j] + v * grid[i + 1, j + 1])


@numba.njit(cache=True)
def partner(i: int, coef: Any, kappa: Any, n: int, wd: Any) -> int:
    """The candidate of least squared degradation with point i among n points, of its sign; -1 if there is none."""
    best, least = -1, np.inf
    for j in range(n):
        if j != i and coef[j] * coef[i] > 0:
            total = coef[i] + coef[j]
            lost = total**2 * interpolate(wd, coef[j] / total, kappa[j])
            if lost < least:
                best, least = j, lost
    return best


@numba.njit(cache=True)
def _run(X: Any, y: Any, order: Any, gamma: float, lam: float, budget: int, h_table: Any, wd_table: Any) -> Any:
    """Points, coefficients lam t alpha, and the number of mergers, after a step on each row of `order`."""
    points, coef = np.zeros((budget + 1, X.shape[1])), np.zeros(budget + 1)
    kappa, n, mergers = np.zeros(budget + 1), 0, 0
    for t, row in enumerate(order):
        f = 0.0
        for j in range(n):
            f += coef[j] * np.exp(-gamma * np.sum((points[j] - X[row]) ** 2))
        if y[row] * f >= lam * t:
            continue
        points[n], coef[n], n = X[row], y[row], n + 1
        if n > budget:
            i = np.argmin(np.abs(coef[:n]))
            for j in range(n):
                kappa[j] = np.exp(-gamma * np.sum((points[j] - points[i]) ** 2))
            j = partner(i, coef, kappa, n, wd_table)
            if j >= 0:
                h = interpolate(h_table, coef[j] / (coef[i] + coef[j]), kappa[j])
                points[j] = h * points[j] + (1 - h) * points[i]
                coef[j] = coef[j] * kappa[j] ** ((1 - h) ** 2) + coef[i] * kappa[j] ** (h**2)
                mergers += 1
            n -= 1
            points[i], coef[i] = points[n], coef[n]
    return points[:n], coef[:n], mergers


def train(problem: Problem, budget: int, n_epochs: int, seed: int) -> tuple[float, int, int]:
    """Test accuracy in percent of the machine of the last step, its steps and mergers, on rows in the same order."""
    rng, n = np.random.default_rng(seed), len(problem.y)
    order = np.concatenate([rng.permutation(n) for _ in range(n_epochs)])
    X, y, lam = problem.X.astype(np.float64), problem.y.astype(np.float64), 1 / (problem.C * n)
    points, coef, mergers = _run(X, y, order, problem.gamma, lam, budget, *tables())
    right = np.empty(len(problem.y_test), bool)
    for start in range(0, len(right), 1000):
        rows = slice(start, start + 1000)
        squares = np.square(problem.X_test[rows, None] - points[None].astype(np.float32)).sum(axis=2)
        right[rows] = (np.exp(-problem.gamma * squares) @ coef > 0) == (problem.y_test[rows] > 0)
    return 100 * float(right.mean()), len(order), mergers
