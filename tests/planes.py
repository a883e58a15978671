"""Machines at their first cutting plane, and checks that planes lie below the risk."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin._threads import ThreadTeam
from widemargin.data import make_design_matrix
from widemargin.solvers.cutting_plane.losses import HingeLoss
from widemargin.solvers.cutting_plane.machine import CuttingPlaneMachine, add_planes
from widemargin.solvers.cutting_plane.master_problem import MasterProblem
from widemargin.solvers.cutting_plane.optimal_intercept import InterceptHingeLoss

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def begun(X: Any, signed: Vector, C: float, *, has_intercept: bool) -> tuple[Any, CuttingPlaneMachine]:
    """Rows (n, 3) as a design matrix, and a machine of hinges with the plane at zero weights."""
    team = ThreadTeam(1)
    loss = (InterceptHingeLoss if has_intercept else HingeLoss)(signed, team)
    rows, machine = make_design_matrix(X, team), CuttingPlaneMachine(loss, MasterProblem(3, 1000), C)
    add_planes(rows, [machine], [machine.evaluate(machine.w, np.zeros((1, X.shape[0])))])
    return rows, machine


def always() -> bool:
    return True


def true_risk(X: Matrix, signed: Vector, w: Vector, *, has_intercept: bool) -> float:
    f = X @ w
    return naive.optimal_intercept_risk(f, signed) if has_intercept else naive.intercept_risk(f, signed, 0.0)


def assert_planes_hold(
    master: MasterProblem, points: Iterable[Vector], X: Matrix, signed: Vector, *, has_intercept: bool
) -> None:
    for w in points:
        risk = true_risk(X, signed, w, has_intercept=has_intercept)
        planes = master.normals @ w + master.offsets
        assert planes.max() <= risk + 1e-9 * (1 + abs(risk))
