"""The look-up table of the merging problem: values at the nodes, interpolation error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import budget as naive
from widemargin.solvers.sgd.lookup_table import merge_table, tabulate

quick = settings(max_examples=60, deadline=None, derandomize=True)


def exact(m: np.ndarray, kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """h and wd for m >= 1/2 by bisection on the sign of s', in float64, without golden section search."""
    log_odds, rate = np.log(m) - np.log1p(-m), -np.log(kappa)
    low, high = np.zeros_like(m), np.ones_like(m)
    for _ in range(60):  # the derivative's sign is that of log_odds - 2 artanh(u) + u rate, u = 2 h - 1
        u = (low + high) / 2
        is_rising = log_odds - 2 * np.arctanh(u) + u * rate > 0
        low, high = np.where(is_rising, u, low), np.where(is_rising, high, u)
    h = (1 + low) / 2
    s = m * kappa ** ((1 - h) ** 2) + (1 - m) * kappa ** (h**2)
    return h, np.maximum(m**2 + (1 - m) ** 2 + 2 * m * (1 - m) * kappa - s**2, 0)


@pytest.mark.slow
def test_error_over_a_million_random_pairs() -> None:
    rng = np.random.default_rng(0)
    m, kappa = 0.5 + 0.5 * rng.random(10**6), rng.random(10**6)
    kappa[:100_000] **= 6  # more points that are far apart
    kappa = np.maximum(kappa, 1e-12)
    h, wd = exact(m, kappa)
    table_h, table_root = merge_table().grids
    assert np.abs(naive.look_up(table_root, m, kappa) ** 2 - wd).max() < 5e-5
    is_clear = m - 0.5 > 0.01
    assert np.abs(naive.look_up(table_h, m, kappa) - h)[is_clear].max() < 0.02


@pytest.mark.slow
def test_relative_error_where_the_degradation_vanishes() -> None:
    """Near copies: wd is of the order of 1e-8, and partners must be ordered by it."""
    rng = np.random.default_rng(1)
    m, kappa = rng.uniform(0.5, 0.99, 200), 1 - rng.uniform(1e-4, 1e-2, 200)
    wd = [naive.best_h(a, b)[1] for a, b in zip(m, kappa, strict=True)]
    np.testing.assert_allclose(naive.look_up(merge_table().grids[1], m, kappa) ** 2, wd, rtol=0.03, atol=1e-12)


@pytest.mark.slow
@quick
@given(i=st.integers(0, 24), j=st.integers(0, 24))
def test_nodes(i: int, j: int) -> None:
    h, root = tabulate(25)[:, i, j]
    m, kappa = 0.5 + 0.5 * i / 24, j / 24
    _, wd = naive.best_h(m, kappa)
    assert root**2 == pytest.approx(wd, abs=1e-7)
    assert naive.degradation(float(h), m, kappa) == pytest.approx(wd, abs=1e-7)
