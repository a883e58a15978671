"""The risk at the best intercept against the trial of every breakpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin._jit import profile
from widemargin._parallel import ThreadTeam
from widemargin.solvers.risks import ProfileRisk

Vector = NDArray[np.float64]

quick = settings(max_examples=60, deadline=None, derandomize=True)


def rows(seed: int, n: int, *, ties: bool) -> tuple[Vector, Vector]:
    rng = np.random.default_rng(seed)
    signed = rng.choice([-1.0, 1.0], n) * rng.uniform(0.1, 2, n)
    f = rng.normal(size=n)
    return (np.round(f), np.sign(signed)) if ties else (f, signed)


def best_intercept(f: Vector, signed: Vector) -> float:
    v, level = np.sign(signed) - f, float(np.maximum(signed, 0).sum())
    return float(profile.find_quantile(v, np.abs(signed), level, np.empty((2, len(f)))))


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), ties=st.booleans())
def test_the_intercept_is_the_best(seed: int, n: int, ties: bool) -> None:
    f, signed = rows(seed, n, ties=ties)
    b = best_intercept(f, signed)
    assert np.isclose(naive.intercept_risk(f, signed, b), naive.profile_risk(f, signed))


@pytest.mark.parametrize("sort", [False, True])
def test_the_intercept_of_many_rows(sort: bool) -> None:
    f, signed = rows(3, 20_000, ties=False)  # enough for a sample to enclose it; sorted, the sample still does
    if sort:
        f = np.sort(f)
    b = best_intercept(f, signed)
    near = naive.intercept_risk(f, signed, b)
    assert near <= min(naive.intercept_risk(f, signed, b + step) for step in (-0.01, -1e-6, 1e-6, 0.01)) + 1e-9


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40), ties=st.booleans())
def test_the_plane_holds_for_every_intercept(seed: int, n: int, ties: bool) -> None:
    f, signed = rows(seed, n, ties=ties)
    coef = np.empty(n)
    rows_at = np.sign(signed) - f, signed, best_intercept(f, signed)
    risk, offset, *border = profile.cut_profile(*rows_at, coef)
    offset += profile.share_border(*rows_at, *border, coef)
    assert np.isclose(risk, naive.profile_risk(f, signed))
    assert np.isclose(coef @ f + offset, risk)
    assert np.isclose(coef.sum(), 0, atol=1e-12)
    other = np.random.default_rng(seed).normal(size=n)
    assert coef @ other + offset <= naive.profile_risk(other, signed) + 1e-9


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 40),
    curvature=st.floats(0.01, 50),
    slope=st.floats(-30, 30),
    ties=st.booleans(),
)
def test_the_line_search_finds_the_minimum(seed: int, n: int, curvature: float, slope: float, ties: bool) -> None:
    f, signed = rows(seed, n, ties=ties)
    target = np.random.default_rng(seed + 1).normal(size=n)
    step = ProfileRisk(signed, ThreadTeam(1)).search(f[None], target[None], curvature, slope)

    def value(k: float) -> float:
        return 0.5 * curvature * k**2 + slope * k + naive.profile_risk(f + k * (target - f), signed)

    around = step + np.array([-1e-3, 1e-3, -0.1, 0.1, 1.0]) * max(step, 1.0)
    assert all(value(step) <= value(max(k, 0.0)) + 1e-9 for k in around)


@pytest.mark.jit_only
def test_the_line_search_on_many_rows() -> None:
    f, signed = rows(5, 50_000, ties=False)
    target = f + np.random.default_rng(6).normal(size=len(f)) * 0.3 + 0.1 * np.sign(signed)
    risk = ProfileRisk(signed, ThreadTeam(1))
    step = risk.search(f[None], target[None], 1e3, -10.0)

    def value(k: float) -> float:
        outputs = f + k * (target - f)
        return 0.5e3 * k**2 - 10.0 * k + naive.intercept_risk(outputs, signed, risk.intercept(outputs[None])[0])

    assert all(value(step) <= value(step * (1 + d)) for d in (-0.1, -1e-3, 1e-3, 0.1))
