"""The same seed gives the same machine, bit for bit, whatever the number of threads and whoever else is fitting."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone

from widemargin import BSGDClassifier, DCPredClassifier, DCPredRegressor, DCSVMClassifier, OCASClassifier
from widemargin.datasets import load_patches


def assert_identical(a: DCSVMClassifier, b: DCSVMClassifier) -> None:
    for name in ("support_", "dual_coef_", "intercept_", "n_support_", "objective_", "dual_gap_", "n_iter_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def patches(n: int, task: str = "photo") -> Any:
    return load_patches(n, 5, random_state=1, task=task)[:2]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "fit_intercept"), [("float32", True), ("float64", False), ("csr", True)])
def test_number_of_threads_does_not_matter(form: str, fit_intercept: bool) -> None:
    X, y = patches(5000)
    X = sp.csr_array(X) if form == "csr" else X.astype(form)
    options: dict[str, Any] = {"C": 8.0, "gamma": 1.0, "fit_intercept": fit_intercept, "random_state": 0}
    one, two, four = (DCSVMClassifier(**options, n_jobs=n).fit(X, y) for n in (1, 2, 4))
    assert_identical(one, two)
    assert_identical(one, four)
    f = one.decision_function(X)
    np.testing.assert_array_equal(two.decision_function(X), f)
    np.testing.assert_array_equal(four.decision_function(X), f)


@pytest.mark.parametrize("stop_level", [0, 1])
def test_without_a_seed_the_machine_is_the_same_each_time(stop_level: int) -> None:
    X, y = patches(1200)
    one, two = (DCSVMClassifier(C=8.0, gamma=1.0, n_levels=1, stop_level=stop_level).fit(X, y) for _ in range(2))
    assert_identical(one, two)


def test_four_threads_fit_at_once() -> None:
    """Four user threads, each with estimators of its own, released together: nothing may be shared between fits."""
    X, y = patches(500)
    machines: list[Any] = [
        DCSVMClassifier(C=8.0, gamma=1.0, fit_intercept=True, random_state=0),
        OCASClassifier(C=0.1, n_jobs=2),
        BSGDClassifier(budget=30, n_epochs=2, random_state=0),
        DCPredClassifier(random_state=0, n_jobs=2),
    ]
    alone = [machine.fit(X, y).decision_function(X) for machine in machines]
    barrier = threading.Barrier(4)

    def fit(thread: int) -> None:
        barrier.wait()
        for k in range(thread, thread + 4):
            values = clone(machines[k % 4]).fit(X, y).decision_function(X)
            np.testing.assert_array_equal(values, alone[k % 4])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fit, range(4)))


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_inside_a_joblib_worker(backend: str) -> None:
    X, y = patches(1200)
    estimator = DCSVMClassifier(C=8.0, gamma=1.0, random_state=0)
    alone = DCSVMClassifier(C=8.0, gamma=1.0, random_state=0).fit(X, y)
    fits = (delayed(estimator.__class__(**estimator.get_params()).fit)(X, y) for _ in range(2))
    for model in Parallel(n_jobs=2, backend=backend)(fits):
        assert_identical(alone, model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "memory_budget"), [(DCPredClassifier, "20MB"), (DCPredClassifier, "90MB"), (DCPredRegressor, "60MB")]
)
def test_number_of_threads_does_not_matter_where_memory_is_short(kind: Any, memory_budget: str) -> None:
    X, y = patches(6000)
    X = X.astype(np.float64)

    def values(n_jobs: int) -> Any:
        model = kind(n_clusters=3, memory_budget=memory_budget, random_state=0, n_jobs=n_jobs)
        try:
            return model.fit(X, y).predict(X[:200]).tolist(), model.objective_
        except ValueError as error:
            return str(error)

    assert values(1) == values(2) == values(5)
