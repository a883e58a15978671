"""`DCSVMRegressor` of quantiles: the optimum, its properties, several quantiles, searches, files."""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.metrics import mean_pinball_loss
from sklearn.metrics.pairwise import rbf_kernel as rbf
from sklearn.model_selection import KFold

import compiled_header
import naive.losses as naive
from onnx_outputs import run_onnx
from widemargin import (
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASRegressor,
    OCASRegressorCV,
    compress,
    load,
    read_machine,
    save,
    to_c,
    to_onnx,
    write_libsvm,
)

pytestmark = pytest.mark.filterwarnings("ignore:C=:UserWarning", "ignore:quantiles cross:UserWarning")

Vector = NDArray[np.float64]
Quantile = partial(DCSVMRegressor, loss="quantile")
THREE = [0.95, 0.05, 0.5]


def make_noise(n: int = 600, seed: int = 0) -> tuple[Vector, Vector]:
    """Rows (n, 3), and targets whose noise varies from row to row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + (0.1 + np.abs(X[:, 1])) * rng.normal(size=n)


def lower_bound(K: Vector, y: Vector, s: Vector, C: float, q: float, coef: Vector) -> float:
    """A bound of 1/2 |w|^2 + C sum_i s_i L(r_i): HiGHS's optimum of the LP with 1/2 |w|^2 linearised at coef (n,).

    1/2 |w|^2 >= <w*, w> - 1/2 |w*|^2 for all w, so that it is a bound for any w*, and tight where w* is the optimum.
    """
    n, f = len(y), K @ coef
    residuals = np.hstack([K, np.ones((n, 1)), np.eye(n), -np.eye(n)])
    bounds = [(None, None)] * (n + 1) + [(0, None)] * (2 * n)
    found = linprog(np.r_[f / C, 0.0, q * s, (1 - q) * s], A_eq=residuals, b_eq=y, bounds=bounds, method="highs")
    assert found.status == 0
    return float(C * found.fun - 0.5 * coef @ f)


def test_the_objective_is_that_of_a_linear_program() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = make_noise(int(rng.integers(5, 50)), seed)
        C, q, s = 10 ** rng.uniform(-1, 3), rng.uniform(0.02, 0.98), rng.choice([0.5, 1.0, 2.5], len(y))
        model, coef = Quantile(C, gamma=0.5, quantile=q).fit(X, y, s), np.zeros(len(y))
        coef[model.support_] = model.dual_coef_[0]
        K = rbf(X, X, 0.5)
        assert model.objective_ == pytest.approx(lower_bound(K, y, s, C, q, coef), rel=1e-6)
        loss = naive.risk("quantile", model.predict(X), y, s, quantile=q)
        assert model.objective_ == pytest.approx(0.5 * coef @ K @ coef + C * loss, rel=1e-9)
        assert model.relative_gap_ < 1e-6


@pytest.mark.parametrize("loss", ["absolute", "quantile"])
def test_a_linear_kernel_is_the_linear_machine(loss: str) -> None:
    X, y = make_noise()
    options: dict[str, Any] = {"loss": loss, "quantile": 0.8, "tol": 1e-6}
    kernel, linear = DCSVMRegressor(kernel="linear", **options).fit(X, y), OCASRegressor(**options).fit(X, y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-5)
    np.testing.assert_allclose(kernel.coef_[0], linear.coef_, atol=1e-2)


@pytest.mark.parametrize("n_rows", [400, 1200])  # one working set; a kernel matrix for all
def test_several_quantiles_are_each_as_alone(n_rows: int) -> None:
    X, y = make_noise(n_rows)
    model = Quantile(5.0, quantile=THREE, tol=1e-5, n_jobs=2).fit(X, y)
    values = model.predict(X)
    assert values.shape == (n_rows, 3)
    np.testing.assert_array_equal(values, Quantile(5.0, quantile=THREE, tol=1e-5, n_jobs=1).fit(X, y).predict(X))
    for q, column in zip(THREE, values.T, strict=True):
        np.testing.assert_allclose(column, Quantile(5.0, quantile=q, tol=1e-5).fit(X, y).predict(X), atol=1e-3)
        assert np.mean(y < column - 1e-3) <= q <= np.mean(y <= column + 1e-3)  # rows on the function count for either
    assert values[:, 1].mean() < values[:, 2].mean() < values[:, 0].mean()


def test_weights_are_repeated_rows_and_sparse_rows_and_kernel_matrices_the_same_machine() -> None:
    X, y = make_noise(300)
    s = np.random.default_rng(1).integers(0, 4, 300)
    options: dict[str, Any] = {"quantile": [0.1, 0.9], "gamma": 0.3}
    model = Quantile(**options).fit(X, y, s)
    repeated = Quantile(**options).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(model.predict(X), repeated.predict(X), atol=1e-5)
    np.testing.assert_allclose(model.predict(X), Quantile(**options).fit(sp.csr_array(X), y, s).predict(X), atol=1e-5)
    K = rbf(X, X, 0.3)
    given = Quantile(quantile=[0.1, 0.9], kernel="precomputed").fit(K, y, s)
    np.testing.assert_allclose(given.predict(K), model.predict(X), atol=1e-5)


def test_the_score_of_several_quantiles_is_minus_their_mean_pinball_loss() -> None:
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(60, 2)), rng.normal(size=60), rng.integers(1, 4, size=60)
    for model in (Quantile(quantile=THREE), DCSVMRegressorCV([1.0], [0.5], cv=2, loss="quantile", quantile=THREE)):
        predicted = model.fit(X, y).predict(X)
        losses = [
            mean_pinball_loss(y, f, alpha=q, sample_weight=weights) for q, f in zip(THREE, predicted.T, strict=True)
        ]
        assert model.score(X, y, weights) == pytest.approx(-np.mean(losses))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, y[:-1])


def test_rows_where_quantiles_cross_are_counted() -> None:
    X, y = make_noise()
    with pytest.warns(UserWarning, match=r"quantiles cross in \d+ of 600 training rows: np.sort") as caught:
        values = Quantile(3.0, gamma=1.0, quantile=[0.5, 0.48, 0.52]).fit(X, y).predict(X)
    n_crossings = np.count_nonzero((np.diff(values[:, [1, 0, 2]], axis=1) < -1e-3).any(axis=1))
    assert f"in {n_crossings} of" in str(caught[0].message)


@pytest.mark.parametrize("quantile", [1.0, 0, [0.1, 1.5], [], [[0.1]], "median"])
def test_bad_quantiles(quantile: Any) -> None:
    for kind in (Quantile, partial(DCSVMRegressorCV, loss="quantile")):
        with pytest.raises(ValueError, match="quantile"):
            kind(quantile=quantile).fit(*make_noise(20))
    with pytest.raises(ValueError, match="y must have one column with several quantiles"):
        Quantile(quantile=[0.1, 0.9]).fit(X := make_noise(20)[0], X[:, :2])
    with pytest.raises(ValueError, match="loss must be one of"):
        DCSVMRegressorCV(loss="squared_epsilon_insensitive").fit(*make_noise(20))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bounds_below_the_least_normal_number_end() -> None:
    assert np.ptp(Quantile(1e-307, quantile=0.05).fit(*make_noise()).predict(make_noise()[0])) == 0.0


@pytest.mark.parametrize("quantile", [0.9, [0.1, 0.9]])
def test_a_search_scores_by_the_pinball_loss(quantile: Any) -> None:
    X, y = make_noise(300)
    y, folds = 1e4 * y + 3e5, KFold(3)
    options: dict[str, Any] = {"loss": "quantile", "quantile": quantile}
    search = DCSVMRegressorCV([0.3, 10.0], [0.1, 1.0], kernels="rbf", cv=folds, **options).fit(X, y)
    assert (search.scores_.shape, search.epsilon_) == ((3, 2, 1, 2), 0.0)
    for (k, (train, test)), (g, gamma), (c, C) in product(
        enumerate(folds.split(X)), enumerate(search.gammas_), enumerate(search.Cs_)
    ):
        model = DCSVMRegressor(C * search.best_estimator_.C / search.C_, gamma=gamma, tol=1.0, **options)
        columns = model.fit(X[train], y[train]).predict(X[test]).reshape(len(test), -1).T
        losses = [mean_pinball_loss(y[test], f, alpha=q) for f, q in zip(columns, np.ravel(quantile), strict=True)]
        assert search.scores_[k, g, 0, c] == pytest.approx(-np.mean(losses), rel=1e-3)
    model = search.best_estimator_
    again = DCSVMRegressor(model.C, gamma=model.gamma, tol=1.0, **options).fit(X, y)
    np.testing.assert_allclose(search.predict(X), again.predict(X), atol=20.0)
    assert model.objective_ == pytest.approx(again.objective_, rel=1e-5)


def test_an_adaptive_search_and_that_of_linear_machines() -> None:
    X, y = make_noise(400)
    search = DCSVMRegressorCV(loss="quantile", quantile=[0.1, 0.9], kernels="rbf", relevance=False, cv=2).fit(X, y)
    constant = np.mean([mean_pinball_loss(y, np.full(400, np.quantile(y, q)), alpha=q) for q in (0.1, 0.9)])
    assert -search.best_score_ < 0.9 * constant
    linear = OCASRegressorCV(2, loss="quantile", quantile=0.9).fit(X, y)
    assert 0.0 < -linear.best_score_ < 1.2 * mean_pinball_loss(y, np.full(400, np.quantile(y, 0.9)), alpha=0.9)


@pytest.mark.parametrize("stop_level", [0, 1])
def test_files(stop_level: int, tmp_path: Path) -> None:
    X, y = make_noise(400)
    X = X.astype(np.float32)
    model = Quantile(3.0, quantile=[0.1, 0.9], stop_level=stop_level).fit(X, y)
    expected = model.predict(X)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), expected)
    np.testing.assert_allclose(next(iter(run_onnx(to_onnx(model), X).values())), expected, atol=1e-4)
    if compiled_header.COMPILER:
        np.testing.assert_allclose(compiled_header.run(to_c(model), X, tmp_path)[0], expected, atol=1e-4)
    if not stop_level:
        small = compress(model, X, n_clusters=2, n_landmarks=20, random_state=0)
        assert np.abs(small.predict(X) - expected).mean() < 0.2
        one = Quantile(3.0, quantile=0.9).fit(X, y)
        write_libsvm(one, tmp_path / "one")
        np.testing.assert_allclose(read_machine(tmp_path / "one").predict(X), one.predict(X), atol=1e-5)
