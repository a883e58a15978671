"""Passes over the outputs of a linear machine: twins, threads, and arguments that must be refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin._native import Team, hinge

Vector = NDArray[np.float64]

quick = settings(max_examples=30, deadline=None, derandomize=True)
FAR = 1e300
BLOCK = 2**14  # rows
ALONE = Team(1)


def lines(seed: int, n: int, *, ties: bool) -> tuple[Vector, Vector, Vector]:
    """Outputs at both ends and signed weights; with ties, few distinct values, some breakpoints at 0."""
    rng = np.random.default_rng(seed)
    signed = rng.choice([-1.0, 1.0], n) * rng.uniform(0.1, 2, n)
    f, f_end = rng.normal(size=(2, n)) * 2
    return (np.round(f), np.round(f_end), np.sign(signed)) if ties else (f, f_end, signed)


def scan(f: Vector, f_end: Vector, signed: Vector, lo: float, hi: float) -> tuple[float, Vector, Vector]:
    found: tuple[float, Vector, Vector] = hinge.scan_breakpoints(ALONE, f, f_end, 0.0, 0.0, signed, lo, hi)
    return found


sizes = st.one_of(st.integers(1, 70), st.sampled_from([128, 200]))


@quick
@given(seed=st.integers(0, 2**32 - 1), n=sizes, lo=st.sampled_from([0.0, 0.3001]), ties=st.booleans())
def test_the_scan_finds_every_jump(seed: int, n: int, lo: float, ties: bool) -> None:
    problem = lines(seed, n, ties=ties)
    slope, keys, jumps = scan(*problem, lo, 1.7)
    assert np.all((keys > lo) & (keys <= 1.7 + 1e-12))
    assert np.isclose(slope, naive.hinge_slope(*problem, lo), atol=1e-10)
    for k in np.linspace(lo, 1.7, 7)[1:-1] + 1e-3:
        passed = slope + jumps[keys <= k].sum()
        assert np.isclose(passed, naive.hinge_slope(*problem, k), atol=1e-10)


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=sizes,
    curvature=st.floats(0.01, 100),
    slope=st.floats(-50, 50),
    ties=st.booleans(),
)
def test_the_root_is_the_minimum(seed: int, n: int, curvature: float, slope: float, ties: bool) -> None:
    f, f_end, signed = lines(seed, n, ties=ties)
    change, keys, jumps = scan(f, f_end, signed, 0.0, FAR)
    given_keys, given_jumps = keys.copy(), jumps.copy()
    step = hinge.find_root(keys, jumps, curvature, slope + change, 0.0)
    np.testing.assert_array_equal(keys, given_keys)
    np.testing.assert_array_equal(jumps, given_jumps)
    assert np.isclose(step, naive.find_root(keys, jumps, curvature, slope + change, 0.0), rtol=1e-9, atol=1e-12)

    def value(k: float) -> float:
        hinges = np.abs(signed) * np.maximum(0, 1 - np.sign(signed) * (f + k * (f_end - f)))
        return 0.5 * curvature * k**2 + slope * k + float(hinges.sum())

    around = step + np.array([-1e-3, 1e-3, -0.1, 0.1, 1.0]) * max(step, 1.0)
    assert all(value(step) <= value(max(k, 0.0)) + 1e-9 for k in around)


@quick
@given(seed=st.integers(0, 2**32 - 1), n=sizes, step=st.floats(0, 2), mu=st.floats(0, 1))
def test_the_new_plane_touches_the_risk(seed: int, n: int, step: float, mu: float) -> None:
    f, f_end, signed = lines(seed, n, ties=False)
    best = f + step * (f_end - f)
    near = best + mu * (f_end - best)
    outputs, coef = f.copy(), np.full(n, np.nan)
    risk, offset = hinge.advance(ALONE, outputs, f_end, signed, step, mu, coef)
    np.testing.assert_allclose(outputs, best, atol=1e-12)
    assert np.isclose(risk, naive.intercept_risk(best, signed, 0.0))
    assert np.isclose(coef @ near + offset, naive.intercept_risk(near, signed, 0.0))
    other = np.random.default_rng(seed).normal(size=n)
    assert coef @ other + offset <= naive.intercept_risk(other, signed, 0.0) + 1e-9


def test_a_step_of_zero_may_go_nowhere() -> None:
    """Then the f_end may be the outputs themselves, which may be infinite."""
    f, _, signed = lines(0, 1000, ties=False)
    coef, other, outputs = np.empty(1000), np.empty(1000), f.copy()
    expected = hinge.advance(ALONE, f.copy(), f, signed, 0.0, 0.1, other)
    assert hinge.advance(ALONE, outputs, outputs, signed, 0.0, 0.1, coef) == expected
    np.testing.assert_array_equal(outputs, f)
    np.testing.assert_array_equal(coef, other)
    outputs[:] = np.inf
    hinge.advance(ALONE, outputs, f, signed, 0.0, 0.1, coef)
    assert np.all(outputs == np.inf)


@quick
@given(seed=st.integers(0, 2**32 - 1), n=sizes)
def test_the_scan_adds_the_intercepts(seed: int, n: int) -> None:
    f, f_end, signed = lines(seed, n, ties=False)
    here, there = np.random.default_rng(seed).normal(size=2)
    slope, keys, jumps = hinge.scan_breakpoints(ALONE, f, f_end, here, there, signed, 0.1, 1.7)
    other, moved, steps = scan(f + here, f_end + there, signed, 0.1, 1.7)
    assert np.isclose(slope, other)
    np.testing.assert_allclose(keys, moved)
    np.testing.assert_allclose(jumps, steps)


@quick
@given(seed=st.integers(0, 2**32 - 1), n=sizes, ties=st.booleans())
def test_rows_near_their_kink(seed: int, n: int, ties: bool) -> None:
    f, _, signed = lines(seed, n, ties=ties)
    signed[::3] = 0.0
    is_near = (np.abs(1 - np.sign(signed) * (f + 0.5)) <= 0.75) & (signed != 0)
    np.testing.assert_array_equal(hinge.rows_near_kink(ALONE, f, 0.5, signed, 0.75), np.flatnonzero(is_near))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 12), width=st.floats(0.01, 5), intercept=st.floats(-2, 2))
def test_smoothed_hinges(seed: int, n: int, width: float, intercept: float) -> None:
    f, _, signed = lines(seed, n, ties=False)
    coef = np.full(n, np.nan)
    value, offset, loss, risk = hinge.smoothed_hinges(ALONE, f, intercept, signed, width, 1.0, 1.0, coef)
    reference, a = naive.smoothed_hinges(f + intercept, signed, width, 20_001)
    s, y = np.abs(signed), np.sign(signed)
    m = 1 - y * (f + intercept)
    assert np.isclose(value, reference, atol=1e-6)
    np.testing.assert_allclose(coef, -signed * a, atol=1e-3)
    a = -coef / np.where(signed == 0, 1.0, signed)
    assert np.isclose(offset, s @ a)
    assert np.isclose(risk, s @ np.maximum(m, 0))
    assert np.isclose(loss, s @ (np.maximum(m, 0) - a * m), atol=1e-12)
    assert np.isclose(value, s @ (a * m + width * a * (1 - a)))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 40), width=st.floats(0.1, 5), intercept=st.floats(-2, 2))
def test_slopes_of_both_classes(seed: int, n: int, width: float, intercept: float) -> None:
    f, _, signed = lines(seed, n, ties=False)
    coef, shared = np.full((2, n), np.nan)
    hinge.smoothed_hinges(ALONE, f, intercept, signed, width, 1.0, 1.0, coef)
    positive, negative, rate = hinge.smoothed_slopes(ALONE, f, intercept, signed, width)
    assert np.isclose(positive, -coef[signed > 0].sum())
    assert np.isclose(negative, coef[signed < 0].sum())
    step = 1e-7
    ahead = hinge.smoothed_slopes(ALONE, f, intercept + step, signed, width)
    assert np.isclose(((positive - negative) - (ahead[0] - ahead[1])) / step, rate, rtol=1e-4, atol=1e-4)
    _, offset, *_ = hinge.smoothed_hinges(ALONE, f, intercept, signed, width, 0.25, 0.5, shared)
    np.testing.assert_allclose(shared, coef * np.where(signed > 0, 0.25, 0.5))
    assert np.isclose(offset, np.abs(shared).sum())


@quick
@given(seed=st.integers(0, 2**32 - 1), n=sizes, share=st.floats(0, 1.1), ties=st.booleans())
def test_the_quantile(seed: int, n: int, share: float, ties: bool) -> None:
    values, _, weights = lines(seed, n, ties=ties)
    weights = np.abs(weights)
    level = share * weights.sum()
    order = np.argsort(values, kind="stable")
    reached = np.searchsorted(np.cumsum(weights[order]), level - 1e-9)
    found = hinge.weighted_quantile(values, weights, level)
    upto = [weights[values <= found].sum(), weights[values < found].sum()]
    assert found in values
    assert np.isclose(found, values[order][min(reached, n - 1)]) or (
        upto[1] <= level + 1e-9 and upto[0] >= level - 1e-9
    )


@quick
@given(seed=st.integers(0, 2**32 - 1), n=sizes, k=st.floats(0, 2), ties=st.booleans())
def test_values_in_between(seed: int, n: int, k: float, ties: bool) -> None:
    f, f_end, signed = lines(seed, n, ties=ties)
    values = np.full(n, np.nan)
    below, upto, some, weights = hinge.collect_residuals(ALONE, f, f_end, k, signed, -1.0, 0.5, values)
    np.testing.assert_allclose(values, np.sign(signed) - (f + k * (f_end - f)), atol=1e-12)
    is_between = (values >= -1.0) & (values <= 0.5)
    np.testing.assert_array_equal(some, values[is_between])
    np.testing.assert_array_equal(weights, np.abs(signed)[is_between])
    assert np.isclose(below, np.abs(signed)[values < -1.0].sum())
    assert np.isclose(upto, np.abs(signed)[values <= 0.5].sum())


@quick
@given(seed=st.integers(0, 2**32 - 1), n=sizes, step=st.floats(0, 2), pull=st.sampled_from([0.0, 0.3]))
def test_rows_on_the_border_balance_the_others(seed: int, n: int, step: float, pull: float) -> None:
    f, f_end, signed = lines(seed, n, ties=True)
    values, coef, outputs = np.sign(signed) - f, np.full(n, np.nan), f.copy()
    level = np.maximum(signed, 0).sum() + pull
    near = hinge.weighted_quantile(values, np.abs(signed), level)
    arguments = f_end, signed, step, 0.25, values, near, pull, coef
    risk, offset = hinge.advance_with_intercept(ALONE, outputs, *arguments)
    best = f + step * (f_end - f)
    np.testing.assert_allclose(outputs, best, atol=1e-12)
    assert np.isclose(risk, naive.intercept_risk(best, signed, 0.25))
    if level < np.abs(signed).sum():
        assert np.isclose(coef.sum(), pull)
    assert np.isclose(offset, np.abs(coef).sum())
    violates = np.sign(signed) * (values - near)
    np.testing.assert_array_equal(coef[violates > 0], -signed[violates > 0])
    assert not np.any(coef[violates < 0])


def every_pass(team: Team, n: int) -> list[Any]:
    f, f_end, signed = lines(n, n, ties=False)
    coefs, values, moved = np.full((4, n), np.nan), np.empty(n), f.copy()
    near = hinge.collect_residuals(team, f, f_end, 0.5, signed, -FAR, FAR, values)[2][n // 2] if n else 0.0
    results = [
        hinge.scan_breakpoints(team, f, f_end, 0.1, -0.2, signed, 0.1, 0.7),
        hinge.advance(team, moved, f_end, signed, 0.3, 0.1, coefs[0]),
        hinge.smoothed_hinges(team, f, 0.1, signed, 0.5, 0.5, 1.0, coefs[1]),
        hinge.smoothed_slopes(team, f, 0.1, signed, 0.5),
        hinge.rows_near_kink(team, f, 0.1, signed, 0.3),
        hinge.collect_residuals(team, f, f_end, 0.5, signed, -0.2, 0.3, coefs[2]),
        hinge.advance_with_intercept(team, moved, f_end, signed, 0.3, 0.1, values, near, 0.2, coefs[3]),
    ]
    returned = [part for result in results for part in (result if isinstance(result, tuple) else (result,))]
    return [part for part in returned if part is not None] + [moved, *coefs]


@pytest.mark.parametrize("n", [0, 1, 100, BLOCK, 5 * BLOCK + 77])
def test_results_do_not_depend_on_threads(n: int) -> None:
    expected = every_pass(ALONE, n)
    for n_threads in (2, 3):
        team = Team(n_threads, is_spinning=False)
        for _ in range(3):
            for mine, theirs in zip(every_pass(team, n), expected, strict=True):
                np.testing.assert_array_equal(mine, theirs)
        team.close()


def test_lists_are_in_the_order_of_rows() -> None:
    n = 3 * BLOCK + 5
    f, signed, team = np.zeros(n), np.ones(n), Team(3, is_spinning=False)
    np.testing.assert_array_equal(hinge.rows_near_kink(team, f, 0.0, signed, 1.0), np.arange(n))
    f_end = np.linspace(1.0, 9.0, n)  # the break is where f reaches 1
    _, keys, jumps = hinge.scan_breakpoints(team, f, f_end, 0.0, 0.0, signed, 0.0, 2.0)
    np.testing.assert_allclose(keys, 1.0 / f_end)
    np.testing.assert_allclose(jumps, f_end)
    team.close()


def test_a_quantile_of_nothing_is_no_number() -> None:
    assert np.isnan(hinge.weighted_quantile(np.empty(0), np.empty(0), 1.0))
    assert hinge.find_root(np.empty(0), np.empty(0), 2.0, -1.0, 0.0) == 0.5
