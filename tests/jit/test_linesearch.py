"""The exact line search against the paper's sort and against the function itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin._jit import linesearch
from widemargin._jit.turns import new_turn

Vector = NDArray[np.float64]

quick = settings(max_examples=80, deadline=None, derandomize=True)
FAR = 1e300
SIZE = 16  # rows of a block


def lines(seed: int, n: int, *, ties: bool) -> tuple[Vector, Vector, Vector]:
    """Outputs at both ends and signed weights; with ties, few distinct values, some breakpoints at 0."""
    rng = np.random.default_rng(seed)
    signed = rng.choice([-1.0, 1.0], n) * rng.uniform(0.1, 2, n)
    f, target = rng.normal(size=(2, n)) * 2
    return (np.round(f), np.round(target), np.sign(signed)) if ties else (f, target, signed)


def scan(f: Vector, target: Vector, signed: Vector, lo: float, hi: float) -> tuple[float, Vector, Vector]:
    return scan_from((0.0, 0.0), f, target, signed, lo, hi)


def scan_from(
    shifts: tuple[float, float], f: Vector, target: Vector, signed: Vector, lo: float, hi: float
) -> tuple[float, Vector, Vector]:
    (keys, jumps), (room, places) = np.empty((2, len(f))), parts_of_blocks(len(f))
    slopes = np.empty(len(places))
    linesearch.scan_hinges(f, target, shifts, signed, lo, hi, SIZE, new_turn(0), keys, jumps, room, places, slopes)
    return float(slopes.sum()), in_order(keys, places), in_order(jumps, places)


def sums_of_blocks(n: int, k: int) -> NDArray[np.float64]:
    return np.full((-(-n // SIZE), k), np.nan)


def parts_of_blocks(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.zeros(1, np.int64), np.full((-(-n // SIZE), 2), -1)


def in_order(values: NDArray, places: NDArray[np.int64]) -> NDArray:
    return np.concatenate([values[:0], *(values[start:end] for start, end in places)])


def rounded(f: Vector, shift: float, signed: Vector, width: float, *shares: float) -> tuple[Vector, list[float]]:
    coef, sums = np.full(len(f), np.nan), sums_of_blocks(len(f), 4)
    linesearch.rounded_hinges(f, shift, signed, width, *shares, SIZE, new_turn(0), coef, sums)
    return coef, sums.sum(axis=0).tolist()


def sides(f: Vector, shift: float, signed: Vector, width: float) -> list[float]:
    sums = sums_of_blocks(len(f), 3)
    linesearch.rounded_sides(f, shift, signed, width, SIZE, new_turn(0), sums)
    return sums.sum(axis=0).tolist()


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), lo=st.sampled_from([0.0, 0.3]), ties=st.booleans())
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
    n=st.integers(1, 60),
    curvature=st.floats(0.01, 100),
    slope=st.floats(-50, 50),
    ties=st.booleans(),
)
def test_the_root_is_the_minimum(seed: int, n: int, curvature: float, slope: float, ties: bool) -> None:
    f, target, signed = lines(seed, n, ties=ties)
    change, keys, jumps = scan(f, target, signed, 0.0, FAR)
    by_sort = naive.find_root(keys.copy(), jumps.copy(), curvature, slope + change, 0.0)
    step = linesearch.find_root(keys, jumps, curvature, slope + change, 0.0)
    assert np.isclose(step, by_sort, rtol=1e-9, atol=1e-12)

    def value(k: float) -> float:
        hinges = np.abs(signed) * np.maximum(0, 1 - np.sign(signed) * (f + k * (target - f)))
        return 0.5 * curvature * k**2 + slope * k + float(hinges.sum())

    around = step + np.array([-1e-3, 1e-3, -0.1, 0.1, 1.0]) * max(step, 1.0)
    assert all(value(step) <= value(max(k, 0.0)) + 1e-9 for k in around)


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), step=st.floats(0, 2), mu=st.floats(0, 1))
def test_the_new_plane_touches_the_risk(seed: int, n: int, step: float, mu: float) -> None:
    f, target, signed = lines(seed, n, ties=False)
    best = f + step * (target - f)
    near = best + mu * (target - best)
    outputs, coef, sums = f.copy(), np.empty(n), sums_of_blocks(n, 2)
    linesearch.advance_hinges(outputs, target, signed, step, mu, SIZE, new_turn(0), coef, sums)
    risk, offset = sums.sum(axis=0)
    np.testing.assert_allclose(outputs, best, atol=1e-12)
    assert np.isclose(risk, naive.intercept_risk(best, signed, 0.0))
    assert np.isclose(coef @ near + offset, naive.intercept_risk(near, signed, 0.0))
    other = np.random.default_rng(seed).normal(size=n)
    assert coef @ other + offset <= naive.intercept_risk(other, signed, 0.0) + 1e-9


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30))
def test_the_scan_adds_the_intercepts(seed: int, n: int) -> None:
    f, target, signed = lines(seed, n, ties=False)
    here, there = np.random.default_rng(seed).normal(size=2)
    slope, keys, jumps = scan_from((here, there), f, target, signed, 0.1, 1.7)
    other, moved, steps = scan(f + here, target + there, signed, 0.1, 1.7)
    assert np.isclose(slope, other)
    np.testing.assert_allclose(keys, moved)
    np.testing.assert_allclose(jumps, steps)


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 60), ties=st.booleans())
def test_rows_near_their_corner(seed: int, n: int, ties: bool) -> None:
    f, _, signed = lines(seed, n, ties=ties)
    signed[::3] = 0.0
    found, (room, places) = np.empty(n, np.int64), parts_of_blocks(n)
    linesearch.near_corner(f, 0.5, signed, 0.75, SIZE, new_turn(0), found, room, places)
    is_near = (np.abs(1 - np.sign(signed) * (f + 0.5)) <= 0.75) & (signed != 0)
    np.testing.assert_array_equal(in_order(found, places), np.flatnonzero(is_near))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 12), width=st.floats(0.01, 5), shift=st.floats(-2, 2))
def test_rounded_hinges(seed: int, n: int, width: float, shift: float) -> None:
    f, _, signed = lines(seed, n, ties=False)
    coef, (value, offset, loss, risk) = rounded(f, shift, signed, width, 1.0, 1.0)
    reference, a = naive.rounded_hinges(f + shift, signed, width, 20_001)
    s, y = np.abs(signed), np.sign(signed)
    m = 1 - y * (f + shift)
    assert np.isclose(value, reference, atol=1e-6)
    np.testing.assert_allclose(coef, -signed * a, atol=1e-3)
    a = -coef / np.where(signed == 0, 1.0, signed)
    assert np.isclose(offset, s @ a)
    assert np.isclose(risk, s @ np.maximum(m, 0))
    assert np.isclose(loss, s @ (np.maximum(m, 0) - a * m), atol=1e-12)
    assert np.isclose(value, s @ (a * m + width * a * (1 - a)))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 40), width=st.floats(0.1, 5), shift=st.floats(-2, 2))
def test_slopes_of_both_sides(seed: int, n: int, width: float, shift: float) -> None:
    f, _, signed = lines(seed, n, ties=False)
    coef, _ = rounded(f, shift, signed, width, 1.0, 1.0)
    plus, minus, rate = sides(f, shift, signed, width)
    assert np.isclose(plus, -coef[signed > 0].sum())
    assert np.isclose(minus, coef[signed < 0].sum())
    step = 1e-7
    ahead = sides(f, shift + step, signed, width)
    assert np.isclose(((plus - minus) - (ahead[0] - ahead[1])) / step, rate, rtol=1e-4, atol=1e-4)
    shared, (_, offset, *_) = rounded(f, shift, signed, width, 0.25, 0.5)
    np.testing.assert_allclose(shared, coef * np.where(signed > 0, 0.25, 0.5))
    assert np.isclose(offset, np.abs(shared).sum())
