"""Dual coordinate ascent for Crammer and Singer's hinge, against single steps in NumPy, and its certificate."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import cutting_plane as naive
from widemargin._native import Stopped, Team, linear
from widemargin.data.csr import make_csr

ALONE = Team(1)


FORMS: dict[str, Any] = {"dense": np.asarray, "csr": lambda X: make_csr(sp.csr_array(X))}


def problem(k: int, n: int = 40, d: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.7)
    X[:, 0] += 0.1
    return X, rng.integers(k, size=n), rng.uniform(0.5, 2, n)


def epoch(
    rows: Any, X: np.ndarray, y: np.ndarray, s: np.ndarray, C: float, constant: float, point: Any, order: Any = None
) -> float:
    squares = np.einsum("ij,ij->i", X, X)
    order = np.arange(len(y)) if order is None else order
    return linear.multiclass_epoch(ALONE, rows, y, s, squares, C, constant, *point, order)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("k", [2, 9])
def test_an_epoch_is_its_steps(form: str, constant: float, k: int) -> None:
    X, y, s = problem(k)
    beta, W = np.zeros((len(y), k)), np.zeros((X.shape[1] + 1, k))
    twin_beta, twin_W = beta.copy(), W.copy()
    whole, rng = np.column_stack([X, np.full(len(y), constant)]), np.random.default_rng(0)
    for C in (0.3, 0.3, 2.0, 2.0):
        order = rng.permutation(len(y))[:30]
        epoch(FORMS[form](X), X, y, s, C, constant, (beta, W), order)
        naive.multiclass_ascend(whole, y, C * s, twin_beta, twin_W, order.tolist())
        np.testing.assert_allclose(beta, twin_beta, atol=1e-9)
        np.testing.assert_allclose(W, twin_W, atol=1e-9)
        np.testing.assert_allclose(W, whole.T @ beta, atol=1e-9)


def test_the_gap_is_that_of_primal_and_dual() -> None:
    X, y, s = problem(4)
    beta, W = np.zeros((len(y), 4)), np.zeros((X.shape[1] + 1, 4))
    for _ in range(3000):
        gap = epoch(X, X, y, s, 1.0, 1.0, (beta, W))
    square = 0.5 * np.vdot(W, W)
    primal = square + naive.multiclass_risk((X @ W[:-1] + W[-1]).T, y, s)
    dual = beta[np.arange(len(y)), y].sum() - square
    np.testing.assert_allclose(gap, primal - dual, atol=1e-7)
    assert 0.0 <= gap < 1e-3 * primal
    np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=1e-12)
    assert (beta <= s[:, None] * (np.arange(4) == y[:, None]) + 1e-12).all()


def test_an_empty_row_has_its_loss() -> None:
    X, y = np.zeros((2, 3)), np.array([0, 2])
    beta, W = np.zeros((2, 3)), np.zeros((4, 3))
    epoch(X, X, y, np.ones(2), 2.0, 0.0, (beta, W))
    np.testing.assert_array_equal(beta[[0, 1], y], [2.0, 2.0])
    assert epoch(X, X, y, np.ones(2), 2.0, 0.0, (beta, W)) == 0.0


def test_a_stopped_team_stops_it() -> None:
    X, y, s = problem(3)
    team = Team(1)
    team.stop()
    point = np.zeros((len(y), 3)), np.zeros((X.shape[1] + 1, 3))
    with pytest.raises(Stopped):
        linear.multiclass_epoch(team, X, y, s, np.ones(len(y)), 1.0, 0.0, *point, np.arange(len(y)))
