"""The master problem, and rounds of one machine by hand."""

import numpy as np
import pytest

from widemargin._threads import ThreadTeam
from widemargin.solvers.cutting_plane.losses import HingeLoss
from widemargin.solvers.cutting_plane.machine import CuttingPlaneMachine
from widemargin.solvers.cutting_plane.master_problem import MasterProblem
from widemargin.solvers.cutting_plane.optimal_intercept import InterceptHingeLoss


def test_dropped_and_merged_planes_keep_the_bound() -> None:
    rng = np.random.default_rng(0)
    master = MasterProblem(4, capacity=5)
    values = []
    for _ in range(40):
        master.add(rng.normal(size=4), float(rng.uniform(0.5, 1)), rng.normal(size=4))
        w, bound = master.solve(2.0, 1e-12)
        values.append(bound)
        assert master.n_planes <= 5
        active = master.normals
        np.testing.assert_allclose(w, -master.beta @ active, atol=1e-12)
        assert np.isclose(master.beta.sum(), 2.0)
        assert master.binding_points.shape == (np.count_nonzero(master.beta[1:]), 4)
        reduced = 0.5 * w @ w + 2.0 * np.max(active @ w + master.offsets)
        assert bound <= reduced + 1e-9
    assert np.all(np.diff(values) >= -1e-9), "dropping idle planes and merging active ones keeps the bound"


def test_idle_planes_are_dropped() -> None:
    rng = np.random.default_rng(2)
    master, bounds = MasterProblem(3, capacity=1000, idle_rounds=3), []
    for _ in range(200):
        master.add(rng.normal(size=3), float(rng.uniform(0.5, 1)), rng.normal(size=3))
        bounds.append(master.solve(2.0, 1e-12)[1])
    assert master.n_planes < 20
    assert np.all(np.diff(bounds) >= -1e-9)


def test_another_C_keeps_the_planes() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), rng.choice([-1.0, 1.0], 60)
    machine = CuttingPlaneMachine(HingeLoss(y, ThreadTeam(1)), MasterProblem(3, 1000), 1.0)

    def add(plane_of: object, outputs: np.ndarray) -> None:
        plane = plane_of(outputs)  # type: ignore[operator]
        machine.add(plane, plane.coef @ X)

    add(lambda f: machine.evaluate(np.zeros((1, 3)), f), np.zeros((1, 60)))
    best = [machine.objective]
    for C in (1.0, 10.0):
        machine.set_risk_weight(C)
        for _ in range(60):
            machine.solve_master()
            add(machine.move_best_point, machine.search_point @ X.T)
            best.append(machine.objective)
        assert machine.gap <= 1e-9 * machine.objective
        hinges = np.maximum(0, 1 - y * (X @ machine.w[0])).sum()
        assert np.isclose(machine.objective, 0.5 * machine.w[0] @ machine.w[0] + C * hinges)
    assert np.all(np.diff(best[:61]) <= 0)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_the_lengthened_search_point_is_the_best_multiple_of_at_least_one(has_intercept: bool) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], 40)
    loss = (InterceptHingeLoss if has_intercept else HingeLoss)(y, ThreadTeam(1))

    def objective(w: np.ndarray) -> float:
        f = w @ X.T
        return float(0.5 * np.vdot(w, w) + 2.0 * loss.advance(f, f, 0.0, 0.0).risk)

    for length in (0.01, 10.0):
        machine = CuttingPlaneMachine(loss, MasterProblem(3, 10), 2.0)
        w = machine.search_point = length * (y @ X)[None] / 40
        f = machine.lengthen_search_point(w @ X.T)
        np.testing.assert_allclose(f, machine.search_point @ X.T, atol=1e-12)
        factor = machine.search_point[0, 0] / w[0, 0]
        best = min(objective(k * w) for k in np.append(np.linspace(1.0, 2.0 * factor, 2001), factor))
        assert factor >= 1.0
        assert objective(machine.search_point) <= best * (1 + 1e-9)
    assert factor == 1.0, "a point that is too long stays"


def test_planes_that_no_solution_has_seen_make_room_for_others() -> None:
    rng = np.random.default_rng(0)
    master = MasterProblem(4, capacity=3)
    for _ in range(6):
        master.add(rng.normal(size=4), 1.0, rng.normal(size=4))
    w, bound = master.solve(1.0, 1e-9)
    assert np.all(np.isfinite(w))
    assert np.isfinite(bound)
    assert np.all(np.isfinite(master.normals))
