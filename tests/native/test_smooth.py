"""Passes over decision values of smooth losses: twins, threads, numbers at the limits."""

from typing import Any

import numpy as np
import pytest
from scipy.special import xlog1py, xlogy

from naive import losses as naive
from widemargin._native import Team, smooth

ALONE = Team(1)
LOSSES: dict[str, tuple[Any, dict[str, float]]] = {
    "squared_hinge": (smooth.SquaredHinge(), {}),
    "logistic": (smooth.Logistic(), {}),
    "squared_epsilon_insensitive": (smooth.SquaredEpsilonInsensitive(0.3), {"epsilon": 0.3}),
}


class Problem:
    """30 samples, two of weight zero, two decision values each, and what the twins say."""

    def __init__(self, name: str, n: int = 30) -> None:
        rng = np.random.default_rng(1)
        self.name, (self.phi, self.parameters) = name, LOSSES[name]
        self.f, self.f_end = 2.0 * rng.normal(size=(2, n))
        self.y = rng.normal(size=n) if "epsilon" in name else rng.choice([-1.0, 1.0], n)
        self.s = rng.uniform(0.5, 2.0, n)
        self.s[[3, 7]] = 0.0
        self.samples = self.y, self.s

    def derivatives(self, f: np.ndarray) -> np.ndarray:
        """First and second derivatives (2, n)."""
        each = [naive.derivatives(self.name, a, b, **self.parameters) for a, b in zip(f, self.y, strict=True)]
        return np.array(each).T


@pytest.fixture(params=LOSSES)
def problem(request: pytest.FixtureRequest) -> Problem:
    return Problem(request.param)


def test_derivatives_on_a_line(problem: Problem) -> None:
    p, rate = problem, problem.f_end - problem.f + 0.4
    found = p.phi.line_derivatives(ALONE, p.f, p.f_end, 0.1, 0.5, *p.samples, 0.3)
    first, second = p.derivatives(p.f + 0.1 + 0.3 * rate)
    np.testing.assert_allclose(found, [p.s @ (first * rate), p.s @ (second * rate**2)], rtol=1e-4)


def test_sums_of_slopes(problem: Problem) -> None:
    p = problem
    first, second = p.derivatives(p.f + 0.3 * (p.f_end - p.f) + 0.1)
    expected = p.s @ np.maximum(first, 0), p.s @ np.maximum(-first, 0), p.s @ second
    np.testing.assert_allclose(p.phi.slope_sums(ALONE, p.f, p.f_end, 0.3, 0.1, *p.samples), expected, rtol=1e-4)


@pytest.mark.parametrize("factors", [(1.0, 1.0), (0.5, 1.0), (1.0, 0.0)])
def test_the_plane_at_the_point_of_a_step(problem: Problem, factors: tuple[float, float]) -> None:
    p, coef, curvatures = problem, np.empty(30), np.empty(30)
    f = p.f + 0.3 * (p.f_end - p.f)
    risk, offset = p.phi.advance(ALONE, p.f, p.f_end, 0.3, 0.1, *p.samples, *factors, coef, curvatures)
    first, second = p.derivatives(f + 0.1)
    slopes = first * np.where(first > 0, *factors)
    np.testing.assert_allclose(p.f, f, atol=1e-15)
    np.testing.assert_allclose(coef, p.s * slopes, atol=1e-5)
    np.testing.assert_allclose(curvatures, p.s * second, atol=1e-5)
    assert risk == pytest.approx(naive.risk(p.name, f + 0.1, *p.samples, **p.parameters))
    at_zero = [naive.conjugate(p.name, a, b, **p.parameters) for a, b in zip(slopes, p.y, strict=True)]
    assert offset <= -(p.s @ at_zero) + 1e-6
    if factors == (1.0, 1.0):
        assert offset == pytest.approx(-(p.s @ at_zero))


def test_slopes_of_the_quadratic_model_and_their_plane(problem: Problem) -> None:
    p, coef, curvatures, slopes = problem, np.empty(30), np.empty(30), np.empty(30)
    p.phi.advance(ALONE, p.f, p.f, 0.0, 0.0, *p.samples, 1.0, 1.0, coef, curvatures)
    sums = p.phi.model_slopes(ALONE, p.f, p.f_end, 0.2, coef, curvatures, *p.samples, slopes)
    expected = naive.model_slopes(p.name, p.f, p.f_end + 0.2, p.y, **p.parameters)
    np.testing.assert_allclose(slopes, p.s * expected, atol=1e-4)
    np.testing.assert_allclose(sums, [np.maximum(slopes, 0).sum(), np.maximum(-slopes, 0).sum()])
    offset = p.phi.plane_offset(ALONE, *p.samples, 0.5, 1.0, slopes)
    expected = expected * np.where(expected > 0, 0.5, 1.0)
    np.testing.assert_allclose(slopes, p.s * expected, atol=1e-4)
    conjugates = [naive.conjugate(p.name, a, b, **p.parameters) for a, b in zip(expected, p.y, strict=True)]
    assert offset == pytest.approx(-(p.s @ conjugates), rel=1e-3)


def test_the_entropy_of_all_probabilities() -> None:
    a = np.concatenate([np.logspace(-320, 0, 3000), 1.0 - np.logspace(-17, 0, 1000), np.linspace(0, 1, 999)])
    for slope in a:
        found = -smooth.Logistic().plane_offset(ALONE, np.ones(1), np.ones(1), 1.0, 1.0, np.array([-slope]))
        assert found == pytest.approx(xlogy(slope, slope) + xlog1py(1 - slope, -slope), rel=1e-14, abs=1e-290)


def test_far_decision_values_give_finite_numbers() -> None:
    f = np.array([-1e300, -1e10, -710.0, -1e-300, 0.0, 36.0, 710.0, 1e10, 1e300])
    coef, curvatures = np.empty((2, 9))
    for y in (np.ones(9), -np.ones(9)):
        risk, offset = smooth.Logistic().advance(ALONE, f, f, 0.0, 0.0, y, np.ones(9), 1.0, 1.0, coef, curvatures)
        assert risk == pytest.approx(np.logaddexp(0, -y * f).sum(), rel=1e-15)
        assert 0.0 <= offset <= 9 * np.log(2)
        np.testing.assert_allclose(coef, -y * np.exp(-np.logaddexp(0, y * f)), rtol=1e-14, atol=1e-300)
        assert np.isfinite(curvatures).all()


def test_sums_do_not_depend_on_threads(problem: Problem) -> None:
    p, coef, curvatures = Problem(problem.name, 50_000), np.empty(50_000), np.empty(50_000)
    results = []
    for team in (ALONE, Team(3)):
        risk = p.phi.advance(team, p.f, p.f, 0.0, 0.1, *p.samples, 1.0, 1.0, coef, curvatures)
        slopes = p.phi.line_derivatives(team, p.f, p.f_end, 0.0, 0.0, *p.samples, 0.5)
        results.append((risk, slopes, coef.copy()))
    assert results[0][:2] == results[1][:2]
    np.testing.assert_array_equal(results[0][2], results[1][2])
