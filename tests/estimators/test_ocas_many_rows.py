"""Where rows are many: a start from a sample, and rounds on the rows near the margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from widemargin import OCASClassifier
from widemargin.algorithms import ocas

Data = tuple[NDArray[np.float32], NDArray[np.int64]]


@pytest.fixture(scope="module")
def many() -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 6)).astype(np.float32)
    X[:, 2] *= 5
    return X, (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=40_000) > 0.3).astype(np.int64)


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds on all rows, and nothing else."""
    monkeypatch.setattr(ocas, "_MANY", 10**9)
    monkeypatch.setattr(ocas, "_SAMPLED", 10**9)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-4, 0.1, 100.0])
def test_the_optimum_in_fewer_rounds(
    many: Data, C: float, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = OCASClassifier(C=C, tol=1e-6, fit_intercept=fit_intercept).fit(*many)
    alone(monkeypatch)
    monkeypatch.setattr(ocas._Descent, "_ascent", lambda self, risk: None)
    other = OCASClassifier(C=C, tol=1e-6, fit_intercept=fit_intercept).fit(*many)
    assert model.converged_
    assert other.converged_
    for mine, its in ((model, other), (other, model)):
        assert mine.objective_ - mine.dual_gap_ <= its.objective_ * (1 + 1e-12)
    assert model.n_iter_ < other.n_iter_
    signs = np.where(many[1] == 1, 1.0, -1.0)
    hinges = np.maximum(0, 1 - signs * (many[0].astype(float) @ model.coef_[0] + model.intercept_)).sum()
    assert np.isclose(model.objective_, 0.5 * model.coef_[0] @ model.coef_[0] + C * hinges, rtol=1e-9)


@pytest.mark.parametrize("form", ["C", "F", "csr", "map"])
def test_the_same_machine_from_all_kinds_of_rows(many: Data, form: str, tmp_path: Any) -> None:
    X, y = many
    np.save(tmp_path / "X.npy", X)
    kinds = {"C": lambda: X, "F": lambda: np.asfortranarray(X), "csr": lambda: sp.csr_array(X)}
    data = kinds[form]() if form in kinds else np.load(tmp_path / "X.npy", mmap_mode="r")
    budget = X.nbytes // 2 if form == "map" else None
    machines = [OCASClassifier(tol=1e-5, n_jobs=j, memory_budget=budget).fit(data, y) for j in (1, 2)]
    np.testing.assert_array_equal(machines[0].coef_, machines[1].coef_)
    reference = OCASClassifier(tol=1e-5).fit(X, y)
    assert np.isclose(machines[0].objective_, reference.objective_, rtol=2e-5)


def test_classes_weights_and_paths(many: Data) -> None:
    X, _ = many
    y = np.digitize(X[:, 0] + X[:, 1], [-1.0, 1.0])
    weight = np.random.default_rng(1).uniform(0, 2, len(y)).round(1)
    machines = [OCASClassifier(tol=1e-5, n_jobs=j).fit(X, y, weight) for j in (1, 2)]
    np.testing.assert_array_equal(machines[0].coef_, machines[1].coef_)
    one = OCASClassifier(tol=1e-5).fit(X, y == 2, weight)
    np.testing.assert_allclose(machines[0].coef_[2], one.coef_[0], rtol=0.01, atol=0.05)
    for C, model in zip((0.01, 1.0), OCASClassifier(tol=1e-5).fit_path(X, y == 2, [0.01, 1.0]), strict=True):
        single = OCASClassifier(C=C, tol=1e-5).fit(X, y == 2)
        assert model.converged_
        assert np.isclose(model.objective_, single.objective_, rtol=2e-5)
    singer = OCASClassifier(C=0.01, multi_class="crammer_singer").fit(X, y)
    assert singer.converged_


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((40_000, 3)),
        np.ones((40_000, 3)),
        np.repeat([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [3.0, 1.0, 0.0], [0.0, 0.0, 0.0]], 10_000, axis=0),
    ],
)
def test_few_distinct_rows(X: NDArray[np.float64], fit_intercept: bool) -> None:
    y = (np.arange(len(X)) // 7) % 3 == 0
    model = OCASClassifier(C=0.01, tol=1e-4, fit_intercept=fit_intercept).fit(X, y)
    assert model.converged_


def test_a_class_that_no_sample_sees(many: Data) -> None:
    X, _ = many
    y = np.zeros(len(X), int)
    y[np.argmax(X[:, 0])] = 1
    assert OCASClassifier(C=10.0).fit(X, y).converged_


def test_no_time_for_the_sample(many: Data) -> None:
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        model = OCASClassifier(tol=1e-9, max_time=1e-9).fit(*many)
    assert np.isfinite(model.decision_function(many[0])).all()
    assert 0 <= model.dual_gap_ <= model.objective_


def test_history_is_that_of_all_rows(many: Data) -> None:
    model = OCASClassifier(C=10.0, tol=1e-6).fit(*many)
    history = model.history_
    assert len(history["time"]) == model.n_iter_
    assert np.all(np.diff(history["objective"]) <= 0)
    assert np.all(np.diff(history["lower_bound"]) >= 0)
    assert history["seconds_near"].sum() > 0
    best = OCASClassifier(C=10.0, tol=1e-8).fit(*many).objective_
    assert np.all(history["lower_bound"] <= best * (1 + 1e-12))
