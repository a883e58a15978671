"""Rounds on active rows: their planes hold for all samples, and they lead to the optimum of all samples."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planes import always, assert_planes_hold, begun, true_risk
from widemargin._threads import ThreadTeam
from widemargin.solvers.cutting_plane import active_rows
from widemargin.solvers.cutting_plane.accelerations import suits_newton
from widemargin.solvers.cutting_plane.active_rows import ActiveRows
from widemargin.solvers.cutting_plane.losses import HingeLoss
from widemargin.solvers.cutting_plane.machine import CuttingPlaneMachine, add_planes

C = 0.05


def problem(seed: int, n: int, *, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 0.4
    signed = np.sign(X[:, 0] + rng.normal(size=n)) * rng.choice([0.5, 1.0, 3.0], n)
    return (np.round(X), np.sign(signed)) if ties else (X, signed)


def after_rounds(X: np.ndarray, signed: np.ndarray, *, has_intercept: bool) -> tuple[Any, CuttingPlaneMachine]:
    rows, machine = begun(X, signed, C, has_intercept=has_intercept)
    for _ in range(4):
        machine.solve_master()
        add_planes(rows, [machine], [machine.move_best_point(rows.matvec(machine.search_point))])
    machine.solve_master()
    return rows, machine


def active(rows: Any, machine: CuttingPlaneMachine, n_bytes: int = 2**28) -> ActiveRows:
    newton = suits_newton(*rows.shape)
    return ActiveRows(rows, machine, 1e-6, n_bytes, always, newton=newton)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active_rows, "SAMPLE_ROWS", 20)
    monkeypatch.setattr(active_rows, "_FIRST_SHARE", 0.25)


@settings(max_examples=2, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), has_intercept=st.booleans(), ties=st.booleans())
def test_planes_of_active_rows_are_planes_of_all(seed: int, has_intercept: bool, ties: bool) -> None:
    X, signed = problem(seed, 300, ties=ties)
    rows, machine = after_rounds(X, signed, has_intercept=has_intercept)
    best = machine.objective
    for _ in range(3):
        active(rows, machine).run()
        rng = np.random.default_rng(seed)
        points = [machine.search_point[0] + scale * rng.normal(size=3) for scale in (0.0, 0.01, 1.0, 10.0)]
        assert_planes_hold(machine.master, points, X, signed, has_intercept=has_intercept)
        add_planes(rows, [machine], [machine.move_best_point(rows.matvec(machine.search_point))])
        machine.solve_master()
        assert machine.objective <= best
        best = machine.objective
        assert np.isclose(
            best,
            0.5 * machine.w[0] @ machine.w[0] + C * true_risk(X, signed, machine.w[0], has_intercept=has_intercept),
        )
        assert machine.bound <= best * (1 + 1e-12)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_fewer_rounds_on_all_samples(has_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, signed = problem(1, 20_000)

    def rounds(*, is_accelerated: bool) -> int:
        rows, machine = after_rounds(X, signed, has_intercept=has_intercept)
        helper = active(rows, machine)
        for k in range(100):
            if machine.gap <= 1e-6 * machine.objective:
                return k
            if is_accelerated:
                helper.run()
            add_planes(rows, [machine], [machine.move_best_point(rows.matvec(machine.search_point))])
            machine.solve_master()
        raise AssertionError("no convergence")

    assert rounds(is_accelerated=True) <= 0.7 * rounds(is_accelerated=False)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_margins_that_are_all_alike(has_intercept: bool) -> None:
    """No subset is nearer than the rest: the search point stays that of the master problem."""
    X = np.ones((500, 3))
    signed = np.where(np.arange(500) % 3 == 0, 1.0, -1.0)
    rows, machine = after_rounds(X, signed, has_intercept=has_intercept)
    search_point = machine.search_point
    active(rows, machine).run()
    assert machine.search_point is search_point


def test_a_copy_within_the_budget() -> None:
    X, signed = problem(3, 2000)
    rows, machine = after_rounds(X, signed, has_intercept=False)
    found = active(rows, machine, 100 * rows.row_bytes)._restrict()
    assert found is not None
    assert 30 <= found[0].shape[0] <= 100


def test_ties_at_the_largest_share() -> None:
    """Most samples have one margin: the shares below it are tried, too."""
    X, signed = problem(5, 2000)
    X[np.arange(2000) % 5 != 0] = 0.0
    rows, machine = after_rounds(X, signed, has_intercept=False)
    helper = active(rows, machine)
    helper._share = active_rows._MAX_SHARE
    assert helper._restrict() is None
    assert any(helper._restrict() is not None for _ in range(4))


def test_a_sample_is_not_misled_by_the_order_of_the_rows() -> None:
    """Rows far from their margin at every fourth place, where a sample of every fourth row would see these alone."""
    n, wanted = 4 * 2048, 500
    loss = HingeLoss(np.ones(n), ThreadTeam(1))
    outputs = np.random.default_rng(0).uniform(0.0, 2.0, size=(1, n))
    outputs[0, ::4] = 50.0
    chosen, distance = loss.nearest_rows(outputs, wanted)
    assert distance < 1.0
    assert 0.5 * wanted < len(chosen) < 2 * wanted
