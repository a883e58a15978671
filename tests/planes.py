"""Checks that cutting planes lie below the risk."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin.solvers.cutting_plane.master_problem import MasterProblem

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


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
