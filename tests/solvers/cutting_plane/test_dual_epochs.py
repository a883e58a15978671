"""Dual points as planes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import cutting_plane as naive
from widemargin._threads import ThreadTeam
from widemargin.data import RowAccess, make_design_matrix
from widemargin.solvers.cutting_plane.dual_epochs import DualEpochs
from widemargin.solvers.cutting_plane.losses import HingeLoss
from widemargin.solvers.cutting_plane.optimal_intercept import InterceptHingeLoss

quick = settings(max_examples=40, deadline=None, derandomize=True)


def ascent(seed: int, n: int, *, has_intercept: bool) -> tuple[DualEpochs, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, signed = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], n) * rng.uniform(0, 2, n).round(1)
    return ascent_of(X, signed, has_intercept=has_intercept), X, signed


def ascent_of(X: np.ndarray, signed: np.ndarray, *, has_intercept: bool) -> DualEpochs:
    team = ThreadTeam(1)
    matrix, loss = make_design_matrix(X, team), (InterceptHingeLoss if has_intercept else HingeLoss)(signed, team)
    assert isinstance(matrix, RowAccess)
    return DualEpochs(matrix, loss, (X**2).sum(axis=1))


@pytest.mark.slow
@quick
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(2, 50), has_intercept=st.booleans(), C=st.sampled_from([0.01, 3.0])
)
def test_a_dual_point_is_a_plane_below_the_risk(seed: int, n: int, has_intercept: bool, C: float) -> None:
    point, X, signed = ascent(seed, n, has_intercept=has_intercept)
    point.set_risk_weight(C)
    for _ in range(3):
        point.run_epochs()
        coef, offset, w = point.plane()
        other = np.random.default_rng(seed).normal(size=3)
        for f in (X @ other, X @ w, np.zeros(n)):
            risk = naive.intercept_risk(f, signed, 0.0)
            if has_intercept and np.any(signed > 0) and np.any(signed < 0):
                risk = min(naive.intercept_risk(f, signed, b) for b in np.sign(signed) - f)
                assert np.isclose(coef.sum(), 0.0, atol=1e-9)
            assert coef[0] @ f + offset <= risk + 1e-9
        if not has_intercept:
            np.testing.assert_allclose(point.normal, coef[0] @ X, atol=1e-9)
        else:
            assert point.normal is None


@pytest.mark.slow
@settings(quick, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), has_intercept=st.booleans())
def test_rows_that_may_move_do_not_stay_shrunk(seed: int, has_intercept: bool) -> None:
    """The duality gap closes; with an intercept to some percent, where epochs alone may cycle."""
    point, X, signed = ascent(seed, 60, has_intercept=has_intercept)
    point.set_risk_weight(0.3)
    for _ in range(100):
        point.run_epochs()
        point.record_round(1)
        point.update_shrinking(X @ point.plane()[2])
    coef, offset, w = point.plane()
    risk = naive.optimal_intercept_risk(X @ w, signed) if has_intercept else naive.intercept_risk(X @ w, signed, 0.0)
    normal = coef[0] @ X
    bound = 0.3 * (offset + normal @ w) + 0.5 * w @ w - 0.5 * (w + 0.3 * normal) @ (w + 0.3 * normal)
    assert bound >= (1 - (0.1 if has_intercept else 1e-3)) * (0.5 * w @ w + 0.3 * risk)


def test_the_dual_never_falls_and_is_extrapolated_where_it_is_slow() -> None:
    X = np.array([[1.0, 0.05], [1.0, -0.05]])  # nearly the same row on both sides: coordinate steps are short
    point = ascent_of(X, np.array([1.0, -1.0]), has_intercept=False)
    point.set_risk_weight(1e4)
    values = []
    for _ in range(15):
        point.run_epochs()
        point.record_round(1)
        _, offset, w = point.plane()
        values.append(1e4 * offset - 0.5 * w @ w)
    assert np.all(np.diff(values) >= -1e-9 * values[-1])
    assert values[-1] >= 0.999 * 200.0  # w = (0, 20)


def test_another_C_keeps_the_plane_and_gives_epochs_another_turn() -> None:
    point, _, _ = ascent(0, 40, has_intercept=False)
    point.set_risk_weight(1.0)
    for _ in range(20):
        point.run_epochs()
        point.record_round(1)
    assert not point.have_turn
    coef, offset, w = point.plane()
    point.set_risk_weight(8.0)
    other, same, moved = point.plane()
    np.testing.assert_allclose(other, coef, atol=1e-12)
    assert np.isclose(same, offset)
    np.testing.assert_allclose(moved, 8 * w)
    assert point.have_turn
