"""Rounds on few rows: their planes hold for all rows, and what they come to is the optimum of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planes import always, assert_planes_hold, true_risk
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.algorithms.ocas import Settings, _Descent
from widemargin.data import make_design_matrix
from widemargin.solvers.cutting_plane import active_rows as near
from widemargin.solvers.cutting_plane.active_rows import NearRounds
from widemargin.solvers.cutting_plane.losses import HingeRisk
from widemargin.solvers.cutting_plane.master_problem import Bundle
from widemargin.solvers.cutting_plane.optimal_intercept import ProfileRisk
from widemargin.solvers.cutting_plane.solver import CuttingPlaneSolver, learn_planes

RISKS = {False: HingeRisk, True: ProfileRisk}
C = 0.05


def problem(seed: int, n: int, *, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 0.4
    signed = np.sign(X[:, 0] + rng.normal(size=n)) * rng.choice([0.5, 1.0, 3.0], n)
    return (np.round(X), np.sign(signed)) if ties else (X, signed)


def begun(X: np.ndarray, signed: np.ndarray, *, has_intercept: bool) -> tuple[Any, CuttingPlaneSolver]:
    """A solver after some rounds on all rows."""
    team = ThreadTeam(1)
    rows, solver = (
        make_design_matrix(X, team),
        CuttingPlaneSolver(RISKS[has_intercept](signed, team), Bundle(3, 1000), C),
    )
    learn_planes(rows, [solver], [solver.look_at(solver.w, np.zeros((1, len(X))))])
    for _ in range(4):
        solver.solve_reduced()
        learn_planes(rows, [solver], [solver.descend(rows.matvec(solver.target))])
    solver.solve_reduced()
    return rows, solver


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subsets of small data."""
    monkeypatch.setattr(near, "_LEAST", 20)
    monkeypatch.setattr(near, "_SHARE", 0.25)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), has_intercept=st.booleans(), ties=st.booleans())
def test_planes_of_few_rows_are_planes_of_all(seed: int, has_intercept: bool, ties: bool) -> None:
    X, signed = problem(seed, 300, ties=ties)
    rows, solver = begun(X, signed, has_intercept=has_intercept)
    best = solver.objective
    for _ in range(3):
        NearRounds(rows, solver, 1e-6, 2**30, always).run()
        rng = np.random.default_rng(seed)
        points = [solver.target[0] + scale * rng.normal(size=3) for scale in (0.0, 0.01, 1.0, 10.0)]
        assert_planes_hold(solver.bundle, points, X, signed, has_intercept=has_intercept)
        learn_planes(rows, [solver], [solver.descend(rows.matvec(solver.target))])
        solver.solve_reduced()
        assert solver.objective <= best
        best = solver.objective
        assert np.isclose(
            best,
            0.5 * solver.w[0] @ solver.w[0] + C * true_risk(X, signed, solver.w[0], has_intercept=has_intercept),
        )
        assert solver.bound <= best * (1 + 1e-12)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_few_rounds_on_all_rows_are_left(has_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, signed = problem(1, 20_000)

    def rounds(*, on_few: bool) -> int:
        rows, solver = begun(X, signed, has_intercept=has_intercept)
        helper = NearRounds(rows, solver, 1e-6, 2**30, always)
        for k in range(100):
            if solver.gap <= 1e-6 * solver.objective:
                return k
            if on_few:
                helper.run()
            learn_planes(rows, [solver], [solver.descend(rows.matvec(solver.target))])
            solver.solve_reduced()
        raise AssertionError("no convergence")

    assert rounds(on_few=True) <= 0.7 * rounds(on_few=False)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_equal_at_the_best_point(has_intercept: bool) -> None:
    """Where the anchor touches the risk at the best point itself, the stand-in has the risk's value there."""
    X, signed = problem(2, 400)
    rows, solver = begun(X, signed, has_intercept=has_intercept)
    solver.lead(solver)  # the next plane on all rows touches at the best point
    learn_planes(rows, [solver], [solver.descend(rows.matvec(solver.target))])
    found = NearRounds(rows, solver, 1e-6, 2**30, always)._surrogate()
    assert found is not None
    few, stand_in, leash = found
    assert 60 <= few.shape[0] < 160
    assert np.isclose(stand_in.objective, solver.objective, rtol=1e-12)
    assert leash.moved == 0.0


@pytest.mark.parametrize("has_intercept", [False, True])
def test_margins_that_are_all_alike(has_intercept: bool) -> None:
    """No subset is near then: rounds on all rows go on alone."""
    X = np.ones((500, 3))
    signed = np.where(np.arange(500) % 3 == 0, 1.0, -1.0)
    rows, solver = begun(X, signed, has_intercept=has_intercept)
    target = solver.target
    NearRounds(rows, solver, 1e-6, 2**30, always).run()
    assert solver.target is target


def test_a_copy_within_the_budget() -> None:
    X, signed = problem(3, 2000)
    rows, solver = begun(X, signed, has_intercept=False)
    budget = 4 * 100 * rows.row_bytes
    found = NearRounds(rows, solver, 1e-6, budget, always)._surrogate()
    assert found is not None
    assert 30 <= found[0].shape[0] <= 100


@pytest.mark.parametrize("has_intercept", [False, True])
def test_the_leash_is_on_the_first_outputs(has_intercept: bool) -> None:
    X, signed = problem(4, 400)
    rows, solver = begun(X, signed, has_intercept=has_intercept)
    found = NearRounds(rows, solver, 1e-6, 2**30, always)._surrogate()
    assert found is not None
    few, near, leash = found
    first = few.matvec(near.w)
    for _ in range(3):
        learn_planes(few, [near], [near.descend(few.matvec(near.target))])
        near.solve_reduced()
    gone = near.risk.distance(first, few.matvec(near.w))
    assert gone > 0.0
    assert np.isclose(leash._risk.distance(leash._first, near.outputs), gone, rtol=1e-6)


def test_ties_at_the_largest_share() -> None:
    """Most rows have one margin: the shares below it are tried, too."""
    X, signed = problem(5, 2000)
    X[np.arange(2000) % 5 != 0] = 0.0
    rows, solver = begun(X, signed, has_intercept=False)
    helper = NearRounds(rows, solver, 1e-6, 2**30, always)
    helper._share = near._MOST_SHARE
    assert helper._surrogate() is None
    assert any(helper._surrogate() is not None for _ in range(4))


def test_rounds_without_progress_are_counted_anew_for_another_C() -> None:
    """The objective of a larger C is larger: that is no failure of the rounds on few rows."""
    X, signed = problem(3, 400)
    rows, team = make_design_matrix(X, ThreadTeam(1)), ThreadTeam(1)
    descent = _Descent(rows, [HingeRisk(signed, team)], Settings(C=C), Progress(), team)
    (solver,) = descent.solvers
    descent.near[solver] = helper = NearRounds(rows, solver, 1e-6, 2**30, always)
    descent.weigh(C)
    descent.begin(None, Settings(C=C))
    descent.solve_reduced()
    for _ in range(2):
        descent.iterate()
    descent.weigh(1e3 * C)
    assert helper._n_failures == 0
    assert not helper._has_failed_twice()
    assert helper._n_failures == 0


def test_a_sample_is_not_misled_by_the_order_of_the_rows() -> None:
    """Rows far from their margin at every fourth place, where a sample of every fourth row would see these alone."""
    n, wanted = 4 * 2048, 500
    risk = HingeRisk(np.ones(n), ThreadTeam(1))
    outputs = np.random.default_rng(0).uniform(0.0, 2.0, size=(1, n))
    outputs[0, ::4] = 50.0
    chosen, distance = risk.nearest(outputs, wanted)
    assert distance < 1.0
    assert 0.5 * wanted < len(chosen) < 2 * wanted
