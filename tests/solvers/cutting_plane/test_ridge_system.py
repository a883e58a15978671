"""Weighted least squares of Newton steps against NumPy's solution of the same equations."""

import numpy as np
import pytest

from widemargin._threads import ThreadTeam
from widemargin.data import make_design_matrix, repeat_rows
from widemargin.solvers.cutting_plane.ridge_system import RidgeSystem


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize(("n", "d", "share"), [(7, 12, 0.8), (12, 9, 0.8), (60, 5, 0.8), (60, 12, 0.1)])
def test_it_solves_its_equations(n: int, d: int, share: float, has_intercept: bool) -> None:
    rng, team = np.random.default_rng(n), ThreadTeam(1)
    Z, places = rng.normal(size=(n, d)) + 2.0, rng.integers(n, size=n)
    matrix, X = repeat_rows(make_design_matrix(Z, team), places, np.zeros(n)), Z[places]
    c = 10.0 ** rng.uniform(-3, 3, n) * (rng.random(n) < share)
    g, r, q = rng.normal(size=n), rng.normal(size=d), 0.3 if has_intercept else 0.0
    systems = RidgeSystem(matrix, team, has_intercept=has_intercept)
    system = systems.decompose(c)
    assert n < 60 or "gram" not in vars(systems), "of many rows no inner products but those of the active ones"
    w, b, change = system.solve(g, r, q)
    A = np.column_stack([X, np.ones(n)]) if has_intercept else X
    H, target = A.T @ (c[:, None] * A), A.T @ (c * g)
    H[np.arange(d), np.arange(d)] += 1.0
    target[:d] += r
    if has_intercept:
        target[d] -= q
    expected = np.linalg.solve(H, target)
    np.testing.assert_allclose(w, expected[:d], rtol=1e-8)
    np.testing.assert_allclose(b, expected[d] if has_intercept else 0.0, rtol=1e-8)
    np.testing.assert_allclose(change, c * (g - X @ w - b), rtol=1e-6, atol=1e-6 * np.abs(change).max())
    step = np.linalg.solve(H, np.append(r, [0.0] * has_intercept))[:d]
    np.testing.assert_allclose(system.newton_step(r), step, rtol=1e-8)


def test_without_curvatures_the_step_is_the_right_hand_side() -> None:
    team = ThreadTeam(1)
    system = RidgeSystem(make_design_matrix(np.ones((3, 4)), team), team, has_intercept=True)
    np.testing.assert_array_equal(system.decompose(np.zeros(3)).newton_step(np.arange(4.0)), np.arange(4.0))
