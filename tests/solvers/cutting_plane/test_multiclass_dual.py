"""Crammer and Singer's dual raised to the end: its bound, its scaling with C, and where it ends."""

from collections.abc import Callable

import numpy as np
import pytest

from naive import cutting_plane as naive
from widemargin._threads import ThreadTeam
from widemargin.data import RowAccess, make_design_matrix
from widemargin.solvers.cutting_plane.crammer_singer import MulticlassDual, MulticlassHingeLoss
from widemargin.solvers.cutting_plane.dual_epochs import squared_norms

X = np.random.default_rng(0).poisson(0.4, (40, 60)).astype(float)
Y = np.random.default_rng(1).integers(3, size=40)
S = np.random.default_rng(2).uniform(0.5, 2.0, 40)


def dual_of(constant: float, go_on: Callable[[], bool] = lambda: True) -> MulticlassDual:
    team = ThreadTeam(1)
    samples = make_design_matrix(X, team)
    assert isinstance(samples, RowAccess)
    return MulticlassDual(
        samples, constant, MulticlassHingeLoss(Y, S, 3, team), squared_norms(samples), 1e-4, team, go_on
    )


def primal(W: np.ndarray, C: float) -> float:
    features = np.column_stack([X, np.ones(len(X))])[:, : W.shape[1]]
    return float(0.5 * np.vdot(W, W) + C * naive.multiclass_risk(W @ features.T, Y, S))


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_bound_and_point_meet(constant: float) -> None:
    dual = dual_of(constant)
    for C in (0.1, 10.0, 0.5):
        dual.set_risk_weight(C)
        bound = dual.bound()
        assert bound >= 0.0, "that of zero"
        dual.ascend()
        assert bound <= dual.bound() <= primal(dual.point, C)
        assert primal(dual.point, C) - dual.bound() <= 1e-3 * primal(dual.point, C)
    assert dual.point.shape == (3, 60 + int(constant))


def test_it_ends_where_time_is_up() -> None:
    answers = iter([True, False])
    dual = dual_of(1.0, lambda: next(answers))
    dual.set_risk_weight(10.0)
    dual.ascend()
    assert next(answers, None) is None
