"""Fit after fit with `warm_start`: each goes on from the model before, and gives none that is worse."""

import pickle
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_friedman1, make_moons
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import DCOneClassSVM, DCSVMClassifier, DCSVMRegressor, OCASClassifier, OCASRanker, OCASRegressor
from widemargin.estimators._resuming import checksum

Data = tuple[Any, ...]
SVC = partial(DCSVMClassifier, C=100.0, gamma=2.0, warm_start=True)
SVR = partial(DCSVMRegressor, C=10.0, gamma=0.5, warm_start=True)
ONE = partial(DCOneClassSVM, nu=0.1, gamma=2.0, warm_start=True)
MOONS = make_moons(700, noise=0.3, random_state=0)
MORE_MOONS = make_moons(1100, noise=0.3, random_state=0)  # too many for one dual solve in place of rounds
FRIEDMAN = make_friedman1(700, noise=1.0, random_state=0)
FOUR, MORE_FOUR = (np.digitize(X.sum(axis=1), [-0.2, 0.7, 1.4]) for X, _ in (MOONS, MORE_MOONS))
TWO_TARGETS = FRIEDMAN[0], np.column_stack([FRIEDMAN[1], FRIEDMAN[1] ** 2 / 20])
QUERIES = (*FRIEDMAN, np.arange(700) // 15)
NO_ROWS = (MOONS[0],)
CLUSTERS = {"n_levels": 1, "stop_level": 1}

CASES: dict[str, tuple[Callable[..., Any], Data]] = {
    "two classes": (SVC, MOONS),
    "two classes, no intercept": (partial(SVC, fit_intercept=False), MOONS),
    "two classes, levels": (partial(SVC, n_levels=2), MOONS),
    "two classes, one kernel matrix": (SVC, (MOONS[0][:400], MOONS[1][:400])),
    "two classes, early": (partial(SVC, **CLUSTERS), MOONS),
    "two classes, sparse": (partial(SVC, n_levels=1), (sp.csr_array(MOONS[0]), MOONS[1])),
    "four classes": (SVC, (MOONS[0], FOUR)),
    "four classes, levels": (partial(SVC, n_levels=1), (MOONS[0], FOUR)),
    "four classes, early": (partial(SVC, **CLUSTERS), (MOONS[0], FOUR)),
    "target": (SVR, FRIEDMAN),
    "target, early": (partial(SVR, **CLUSTERS), FRIEDMAN),
    "target, squared losses": (partial(SVR, loss="squared_epsilon_insensitive"), FRIEDMAN),
    "quantiles": (partial(SVR, loss="quantile", quantile=[0.1, 0.9]), FRIEDMAN),
    "targets": (SVR, TWO_TARGETS),
    "targets, early": (partial(SVR, **CLUSTERS), TWO_TARGETS),
    "one class": (ONE, NO_ROWS),
    "one class, early": (partial(ONE, **CLUSTERS), NO_ROWS),
    "linear": (partial(OCASClassifier, C=10.0, warm_start=True), MORE_MOONS),
    "linear, four classes": (partial(OCASClassifier, C=10.0, warm_start=True), (MORE_MOONS[0], MORE_FOUR)),
    "linear, Crammer and Singer": (
        partial(OCASClassifier, C=10.0, multi_class="crammer_singer", warm_start=True),
        (MOONS[0], FOUR),
    ),
    "linear, target": (partial(OCASRegressor, C=10.0, warm_start=True), FRIEDMAN),
    "linear, ranking": (partial(OCASRanker, C=0.1, warm_start=True), QUERIES),
}
KERNEL_CASES = [name for name in CASES if not name.startswith("linear")]


def fit(model: Any, data: Data, **changes: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.set_params(**changes).fit(*data)


def copied(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def is_no_worse(model: Any, before: float) -> bool:
    """Whether its objective is not above that before; of a converged one by `tol` at most, to which it is rounded."""
    return bool(model.objective_ <= before + (2e-3 if model.converged_ else 1e-9) * abs(before))


def test_every_estimator_with_warm_start_is_among_the_cases() -> None:
    public = [getattr(widemargin, name) for name in widemargin.__all__]
    have = {kind for kind in public if "warm_start" in getattr(kind, "_get_param_names", list)()}
    searches = {kind for kind in have if kind.__name__.endswith("CV")}
    assert {type(make()) for make, _ in CASES.values()} == have - searches


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_fits_of_few_steps_end_at_the_optimum(case: str) -> None:
    """Each has as many steps as leave it unsolved at first; every second one goes through a file."""
    make, data = CASES[case]
    steps = 2 if "linear" in case else 1
    model, whole, last = make(), fit(make(), data), np.inf
    for k in range(60):
        model = fit(copied(model) if k % 2 else model, data, max_iter=steps)
        assert is_no_worse(model, last)
        assert model.objective_ - model.dual_gap_ <= whole.objective_ * (1 + 1e-9) or whole.objective_ < 0
        last = model.objective_
        if model.converged_:
            break
        steps += k // 3
    assert k > 0
    assert model.converged_
    assert model.objective_ == pytest.approx(whole.objective_, rel=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("case", KERNEL_CASES)
def test_no_time_gives_the_model_that_was_given(case: str, tmp_path: Path) -> None:
    make, data = CASES[case]
    for max_iter in (2, -1):
        model = fit(make(), data, max_iter=max_iter)
        widemargin.save(model, tmp_path / "model")
        again = widemargin.load(tmp_path / "model")
        for other in (copied(model), again):
            fit(other, data, max_time=0.0, max_iter=-1)
            np.testing.assert_allclose(other.predict(data[0]), model.predict(data[0]), rtol=1e-12)
            for name in ("objective_", "dual_gap_", "early_level_", "converged_"):
                rounding = 1e-12 * abs(model.objective_)
                assert getattr(other, name) == pytest.approx(getattr(model, name), rel=1e-9, abs=rounding), name


@pytest.mark.parametrize("case", KERNEL_CASES)
def test_another_problem_is_begun_at_a_feasible_point(case: str) -> None:
    """With other weights, of fewer rows, and in other dtypes: the optimum is that of a fit from nothing."""
    make, (X, *y) = CASES[case]
    weights = np.random.default_rng(0).uniform(0.0, 2.0, X.shape[0]) * (np.arange(X.shape[0]) % 7 > 0)
    model = fit(make(), (X, *y))
    new = [X[:-100], *(labels[:-100] for labels in y)]
    target = new if y else [*new, None]
    cold = fit(make(warm_start=False), (*target, weights[:-100]))
    warm = fit(copied(model), (*target, weights[:-100]))
    assert warm.converged_
    if "early" not in case:  # which has the clusters of the model
        assert warm.objective_ == pytest.approx(cold.objective_, rel=5e-3)
    assert fit(copied(model), (*target, weights[:-100]), max_time=0.0).objective_ >= 0.999 * cold.objective_


@pytest.mark.parametrize("case", ["two classes", "two classes, early", "four classes, early", "one class", "target"])
def test_another_parameter_without_the_time_for_it_leaves_the_model_as_it_was(case: str) -> None:
    make, data = CASES[case]
    model = fit(make(), data)
    parameter = {"nu": 0.12} if case == "one class" else {"C": 5.0}
    stopped = fit(copied(model), data, max_time=0.0, **parameter)
    assert not stopped.converged_
    if np.isinf(stopped.dual_gap_):  # there was no time to compute it
        np.testing.assert_array_equal(stopped.predict(data[0]), model.predict(data[0]))
    optimum = fit(make(**parameter), data).objective_
    assert stopped.objective_ >= optimum - 1e-3 * abs(optimum)


def test_another_number_of_classes_is_begun_anew() -> None:
    X, y = MOONS
    model = fit(SVC(), (X, FOUR))
    assert fit(model, (X, y)).objective_ == pytest.approx(fit(SVC(), (X, y)).objective_, rel=1e-9)


@pytest.mark.slow
def test_other_rows_are_begun_anew() -> None:
    """Coefficients are of rows: other rows at their places have none."""
    X, y = MOONS
    model = fit(SVC(), (X, y))
    assert fit(model, (X[::-1].copy() + 1.0, y)).n_iter_ == fit(SVC(), (X[::-1].copy() + 1.0, y)).n_iter_


@pytest.mark.slow
def test_a_smaller_tolerance_is_reached() -> None:
    for case in ("two classes, levels", "two classes, early", "four classes", "targets", "linear"):
        make, data = CASES[case]
        model = fit(make(), data, tol=1e-2)
        fit(model, data, tol=1e-4)
        assert model.converged_
        assert model.objective_ == pytest.approx(fit(make(), data, tol=1e-4).objective_, rel=1e-3)


def test_the_warning_says_how_to_go_on() -> None:
    model = DCSVMClassifier(max_time=0.0)
    with pytest.warns(
        ConvergenceWarning, match=r"To go on from it, call fit again after set_params\(warm_start=True\)"
    ):
        model.fit(*MOONS)
    with pytest.warns(ConvergenceWarning, match=r"best so far\. To go on from it, call fit again\.$"):
        model.set_params(warm_start=True).fit(*MOONS)
    model.set_params(max_time=None).fit(*MOONS)
    assert model.converged_


def test_every_row_counts_for_the_same_problem() -> None:
    X = np.zeros((2_200_000, 1))  # 17.6 MB
    before = checksum("", X, [])
    X[1] = 1.0
    assert checksum("", X, []) != before
