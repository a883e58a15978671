"""The hinge risk at the optimal intercept, against the best of all breakpoints."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin._threads import ThreadTeam
from widemargin.solvers.cutting_plane.losses import HingeLoss, risk_and_plane
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


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("n", [10_000, 40_000])  # enough for a sample to enclose it; in blocks
def test_the_intercept_of_many_rows(sort: bool, n: int) -> None:
    f, signed = rows(3, n, ties=False)
    if sort:
        f = np.sort(f)
    b = best_intercept(f, signed)
    near = naive.intercept_risk(f, signed, b)
    assert near <= min(naive.intercept_risk(f, signed, b + step) for step in (-0.01, -1e-6, 1e-6, 0.01)) + 1e-9


@pytest.mark.parametrize("has_intercept", [False, True])
def test_the_hinges_of_some_rows(has_intercept: bool) -> None:
    f, signed = rows(7, 30, ties=False)
    chosen, kind = np.array([3, 4, 20, 29]), InterceptHingeLoss if has_intercept else HingeLoss
    part = kind(signed, ThreadTeam(1)).restrict(chosen, 2.5)
    risk = naive.optimal_intercept_risk if has_intercept else partial(naive.intercept_risk, b=0.0)
    assert np.isclose(risk_and_plane(part, f[None, chosen]).risk, risk(f[chosen], 2.5 * signed[chosen]))


def test_a_sample_whose_bracket_misses_the_quantile() -> None:
    f, signed = rows(4, 8_192, ties=False)
    f[::4] += 100.0  # a quarter of the rows
    b = best_intercept(f, signed)
    assert np.isclose(naive.intercept_risk(f, signed, b), naive.intercept_risk(f, signed, b + 1e-9))
    assert naive.intercept_risk(f, signed, b) <= min(naive.intercept_risk(f, signed, b + d) for d in (-0.1, 0.1))


@pytest.mark.slow
@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40), step=st.floats(0, 2), ties=st.booleans())
def test_the_plane_holds_for_every_intercept(seed: int, n: int, step: float, ties: bool) -> None:
    f, signed = rows(seed, n, ties=ties)
    target = rows(seed + 1, n, ties=ties)[0]
    best, near = f + step * (target - f), f + (step + 0.1 * (1 - step)) * (target - f)
    outputs = f[None].copy()
    loss = InterceptHingeLoss(signed, ThreadTeam(1))
    risk, coef, offset, _ = loss.advance(outputs, target[None], step, 0.1)
    np.testing.assert_allclose(outputs[0], best)
    assert np.isclose(risk, naive.optimal_intercept_risk(best, signed))
    assert np.isclose(coef[0] @ near + offset, naive.optimal_intercept_risk(near, signed))
    assert np.isclose(coef.sum(), 0, atol=1e-12)
    other = np.random.default_rng(seed).normal(size=n)
    assert coef[0] @ other + offset <= naive.optimal_intercept_risk(other, signed) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
def test_the_line_search_falls_and_nearly_always_gains_half_of_what_there_is(ties: bool) -> None:
    rng, n_good = np.random.default_rng(int(ties)), 0
    for seed in range(60):
        n, curvature, slope = int(rng.integers(2, 41)), rng.uniform(0.01, 50), rng.uniform(-30, 30)
        f, signed = rows(seed, n, ties=ties)
        target = rng.normal(size=n)
        step = InterceptHingeLoss(signed, ThreadTeam(1)).find_step(f[None], target[None], curvature, slope)
        ks = np.append(np.linspace(0, 3 * max(step, 1.0), 40), step)
        risks = [naive.optimal_intercept_risk(f + k * (target - f), signed) for k in ks]
        values = 0.5 * curvature * ks**2 + slope * ks + risks
        assert values[-1] <= values[0] + 1e-9
        n_good += values[-1] - values.min() <= 0.5 * (values[0] - values.min()) + 1e-9
    assert n_good >= 59


def test_the_line_search_on_many_rows() -> None:
    f, signed = rows(5, 50_000, ties=False)
    target = f + np.random.default_rng(6).normal(size=len(f)) * 0.3 + 0.1 * np.sign(signed)
    loss = InterceptHingeLoss(signed, ThreadTeam(1))

    def value(k: float) -> float:
        outputs = f + k * (target - f)
        return 0.5e3 * k**2 - 10.0 * k + naive.intercept_risk(outputs, signed, best_intercept(outputs, signed))

    step = loss.find_step(f[None], target[None], 1e3, -10.0)
    best = min(value(step * (1 + d)) for d in np.linspace(-0.9, 1, 39))
    assert value(step) - best <= 0.02 * (value(0.0) - best)


def test_an_intercept_is_found_wherever_the_one_before_was() -> None:
    rng = np.random.default_rng(0)
    signed = rng.choice([-1.0, 1.0], 50) * rng.integers(0, 3, 50)
    loss = InterceptHingeLoss(signed, ThreadTeam(1))
    for shift in [0.0, 0.0, 1e-3, 5.0, 5.0, 5.0 + 1e-9, -1e6, -1e6, 0.0]:
        f = np.round(rng.normal(size=(1, 50)), 1) + shift
        b = loss.least_intercept(f)
        assert np.isclose(naive.intercept_risk(f[0], signed, b), naive.optimal_intercept_risk(f[0], signed))
        assert naive.intercept_risk(f[0], signed, b) < naive.intercept_risk(f[0], signed, b - 0.01)
