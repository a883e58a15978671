"""`decision_gradient` against differences of decision values, of every estimator and kernel that has it."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline

from peak_memory import peak_of
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASClassifierCV,
)
from widemargin._config import ALLOWED_BYTES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
NEW = RNG.normal(size=(20, 3))
STEP = 1e-6
KERNELS: list[dict[str, Any]] = [
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "laplacian", "gamma": 0.4},
    {"kernel": "poly", "gamma": 0.2, "coef0": 1.0},
    {"kernel": "sigmoid", "gamma": 0.1},
    {"kernel": "linear"},
]


def differences(f: Any, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Central differences of f by each column: (n, d), or (n, q, d)."""
    columns = [(f(rows + STEP * e) - f(rows - STEP * e)) / (2 * STEP) for e in np.eye(rows.shape[1])]
    return np.stack(columns, axis=-1)


def check(model: Any, f: Any, rows: NDArray[np.float64] = NEW) -> None:
    truth = differences(f, rows)
    found = model.decision_gradient(rows)
    assert found.dtype == np.float64
    assert found.shape == truth.shape
    np.testing.assert_allclose(found, truth, atol=1e-6 * (1 + np.abs(truth).max()))


@pytest.mark.parametrize("how", KERNELS, ids=lambda how: how["kernel"])
def test_exact_machines(how: dict[str, Any]) -> None:
    model = DCSVMClassifier(C=3, **how, decision_function_shape="ovo").fit(X, Y > 0)
    check(model, model.decision_function)
    regressor = DCSVMRegressor(C=3, **how).fit(X, Y)
    check(regressor, regressor.predict)


def test_several_classes_and_targets() -> None:
    model = DCSVMClassifier(C=3, decision_function_shape="ovo").fit(X, np.digitize(Y, [-0.8, 0.0, 0.8]))
    check(model, model.decision_function)
    regressor = DCSVMRegressor(C=3).fit(X, np.column_stack([Y, -Y, X[:, 0]]))
    check(regressor, regressor.predict)


def test_one_class_and_budgeted_machines() -> None:
    novelty = DCOneClassSVM(nu=0.2).fit(X)
    check(novelty, novelty.decision_function)
    budgeted = BSGDClassifier(budget=20, n_epochs=2, random_state=0).fit(X, np.digitize(Y, [-0.8, 0.8]))
    check(budgeted, budgeted.decision_function)


@pytest.mark.slow
@pytest.mark.parametrize("relevance", [False, True])
def test_searches_have_those_of_their_machine_in_units_of_the_columns(relevance: bool) -> None:
    units, how = np.array([1.0, 0.02, 50.0]), {"relevance": relevance, "cv": 3}
    rows, new, target = X * units, NEW * units, np.sin(2 * X[:, 0])  # two columns say nothing
    regressor = DCSVMRegressorCV([10.0], [0.5 / rows.var()], epsilons=[0.1], kernels="rbf", search="early", **how)
    classes = np.digitize(target, [-0.4, 0.4])
    classifier = DCSVMClassifierCV([10.0], [0.5 / rows.var()], kernels="rbf", search="early", **how)
    classifier.set_params(decision_function_shape="ovo", break_ties=False)
    for model, f in ((regressor.fit(rows, target), "predict"), (classifier.fit(rows, classes), "decision_function")):
        assert isinstance(model.best_estimator_, Pipeline) == relevance
        scaled = differences(lambda Z, model=model, f=f: getattr(model, f)(Z * units), NEW)
        found = model.decision_gradient(new)
        np.testing.assert_allclose(found * units, scaled, atol=1e-6 * np.abs(scaled).max())
        assert not hasattr(model.set_params(refit=False), "decision_gradient")
    assert not hasattr(OCASClassifierCV(), "decision_gradient")


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("partition", ["input", "kernel"])
def test_early_machines(partition: str, kernel: str) -> None:
    how: dict[str, Any] = {"stop_level": 1, "partition": partition, "random_state": 0}
    model = DCSVMClassifier(C=3, kernel=kernel, gamma=0.5, **how).fit(X, Y > 0)
    check(model, model.decision_function, np.concatenate([NEW, X[:30] + 0.0123]))


def test_a_linear_machine_has_its_weights_everywhere() -> None:
    model = DCSVMClassifier(kernel="linear").fit(X, Y > 0)
    np.testing.assert_allclose(model.decision_gradient(NEW), np.repeat(model.coef_, len(NEW), axis=0), atol=1e-12)


@pytest.mark.parametrize("how", KERNELS, ids=lambda how: how["kernel"])
def test_sparse_and_float32_rows(how: dict[str, Any]) -> None:
    rows = np.where(RNG.uniform(size=X.shape) < 0.4, X, 0.0)
    truth = DCSVMClassifier(C=3, **how).fit(rows, Y > 0).decision_gradient(rows)
    sparse = DCSVMClassifier(C=3, **how).fit(sp.csr_array(rows), Y > 0).decision_gradient(sp.csr_array(rows))
    np.testing.assert_allclose(sparse, truth, atol=1e-6 * np.abs(truth).max())
    single = DCSVMClassifier(C=3, **how, tol=1e-6).fit(rows.astype(np.float32), Y > 0)
    np.testing.assert_allclose(single.decision_gradient(rows), truth, atol=1e-3 * np.abs(truth).max())


@pytest.mark.parametrize("stop_level", [0, 1])
def test_threads_and_memory_do_not_show(stop_level: int) -> None:
    rows = np.repeat(X, 10, axis=0)
    model = DCSVMClassifier(C=3, kernel="laplacian", stop_level=stop_level, random_state=0, n_jobs=1).fit(X, Y > 0)
    truth = model.decision_gradient(rows)
    np.testing.assert_array_equal(model.set_params(n_jobs=3).decision_gradient(rows), truth)
    np.testing.assert_allclose(model.set_params(memory_budget=1).decision_gradient(rows), truth, atol=1e-12)


def _product(A: Any, B: Any) -> Any:
    return A @ B.T


@pytest.mark.parametrize("kernel", [_product, "chi2", "precomputed"])
def test_a_kernel_without_gradient_is_named(kernel: Any) -> None:
    rows = rbf_kernel(X) if kernel == "precomputed" else np.abs(X)
    model = DCSVMClassifier(kernel=kernel, gamma=1.0).fit(rows, Y > 0)
    with pytest.raises(ValueError, match=r"kernel must be one of .*'polynomial'\) for gradients, got kernel="):
        model.decision_gradient(rows)


@pytest.mark.slow
@pytest.mark.parametrize("stop_level", [0, 1])
def test_memory_is_within_the_budget(stop_level: int) -> None:
    """NumPy's arrays are traced: beside the result, the budget and what the package takes anyway."""
    rows, budget = RNG.normal(size=(6000, 300)), 2**23
    model = DCSVMClassifier(gamma=0.003, stop_level=stop_level, memory_budget=budget, n_jobs=1, random_state=0)
    model.fit(rows[:500], rows[:500, 0] > 0)
    result, peak = peak_of(model.decision_gradient, rows)
    assert peak < result.nbytes + budget + ALLOWED_BYTES
