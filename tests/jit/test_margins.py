"""Crammer and Singer's risk against its definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import cutting_plane as naive
from widemargin.solvers.multiclass import MarginRisk

quick = settings(max_examples=60, deadline=None, derandomize=True)


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    n_classes=st.integers(2, 5),
    curvature=st.floats(0.01, 50),
    slope=st.floats(-30, 30),
    ties=st.booleans(),
)
def test_search_and_plane(seed: int, n: int, n_classes: int, curvature: float, slope: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, n_classes, n), rng.uniform(0.1, 2, n)
    f, target, other = rng.normal(size=(3, n_classes, n))
    if ties:
        f, target = np.round(f), np.round(target)
    risk = MarginRisk(y, s, n_classes)
    step = risk.search(f, target, curvature, slope)

    def value(k: float) -> float:
        return 0.5 * curvature * k**2 + slope * k + naive.margin_risk(f + k * (target - f), y, s)

    around = step + np.array([-1e-3, 1e-3, -0.1, 0.1, 1.0]) * max(step, 1.0)
    assert all(value(step) <= value(max(k, 0.0)) + 1e-9 for k in around)
    best = f + step * (target - f)
    near = best + 0.1 * (target - best)
    cut = risk.advance(f, target, step, 0.1)
    np.testing.assert_allclose(f, best, atol=1e-12)
    assert np.isclose(cut.risk, naive.margin_risk(best, y, s))
    assert np.isclose(np.vdot(cut.coef, near) + cut.offset, naive.margin_risk(near, y, s))
    assert np.vdot(cut.coef, other) + cut.offset <= naive.margin_risk(other, y, s) + 1e-9
