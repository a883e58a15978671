"""Newton steps of smooth losses against the solution of their linear system."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from peak_memory import peak_of
from widemargin import OCASClassifier
from widemargin._native import smooth
from widemargin._threads import ThreadTeam
from widemargin.data import make_design_matrix
from widemargin.solvers.cutting_plane import newton_steps
from widemargin.solvers.cutting_plane.machine import CuttingPlaneMachine, add_planes
from widemargin.solvers.cutting_plane.master_problem import MasterProblem
from widemargin.solvers.cutting_plane.newton_steps import NewtonSteps
from widemargin.solvers.cutting_plane.ridge_system import RidgeSystem
from widemargin.solvers.cutting_plane.smooth_losses import SmoothLoss


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize(("n", "exact_columns"), [(300, 0), (4000, 0), (300, 128)])
def test_the_search_point_is_newtons(
    n: int, exact_columns: int, has_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newton_steps, "_RESIDUAL", 1e-9)
    monkeypatch.setattr(newton_steps, "_EXACT_COLUMNS", exact_columns)
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
    system = RidgeSystem(matrix, team, has_intercept=has_intercept)
    NewtonSteps(matrix, machine, loss, system, 2**30, lambda: asked.append(None) is None).run()
    D = loss.curvatures(w @ X.T)
    centred = X - (D @ X / D.sum() if has_intercept else 0.0)
    hessian = np.eye(5) + C * (centred.T * D) @ centred
    assert machine.base is not None
    expected = w[0] - np.linalg.solve(hessian, w[0] + C * machine.base.normal[0])
    np.testing.assert_allclose(machine.search_point[0], expected, rtol=1e-5, atol=1e-9)
    if exact_columns:
        assert not asked, "no products"
    elif n > 128 * 5:
        assert len(asked) < 25, "with the preconditioner"


@pytest.mark.filterwarnings("ignore:OCASClassifier was stopped")
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_values_whose_hessian_is_not_positive_definite_to_rounding(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60)) * np.logspace(0, 12, 60)
    model = OCASClassifier(loss=loss, tol=0.1, max_iter=50).fit(X, X[:, 59] > 0)
    assert model.objective_ < 1.0


def test_with_an_intercept_rows_are_not_copied() -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 20))
    matrix, y = make_design_matrix(X, ThreadTeam(1)), np.sign(X[:, 0])
    loss = SmoothLoss(smooth.Logistic(), y, np.ones(len(y)), ThreadTeam(1), has_intercept=True)
    machine = CuttingPlaneMachine(loss, MasterProblem(20, 10), 1.0)
    add_planes(matrix, [machine], [machine.evaluate(machine.w, np.zeros((1, len(y))))])
    system = RidgeSystem(matrix, loss.team, has_intercept=True)
    assert peak_of(NewtonSteps(matrix, machine, loss, system, 2**30, lambda: True).run)[1] < 0.7 * X.nbytes


@pytest.mark.parametrize(("is_sparse", "is_exact"), [(True, False), (False, True)])
def test_a_system_is_decomposed_where_that_is_cheaper_than_steps(
    is_sparse: bool, is_exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decomposed: list[None] = []
    decompose = RidgeSystem.decompose
    monkeypatch.setattr(RidgeSystem, "decompose", lambda self, c: decomposed.append(None) or decompose(self, c))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 200)) * (rng.random((2000, 200)) < 0.02) * 10.0 ** rng.uniform(-0.5, 0.5, 200)
    f = X @ rng.normal(size=200)
    y = f + 0.3 * f.std() * rng.normal(size=2000) > 0
    model = OCASClassifier(C=1e4, loss="logistic").fit(csr_array(X) if is_sparse else X, y)
    assert model.converged_
    assert bool(decomposed) == is_exact
