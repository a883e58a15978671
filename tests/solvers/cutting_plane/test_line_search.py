"""Zeros of increasing functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from widemargin.solvers.cutting_plane.line_search import find_zero


@pytest.mark.parametrize("start", [-1e6, -1.0, 0.0, 3.0, 1e6])
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
