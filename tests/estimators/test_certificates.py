"""What `converged_`, `dual_gap_` and `relative_gap_` promise, and that fits at the ends of float64 end."""

import time
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

from widemargin import DCPredClassifier, DCPredRegressor, DCSVMClassifier, DCSVMRegressor, OCASClassifier
from widemargin.solvers.dual.certificate import MAX_RELATIVE_GAP

SECONDS = 20.0  # what each of these fits takes at most, on a busy machine; most take a few milliseconds


def noisy(n: int, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return X, y


def fit(X: Any, y: Any, weights: Any = None, **parameters: Any) -> tuple[DCSVMClassifier, list[str]]:
    """A fit that is not stopped by its clock, and the text of its ConvergenceWarnings."""
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DCSVMClassifier(max_time=2 * SECONDS, **parameters).fit(X, y, sample_weight=weights)
    assert time.perf_counter() - begin < SECONDS
    said = [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]
    assert model.converged_ == (not said)
    assert np.isfinite(model.decision_function(X)).all()
    return model, said


@pytest.mark.slow
@pytest.mark.parametrize(("n_levels", "fit_intercept"), [("auto", True), (1, False)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [20, 400])
def test_singular_kernels_with_large_C_converge(n: int, dtype: Any, n_levels: Any, fit_intercept: bool) -> None:
    X, y = noisy(n, 3)
    model, _ = fit(X.astype(dtype), y, kernel="linear", C=1e6, n_levels=n_levels, fit_intercept=fit_intercept)
    assert model.converged_
    assert model.relative_gap_ < 1e-6
    assert model.n_iter_ < 1000


@pytest.mark.parametrize(("n_levels", "fit_intercept"), [("auto", True), (1, False)])
@pytest.mark.parametrize("case", ["constant", "large", "small", "weights", "one weight", "linear weights"])
def test_fits_end_where_precision_ends(case: str, n_levels: Any, fit_intercept: bool) -> None:
    X, y = noisy(40)
    weights, kernel = None, "linear"
    if case == "constant":
        X = np.full(X.shape, 1e9)
    elif case in ("large", "small"):
        X = X * (1e30 if case == "large" else 1e-30)
    else:
        weights, kernel = np.full(40, 1e300), "linear" if case == "linear weights" else "rbf"
        weights[1:] = 1.0 if case == "one weight" else 1e300
    model, said = fit(X, y, weights, kernel=kernel, n_levels=n_levels, fit_intercept=fit_intercept)
    assert all("the precision of float64" in text and "gap" in text for text in said)
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1e6, 1e10, 1e14])
def test_converged_means_a_small_gap(C: float, fit_intercept: bool) -> None:
    X, y = noisy(200)
    model, said = fit(X, y, C=C, gamma=0.5, fit_intercept=fit_intercept)
    assert model.converged_ == (model.relative_gap_ <= MAX_RELATIVE_GAP)
    assert model.converged_ or "of the objective" in said[0]
    assert model.converged_ or C == 1e14


def test_a_gap_that_is_large_at_tol_is_solved_on() -> None:
    """On the rounds' path: the violation goes below tol until the gap is small."""
    X, y = noisy(900, seed=1)
    loose, _ = fit(X, y, C=1e5, gamma=3.0, tol=0.3, n_levels=1)
    assert loose.converged_
    assert loose.relative_gap_ <= MAX_RELATIVE_GAP
    assert loose.history_["violation"][-1] < 0.1


def test_the_relative_gap_is_the_gap_over_the_objective() -> None:
    X, y = load_iris(return_X_y=True)
    models: list[Any] = [
        DCSVMClassifier(C=10).fit(X, y),
        OCASClassifier().fit(X, y),
        DCPredClassifier(random_state=0).fit(X, y),
        DCPredRegressor(random_state=0).fit(X, y),
    ]
    for model in models:
        assert 0.0 <= model.relative_gap_ == model.dual_gap_ / model.objective_
    assert models[1].relative_gap_ <= 1e-3
    assert models[3].relative_gap_ == 0.0


@pytest.mark.slow
def test_an_objective_that_overflows_has_not_converged() -> None:
    X, y = noisy(600)
    with np.errstate(all="ignore"):
        model, said = fit(X, y, np.full(600, 1e306), kernel="linear")
        with pytest.warns(ConvergenceWarning, match="precision of float64"):
            local = DCPredClassifier(random_state=0, max_time=2 * SECONDS).fit(X, y, sample_weight=np.full(600, 1e306))
    assert "100.00% of the objective" in said[0]
    assert model.relative_gap_ == local.relative_gap_ == 1.0


@pytest.mark.parametrize("kernel", [{"kernel": "sigmoid"}, {"kernel": "poly", "coef0": -1.0}])
@pytest.mark.parametrize("n_levels", ["auto", 1])
def test_no_bound_is_claimed_for_kernels_that_have_none(kernel: dict[str, Any], n_levels: Any) -> None:
    X, y = make_classification(900, 6, random_state=0)
    model, _ = fit(X, y, n_levels=n_levels, **kernel)
    assert np.isnan(model.dual_gap_)
    assert np.isnan(model.relative_gap_)
    assert np.isnan(model.history_["lower_bound"]).all()
    assert np.isfinite(model.objective_)
    with pytest.warns(ConvergenceWarning, match="no bound on the optimum, as the kernel is not positive semidefinite"):
        DCSVMClassifier(C=100.0, max_iter=1, **kernel).fit(X, y)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e-155), (np.float32, 1e-42)])
@pytest.mark.parametrize("make", [DCSVMClassifier, DCPredClassifier, DCPredRegressor])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_products_that_underflow_are_refused(make: Any, kernel: str, dtype: Any, scale: float) -> None:
    X, y = noisy(60)
    with pytest.raises(
        ValueError, match=r"gamma=.* no normal float32 numbers: scale X|X must have magnitudes of at least 1e-150"
    ):
        make(kernel=kernel).fit((X * scale).astype(dtype), y)


@pytest.mark.slow
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("case", ["large", "weights", "one weight"])
def test_linear_machines_end_where_precision_ends(case: str, multi_class: str) -> None:
    """Rounds that move neither objective nor bound end before `max_iter`."""
    X, y = noisy(400)
    weights = np.ones(400)
    if case == "large":
        X = X * 1e30
    else:
        weights[: 1 if case == "one weight" else 400] = 1e300
    with (
        pytest.warns(ConvergenceWarning, match=r"stopped by the precision of float64 .*gap"),
        np.errstate(all="ignore"),
    ):
        model = OCASClassifier(multi_class=multi_class, max_time=2 * SECONDS).fit(X, y, sample_weight=weights)
    assert model.n_iter_ < 1000
    assert not model.converged_
    assert np.isfinite(model.decision_function(X)).all()


def unreachable(name: str) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray | None]:
    """Parameters, rows, labels and weights of a fit whose optimum is beyond the precision of float64."""
    rng = np.random.default_rng(0)
    if name == "large C":
        return {"C": 1e10}, rng.normal(size=(1500, 3)), rng.integers(0, 2, 1500), None
    if name == "large kernel values":
        return {"kernel": "linear"}, np.full((6000, 5), 1e9), rng.integers(0, 2, 6000), None
    X = rng.normal(size=(3000, 5))
    return {}, X, X[:, 0] + rng.normal(size=3000) > 0, np.full(3000, 1e300)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:gamma")
@pytest.mark.parametrize("name", ["large C", "large kernel values", "large weights"])
def test_a_fit_beyond_the_precision_of_float64_ends_with_a_warning(name: str) -> None:
    """Before the stall test counted relative decreases, none of them ended within minutes."""
    parameters, X, y, weights = unreachable(name)
    model = DCSVMClassifier(**parameters, fit_intercept=False, max_time=60)
    with pytest.warns(ConvergenceWarning, match=r"the precision of float64 before it converged.*100\.00%"):
        model.fit(X, y, sample_weight=weights)
    assert not model.converged_
    assert model.n_iter_ < 2000


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e30, 1e149])
def test_a_linear_fit_whose_bound_stands_still_ends(scale: float) -> None:
    """It took up to 700 rounds, six seconds for 200 rows, for 0.05 % of the objective."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    y = X[:, 0] * X[:, 1] > 0
    with pytest.warns(ConvergenceWarning, match="precision of float64"):
        model = OCASClassifier().fit(scale * X, y)
    assert model.n_iter_ < 200
    assert model.objective_ < 1.005 * 182.63


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [DCSVMClassifier, DCSVMRegressor])
def test_a_kernel_matrix_that_is_not_semidefinite_gives_no_bound(kind: type, fit_intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    y = np.where(X[:, 0] > 0, 1, -1)
    squares = np.square(X[:, None] - X).sum(axis=2)
    for K in (squares, -X @ X.T, np.tanh(X @ X.T - 1.0)):
        with pytest.warns(UserWarning, match="kernel='precomputed' is not positive semidefinite"):
            model = kind(kernel="precomputed", fit_intercept=fit_intercept).fit(K, y)
        assert np.isnan(model.dual_gap_)
        assert np.isnan(model.history_["lower_bound"]).all()
    with pytest.warns(UserWarning, match="is not positive semidefinite"):
        assert np.isnan(kind(kernel=lambda A, B: -A @ B.T, fit_intercept=fit_intercept).fit(X, y).dual_gap_)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_semidefinite_kernel_matrices_keep_their_bound(dtype: str) -> None:
    X = np.random.default_rng(0).standard_normal((150, 4))
    y = np.where(X[:, 0] > 0, 1, -1)
    squares = np.square(X[:, None] - X).sum(axis=2)
    for K in (X @ X.T, np.exp(-squares), -squares, np.ones_like(squares), np.zeros_like(squares)):  # -squares: of sum 0
        model = DCSVMClassifier(kernel="precomputed").fit(K.astype(dtype), y)
        assert np.isfinite(model.dual_gap_)
