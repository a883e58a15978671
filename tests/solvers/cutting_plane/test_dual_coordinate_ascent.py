"""Dual points as planes, and whose turn it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import cutting_plane as naive
from widemargin.solvers.cutting_plane.dual_coordinate_ascent import CoordinateAscent, Turns

quick = settings(max_examples=40, deadline=None, derandomize=True)


def ascent(seed: int, n: int, *, has_intercept: bool) -> tuple[CoordinateAscent, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, signed = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], n) * rng.uniform(0, 2, n).round(1)
    return CoordinateAscent(X, signed, 3, has_intercept=has_intercept), X, signed


@quick
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(2, 50), has_intercept=st.booleans(), C=st.sampled_from([0.01, 3.0])
)
def test_a_dual_point_is_a_plane_below_the_risk(seed: int, n: int, has_intercept: bool, C: float) -> None:
    point, X, signed = ascent(seed, n, has_intercept=has_intercept)
    point.weigh(C)
    for _ in range(3):
        point.ascend()
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


@settings(quick, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), has_intercept=st.booleans())
def test_rows_that_may_move_are_not_set_aside(seed: int, has_intercept: bool) -> None:
    point, X, signed = ascent(seed, 60, has_intercept=has_intercept)
    point.weigh(0.3)
    for _ in range(40):
        point.ascend()
        point.judge(0.5, 1)
        point.observe(X @ point.plane()[2])
    coef, offset, w = point.plane()
    risk = naive.profile_risk(X @ w, signed) if has_intercept else naive.intercept_risk(X @ w, signed, 0.0)
    normal = coef[0] @ X
    bound = 0.3 * (offset + normal @ w) + 0.5 * w @ w - 0.5 * (w + 0.3 * normal) @ (w + 0.3 * normal)
    assert bound >= (1 - (1e-2 if has_intercept else 1e-3)) * (0.5 * w @ w + 0.3 * risk)


def test_the_dual_never_falls_and_leaps_where_it_is_slow() -> None:
    X = np.array([[1.0, 0.05], [1.0, -0.05]])  # nearly the same row on both sides: the dual creeps along
    point = CoordinateAscent(X, np.array([1.0, -1.0]), 2, has_intercept=False)
    point.weigh(1e4)
    values = []
    for _ in range(15):
        point.ascend()
        point.judge(0.5, 1)
        _, offset, w = point.plane()
        values.append(1e4 * offset - 0.5 * w @ w)
    assert np.all(np.diff(values) >= -1e-9 * values[-1])
    assert values[-1] >= 0.999 * 200.0  # w = (0, 20)


def test_another_weight_of_the_risk_keeps_the_plane() -> None:
    point, _, _ = ascent(0, 40, has_intercept=False)
    point.weigh(1.0)
    point.ascend()
    coef, offset, w = point.plane()
    point.weigh(8.0)
    other, same, moved = point.plane()
    np.testing.assert_allclose(other, coef, atol=1e-12)
    assert np.isclose(same, offset)
    np.testing.assert_allclose(moved, 8 * w)


@pytest.mark.parametrize("faster", [True, False])
def test_the_faster_one_gets_most_of_the_work(faster: bool) -> None:
    turns, gap, work = Turns(1.0, 10.0), 1.0, {True: 0.0, False: 0.0}
    turns.spend(0.0, gap)
    for _ in range(400):
        mine = turns.has_epochs
        effort = 3.0 if mine else 1.0
        work[mine] += effort
        gap *= np.exp(-effort * (0.05 if mine == faster else 0.001))
        turns.spend(effort, max(gap, 1e-200))
    assert 0.05 < work[not faster] / sum(work.values()) < 0.35


def test_the_slower_one_takes_over_when_it_becomes_faster() -> None:
    turns, gap = Turns(1.0, 10.0), 1.0
    turns.spend(0.0, gap)
    late = []
    for t in range(300):
        late.append(turns.has_epochs)
        gap *= np.exp(-(0.1 if turns.has_epochs == (t < 60) else 0.001))
        turns.spend(1.0, gap)
    assert np.mean(late[10:60]) > 0.6
    assert np.mean(late[-100:]) < 0.3


def test_rounds_alone_are_trusted_until_they_have_had_their_work() -> None:
    turns, gap, course = Turns(2.0, 100.0), 1.0, []
    turns.spend(0.0, gap)
    for _ in range(400):
        course.append(turns.has_epochs)
        gap *= np.exp(-0.03 if turns.has_epochs else -0.001)
        turns.spend(1.0, gap)
    assert course[:100] == [True] * 2 + [False] * 98
    assert np.mean(course[-200:]) > 0.6
