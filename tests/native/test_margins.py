"""Crammer and Singer's risk against its definition."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import cutting_plane as naive
from widemargin._native import Team, linear
from widemargin._threads import ThreadTeam
from widemargin.solvers.cutting_plane.crammer_singer import MulticlassHingeLoss

quick = settings(max_examples=25, deadline=None, derandomize=True)


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    n_classes=st.integers(2, 5),
    curvature=st.floats(0.01, 50),
    slope=st.floats(-30, 30),
    ties=st.booleans(),
)
def test_search_and_plane(seed: int, n: int, n_classes: int, curvature: float, slope: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, n_classes, n), rng.uniform(0.1, 2, n)
    f, f_end, other = rng.normal(size=(3, n_classes, n))
    if ties:
        f, f_end = np.round(f), np.round(f_end)
    loss = MulticlassHingeLoss(y, s, n_classes, ThreadTeam(1))
    step = loss.find_step(f, f_end, curvature, slope)

    def value(k: float) -> float:
        return 0.5 * curvature * k**2 + slope * k + naive.multiclass_risk(f + k * (f_end - f), y, s)

    around = step + np.array([-1e-3, 1e-3, -0.1, 0.1, 1.0]) * max(step, 1.0)
    assert all(value(step) <= value(max(k, 0.0)) + 1e-9 for k in around)
    best = f + step * (f_end - f)
    near = best + 0.1 * (f_end - best)
    cut = loss.advance(f, f_end, step, 0.1)
    np.testing.assert_allclose(f, best, atol=1e-12)
    assert np.isclose(cut.risk, naive.multiclass_risk(best, y, s))
    assert np.isclose(np.vdot(cut.coef, near) + cut.offset, naive.multiclass_risk(near, y, s))
    assert np.vdot(cut.coef, other) + cut.offset <= naive.multiclass_risk(other, y, s) + 1e-9


def problem(n: int, n_classes: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    y, s, f, f_end = rng.integers(0, n_classes, n), rng.uniform(0.1, 2, n), *rng.normal(size=(2, n_classes, n))
    return linear.MulticlassHinge(y, s, n_classes), y, s, f, f_end


@pytest.mark.parametrize(("n", "n_classes"), [(0, 3), (127, 2), (9000, 11)])
def test_blocks_of_rows(n: int, n_classes: int) -> None:
    hinge, y, s, f, f_end = problem(n, n_classes)
    team, rows, coef, moved = Team(1), np.arange(n), np.full((n_classes, n), np.nan), f.copy()

    def risk(k: float) -> float:
        return naive.multiclass_risk(f + k * (f_end - f), y, s)

    at_best, offset = hinge.advance(team, moved, f_end, 0.25, 0.5, coef)
    np.testing.assert_allclose(moved, f + 0.25 * (f_end - f), atol=1e-12)
    assert np.isclose(at_best, risk(0.25))
    assert np.isclose(np.vdot(coef, moved + 0.5 * (f_end - moved)) + offset, risk(0.25 + 0.5 * 0.75))
    slope = hinge.slope(team, f, f_end, rows, 0.3)
    assert np.isclose(slope, (risk(0.3 + 1e-7) - risk(0.3)) / 1e-7, rtol=1e-4, atol=1e-4)
    kept, settled = hinge.drop_linear_rows(team, f, f_end, rows, 0.2, 0.4)
    assert np.all(np.diff(rows[:kept]) > 0)
    assert np.isclose(settled + hinge.slope(team, f, f_end, rows[:kept].copy(), 0.3), slope)


def test_the_number_of_threads_does_not_matter() -> None:
    hinge, _, _, f, f_end = problem(20_000, 3)
    results = []
    for n_threads in (1, 2, 3):
        team, moved, coef, rows = Team(n_threads), f.copy(), np.empty_like(f), np.arange(20_000)
        results.append((hinge.advance(team, moved, f_end, 0.2, 0.1, coef), hinge.slope(team, f, f_end, rows, 0.1)))
        results[-1] += (hinge.drop_linear_rows(team, f, f_end, rows, 0.1, 0.2), moved.sum(), coef.sum(), rows.tolist())
    assert results[0] == results[1] == results[2]


def test_labels_and_rows_out_of_range_are_refused() -> None:
    hinge, y, s, f, f_end = problem(6, 3)
    team, rows = Team(1), np.arange(6)
    for label in (-1, 3, 2**40):
        with pytest.raises(IndexError, match=r"y\[5\] must be in \[0, 3\)"):
            linear.MulticlassHinge(np.append(y[:5], label), s, 3)
    with pytest.raises(ValueError, match="n_classes"):
        linear.MulticlassHinge(y, s, -1)
    with pytest.raises(ValueError, match="n_classes"):
        linear.MulticlassHinge(y, s, 2**31)
    for index in (-1, 6, 2**62):
        with pytest.raises(IndexError, match="rows"):
            hinge.slope(team, f, f_end, np.append(rows, index), 0.1)
        with pytest.raises(IndexError, match="rows"):
            hinge.drop_linear_rows(team, f, f_end, np.append(index, rows), 0.1, 0.2)


def test_labels_that_change_later_do_no_harm() -> None:
    hinge, y, _, f, f_end = problem(6, 3)
    before = hinge.slope(Team(1), f, f_end, np.arange(6), 0.1)
    y[:] = 2**40
    assert hinge.slope(Team(1), f, f_end, np.arange(6), 0.1) == before
