"""`DCSVMRegressor` and `DCOneClassSVM`: the contract, parity with scikit-learn's, inputs, limits and bad input."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel as rbf
from sklearn.svm import SVR, LinearSVR, OneClassSVM

from widemargin import DCOneClassSVM, DCSVMRegressor
from widemargin._threads import ThreadTeam

Data = tuple[NDArray[np.float64], NDArray[np.float64]]


RIDGE = {"loss": "squared_epsilon_insensitive", "epsilon": 0.0}  # kernel ridge regression, alpha = 1 / (2 C)


@pytest.fixture(scope="module")
def waves() -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=600)


def both_regressors(**options: Any) -> tuple[DCSVMRegressor, SVR]:
    options = {"C": 3.0, "gamma": 0.2, "epsilon": 0.1} | options
    return DCSVMRegressor(**options, tol=1e-5), SVR(**options, tol=1e-5)


def primal(X: Any, y: Any, weights: Any, model: DCSVMRegressor) -> float:
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    f = rbf(X, X, model.gamma) @ beta
    loss = model.C * weights @ np.maximum(0.0, np.abs(y - f - model.intercept_[0]) - model.epsilon)
    return float(0.5 * beta @ f + loss)


@pytest.mark.slow
@pytest.mark.parametrize(("C", "weighted"), [(0.1, False), (3.0, True), (100.0, False)])
def test_regression_is_svr(waves: Data, C: float, weighted: bool) -> None:
    X, y = waves
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y)) if weighted else np.ones(len(y))
    ours, theirs = (model.fit(X, y, sample_weight=weights) for model in both_regressors(C=C))
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-2 * y.std())
    assert ours.converged_
    assert ours.objective_ == pytest.approx(primal(X, y, weights, ours), rel=1e-9)
    beta = np.zeros(len(y))
    beta[theirs.support_] = theirs.dual_coef_[0]
    dual = y @ beta - ours.epsilon * np.abs(beta).sum() - 0.5 * beta @ rbf(X, X, 0.2) @ beta
    assert ours.objective_ - ours.dual_gap_ >= dual * (1 - 1e-4)  # at least as large a dual objective


def ridge_with_intercept(K: Any, y: Any, penalty: Any) -> tuple[Any, float]:
    """beta and b of min sum_i (y_i - f_i - b)^2 / (2 penalty_i) + 1/2 |f|^2, by one linear system."""
    n = len(K)
    system = np.block([[K + np.diag(penalty), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(y, 0.0))
    return solution[:-1], solution[-1]


@pytest.mark.parametrize(  # of one working set, and of several
    ("C", "weighted", "n_rows"), [(0.1, False, 200), (3.0, True, 200), (100.0, True, 200), (3.0, False, 600)]
)
def test_squared_losses_are_kernel_ridge(waves: Data, C: float, weighted: bool, n_rows: int) -> None:
    X, y = waves[0][:n_rows], waves[1][:n_rows] + 2.0
    weights = np.random.default_rng(1).uniform(0.1, 2.0, n_rows) if weighted else np.ones(n_rows)
    options = {"C": C, "gamma": 0.2, "tol": 1e-6} | RIDGE
    theirs = KernelRidge(alpha=1 / (2 * C), kernel="rbf", gamma=0.2).fit(X, y, sample_weight=weights)
    ours = DCSVMRegressor(**options, fit_intercept=False).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    f = ours.predict(X)
    objective = C * weights @ (y - f) ** 2 + 0.5 * ours.dual_coef_[0] @ f[ours.support_]
    assert ours.objective_ == pytest.approx(objective, rel=1e-6)
    assert ours.converged_
    assert 0 <= ours.relative_gap_ < 1e-9
    beta, b = ridge_with_intercept(rbf(X, X, 0.2), y, 1 / (2 * C * weights))
    ours = DCSVMRegressor(**options).fit(X, y, sample_weight=weights)
    assert ours.intercept_[0] == pytest.approx(b, abs=1e-5)
    np.testing.assert_allclose(ours.predict(X), rbf(X, X, 0.2) @ beta + b, atol=1e-5)
    assert 0 <= ours.relative_gap_ < 1e-9


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_squared_losses_of_a_linear_kernel_are_linear_svr(waves: Data, fit_intercept: bool) -> None:
    X, y = waves
    options = {"C": 0.5, "epsilon": 0.2, "loss": "squared_epsilon_insensitive", "fit_intercept": fit_intercept}
    ours = DCSVMRegressor(kernel="linear", tol=1e-7, **options).fit(X, y)
    scaling = {"intercept_scaling": 1e4} if fit_intercept else {}  # liblinear's intercept is in the norm
    theirs = LinearSVR(dual=False, tol=1e-10, max_iter=10_000, **scaling, **options).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    assert len(ours.support_) < 0.95 * len(y)


def test_kernel_ridge_of_several_targets_sparse_rows_and_a_kernel_matrix(waves: Data) -> None:
    X, Y = waves[0][:150], np.column_stack([waves[1], waves[0][:, 0] ** 2])[:150]
    options = {"C": 2.0, "gamma": 0.2, "tol": 1e-6, "fit_intercept": False} | RIDGE
    expected = KernelRidge(alpha=0.25, kernel="rbf", gamma=0.2).fit(X, Y).predict(X)
    np.testing.assert_allclose(DCSVMRegressor(**options).fit(X, Y).predict(X), expected, atol=1e-5)
    sparse = DCSVMRegressor(**options).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.predict(X), expected, atol=1e-5)
    K = rbf(X, X, 0.2)
    given = DCSVMRegressor(**options | {"kernel": "precomputed"}).fit(K, Y)
    np.testing.assert_allclose(given.predict(K), expected, atol=1e-5)


def test_an_early_machine_of_squared_losses_is_kernel_ridge_in_each_cluster() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(800, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=800)
    early = DCSVMRegressor(C=5.0, gamma=0.5, stop_level=1, tol=1e-6, fit_intercept=False, random_state=0, **RIDGE)
    early.fit(X, y)
    assert early.converged_
    with ThreadTeam(1) as team:
        labels, _ = early._model.router.route_with_samples(X, team)
    expected = np.empty(800)
    for cluster in np.unique(labels):
        rows = labels == cluster
        expected[rows] = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X[rows], y[rows]).predict(X[rows])
    np.testing.assert_allclose(early.predict(X), expected, atol=1e-5)
    exact = DCSVMRegressor(C=5.0, gamma=0.5, fit_intercept=False, **RIDGE).fit(X, y)
    assert exact.objective_ - exact.dual_gap_ <= early.objective_


def test_kernel_ridge_goes_on_and_is_stopped(waves: Data) -> None:
    X, y = waves
    model = DCSVMRegressor(C=50.0, gamma=0.2, warm_start=True, **RIDGE).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    with pytest.warns(ConvergenceWarning, match="max_time"):
        stopped = DCSVMRegressor(max_time=0, **RIDGE).fit(np.tile(X, (10, 1)), np.tile(y, 10) + 5.0)
    assert stopped.objective_ <= np.sum((y - y.mean()) ** 2) * 10 * (1 + 1e-9)
    assert not stopped.converged_
    constant = DCSVMRegressor(**RIDGE).fit(X, np.full(len(y), 7.0))
    np.testing.assert_allclose(constant.predict(X), 7.0, atol=1e-6)
    zero = DCSVMRegressor(fit_intercept=False, **RIDGE).fit(X, np.zeros(len(y)))
    np.testing.assert_array_equal(zero.predict(X), 0.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fit_intercept", [pytest.param(False, marks=pytest.mark.slow), True])
def test_kernel_ridge_of_weights_of_all_sizes(waves: Data, fit_intercept: bool) -> None:
    """Rows of next to no weight are nearly not there, and no others are solved less well."""
    X, y = waves[0][:200], waves[1][:200]
    weights = np.ones(len(y))
    weights[::3], weights[1::3] = 1e-14, 1e-310
    kept = weights == 1.0
    options = {"C": 5.0, "gamma": 0.2, "tol": 1e-6, "fit_intercept": fit_intercept} | RIDGE
    model = DCSVMRegressor(**options).fit(X, y, sample_weight=weights)
    few = DCSVMRegressor(**options).fit(X[kept], y[kept])
    np.testing.assert_allclose(model.predict(X), few.predict(X), atol=1e-5)
    assert model.converged_
    with pytest.raises(ValueError, match=r"C must be smaller with squared losses .* got C=1e\+200"):
        DCSVMRegressor(**{**options, "C": 1e200}).fit(X, y)
    large = DCSVMRegressor(**{**options, "C": 1e9, "tol": 1e-3}).fit(X, y)
    assert large.score(X, y) > 0.99


def test_kernel_ridge_of_targets_in_other_units(waves: Data) -> None:
    X, y = waves
    model = DCSVMRegressor(C=5.0, gamma=0.2, tol=1e-8, **RIDGE).fit(X, y)
    scaled = DCSVMRegressor(C=5.0, gamma=0.2, tol=1e-6, **RIDGE).fit(X, 100 * y + 7)
    np.testing.assert_allclose(model.rescale_targets(7.0, 100.0).predict(X), scaled.predict(X), atol=1e-3)
    assert model.C == 5.0
    assert model.objective_ == pytest.approx(scaled.objective_, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "n_levels"), [(500, 0), (600, 2)])
@pytest.mark.parametrize("memory_budget", ["1GB", "3MB"])  # a kernel matrix takes 2.9 MB
def test_several_targets_are_each_as_alone(waves: Data, n_rows: int, n_levels: int, memory_budget: str) -> None:
    X, y = waves[0][:n_rows], waves[1][:n_rows]
    Y = np.column_stack([y, -2.0 * y + X[:, 3], np.zeros(len(y))])
    options: dict[str, Any] = {"C": 2.0, "tol": 1e-6, "n_levels": n_levels, "memory_budget": memory_budget}
    model = DCSVMRegressor(**options).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert [level["n_clusters"] for level in model.levels_] == 3 * [16, 4][:n_levels]
    alone = [DCSVMRegressor(**options).fit(X, target) for target in Y.T]
    np.testing.assert_allclose(model.predict(X), np.column_stack([one.predict(X) for one in alone]), atol=1e-4)
    assert model.objective_ == pytest.approx(sum(one.objective_ for one in alone), rel=1e-6)
    assert len(model.history_["objective"]) >= 3
    assert model.converged_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_constant_targets_one_row_and_a_wide_tube(waves: Data) -> None:
    X, y = waves
    constant = DCSVMRegressor().fit(X, np.full(len(y), 7.0))
    np.testing.assert_allclose(constant.predict(X), 7.0, atol=0.1 + 1e-9)
    assert len(constant.support_) == 0
    assert DCSVMRegressor().fit(X[:1], y[:1]).predict(X[:1])[0] == pytest.approx(y[0], abs=0.1 + 1e-9)
    wide = DCSVMRegressor(epsilon=100.0).fit(X, y)
    assert np.ptp(wide.predict(X)) == 0.0
    assert np.all(np.abs(y - wide.predict(X)) <= 100.0)


def test_no_loss_and_no_bound() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = DCSVMRegressor(kernel="sigmoid", epsilon=10.0).fit(X, X[:, 0])
    assert model.objective_ == 0.0
    assert np.isnan(model.relative_gap_)


@pytest.mark.slow
@pytest.mark.parametrize(("nu", "weighted"), [(0.05, False), (0.3, True), (0.8, False)])
def test_one_class_is_scikit_learns(nu: float, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    weights = rng.uniform(0.5, 2.0, 1500) if weighted else np.ones(1500)
    ours = DCOneClassSVM(nu=nu, gamma=0.1, tol=1e-6).fit(X, sample_weight=weights)
    theirs = OneClassSVM(nu=nu, gamma=0.1, tol=1e-6).fit(X, sample_weight=weights)
    border = 1e-4 * abs(ours.offset_)
    clear = np.abs(theirs.decision_function(X)) > border
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    assert np.mean(ours.predict(X) == theirs.predict(X)) >= 0.995
    assert ours.offset_ == pytest.approx(theirs.offset_[0], rel=1e-4)
    assert weights[ours.predict(X) < 0].sum() == pytest.approx(nu * weights.sum(), abs=0.01 * weights.sum())
    alpha = np.zeros(1500)
    alpha[ours.support_] = ours.dual_coef_[0]
    K = rbf(X, X, 0.1)
    objective = 0.5 * alpha @ K @ alpha - nu * weights.sum() * ours.offset_
    objective += weights @ np.maximum(0.0, ours.offset_ - K @ alpha)
    assert ours.objective_ == pytest.approx(objective, rel=1e-9)
    assert ours.converged_
    assert ours.relative_gap_ < 1e-3


@pytest.mark.slow
def test_one_class_with_levels() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3)).astype(np.float32)
    exact = DCOneClassSVM(nu=0.1, n_levels=0, tol=1e-4).fit(X)
    levels = DCOneClassSVM(nu=0.1, n_levels=1, tol=1e-4).fit(X)
    assert levels.levels_
    assert levels.objective_ == pytest.approx(exact.objective_, rel=1e-4)
    early = DCOneClassSVM(nu=0.1, stop_level=1).fit(X)
    assert np.mean(early.predict(X) < 0) == pytest.approx(0.1, abs=0.02)


def test_no_time_gives_the_machine_of_a_sample() -> None:
    X = np.random.default_rng(0).normal(size=(6000, 3))
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = DCOneClassSVM(nu=0.1, gamma="scale", max_time=0).fit(X)
    assert np.mean(model.predict(X) < 0) == pytest.approx(0.1, abs=0.08)
    assert not model.converged_
    assert model.relative_gap_ > 0.05
    assert model.dual_coef_.sum() == pytest.approx(600)


def test_no_time_with_a_stop_level() -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 30))
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = DCOneClassSVM(nu=0.1, stop_level=2, max_time=0).fit(X)
    assert np.isfinite(model.decision_function(X[:100])).all()


def test_weights_of_one_class_whose_squares_overflow_are_refused() -> None:
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match="sample_weight must have a sum of at most 1e[+]100, got 2e[+]300"):
        DCOneClassSVM().fit(X, sample_weight=np.full(20, 1e299))
    heavy = DCOneClassSVM().fit(X, sample_weight=np.full(20, 1e98))
    assert np.isfinite([heavy.objective_, heavy.dual_gap_]).all()


def test_extreme_nu_and_one_row() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert DCOneClassSVM(nu=1.0).fit(X).converged_
    assert DCOneClassSVM(nu=1e-6).fit(X).predict(X).min() == 1
    assert DCOneClassSVM(nu=0.5).fit(X[:1]).predict(X[:1]) == 1


@pytest.mark.slow
def test_targets_share_one_kernel_matrix(waves: Data) -> None:
    """A kernel of Python's is called for the n^2 entries of all targets once."""
    X, y = waves
    n_entries = 0

    def kernel(A: Any, B: Any) -> Any:
        nonlocal n_entries
        n_entries += len(A) * len(B)
        return rbf(A, B, 0.2)

    model = DCSVMRegressor(C=2.0, kernel=kernel).fit(X, np.column_stack([y, 2 * y, -y, y - X[:, 0]]))
    assert model.converged_
    assert n_entries < 1.5 * len(X) ** 2


@pytest.mark.slow
def test_targets_out_of_float32_s_precision_are_corrected(waves: Data) -> None:
    """Their gap, recomputed in float64, is that of the fit."""
    X, y = waves[0].astype(np.float32), waves[1]
    options: dict[str, Any] = {"C": 1e4, "gamma": 0.2, "tol": 1e-4}
    model = DCSVMRegressor(**options).fit(X, np.column_stack([y, y - X[:, 0]]))
    assert model.converged_
    objective = 0.0
    for k, target in enumerate([y, y - X[:, 0]]):
        one = DCSVMRegressor(**options).fit(X, target)
        one.dual_coef_, one.support_, one.intercept_ = model.dual_coef_[[k]], model.support_, model.intercept_[[k]]
        objective += primal(X.astype(np.float64), target, np.ones(len(y)), one)
    assert model.objective_ == pytest.approx(objective, rel=1e-5)


def test_time_over_before_the_targets_matrix_is_known(waves: Data) -> None:
    X, y = waves
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = DCSVMRegressor(max_time=1e-9).fit(X, np.column_stack([y, -y]))
    assert model.predict(X).shape == (len(y), 2)
    assert 0.0 < model.relative_gap_ <= 1.0
    assert not model.converged_
