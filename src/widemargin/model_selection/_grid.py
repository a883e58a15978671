"""The values of C, gamma and epsilon that a search tries."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from .._types import Vector
from ..estimators._validation import check_integer, check_number, shown

C_RANGE = 0.1, 1000.0  # of an automatic grid
GAMMA_RANGE = 1 / 16, 16.0  # of an automatic grid, in units of gamma="scale"
EPSILON_RANGE = 1e-3, 1.0  # of an automatic grid


class Grid(NamedTuple):
    """Ascending values of each parameter. A cell is the indices of its gamma, epsilon and C."""

    gammas: Vector
    epsilons: Vector
    Cs: Vector

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_gammas, n_epsilons, n_C)."""
        return len(self.gammas), len(self.epsilons), len(self.Cs)

    def parameters(self, cell: tuple[int, int, int], names: Sequence[str]) -> dict[str, float]:
        """The parameters of a cell, those of `names` alone."""
        values = {"gamma": self.gammas[cell[0]], "epsilon": self.epsilons[cell[1]], "C": self.Cs[cell[2]]}
        return {name: float(values[name]) for name in names}


def make_values(name: str, values: Any, least: float, largest: float, *, middle: float) -> Vector:
    """Ascending values of a parameter: those given, each once; or, of a number, so many log-spaced ones.

    If the number is 1, the value is `middle`.

    Raises
    ------
    ValueError
        If there are none, or one is not a number > 0 (epsilon: >= 0).
    """
    if isinstance(values, Integral):
        check_integer(name, values, 1)
        return np.geomspace(least, largest, int(values)) if int(values) > 1 else np.array([middle])
    if isinstance(values, str) or not np.iterable(values):
        raise ValueError(f"{name} must be an integer >= 1 or a list of numbers, got {shown(values)}")
    entries = list(values)
    if not entries:
        raise ValueError(f"{name} must have at least one value, got {shown(values)}")
    for k, value in enumerate(entries):
        check_number(f"{name}[{k}]", value, **({"least": 0.0} if name == "epsilons" else {"above": 0.0}))
    return np.unique(np.array(entries, np.float64))
