"""Shapley values by all coalitions: their definition."""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
_TERMS: dict[str, Callable[[Any, Any], Any]] = {
    "rbf": lambda x, s: (x - s) ** 2,
    "laplacian": lambda x, s: abs(x - s),
    "chi2": lambda x, s: (x - s) ** 2 / (x + s),
}


def shapley_values(value: Callable[[NDArray[np.bool_]], Any], n_players: int) -> tuple[Values, Any]:
    """Return the Shapley values (p, ...) of a game, and its value without players; value takes who is present (p,)."""
    values = {}
    for size in range(n_players + 1):
        for coalition in combinations(range(n_players), size):
            values[frozenset(coalition)] = np.asarray(value(np.isin(np.arange(n_players), coalition)))
    empty = values[frozenset()]
    shares = np.zeros((n_players, *empty.shape))
    for coalition, before in values.items():
        s = len(coalition)
        weight = (
            math.factorial(s) * math.factorial(n_players - s - 1) / math.factorial(n_players) if s < n_players else 0
        )
        for k in set(range(n_players)) - coalition:
            shares[k] += weight * (values[coalition | {k}] - before)
    return shares, empty


def product_value(
    kernel: str, gamma: float, points: Values, coef: Values, x: Values, background: Values | None
) -> Callable[[NDArray[np.bool_]], Any]:
    """Return sum_s coef_s prod_k f_k of present columns k; f_k is 1, or that of the background, of the others."""
    present = np.exp(-gamma * _TERMS[kernel](x, points))
    rows = (
        np.ones((1, *points.shape))
        if background is None
        else np.exp(-gamma * _TERMS[kernel](background[:, None], points))
    )
    return lambda is_present: np.mean([coef @ np.where(is_present, present, absent).prod(axis=1) for absent in rows])
