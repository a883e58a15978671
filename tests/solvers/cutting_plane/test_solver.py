"""The planes and the bound that they give."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin._threads import ThreadTeam
from widemargin.solvers.cutting_plane.losses import HingeRisk
from widemargin.solvers.cutting_plane.master_problem import Bundle
from widemargin.solvers.cutting_plane.solver import CuttingPlaneSolver


def test_planes_that_leave_do_not_move_the_solution() -> None:
    rng = np.random.default_rng(0)
    bundle = Bundle(4, capacity=5)
    values = []
    for _ in range(40):
        bundle.add(rng.normal(size=4), float(rng.uniform(0.5, 1)), rng.normal(size=4))
        w, bound = bundle.solve(2.0, 1e-12)
        values.append(bound)
        assert bundle.n_planes <= 5
        active = bundle.normals
        np.testing.assert_allclose(w, -bundle.beta @ active, atol=1e-12)
        assert np.isclose(bundle.beta.sum(), 2.0)
        assert bundle.active_points.shape == (np.count_nonzero(bundle.beta[1:]), 4)
        reduced = 0.5 * w @ w + 2.0 * np.max(active @ w + bundle._offsets[: bundle.n_planes])
        assert bound <= reduced + 1e-9
    assert np.all(np.diff(values) >= -1e-9), "dropping idle planes and merging active ones keeps the bound"


def test_idle_planes_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widemargin.solvers.cutting_plane.master_problem._PATIENCE", 3)
    rng = np.random.default_rng(2)
    bundle, bounds = Bundle(3, capacity=1000), []
    for _ in range(200):
        bundle.add(rng.normal(size=3), float(rng.uniform(0.5, 1)), rng.normal(size=3))
        bounds.append(bundle.solve(2.0, 1e-12)[1])
    assert bundle.n_planes < 20
    assert np.all(np.diff(bounds) >= -1e-9)


def test_another_weight_of_the_risk_keeps_the_planes() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), rng.choice([-1.0, 1.0], 60)
    solver = CuttingPlaneSolver(HingeRisk(y, ThreadTeam(1)), Bundle(3, 1000), 1.0)

    def learn(plane_of: object, outputs: np.ndarray) -> None:
        plane = plane_of(outputs)  # type: ignore[operator]
        solver.learn(plane, plane.coef @ X)

    learn(lambda f: solver.look_at(np.zeros((1, 3)), f), np.zeros((1, 60)))
    best = [solver.objective]
    for C in (1.0, 10.0):
        solver.weigh(C)
        for _ in range(60):
            solver.solve_reduced()
            learn(solver.descend, solver.target @ X.T)
            best.append(solver.objective)
        assert solver.gap <= 1e-9 * solver.objective
        hinges = np.maximum(0, 1 - y * (X @ solver.w[0])).sum()
        assert np.isclose(solver.objective, 0.5 * solver.w[0] @ solver.w[0] + C * hinges)
    assert np.all(np.diff(best[:61]) <= 0)


@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_weights(C: float) -> None:
    X, y = np.array([[1.0], [-2.0], [0.5]]), np.array([1.0, -1.0, -1.0])
    solver = CuttingPlaneSolver(HingeRisk(y, ThreadTeam(1)), Bundle(1, 1000), C)
    plane = solver.look_at(np.zeros((1, 1)), np.zeros((1, 3)))
    solver.learn(plane, plane.coef @ X)
    for _ in range(20):
        solver.solve_reduced()
        plane = solver.descend(solver.target @ X.T)
        solver.learn(plane, plane.coef @ X)
    assert solver.gap <= 1e-9 * solver.objective
