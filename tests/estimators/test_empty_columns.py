"""Sparse rows of very many columns, most without values: these cost nothing, or an error says what they would."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from peak_memory import peak_of
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMRegressor,
    LandmarkNystroem,
    OCASClassifier,
    OCASClassifierCV,
    RelevanceScaler,
    suggest,
)

N, D, USED = 60, 2**27, 40
BUDGET = 50_000_000


def rows(n: int = N) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows of 40 columns, and the numbers of these among 2^27."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, USED), density=0.2, rng=rng, format="csr", dtype=np.float64).astype(np.float32)
    return X, np.sort(rng.choice(D, USED, replace=False)), rng.integers(3, size=n)


def widened(X: Any, columns: np.ndarray) -> Any:
    return sp.csr_array((X.data, columns[X.indices].astype(np.int32), X.indptr), shape=(X.shape[0], D))


MODELS = [
    DCSVMClassifier(gamma=0.5, memory_budget=BUDGET),
    DCSVMClassifier(kernel="linear", memory_budget=BUDGET),
    DCSVMClassifier(gamma=0.5, memory_budget=BUDGET, n_levels=1, stop_level=1, partition="input", random_state=0),
    DCSVMRegressor(gamma=0.5, memory_budget=BUDGET),
    DCOneClassSVM(gamma=0.5, memory_budget=BUDGET),
    BSGDClassifier(gamma=0.5, memory_budget=BUDGET, budget=20, maintenance="removal", n_epochs=2, random_state=0),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_columns_without_values_cost_nothing(model: Any) -> None:
    X, columns, y = rows()
    narrow = model.fit(X, y).predict(X)
    wide = widened(X, columns)
    _, in_fit = peak_of(model.fit, wide, y)
    found, in_predict = peak_of(model.predict, wide)
    assert max(in_fit, in_predict) < BUDGET
    assert_allclose(found, narrow, atol=1e-3)


@pytest.mark.slow
def test_nor_does_a_column_far_from_the_origin() -> None:
    X, columns, y = rows()
    X = sp.csr_array(np.column_stack([X.toarray()[:, 1:], np.linspace(1000, 1001, N, dtype=np.float32)]))
    model = DCSVMClassifier(gamma=0.5, tol=1e-5, memory_budget=BUDGET)
    narrow = model.fit(X, y).decision_function(X)
    wide = widened(X, columns)
    _, in_fit = peak_of(model.fit, wide, y)
    found, in_predict = peak_of(model.decision_function, wide)
    assert max(in_fit, in_predict) < BUDGET
    assert_allclose(found, narrow, atol=1e-3)


@pytest.mark.slow
def test_nor_in_relevance_scaler() -> None:
    X, columns, y = rows()
    d = 2**20
    columns %= d
    model = RelevanceScaler(n_iter=2, memory_budget=BUDGET, random_state=0)
    narrow = model.fit(sp.hstack([X, np.zeros((N, 1))], "csr").astype(np.float32), y).scale_
    wide = sp.csr_array((X.data, columns[X.indices], X.indptr), shape=(N, d))
    _, peak = peak_of(model.fit, wide, y)
    assert peak < BUDGET
    assert_allclose(model.scale_[columns], narrow[:-1], rtol=1e-3)
    assert_allclose(np.delete(model.scale_, columns), narrow[-1], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("acceleration", ["auto", None])
def test_a_linear_machine_has_weights_in_columns_with_values(multi_class: str, acceleration: str | None) -> None:
    X, columns, y = rows()
    d = 2**20
    columns %= d
    model = OCASClassifier(multi_class=multi_class, acceleration=acceleration, tol=1e-6)
    narrow = model.fit(X, y)
    expected, objective, narrow_labels = narrow.coef_, narrow.objective_, narrow.predict(X)
    wide = sp.csr_array((X.data, columns[X.indices], X.indptr), shape=(N, d))
    _, peak = peak_of(model.fit, wide, y)
    assert model.coef_.shape == (3, d)
    assert_allclose(model.objective_, objective, rtol=1e-5)
    assert_allclose(model.coef_[:, columns], expected, atol=1e-2)
    assert np.count_nonzero(model.coef_) <= expected.size
    assert peak < 2 * model.coef_.nbytes
    values = np.sort(model.decision_function(wide), axis=1)
    is_clear = values[:, -1] - values[:, -2] > 0.02
    np.testing.assert_array_equal(model.predict(wide)[is_clear], narrow_labels[is_clear])


def test_a_warm_start_goes_on_with_other_columns() -> None:
    X, columns, y = rows()
    wide = widened(X, columns % 1000)[:, :1000]
    model = OCASClassifier(warm_start=True).fit(wide, y)
    wide = widened(X, (columns + 1) % 1000)[:, :1000]
    assert model.fit(wide, y).converged_


REFUSED = [
    OCASClassifier(),
    OCASClassifier(multi_class="crammer_singer"),
    OCASClassifierCV(Cs=2, cv=2),
    BSGDClassifier(),
    DCPredClassifier(),
    DCPredRegressor(),
    LandmarkNystroem(),
    LandmarkNystroem(10, landmarks="uniform"),
    RelevanceScaler(),
]


@pytest.mark.parametrize("model", REFUSED, ids=str)
def test_dense_weights_and_landmarks_of_all_columns_are_refused(model: Any) -> None:
    X, columns, y = rows()
    model.set_params(memory_budget=BUDGET)

    def fit(X: Any) -> None:
        with pytest.raises(ValueError, match=r"memory_budget must be at least \d{10,} bytes for .*got 50000000"):
            model.fit(X, y)

    _, peak = peak_of(fit, widened(X, columns))
    assert peak < BUDGET


@pytest.mark.slow
def test_suggest_says_so_within_memory() -> None:
    X, columns, y = rows()
    assert peak_of(suggest, widened(X, columns), y)[1] < BUDGET


@pytest.mark.slow
def test_what_landmarks_of_many_columns_need_is_enough() -> None:
    X, columns, _ = rows()
    d = 2**21
    wide = sp.csr_array((X.data, columns[X.indices] % d, X.indptr), shape=(N, d))
    model = LandmarkNystroem(5, gamma=0.5, memory_budget=1, random_state=0)
    with pytest.raises(ValueError, match="memory_budget") as refusal:
        model.fit(wide)
    least = int(str(refusal.value).split()[5])
    _, peak = peak_of(model.set_params(memory_budget=least, n_jobs=1).fit, wide)
    assert peak < 1.1 * least + 10**7
    assert peak_of(model.transform, wide)[1] < 1.1 * least + 10**7
