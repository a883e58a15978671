"""Zeros of increasing functions."""

import math

import numpy as np
import pytest

from widemargin.solvers.cutting_plane.derivative_zeros import find_zero, minimise_on_line


@pytest.mark.parametrize("start", [-1e6, 0.0, 1e6])
@pytest.mark.parametrize("at", [-200.0, 0.5, 7.0])
def test_finds_the_zero_of_pieces_and_of_curves(start: float, at: float) -> None:
    def pieces(x: float) -> tuple[float, float]:  # flat beyond a distance of 1
        return float(np.clip(x - at, -1.0, 1.0)), float(abs(x - at) < 1.0)

    def curve(x: float) -> tuple[float, float]:
        return math.tanh(x - at), 1.0 - math.tanh(x - at) ** 2

    assert find_zero(pieces, start, 1.0, 1e-12) == pytest.approx(at, abs=1e-12)
    assert find_zero(curve, start, 1.0, 1e-9) == pytest.approx(at, abs=1e-8)


def test_stays_above_its_lower_end() -> None:
    asked = []

    def derivative(x: float) -> tuple[float, float]:
        asked.append(x)
        return math.atan(50.0 * (x - 0.01)), 50.0 / (1.0 + (50.0 * (x - 0.01)) ** 2)

    assert find_zero(derivative, 100.0, 1.0, 1e-10, lo=0.0) == pytest.approx(0.01)
    assert min(asked) > 0.0


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
@pytest.mark.parametrize("seed", range(2))
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
