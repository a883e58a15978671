"""Newton steps of smooth losses against the solution of their linear system."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin._native import smooth
from widemargin._threads import ThreadTeam
from widemargin.data import make_design_matrix
from widemargin.solvers.cutting_plane import newton_steps
from widemargin.solvers.cutting_plane.machine import CuttingPlaneMachine, add_planes
from widemargin.solvers.cutting_plane.master_problem import MasterProblem
from widemargin.solvers.cutting_plane.newton_steps import NewtonSteps
from widemargin.solvers.cutting_plane.smooth_losses import SmoothLoss


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("n", [300, 4000])
def test_the_search_point_is_newtons(n: int, has_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton_steps, "_RESIDUAL", 1e-9)
    rng, team = np.random.default_rng(0), ThreadTeam(1)
    X, y, C = rng.normal(size=(n, 5)) * np.logspace(0, 3, 5) + 1.0, rng.choice([-1.0, 1.0], n), 2.0
    loss, matrix = (
        SmoothLoss(smooth.Logistic(), y, np.ones(n), team, has_intercept=has_intercept),
        make_design_matrix(X, team),
    )
    machine = CuttingPlaneMachine(loss, MasterProblem(5, 10), C)
    w = 1e-3 * rng.normal(size=(1, 5))
    add_planes(matrix, [machine], [machine.evaluate(w, w @ X.T)])
    asked: list[None] = []
    NewtonSteps(matrix, machine, loss, 2**30, lambda: asked.append(None) is None).run()
    D = loss.curvatures(w @ X.T)
    centred = X - (D @ X / D.sum() if has_intercept else 0.0)
    hessian = np.eye(5) + C * (centred.T * D) @ centred
    assert machine.base is not None
    expected = w[0] - np.linalg.solve(hessian, w[0] + C * machine.base.normal[0])
    np.testing.assert_allclose(machine.search_point[0], expected, rtol=1e-5, atol=1e-9)
    if n > 128 * 5:
        assert len(asked) < 25, "with the preconditioner"
