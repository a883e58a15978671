"""The machine is scikit-learn's, and satisfies the optimality conditions."""

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_class_weight

from naive import dual, machines
from widemargin import DCSVMClassifier
from widemargin.datasets import load_patches
from widemargin.estimators import _dual_attributes


class Case(NamedTuple):
    X: Any
    y: NDArray[Any]
    X_test: Any
    C: float
    gamma: float


@lru_cache
def bundled(name: str) -> Case:
    if name.startswith("digits"):
        X, y = load_digits(return_X_y=True)
        y = y if name == "digits, ten classes" else np.where(y % 2 == 0, "even", "odd")
        return Case(X[:400] / 16, y[:400], X[400:600] / 16, 8.0, 0.125)
    task = "quadrant" if name == "patches, eight classes" else "photo"
    X, y = load_patches(800, 5, random_state=0, task=task)[:2]
    n = 600 if task == "photo" else 300  # more than a working set, and pairs of less
    X = X.astype(np.float64) if name == "patches, double" else X
    return Case(X[:n], y[:n], X[600:], 8.0, 1.0)


def make_weights(kind: str, y: NDArray[Any]) -> tuple[Any, NDArray[np.float64] | None, NDArray[np.float64]]:
    """Return class_weight, sample_weight, and their product for every row."""
    classes, codes = np.unique(y, return_inverse=True)
    per_class: Any = "balanced" if kind == "balanced" else None
    if kind == "dict, sample":
        per_class = {c: 0.5 + 2.0 * k / len(classes) for k, c in enumerate(classes)}
    sample = None
    if "sample" in kind:
        rng = np.random.default_rng(5)
        sample = rng.uniform(0.1, 3.0, len(y)) * (rng.random(len(y)) < 0.8)  # a fifth of the rows weigh nothing
    factors = compute_class_weight(per_class, classes=classes, y=y)
    return per_class, sample, factors[codes] * (1.0 if sample is None else sample)


def fit_both(case: Case, weights: str, tol: float) -> tuple[DCSVMClassifier, SVC, NDArray[np.float64]]:
    per_class, sample, product = make_weights(weights, case.y)
    shared = {"C": case.C, "gamma": case.gamma, "tol": tol, "class_weight": per_class, "decision_function_shape": "ovo"}
    ours = DCSVMClassifier(fit_intercept=True, **shared).fit(case.X, case.y, sample_weight=sample)
    return ours, SVC(cache_size=1000, **shared).fit(case.X, case.y, sample_weight=sample), product


def assert_feasible(model: DCSVMClassifier, case: Case, weights: NDArray[np.float64], *, equality: bool) -> None:
    for problem in machines.two_class_duals(model, case.y, weights):
        assert problem.alpha.min() >= 0
        assert np.all(problem.alpha <= problem.upper * (1 + 1e-12))
        if equality:
            assert abs(problem.y @ problem.alpha) <= 1e-9 * problem.alpha.sum()


def assert_same_machine(ours: DCSVMClassifier, svc: SVC, case: Case) -> None:
    kernel = partial(rbf_kernel, gamma=case.gamma)
    mine, theirs = machines.dual_values(ours, kernel), machines.dual_values(svc, kernel)
    np.testing.assert_allclose(mine.sum(), theirs.sum(), rtol=1e-5)
    f, g = ours.decision_function(case.X_test), svc.decision_function(case.X_test)
    assert f.shape == g.shape
    assert np.abs(f - g).max() <= SPREAD * np.abs(g).max()


BUNDLED = ("digits, two classes", "digits, ten classes", "patches", "patches, eight classes")
SPREAD = 4e-3  # about what two LIBSVM runs to a tolerance of 1e-3 differ by


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        *((name, "dict, sample") for name in BUNDLED),
        *zip(BUNDLED, ("balanced", "sample", "none", "balanced"), strict=True),
    ],
)
def test_agrees_with_svc(name: str, weights: str) -> None:
    case = bundled(name)
    ours, svc, product = fit_both(case, weights, 1e-3)
    assert_feasible(ours, case, product, equality=True)
    assert_same_machine(ours, svc, case)


def noise(problem: machines.TwoClassDual, X: NDArray[Any], gamma: float) -> float:
    """Return how far rounding may move a gradient: an exponent is a difference of terms of the size of gamma |x|^2."""
    centred = np.asarray(X[problem.rows], np.float64) - X.mean(axis=0)
    size = 1.0 + gamma * float(np.mean(np.sum(centred**2, axis=1)))
    return float(4 * np.finfo(X.dtype).eps * size * np.linalg.norm(problem.alpha))


def violations(model: DCSVMClassifier, case: Case, weights: NDArray[np.float64]) -> list[float]:
    """Return how far each two-class dual is from optimal in float64, less the noise of the data's precision."""
    found = []
    for problem in machines.two_class_duals(model, case.y, weights):
        X = np.asarray(case.X[problem.rows], np.float64)
        Q = dual.signed(rbf_kernel(X, gamma=case.gamma), problem.y)
        signs = problem.y if model.fit_intercept else None
        worst = dual.violation(Q, -np.ones(len(problem.y)), problem.upper, problem.alpha, signs)
        found.append(worst - noise(problem, case.X, case.gamma))
    return found


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("name", "tol"), [*((name, 1e-3) for name in (*BUNDLED, "patches, double")), ("patches", 0.1)])
def test_violation_is_below_tol_and_the_reported_gap_the_recomputed_one(
    name: str, tol: float, fit_intercept: bool
) -> None:
    case = bundled(name)
    per_class, sample, product = make_weights("dict, sample", case.y)
    model = DCSVMClassifier(
        C=case.C, gamma=case.gamma, tol=tol, class_weight=per_class, fit_intercept=fit_intercept
    ).fit(case.X, case.y, sample_weight=sample)
    assert model.converged_
    assert_feasible(model, case, product, equality=fit_intercept)
    assert max(violations(model, case, product)) < tol
    if not fit_intercept:
        assert not np.any(model.intercept_)
    primal = gap = 0.0
    for problem in machines.two_class_duals(model, case.y, product):
        X = np.asarray(case.X[problem.rows], np.float64)
        K = rbf_kernel(X, gamma=case.gamma)
        arguments = (K, problem.y, problem.upper, problem.alpha, problem.intercept)
        primal += dual.primal(*arguments)
        gap += dual.dual_gap(*arguments)
    rounding = 1e-9 if case.X.dtype == np.float64 else 1e-4  # of a kernel entry: 1e-16, and 1e-6 with these patches
    assert model.dual_gap_ >= 0
    assert model.dual_gap_ == pytest.approx(gap, rel=1e-3, abs=rounding * primal)
    assert model.objective_ == pytest.approx(primal, rel=rounding)


def small_problem(seed: int, n: int = 50) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    weights = rng.uniform(0.2, 2.0, n)
    weights[:3] = 0.0
    return X, y, weights


def full_alpha(model: DCSVMClassifier, y: NDArray[np.float64]) -> NDArray[np.float64]:
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0] * y[model.support_]
    return alpha


KERNELS = {
    "rbf": {"gamma": 0.5},
    "laplacian": {"gamma": 0.3},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
    "linear": {},
}


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_finds_the_optimum_of_a_plain_qp_solver(kernel: str, fit_intercept: bool) -> None:
    X, y, weights = small_problem(seed=1, n=30)
    C = 2.0
    Q = dual.signed(pairwise_kernels(X, metric=kernel, **KERNELS[kernel]), y)
    p, upper, signs = -np.ones(len(y)), C * weights, y if fit_intercept else None
    model = DCSVMClassifier(C, kernel, **KERNELS[kernel], tol=1e-7, fit_intercept=fit_intercept)
    alpha = full_alpha(model.fit(X, y, sample_weight=weights), y)
    assert y @ alpha == pytest.approx(0.0, abs=1e-9) or not fit_intercept
    assert dual.violation(Q, p, upper, alpha, signs) < 1e-6
    best = dual.objective(Q, p, dual.solve_qp(Q, p, upper, signs, tol=1e-9))
    assert best == pytest.approx(dual.objective(Q, p, dual.reference_qp(Q, p, upper, signs)), rel=1e-9)
    assert dual.objective(Q, p, alpha) == pytest.approx(best, rel=1e-9)
    assert not alpha[weights == 0].any()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 24),
    log_C=st.floats(-3, 3),
    log_gamma=st.floats(-3, 2),
    distinct=st.integers(2, 20),
    fit_intercept=st.booleans(),
)
def test_any_small_problem_is_solved(
    seed: int, n: int, log_C: float, log_gamma: float, distinct: int, fit_intercept: bool
) -> None:
    """Duplicates, contradictions, one row a class, C from 1e-3 to 1e3: feasible, and optimal to the tolerance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((distinct, 2))[rng.integers(distinct, size=n)]
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    C, gamma = 10.0**log_C, 10.0**log_gamma
    model = DCSVMClassifier(C, gamma=gamma, tol=1e-4, fit_intercept=fit_intercept).fit(X, y)
    alpha, upper = full_alpha(model, y), np.full(n, C)
    K = rbf_kernel(X, gamma=gamma)
    Q, p = dual.signed(K, y), -np.ones(n)
    assert model.converged_
    assert alpha.min() >= 0
    assert alpha.max() <= C * (1 + 1e-12)
    slack = 1e-4 + 1e-12 * alpha.sum()
    assert abs(y @ alpha) <= 1e-9 * max(1.0, alpha.sum()) or not fit_intercept
    assert dual.violation(Q, p, upper, alpha, y if fit_intercept else None) <= slack
    gap = dual.dual_gap(K, y, upper, alpha, float(model.intercept_[0]))
    assert model.dual_gap_ == pytest.approx(gap, rel=1e-6, abs=1e-9 * max(1.0, abs(model.objective_)))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_indefinite_kernel_ends_at_a_stationary_point(fit_intercept: bool) -> None:
    """The sigmoid kernel is no inner product: the fit must still end, feasible."""
    X, y, weights = small_problem(seed=3)
    model = DCSVMClassifier(1.0, "sigmoid", gamma=0.5, coef0=-0.5, fit_intercept=fit_intercept, max_time=20)
    alpha = full_alpha(model.fit(X, y, sample_weight=weights), y)
    assert alpha.min() >= 0
    assert np.all(alpha <= weights)
    assert np.isfinite(model.decision_function(X)).all()
    Q = dual.signed(sigmoid_kernel(X, gamma=0.5, coef0=-0.5), y)
    assert dual.violation(Q, -np.ones(len(y)), weights, alpha, y if fit_intercept else None) < 1.1e-3


@pytest.mark.parametrize("name", BUNDLED)
def test_fitted_attributes_have_sklearns_layout(name: str) -> None:
    case = bundled(name)
    ours, svc, _ = fit_both(case, "none", 1e-4)
    n_classes = len(ours.classes_)
    np.testing.assert_array_equal(ours.classes_, svc.classes_)
    assert ours.dual_coef_.shape == (n_classes - 1, len(ours.support_))
    assert ours.intercept_.shape == svc.intercept_.shape
    assert ours.n_support_.shape == svc.n_support_.shape
    assert ours.n_support_.sum() == len(ours.support_)
    np.testing.assert_array_equal(ours.support_vectors_, case.X[ours.support_])
    np.testing.assert_array_equal(case.y[ours.support_], np.repeat(ours.classes_, ours.n_support_))
    assert np.all(np.any(ours.dual_coef_ != 0, axis=0))
    np.testing.assert_allclose(ours.intercept_, svc.intercept_, atol=5e-3)
    assert abs(len(ours.support_) - len(svc.support_)) <= 0.03 * len(svc.support_)


def test_sparse_coefficients_of_pairs_and_blocks_of_rows_change_no_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many classes the coefficients of pairs are sparse, and decision values are combined block by block."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 4)), rng.integers(0, 12, 120)
    for parameters in ({}, {"stop_level": 1}, {"break_ties": True}):
        dense = DCSVMClassifier(C=10, **parameters).fit(X, y)
        ovo = dense.decision_function(X)
        monkeypatch.setattr(_dual_attributes, "SMALL_BYTES", 0)
        sparse = DCSVMClassifier(C=10, memory_budget=80 * 8 * 66, **parameters).fit(X, y)
        assert sp.issparse(sparse._model.coef)
        np.testing.assert_allclose(sparse.decision_function(X), ovo, atol=1e-9)
        np.testing.assert_array_equal(sparse.predict(X), dense.predict(X))
        monkeypatch.undo()
