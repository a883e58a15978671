"""The interior-point method: its bound below the objective at other points, its gap, data and weights of all scales."""

import math
import signal
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from widemargin import OCASClassifier, _progress
from widemargin._threads import ThreadTeam
from widemargin._types import Vector
from widemargin.data import LocalMatrix, make_design_matrix
from widemargin.solvers.cutting_plane.interior_point import InteriorPoint
from widemargin.solvers.cutting_plane.losses import HingeLoss, risk_and_plane
from widemargin.solvers.cutting_plane.optimal_intercept import InterceptHingeLoss, double_rows, two_hinges
from widemargin.solvers.cutting_plane.smooth_losses import SquaredHingeLoss

TEAM = ThreadTeam(1)
SQUARED = -1.0  # in place of epsilon


def problem(
    n: int, d: int, weights: int, columns: int, epsilon: float | None, *, has_intercept: bool
) -> tuple[LocalMatrix, HingeLoss | SquaredHingeLoss]:
    """Hinges, squared too, or two for each target; weights over 10^+-weights, columns over 10^+-columns."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-columns, columns, d)
    y: Vector = X @ rng.normal(size=d) + rng.normal(size=n)
    s, matrix = 10.0 ** rng.uniform(-weights, weights, n), make_design_matrix(X, TEAM)
    if epsilon == SQUARED:
        return matrix, SquaredHingeLoss(np.sign(y), s, TEAM, has_intercept=has_intercept)
    if epsilon is None:
        kind = InterceptHingeLoss if has_intercept else HingeLoss
        return matrix, kind(np.sign(y) * s, TEAM)
    doubled = double_rows(matrix, y - epsilon, y + epsilon)
    assert isinstance(doubled, LocalMatrix)
    return doubled, two_hinges(s, s, doubled.shift, TEAM, has_intercept=has_intercept)


def objective(X: LocalMatrix, loss: HingeLoss | SquaredHingeLoss, C: float, w: np.ndarray) -> float:
    return 0.5 * float(np.vdot(w, w)) + C * risk_and_plane(loss, X.decision_values(w)).risk


@pytest.mark.parametrize("epsilon", [None, SQUARED, 0.0, 0.1])
@pytest.mark.parametrize(("n", "d"), [(60, 55), (55, 60), (30, 200), (150, 20)])
def test_it_proves_its_gap_whatever_the_scales(n: int, d: int, epsilon: float | None) -> None:
    for (weights, columns), C, has_intercept in product([(0, 0), (0, 4), (6, 0)], (1.0, 1e6), (False, True)):
        X, loss = problem(n, d, weights, columns, epsilon, has_intercept=has_intercept)
        w, bound = InteriorPoint(X, loss).solve(C, 1e-4, lambda: True)
        found = objective(X, loss, C, w)
        shift = loss.shift if isinstance(loss, HingeLoss) else None
        terms = 1.0 + np.abs(X.matvec(np.abs(w))[0]) + (0.0 if shift is None else np.abs(shift))
        noise = C * 1e-14 * float(np.abs(loss.signed_weights) @ terms)  # of rounded decision values
        assert bound <= found + noise
        assert found - bound <= 1e-3 * found + noise
        for step in (-1e-3, 1e-3):  # no point around it is below the bound
            assert objective(X, loss, C, w * (1.0 + step)) >= bound - noise


def test_it_agrees_with_the_optimum_in_one_dimension() -> None:
    X, y = np.array([[1.0], [2.0], [-1.0], [0.5]]), np.array([1.0, 1.0, -1.0, -1.0])
    w, bound = InteriorPoint(make_design_matrix(X, TEAM), HingeLoss(y, TEAM)).solve(10.0, 1e-9, lambda: True)
    grid = np.linspace(-3, 3, 600_001)
    values = 0.5 * grid**2 + 10.0 * np.maximum(0.0, 1.0 - y[:, None] * X * grid).sum(axis=0)
    assert np.isclose(w[0, 0], grid[values.argmin()], atol=1e-5)
    assert np.isclose(bound, values.min(), rtol=1e-8)


def test_a_fit_that_is_stopped_gets_a_point() -> None:
    X, loss = problem(60, 55, 6, 0, 0.1, has_intercept=True)
    w, bound = InteriorPoint(X, loss).solve(1.0, 1e-4, lambda: False)
    assert np.isfinite(w).all()
    assert bound <= objective(X, loss, 1.0, w)


@pytest.mark.parametrize(("C", "solves"), [(1.0, False), (1000.0, True)])
def test_it_ends_a_fit_only_where_rounds_are_slow(C: float, solves: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the digits between 0 and 1 it takes as long as 100 rounds, where 50 are enough at C = 1."""
    X, y = load_digits(return_X_y=True)
    solved: list[InteriorPoint] = []
    solve = InteriorPoint.solve

    def counted(self: InteriorPoint, C: float, tol: float, go_on: Callable[[], bool]) -> tuple[np.ndarray, float]:
        solved.append(self)
        return solve(self, C, tol, go_on)

    monkeypatch.setattr(InteriorPoint, "solve", counted)
    model = OCASClassifier(C=C).fit(X / 16, y == 8)
    assert model.converged_
    assert bool(solved) == solves


def test_squared_hinges_of_nearly_separable_samples() -> None:
    """Newton steps alone take more than 250 rounds: of more active samples than columns, each step ends at a kink."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 350))
    f = X @ rng.normal(size=350)
    model = OCASClassifier(C=1e4, loss="squared_hinge").fit(X, f + 0.5 * f.std() * rng.normal(size=1200) > 0)
    assert model.converged_
    assert model.n_iter_ <= 40


@pytest.mark.parametrize("scale", [1e-75, 1e85])
def test_squared_hinges_of_any_scale(scale: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 30))
    loss = SquaredHingeLoss(np.sign(X[:, 0] + rng.normal(size=90)), np.ones(90), TEAM, has_intercept=False)
    expected = InteriorPoint(make_design_matrix(X, TEAM), loss).solve(1e4, 1e-6, lambda: True)[1]
    with np.errstate(all="raise"):
        scaled = InteriorPoint(make_design_matrix(scale * X, TEAM), loss).solve(1e4 / scale**2, 1e-6, lambda: True)[1]
    assert np.isclose(scaled * scale**2, expected, rtol=1e-5)


def test_a_stop_keeps_the_classes_that_are_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 150))
    y = (X @ rng.normal(size=(150, 3)) + 5.0 * rng.normal(size=(450, 3))).argmax(axis=1)
    settings: dict[str, Any] = {"C": 1e4, "loss": "squared_hinge", "tol": 1e-4}
    with pytest.warns(ConvergenceWarning):
        before = OCASClassifier(**settings, max_iter=30).fit(X, y).objective_
    best = OCASClassifier(**settings).fit(X, y).objective_
    solve = InteriorPoint.solve

    def stopped(self: InteriorPoint, C: float, tol: float, go_on: Callable[[], bool]) -> tuple[np.ndarray, float]:
        solved = solve(self, C, tol, go_on)
        signal.raise_signal(signal.SIGINT)
        return solved

    monkeypatch.setattr(_progress, "_last_sigint", -math.inf)
    monkeypatch.setattr(InteriorPoint, "solve", stopped)
    with pytest.warns(ConvergenceWarning):
        model = OCASClassifier(**settings).fit(X, y)
    assert model.objective_ < before - 0.1 * (before - best)
