"""Each merge rule finds the partner of an exhaustive search, within the precision of the rule."""

import numpy as np
import pytest

from evidence._bsgd.partner import find_partner
from naive import budget as naive
from widemargin.solvers.sgd.budgeted_machine import RULES

ACCURATE = [rule for rule in RULES if rule != "gss-paper"]  # whose h is within 0.01 of one maximum of s, and no nearer


def exact_h(m: float, log_kappa: float) -> float:
    """By bisection on the sign of s', that of ln(m / (1 - m)) - 2 artanh(u) - u ln(kappa), u = 2 h - 1."""
    low, high, log_odds = 0.0, 1.0, np.log(m) - np.log1p(-m)
    for _ in range(60):
        u = (low + high) / 2
        is_rising = u < 1 and log_odds - 2 * np.arctanh(u) - u * log_kappa > 0
        low, high = (u, high) if is_rising else (low, u)
    return (1 + low) / 2


@pytest.mark.parametrize("log_spread", [-2, 0, 2])
def test_newton_step_after_the_golden_sections(log_spread: int) -> None:
    """Golden sections give h to 0.01; with a large ratio of coefficients the best 1 - h is a hundredth of that."""
    rng = np.random.default_rng(0)
    for m in 1 - 10 ** rng.uniform(-5, -0.5, 100):
        log_kappa = float(np.float32(-(10**log_spread) * rng.exponential()))
        found = find_partner(0, np.array([1 - m, m]), np.array([0.0, log_kappa]), "gss")
        best = exact_h(float(m), log_kappa)
        assert found.h == pytest.approx(best, abs=2e-4)
        assert 1 - found.h == pytest.approx(1 - best, rel=0.02, abs=1e-6)


@pytest.mark.parametrize("rule", ACCURATE)
def test_equal_points_add_their_coefficients(rule: str) -> None:
    found = find_partner(0, np.array([1.0, 3.0, 2.0]), np.array([0.0, 0.0, -1.0]), rule)
    assert found.partner == 1
    assert found.degradation == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("rule", ACCURATE)
def test_points_so_far_apart_that_kappa_underflows(rule: str) -> None:
    """The merger is a removal: h = 1, and the degradation is the square of the smaller coefficient."""
    found = find_partner(0, np.array([1.0, 3.0, 2.0]), np.array([0.0, -900.0, -800.0]), rule)
    assert found.h == pytest.approx(1.0, abs=1e-6)
    assert found.degradation == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("log_kappa", [-1e2, -1e3, -1e4, -1e5, -1e6])
def test_no_newton_step_away_from_a_narrow_maximum(log_kappa: float) -> None:
    """The maximum at h = 1 is so narrow that s may be convex in the last bracket."""
    for rule in ACCURATE:
        found = find_partner(0, np.array([1.0, 3.0]), np.array([0.0, log_kappa]), rule)
        assert found.h == pytest.approx(1.0, abs=1e-6)


def test_the_nearest_of_near_copies_is_chosen() -> None:
    """Degradations of 1e-10, where 1 - s^2 has no significant digits in float32."""
    log_kappa = np.array([0.0, -4e-5, -2e-5, -8e-5])
    for rule in ACCURATE:
        assert find_partner(0, np.array([1.0, 2.0, 2.0, 2.0]), log_kappa, rule).partner == 2


@pytest.mark.slow
@pytest.mark.parametrize("rule", ACCURATE)
def test_a_small_coefficient_among_large_ones(rule: str) -> None:
    """Ratios of 1000: wd is of the order of 1e-12, and must determine the partner all the same."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        coef, log_kappa = rng.uniform(500, 5000, 40), -rng.uniform(0.01, 0.05, 40)
        coef[0], log_kappa[0] = 1.0, 0.0
        found = find_partner(0, coef, log_kappa, rule)
        best = find_partner(0, coef, log_kappa, "lookup-wd")
        m, kappa = coef / (coef + 1), np.exp(log_kappa)
        loss = np.array([(c + 1) ** 2 * naive.best_h(a, b)[1] for c, a, b in zip(coef, m, kappa, strict=True)])
        assert loss[found.partner] <= 1.1 * loss[1:].min()
        assert found.degradation <= 1.1 * best.degradation


def test_merged_coefficient_is_the_best_one() -> None:
    """The degradation is least at h and a_z, and is what the partner search returns."""
    rng = np.random.default_rng(0)
    x, z, gamma = rng.normal(size=3), rng.normal(size=3), 0.1

    def k(p: np.ndarray, q: np.ndarray) -> float:
        return float(np.exp(-gamma * np.sum((p - q) ** 2)))

    def degradation(h: float, a: float) -> float:
        point = h * z + (1 - h) * x
        cross = k(x, point) + 2 * k(z, point)
        return 1 + 4 + 4 * k(x, z) + a * a - 2 * a * cross

    found = find_partner(0, np.array([1.0, 2.0]), np.array([0.0, np.log(k(x, z))]), "gss-precise")
    a_z = 3 * float(naive.s(found.h, 2 / 3, k(x, z)))
    assert degradation(found.h, a_z) == pytest.approx(found.degradation, rel=1e-4)
    for change in (-1e-2, 1e-2):
        assert degradation(found.h + change, a_z) > degradation(found.h, a_z) < degradation(found.h, a_z + change)
