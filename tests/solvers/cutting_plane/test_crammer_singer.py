"""The bracketing search for the zero of a derivative with jumps."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.solvers.cutting_plane.crammer_singer import minimise_on_line


class Jumps:
    """A sum of kinks |k - at| with weights; fails outside its bracket."""

    def __init__(self, at: np.ndarray, weight: np.ndarray) -> None:
        self.at, self.weight = at, weight
        self.lo, self.hi = 0.0, np.inf
        self.asked = 0

    def slope(self, k: float) -> float:
        assert self.lo <= k <= self.hi
        self.asked += 1
        return float(np.sum(self.weight * np.sign(k - self.at)))

    def drop_linear_rows(self, lo: float, hi: float) -> None:
        self.lo, self.hi = lo, hi


@pytest.mark.parametrize(("lo", "hi"), [(0.0, 1.0), (0.9, 1.1), (0.0, 1e-6), (50.0, 60.0)])
@pytest.mark.parametrize("seed", range(5))
def test_finds_the_zero_from_any_bracket(seed: int, lo: float, hi: float) -> None:
    rng = np.random.default_rng(seed)
    at, weight = rng.uniform(0, 4, 30), rng.uniform(0, 1, 30)
    curvature, slope = 0.5, float(rng.normal())
    line = Jumps(at, weight)
    step = minimise_on_line(line, curvature, slope, lo, hi)

    def value(k: float) -> float:
        return 0.5 * curvature * k**2 + slope * k + float(weight @ np.abs(k - at))

    candidates = np.concatenate([at, np.linspace(0, 5, 2001), [step]])
    assert value(step) <= min(map(value, candidates)) + 1e-9
    assert line.asked < 80


def test_no_step_where_the_line_rises() -> None:
    line = Jumps(np.array([1.0]), np.array([0.5]))
    assert minimise_on_line(line, 1.0, 2.0, 0.9, 1.1) == 0.0
