"""The pairwise hinge against sums over all pairs."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from naive import losses as naive
from widemargin.solvers.cutting_plane.losses import risk_and_plane
from widemargin.solvers.cutting_plane.pair_hinge import PairHingeLoss, RankedPairs


def draw(seed: int) -> tuple[np.ndarray, ...]:
    """Decision values with ties and steps of exactly 1, targets with ties, groups (one of a single sample), weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    f, y = np.round(rng.normal(size=n) * 2) / 2, rng.integers(0, 5, n).astype(float)
    groups = rng.integers(0, 3, n)
    groups[0] = 3
    return f, y, groups, rng.integers(0, 3, n) + rng.integers(0, 2) * rng.random(n)


@pytest.mark.parametrize("seed", range(8))
def test_risk_plane_and_total(seed: int) -> None:
    rng = np.random.default_rng(seed)
    f, y, groups, s = draw(seed)
    pairs = RankedPairs(y, groups, s)
    found = risk_and_plane(PairHingeLoss(pairs), f[None])
    scale = 1.0 + pairs.total
    assert found.risk == pytest.approx(naive.pair_risk(f, y, groups, s), abs=1e-12 * scale)
    assert pairs.total == pytest.approx(naive.pair_risk(0.0 * f, y, groups, s), abs=1e-12 * scale)
    for group in range(4):
        assert abs(found.coef[0, groups == group].sum()) < 1e-12 * scale
    for other in (0.0 * f, f + rng.normal(size=len(f)), 10.0 * rng.normal(size=len(f))):
        plane = float(found.coef[0] @ other) + found.offset
        assert plane <= naive.pair_risk(other, y, groups, s) + 1e-10 * scale


@pytest.mark.parametrize("seed", range(3))
def test_steps(seed: int) -> None:
    f, y, groups, s = draw(seed)
    f_end, loss = np.random.default_rng(seed).normal(size=len(f)) + y, PairHingeLoss(RankedPairs(y, groups, s))

    def value(k: float) -> float:
        return 0.5 * k * k - 0.1 * k + naive.pair_risk(f + k * (f_end - f), y, groups, s)

    step = loss.find_step(f[None], f_end[None], 1.0, -0.1)
    best = minimize_scalar(value, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-9}).fun
    assert value(step) <= min(value(0.0), best + 1e-3 * (value(0.0) - best)) + 1e-12


@pytest.mark.slow
def test_many_samples_cost_no_sum_over_pairs() -> None:
    rng = np.random.default_rng(0)
    n = 100_000  # 5e9 pairs
    y = rng.normal(size=n)
    loss = PairHingeLoss(RankedPairs(y, np.zeros(n, np.intp), np.ones(n)))
    assert risk_and_plane(loss, np.zeros((1, n))).risk == n * (n - 1) / 2
    assert risk_and_plane(loss, 1e9 * y[None]).risk < n
