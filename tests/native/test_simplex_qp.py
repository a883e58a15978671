"""The master problem's solver against a general one, and its gap against the optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import cutting_plane as naive
from widemargin._native import linear

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def solve(H: Matrix, b: Vector, beta: Vector, tol: float) -> tuple[int, float]:
    rounds, gap = linear.solve_simplex_qp(H, b, beta, tol, 10_000)
    return rounds, gap


def value(H: Matrix, b: Vector, beta: Vector) -> float:
    return float(0.5 * beta @ H @ beta - b @ beta)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    t=st.integers(1, 12),
    rank=st.integers(1, 12),
    total=st.sampled_from([0.01, 1.0, 30.0]),
    repeated=st.booleans(),
)
def test_finds_the_minimum(seed: int, t: int, rank: int, total: float, repeated: bool) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(t, rank)), rng.uniform(0, 2, t)
    A[0], b[0] = 0.0, 0.0  # the zero plane
    if repeated:
        A[-1], b[-1] = A[t // 2], b[t // 2]
    H, beta = A @ A.T, np.zeros(t)
    beta[0] = total
    _, gap = solve(H, b, beta, 1e-10)
    assert gap <= 1e-10
    assert beta.min() >= 0
    assert np.isclose(beta.sum(), total)
    expected = naive.solve_simplex(H, b, total)
    assert value(H, b, beta) <= value(H, b, expected) + 1e-6
    grad = H @ beta - b
    assert np.isclose(gap, beta @ grad - total * grad.min(), atol=1e-9)


def test_starts_from_what_it_is_given() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 8))
    H, b, beta = A @ A.T, rng.uniform(size=30), np.zeros(30)
    beta[0] = 5.0
    cold, _ = solve(H, b, beta, 1e-12)
    warm, _ = solve(H, b, beta, 1e-12)
    assert cold > 0
    assert warm == 0


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_any_scale(scale: float) -> None:
    A = np.random.default_rng(1).normal(size=(20, 6)) * scale
    H, b, beta = A @ A.T, np.linspace(0, 1, 20) * scale**2, np.zeros(20)
    beta[0] = 1.0
    _, gap = solve(H, b, beta, 1e-11 * scale**2)
    assert gap <= 1e-11 * scale**2


def test_the_head_of_a_larger_matrix() -> None:
    rng = np.random.default_rng(2)
    A, b = rng.normal(size=(9, 9)), rng.uniform(size=9)
    H, beta, other = np.full((15, 12), np.nan), np.eye(9)[0], np.eye(9)[0]
    H[:9, :9] = A @ A.T
    assert solve(H, b, beta, 1e-12) == solve(A @ A.T, b, other, 1e-12)
    np.testing.assert_array_equal(beta, other)


def test_nothing_to_solve() -> None:
    assert linear.solve_simplex_qp(np.empty((0, 0)), np.empty(0), np.empty(0), 0.0, 10) == (0, 0.0)
