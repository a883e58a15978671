"""What all linear machines share: forms of X, dask, weights, paths of C, warm starts, and fits that are stopped."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from naive.sparse import in_halves
from widemargin import OCASClassifier, OCASRanker, OCASRegressor

RNG = np.random.default_rng(0)
X = np.where(RNG.random((120, 5)) < 0.7, RNG.normal(size=(120, 5)), 0.0)
VALUES = X @ RNG.normal(size=5) + 2.0 + RNG.standard_t(2, size=120)
LABELS, THREE = (VALUES > 2.0).astype(int), np.digitize(VALUES, [1.0, 3.0])

MACHINES: dict[str, tuple[Any, Any]] = {
    "hinges": (OCASClassifier(), LABELS),
    "hinges of three classes": (OCASClassifier(), THREE),
    "hinges without intercept": (OCASClassifier(fit_intercept=False), LABELS),
    "Crammer and Singer": (OCASClassifier(multi_class="crammer_singer"), THREE),
    "squared hinges": (OCASClassifier(loss="squared_hinge"), LABELS),
    "logistic": (OCASClassifier(loss="logistic"), LABELS),
    "tube": (OCASRegressor(epsilon=0.3), VALUES),
    "squared tube": (OCASRegressor(loss="squared_epsilon_insensitive", epsilon=0.3), VALUES),
    "absolute": (OCASRegressor(loss="absolute"), VALUES),
    "quantile": (OCASRegressor(loss="quantile", quantile=0.8), VALUES),
    "ranking": (OCASRanker(1e-4), VALUES),
}
EVERY = pytest.mark.parametrize("name", MACHINES)


def machine(name: str, **options: Any) -> tuple[Any, Any]:
    model, y = MACHINES[name]
    return clone(model).set_params(**{"tol": 1e-4 if name == "ranking" else 1e-6, **options}), y


def values_of(model: Any, rows: Any) -> Any:
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(rows)


@EVERY
def test_forms_of_the_same_data(name: str, tmp_path: Path) -> None:
    one, y = machine(name, n_jobs=1)
    values = values_of(one.fit(X, y), X)
    np.save(tmp_path / "X.npy", X)
    reversed_rows = sp.csr_array(X[:, ::-1])
    reversed_rows.indices = np.int64(4) - reversed_rows.indices
    reversed_rows.has_sorted_indices = False
    stored_zeros = sp.csr_array((X.ravel(), np.tile(np.arange(5), len(X)), np.arange(len(X) + 1) * 5), X.shape)
    in_parts, mapped = in_halves(X), np.load(tmp_path / "X.npy", mmap_mode="r")
    sparse = sp.csc_array(X), reversed_rows, stored_zeros, in_parts
    for form in (*sparse, np.asfortranarray(X), X[:, ::-1][:, ::-1], mapped):
        assert clone(one).fit(form, y).objective_ == pytest.approx(one.objective_, rel=one.tol)
        np.testing.assert_allclose(values_of(one, form), values, atol=1e-9)
    np.testing.assert_array_equal(clone(one).set_params(n_jobs=2).fit(X, y).coef_, one.coef_)


@pytest.mark.slow
@EVERY
def test_dask(name: str) -> None:
    da = pytest.importorskip("dask.array")
    model, y = machine(name)
    lazy = da.from_array(X, chunks=(50, X.shape[1]))
    own = clone(model).fit(X, y)
    assert model.fit(lazy, y).objective_ == pytest.approx(own.objective_, rel=1e-5)
    np.testing.assert_allclose(values_of(model, lazy).compute(), values_of(model, X))
    if isinstance(model, OCASRanker):
        assert model.score(lazy, y) == model.score(X, y)
    elif name == "logistic":
        np.testing.assert_allclose(model.predict_proba(lazy).compute(), own.predict_proba(X), atol=1e-3)


@EVERY
def test_weights_are_repetitions(name: str) -> None:
    weighted, y = machine(name)
    repeats = RNG.integers(0, 3, len(y))
    repeated = clone(weighted).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    weighted.fit(X, y, sample_weight=repeats)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=weighted.tol)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=0.02)


@EVERY
def test_a_path_of_C_and_a_warm_start(name: str) -> None:
    alone, y = machine(name)
    low, most = alone.C, {"rel": 2 * alone.tol}
    path = alone.fit_path(X, y, [low, 10 * low])
    alone.set_params(C=10 * low).fit(X, y)
    assert path[1].objective_ == pytest.approx(alone.objective_, **most)
    warm = clone(alone).set_params(warm_start=True).fit(X, y).set_params(C=10.1 * low).fit(X, y)
    assert warm.n_iter_ <= alone.n_iter_
    assert warm.objective_ == pytest.approx(clone(warm).fit(X, y).objective_, **most)
    assert warm.fit(X[:, :3], y).converged_  # of another shape: from the beginning


@EVERY
def test_a_stopped_fit_has_the_best_machine_so_far(name: str) -> None:
    model, y = machine(name, tol=1e-12, max_iter=2)
    if name != "ranking":
        model.set_params(acceleration=None)
    message = r"was stopped by max_iter before it converged: duality gap .* of the objective\) where tol=1e-12"
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(X, y)
    assert (model.converged_, model.n_iter_) == (False, 2)
    assert 0 < model.dual_gap_ < model.objective_
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        assert not model.set_params(max_time=0).fit(X, y).coef_.any()
