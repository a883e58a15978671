"""Losses of targets as two hinges each, against their naive twins."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from naive import losses as naive
from widemargin._threads import ThreadTeam
from widemargin.data import make_design_matrix
from widemargin.solvers.cutting_plane.losses import risk_and_plane
from widemargin.solvers.cutting_plane.optimal_intercept import double_rows, two_hinges

CASES = {
    "epsilon_insensitive": (0.3, 1.0, 1.0, {"epsilon": 0.3}),
    "absolute": (0.0, 1.0, 1.0, {}),
    "quantile": (0.0, 0.8, 0.2, {"quantile": 0.8}),
}


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_risk_planes_and_restricted_planes(name: str, has_intercept: bool) -> None:
    rng = np.random.default_rng(0)
    epsilon, below, above, parameters = CASES[name]
    X, y, s = rng.normal(size=(30, 3)), 5.0 + rng.normal(size=30), rng.uniform(0.0, 2.0, 30)
    team = ThreadTeam(1)
    doubled = double_rows(make_design_matrix(X, team), y - epsilon, y + epsilon)
    assert doubled.shift is not None
    loss = two_hinges(below * s, above * s, doubled.shift, team, has_intercept=has_intercept)

    def risk(w: np.ndarray) -> float:
        def at(b: float) -> float:
            return naive.risk(name, X @ w + b, y, s, **parameters)

        return float(minimize_scalar(at, tol=1e-12).fun) if has_intercept else at(0.0)

    for w in rng.normal(size=(5, 3)):
        found = risk_and_plane(loss, doubled.decision_values(w[None]))
        assert found.risk == pytest.approx(risk(w), rel=1e-6)
        normal = doubled.rmatvec(found.coef)[0]
        assert normal @ w + found.offset == pytest.approx(found.risk, rel=1e-9)
        for other in 10.0 * rng.normal(size=(5, 3)):
            assert normal @ other + found.offset <= risk(other) * (1 + 1e-6)
        smoothed = loss.smoothed(doubled.decision_values(w[None]), 0.2)
        assert smoothed is not None
        normal = doubled.rmatvec(smoothed.coef)[0]
        for other in 10.0 * rng.normal(size=(5, 3)):
            assert normal @ other + smoothed.offset <= risk(other) * (1 + 1e-6)
    assert not loss.accelerations & {"at_once", "dual_epochs", "dual_alone"}
