"""`OCASRegressor`: optima of LIBLINEAR and scikit-learn, certificates, every form of input, errors."""

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import QuantileRegressor
from sklearn.svm import LinearSVR

from naive import losses as naive
from widemargin import OCASRegressor

Data = tuple[NDArray[np.float64], NDArray[np.float64]]
PARAMETERS: dict[str, dict[str, float]] = {
    "epsilon_insensitive": {"epsilon": 0.3},
    "squared_epsilon_insensitive": {"epsilon": 0.3},
    "absolute": {},
    "quantile": {"quantile": 0.8},
}
LOSSES = list(PARAMETERS)


@pytest.fixture(scope="module")
def noisy() -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    return X, X @ rng.normal(size=5) + 2.0 + rng.standard_t(2, size=200)


def machine(C: float, loss: str, **options: Any) -> OCASRegressor:
    return OCASRegressor(C, loss=loss, **PARAMETERS[loss], **options)


@pytest.mark.parametrize(("C", "acceleration"), [(1e-2, "auto"), (100.0, "auto"), (100.0, None)])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "absolute"])
def test_as_liblinear(noisy: Data, loss: str, C: float, acceleration: str | None) -> None:
    X, y = noisy
    s = np.random.default_rng(0).uniform(0.2, 3, len(y))
    epsilon, name = PARAMETERS[loss].get("epsilon", 0.0), "epsilon_insensitive" if loss == "absolute" else loss
    options = {"dual": not loss.startswith("squared"), "tol": 1e-7, "max_iter": 100_000}
    rival = LinearSVR(C=C, epsilon=epsilon, loss=name, fit_intercept=False, **options).fit(X, y, s)
    model = machine(C, loss, fit_intercept=False, tol=1e-6, acceleration=acceleration).fit(X, y, s)
    assert model.converged_
    own, other = (naive.objective(m, X, y, s, C, loss, **PARAMETERS[loss]) for m in (model, rival))
    assert model.objective_ == pytest.approx(own, rel=1e-9)
    assert model.objective_ == pytest.approx(other, rel=1e-4)
    assert model.objective_ - model.dual_gap_ <= other * (1 + 1e-12)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_as_quantile_regressor(noisy: Data, quantile: float) -> None:
    X, y = noisy
    s, C = np.random.default_rng(0).uniform(0.2, 3, len(y)), 1e4  # its penalty is the l1 norm: none, and next to none
    rival = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y, s)
    model = OCASRegressor(C, loss="quantile", quantile=quantile, tol=1e-7).fit(X, y, s)
    own, other = (naive.risk("quantile", m.predict(X), y, s, quantile=quantile) for m in (model, rival))
    assert other * (1 - 1e-9) <= own <= other * (1 + 1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_is_that_of_the_intercept_too(noisy: Data, loss: str) -> None:
    X, y = noisy
    problem = X, y, np.ones(len(y)), 1.0, loss
    model = machine(1.0, loss, tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(naive.objective(model, *problem, **PARAMETERS[loss]), rel=1e-9)
    for change in (-0.1, 0.1):
        moved = pickle.loads(pickle.dumps(model))
        moved.intercept_ = moved.intercept_ + change
        assert naive.objective(moved, *problem, **PARAMETERS[loss]) >= model.objective_
    far = machine(1.0, loss, tol=1e-7).fit(X, y + 1e5)
    np.testing.assert_allclose(far.coef_, model.coef_, atol=2e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_accelerations_find_the_same_machine(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 4)).astype(np.float32)
    y = X @ rng.normal(size=4) + 5.0 + rng.standard_t(3, size=len(X))
    models = [machine(1.0, loss, tol=1e-5, acceleration=how).fit(X, y) for how in ("auto", None)]
    assert models[0].converged_
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-5)
    assert models[0].n_iter_ < models[1].n_iter_


def test_constant_targets(noisy: Data) -> None:
    X, y = noisy
    for loss in LOSSES:
        model = machine(1.0, loss).fit(X, np.full(len(y), 7.0))
        assert not model.coef_.any()
        np.testing.assert_allclose(model.predict(X), 7.0, atol=0.31)


def test_a_C_whose_losses_overflow_is_refused(noisy: Data) -> None:
    with pytest.raises(ValueError, match="C must be at most .* with 200 rows of these targets, got 1e\\+308"):
        OCASRegressor(C=1e308).fit(*noisy)
