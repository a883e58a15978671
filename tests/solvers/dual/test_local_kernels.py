"""Active sets of local kernels, for which no kernel matrix is made: the machines are those with one."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import DCSVMClassifier, DCSVMRegressor
from widemargin.kernels import boxed_rows
from widemargin.kernels.active_matrix import ActiveMatrix
from widemargin.solvers.dual import solver


def local_rows(n: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Rows in [0, 1]^3 with one of ten indicators, and noisy values."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, 13), np.float32)
    X[:, :3] = rng.uniform(size=(n, 3))
    X[np.arange(n), 3 + rng.integers(10, size=n)] = 1.0
    return X, np.sin(9 * X[:, 0]) * np.cos(8 * X[:, 1]) + 0.5 * rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "kernel"), [("dense", "rbf"), ("dense float64", "laplacian"), ("csr", "rbf"), ("csr", "laplacian")]
)
@pytest.mark.parametrize("is_regression", [False, True])
def test_a_machine_without_a_matrix_is_that_with_one(
    kernel: str, form: str, is_regression: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, value = local_rows(3000)
    y = value if is_regression else value > 0
    data = {"dense": X, "dense float64": X.astype(np.float64), "csr": sp.csr_array(X)}[form]
    options: dict[str, Any] = {
        "C": 10.0,
        "gamma": 40.0,
        "kernel": kernel,
        "n_levels": 0,
        "tol": 1e-4,
        "random_state": 0,
    }
    make = DCSVMRegressor if is_regression else DCSVMClassifier
    with_matrix = make(**options).fit(data, y)
    n_updates, update = [0], ActiveMatrix.update

    def count(*args: Any, **kwargs: Any) -> None:
        n_updates[0] += 1
        update(*args, **kwargs)

    monkeypatch.setattr(ActiveMatrix, "update", count)
    monkeypatch.setattr(solver, "LEAST_ROWS", 0)
    monkeypatch.setattr(boxed_rows, "LEAST_ROWS", 50)
    without = make(**options).fit(data, y)
    assert n_updates == [0]
    assert without.converged_
    np.testing.assert_allclose(without.objective_, with_matrix.objective_, rtol=2e-4)
    function = "predict" if is_regression else "decision_function"
    np.testing.assert_allclose(getattr(without, function)(data), getattr(with_matrix, function)(data), atol=1e-2)
