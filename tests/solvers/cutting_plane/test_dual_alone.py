"""The dual raised to the end: conjugate gradients on a face against a direct solution, bounds, convergence."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from naive import cutting_plane as naive
from naive import losses
from widemargin._threads import ThreadTeam
from widemargin.data import RowAccess, make_design_matrix
from widemargin.solvers.cutting_plane import dual_alone
from widemargin.solvers.cutting_plane.dual_alone import DualAlone, Face, face_step
from widemargin.solvers.cutting_plane.dual_epochs import squared_norms
from widemargin.solvers.cutting_plane.losses import HingeLoss
from widemargin.solvers.cutting_plane.optimal_intercept import InterceptHingeLoss
from widemargin.solvers.cutting_plane.smooth_losses import SquaredHingeLoss

quick = settings(max_examples=30, deadline=None, derandomize=True)
FORMS: dict[str, Any] = {"dense": np.asarray, "csr": sp.csr_array}


def always() -> bool:
    return True


def samples(X: Any) -> RowAccess:
    matrix = make_design_matrix(X, ThreadTeam(1))
    assert isinstance(matrix, RowAccess)
    return matrix


def problem(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n, d)) * rng.uniform(0.5, 2.0, (n, 1))
    return X, rng.choice([-1.0, 1.0], n) * rng.uniform(0.5, 2, n)


def dual_of(
    X: Any,
    signed: np.ndarray,
    *,
    has_intercept: bool = False,
    is_squared: bool = False,
    budget: int = 2**30,
    go_on: Callable[[], bool] = always,
) -> DualAlone:
    matrix, team = samples(X), ThreadTeam(1)
    loss: HingeLoss | SquaredHingeLoss = (InterceptHingeLoss if has_intercept else HingeLoss)(signed, team)
    if is_squared:
        loss = SquaredHingeLoss(np.sign(signed), np.abs(signed), team, has_intercept=has_intercept)
    return DualAlone(matrix, loss, squared_norms(matrix), 1e-3, budget, go_on)


def run_round(point: DualAlone, X: np.ndarray) -> None:
    point.ascend()
    point.take_decision_values(X @ point.point[0])


def primal(
    X: np.ndarray, signed: np.ndarray, w: np.ndarray, C: float, *, has_intercept: bool, is_squared: bool = False
) -> float:
    f = X @ w

    def squared(b: float) -> float:
        return losses.risk("squared_hinge", f + b, np.sign(signed), np.abs(signed))

    if is_squared:
        b = float(minimize_scalar(squared, tol=1e-12).x) if has_intercept else 0.0
        return float(0.5 * w @ w + C * squared(b))
    risk = naive.optimal_intercept_risk(f, signed) if has_intercept else naive.intercept_risk(f, signed, 0.0)
    return float(0.5 * w @ w + C * risk)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_conjugate_gradients_come_near_the_maximum_on_a_face(form: str, sigma: float) -> None:
    X, signed = problem(0, 30, 200)
    y, gradient = np.sign(signed), np.random.default_rng(1).normal(size=30)
    face = Face(samples(FORMS[form](X)), y, (X**2).sum(axis=1) + sigma, gradient, sigma, np.full(30, 1e3))

    def gain(step: np.ndarray) -> float:
        w, total = (y * step) @ X, float(y @ step)
        return float(-gradient @ step - 0.5 * w @ w - 0.5 * sigma * total**2)

    best = gain(naive.face_maximum(X, y, gradient, sigma))
    assert 0.9 * best <= gain(face_step(face, 0.25, always)) <= best * (1 + 1e-9)


def test_on_orthogonal_samples_one_step_is_exact() -> None:
    X, y = np.diag([1.0, 20.0, 300.0]), np.array([1.0, -1.0, 1.0])
    gradient = np.array([-1.0, 2.0, -3.0])
    step = face_step(Face(samples(X), y, (X**2).sum(axis=1), gradient, 0.0, np.full(3, 9.0)), 0.25, always)
    np.testing.assert_allclose(step, naive.face_maximum(X, y, gradient, 0.0))


def test_conjugate_gradients_end_outside_the_box_where_there_is_no_maximum() -> None:
    X = np.random.default_rng(0).normal(size=(300, 200))
    steps: list[int] = []
    face = Face(samples(X), np.ones(300), (X**2).sum(axis=1), np.full(300, -1.0), 0.0, np.ones(300))
    step = face_step(face, 0.25, lambda: steps.append(1) is None)
    assert len(steps) < 30
    assert np.linalg.norm(step) > np.sqrt(300)


@pytest.mark.slow
@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 40),
    has_intercept=st.booleans(),
    is_squared=st.booleans(),
    C=st.sampled_from([0.01, 1.0, 100.0]),
)
def test_the_bound_is_below_the_objective_of_any_point(
    seed: int, n: int, has_intercept: bool, is_squared: bool, C: float
) -> None:
    X, signed = problem(seed, n, 60)
    point = dual_of(X, signed, has_intercept=has_intercept, is_squared=is_squared)
    rng = np.random.default_rng(seed)
    point.set_risk_weight(C)
    for _ in range(4):
        run_round(point, X)
        for w in (np.zeros(60), point.point[0], rng.normal(size=60) / 20):
            if has_intercept and len(set(np.sign(signed))) == 1:
                continue
            objective = primal(X, signed, w, C, has_intercept=has_intercept, is_squared=is_squared)
            assert point.bound() <= objective + 1e-9 * abs(objective)


@pytest.mark.parametrize(("form", "C"), [("csr", 0.01), ("csr", 100.0), ("dense", 1.0)])
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("is_squared", [False, True])
def test_the_gap_closes(form: str, has_intercept: bool, is_squared: bool, C: float) -> None:
    X, signed = problem(3, 120, 300)
    point = dual_of(FORMS[form](X), signed, has_intercept=has_intercept, is_squared=is_squared)
    point.set_risk_weight(C)
    for _ in range(100):
        run_round(point, X)
        objective = primal(X, signed, point.point[0], C, has_intercept=has_intercept, is_squared=is_squared)
        if objective - point.bound() <= 2e-3 * objective:
            return
    pytest.fail(f"the gap is {objective - point.bound()} of {objective}")


def test_on_large_data_there_is_a_point_after_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual_alone, "VALUES_PER_CHECK", 1.0)
    X, signed = problem(3, 120, 300)
    calls: list[int] = []

    def go_on() -> bool:
        calls.append(0)
        return True

    point, objectives = dual_of(X, signed, go_on=go_on), []
    for n_rounds in range(1, 60):
        run_round(point, X)
        objectives.append(primal(X, signed, point.point[0], 1.0, has_intercept=False))
        if n_rounds < 3:
            assert len(calls) == n_rounds
    assert min(objectives) - point.bound() <= 2e-3 * min(objectives)


def test_without_memory_for_the_free_samples_epochs_go_on_alone() -> None:
    X, signed = problem(4, 60, 90)
    point, bounds = dual_of(X, signed, budget=0), []
    for _ in range(200):
        run_round(point, X)
        bounds.append(point.bound())
    assert np.all(np.diff(bounds) >= -1e-9 * bounds[-1])
    objective = primal(X, signed, point.point[0], 1.0, has_intercept=False)
    assert objective - bounds[-1] <= 1e-2 * objective


def test_another_C_never_lowers_the_bound_by_more_than_scaling() -> None:
    X, signed = problem(5, 50, 80)
    for C in (3.0, 0.2):
        point = dual_of(X, signed)
        for _ in range(5):
            run_round(point, X)
        w = point.point[0]
        total = point.bound() + 0.5 * float(w @ w)
        point.set_risk_weight(C)
        assert point.bound() >= C * total - 0.5 * C**2 * float(w @ w) - 1e-9
        assert point.bound() <= primal(X, signed, np.zeros(80), C, has_intercept=False)


def test_squared_hinges_start_from_the_dual_point_of_another_C() -> None:
    X, signed = problem(5, 50, 80)
    signed[4] = 0.0
    for C in (3.0, 1e-250, 1e6):
        point = dual_of(X, signed, is_squared=True)
        point.set_risk_weight(1e-3)
        run_round(point, X)
        point.set_risk_weight(C)
        start = point.bound()
        for _ in range(30):
            run_round(point, X)
        objective = primal(X, signed, point.point[0], C, has_intercept=False, is_squared=True)
        assert 0.0 <= start <= point.bound() <= objective * (1 + 1e-9)
        assert objective - point.bound() <= 2e-3 * objective


def test_it_ends_when_time_is_up() -> None:
    X, signed = problem(6, 50, 80)
    calls: list[int] = []

    def go_on() -> bool:
        calls.append(0)
        return len(calls) < 3

    point = dual_of(X, signed, go_on=go_on)
    for _ in range(5):
        run_round(point, X)
    assert len(calls) <= 3 + 2 * 5
