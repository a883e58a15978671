"""Principal curvatures against differences of the expansion, and squares along them."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.compression.search import principal_directions, squares_along


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_hessian_is_that_of_finite_differences(form: Any) -> None:
    rng = np.random.default_rng(0)
    points, coef, centre, gamma, step = rng.normal(size=(30, 4)), rng.normal(size=30), rng.normal(size=4), 0.3, 1e-3

    def f(x: np.ndarray) -> float:
        return float(coef @ np.exp(-gamma * np.square(points - x).sum(axis=1)))

    shifts = step * np.eye(4)
    hessian = np.array(
        [
            [f(centre + a + b) - f(centre + a - b) - f(centre - a + b) + f(centre - a - b) for a in shifts]
            for b in shifts
        ]
    ) / (4.0 * step**2)
    values, vectors = np.linalg.eigh(hessian)
    expected = vectors[:, np.argsort(-np.abs(values))].T
    found = principal_directions(form(points), coef, gamma, centre, 3)
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->i", found, expected[:3])), 1.0, atol=1e-4)


def test_squares_along_directions() -> None:
    rng = np.random.default_rng(1)
    directions, X = rng.normal(size=(2, 5)).astype(np.float32), rng.normal(size=(7, 5)).astype(np.float32)
    z = X @ directions.T
    np.testing.assert_allclose(squares_along(directions).evaluate(X), np.hstack([z, z**2]), rtol=1e-5, atol=1e-6)
