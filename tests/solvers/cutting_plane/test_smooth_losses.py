"""Smooth losses against their naive twins: values, planes, steps and intercepts."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from naive import losses as naive
from widemargin._native import smooth
from widemargin._threads import ThreadTeam
from widemargin.solvers.cutting_plane.losses import risk_and_plane
from widemargin.solvers.cutting_plane.smooth_losses import PointwiseFunction, SmoothLoss

CASES: dict[str, tuple[PointwiseFunction, dict[str, float]]] = {
    "squared_hinge": (smooth.SquaredHinge(), {}),
    "logistic": (smooth.Logistic(), {}),
    "squared_epsilon_insensitive": (smooth.SquaredEpsilonInsensitive(0.3), {"epsilon": 0.3}),
}


class Problem:
    def __init__(self, name: str, *, has_intercept: bool) -> None:
        rng = np.random.default_rng(3)
        function, self.parameters = CASES[name]
        self.name = name
        self.y = rng.normal(size=40) if "epsilon" in name else rng.choice([-1.0, 1.0], 40)
        self.s = rng.uniform(0.0, 2.0, 40) * (rng.random(40) > 0.1)
        self.f, self.f_end = rng.normal(size=(2, 1, 40))
        self.has_intercept = has_intercept
        self.loss = SmoothLoss(function, self.y, self.s, ThreadTeam(1), has_intercept=has_intercept)

    def risk(self, f: Any) -> float:
        def at(b: float) -> float:
            return naive.risk(self.name, f[0] + b, self.y, self.s, **self.parameters)

        return float(minimize_scalar(at, tol=1e-12).fun) if self.has_intercept else at(0.0)


@pytest.fixture(params=[(name, has) for name in CASES for has in (False, True)], ids=str)
def problem(request: pytest.FixtureRequest) -> Problem:
    return Problem(request.param[0], has_intercept=request.param[1])


def test_risk_and_plane(problem: Problem) -> None:
    rng = np.random.default_rng(0)
    found = risk_and_plane(problem.loss, problem.f)
    assert found.risk == pytest.approx(problem.risk(problem.f), rel=1e-9)
    assert float(np.vdot(found.coef, problem.f)) + found.offset == pytest.approx(found.risk, rel=1e-9)
    if problem.has_intercept:
        assert abs(found.coef.sum()) < 1e-14 * np.abs(found.coef).sum()
    for scale in (1e-3, 1.0, 30.0):
        other = problem.f + scale * rng.normal(size=problem.f.shape)
        assert float(np.vdot(found.coef, other)) + found.offset <= problem.risk(other) * (1 + 1e-9)


def test_a_poor_intercept_gives_a_plane_below_the_risk(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    if problem.has_intercept:
        monkeypatch.setattr(problem.loss, "_best_intercept", lambda f, f_end, k: 0.7)
    found = risk_and_plane(problem.loss, problem.f)
    for other in (problem.f, problem.f_end, 9.0 * problem.f_end):
        assert float(np.vdot(found.coef, other)) + found.offset <= problem.risk(other) * (1 + 1e-9)


def test_advance_takes_the_plane_between_best_point_and_search_point(problem: Problem) -> None:
    f = problem.f.copy()
    found = problem.loss.advance(f, problem.f_end, 0.3, 0.1)
    best = problem.f + 0.3 * (problem.f_end - problem.f)
    np.testing.assert_allclose(f, best, atol=1e-15)
    assert found.risk == pytest.approx(problem.risk(best), rel=1e-9)
    touching = best + 0.1 * (problem.f_end - best)
    assert float(np.vdot(found.coef, touching)) + found.offset == pytest.approx(problem.risk(touching), rel=1e-9)


@pytest.mark.parametrize("slope", [-20.0, 0.0, 1e9])
def test_steps(problem: Problem, slope: float) -> None:
    def value(k: float) -> float:
        return 0.5 * k * k + slope * k + problem.risk(problem.f + k * (problem.f_end - problem.f))

    step = problem.loss.find_step(problem.f, problem.f_end, 1.0, slope)
    best = minimize_scalar(value, bounds=(0.0, 60.0), method="bounded", options={"xatol": 1e-9}).fun
    if problem.has_intercept:  # along a chord
        assert value(step) <= value(0.0)
        assert value(0.0) - value(step) >= 0.9 * (value(0.0) - best)
    else:
        assert value(step) <= best + 1e-9 * abs(best)
    assert (step == 0.0) == (slope == 1e9)


def test_restrict(problem: Problem) -> None:
    some = np.array([1, 5, 6, 20])
    part = problem.loss.restrict(some, 2.5)
    twin = Problem(problem.name, has_intercept=problem.has_intercept)
    twin.y, twin.s = twin.y[some], 2.5 * twin.s[some]
    f = problem.f[:, some]
    assert risk_and_plane(part, f).risk == pytest.approx(twin.risk(f), rel=1e-8)
