"""The risk at the best intercept against the trial of every breakpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin._threads import ThreadTeam
from widemargin.solvers.cutting_plane.optimal_intercept import InterceptHingeLoss

Vector = NDArray[np.float64]

quick = settings(max_examples=60, deadline=None, derandomize=True)


def rows(seed: int, n: int, *, ties: bool) -> tuple[Vector, Vector]:
    rng = np.random.default_rng(seed)
    signed = rng.choice([-1.0, 1.0], n) * rng.uniform(0.1, 2, n)
    f = rng.normal(size=n)
    return (np.round(f), np.sign(signed)) if ties else (f, signed)


def best_intercept(f: Vector, signed: Vector) -> float:
    return float(InterceptHingeLoss(signed, ThreadTeam(1)).intercept(f[None])[0])


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), ties=st.booleans())
def test_the_intercept_is_the_best(seed: int, n: int, ties: bool) -> None:
    f, signed = rows(seed, n, ties=ties)
    b = best_intercept(f, signed)
    assert np.isclose(naive.intercept_risk(f, signed, b), naive.optimal_intercept_risk(f, signed))


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("n", [5_000, 40_000])  # enough for a sample to enclose it; in blocks
def test_the_intercept_of_many_rows(sort: bool, n: int) -> None:
    f, signed = rows(3, n, ties=False)
    if sort:
        f = np.sort(f)
    b = best_intercept(f, signed)
    near = naive.intercept_risk(f, signed, b)
    assert near <= min(naive.intercept_risk(f, signed, b + step) for step in (-0.01, -1e-6, 1e-6, 0.01)) + 1e-9


def test_a_sample_that_misleads() -> None:
    f, signed = rows(4, 8_192, ties=False)
    f[::4] += 100.0  # all rows of the sample
    b = best_intercept(f, signed)
    assert np.isclose(naive.intercept_risk(f, signed, b), naive.intercept_risk(f, signed, b + 1e-9))
    assert naive.intercept_risk(f, signed, b) <= min(naive.intercept_risk(f, signed, b + d) for d in (-0.1, 0.1))


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40), step=st.floats(0, 2), ties=st.booleans())
def test_the_plane_holds_for_every_intercept(seed: int, n: int, step: float, ties: bool) -> None:
    f, signed = rows(seed, n, ties=ties)
    target = rows(seed + 1, n, ties=ties)[0]
    best, near = f + step * (target - f), f + (step + 0.1 * (1 - step)) * (target - f)
    outputs = f[None].copy()
    risk, coef, offset = InterceptHingeLoss(signed, ThreadTeam(1)).advance(outputs, target[None], step, 0.1)
    np.testing.assert_allclose(outputs[0], best)
    assert np.isclose(risk, naive.optimal_intercept_risk(best, signed))
    assert np.isclose(coef[0] @ near + offset, naive.optimal_intercept_risk(near, signed))
    assert np.isclose(coef.sum(), 0, atol=1e-12)
    other = np.random.default_rng(seed).normal(size=n)
    assert coef[0] @ other + offset <= naive.optimal_intercept_risk(other, signed) + 1e-9


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 40),
    curvature=st.floats(0.01, 50),
    slope=st.floats(-30, 30),
    ties=st.booleans(),
)
def test_the_line_search_goes_down_if_it_can(seed: int, n: int, curvature: float, slope: float, ties: bool) -> None:
    f, signed = rows(seed, n, ties=ties)
    target = np.random.default_rng(seed + 1).normal(size=n)
    loss = InterceptHingeLoss(signed, ThreadTeam(1))
    step = loss.line_search(f[None], target[None], curvature, slope)

    def value(k: float) -> float:
        return 0.5 * curvature * k**2 + slope * k + naive.optimal_intercept_risk(f + k * (target - f), signed)

    best = min(map(value, np.linspace(0, 3 * max(step, 1.0), 200)))
    assert value(step) <= value(0.0) + 1e-9
    assert value(step) - best <= 0.5 * (value(0.0) - best) + 1e-9, "at least half of what there is to gain"


def test_the_line_search_on_many_rows() -> None:
    f, signed = rows(5, 50_000, ties=False)
    target = f + np.random.default_rng(6).normal(size=len(f)) * 0.3 + 0.1 * np.sign(signed)
    loss = InterceptHingeLoss(signed, ThreadTeam(1))

    def value(k: float) -> float:
        outputs = f + k * (target - f)
        return 0.5e3 * k**2 - 10.0 * k + naive.intercept_risk(outputs, signed, best_intercept(outputs, signed))

    step = loss.line_search(f[None], target[None], 1e3, -10.0)
    best = min(value(step * (1 + d)) for d in np.linspace(-0.9, 1, 39))
    assert value(step) - best <= 0.02 * (value(0.0) - best)
