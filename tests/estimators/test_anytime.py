"""A fit out of iterations comes back with the best machine so far and its gap.

Limits of time and interrupts of every estimator are in `tests/project/test_reliability.py`.
"""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from caught_warnings import warnings_of
from naive import dual, machines
from widemargin import DCSVMClassifier

NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"


@pytest.fixture(scope="module")
def digits() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    X, y = load_digits(return_X_y=True)
    return X / 16, y % 2 == 0


def fit_stopped(model: DCSVMClassifier, X: Any, y: Any) -> str:
    """Fit, insist on exactly one ConvergenceWarning, and return its words."""
    (message,) = warnings_of(ConvergenceWarning, model.fit, X, y)
    return message


def assert_states_violation_and_gap(message: str) -> None:
    for word in ("violation", "gap"):
        assert re.search(rf"{word}\D{{0,40}}{NUMBER}", message, re.IGNORECASE), message


def assert_usable(model: DCSVMClassifier, X: Any, y: Any, least: float) -> None:
    assert model.converged_ is False
    assert model.score(X, y) >= least
    (problem,) = machines.two_class_duals(model, y, np.ones(len(y)))
    assert problem.alpha.min() >= 0
    assert np.all(problem.alpha <= problem.upper)
    if model.fit_intercept:
        assert abs(problem.y @ problem.alpha) <= 1e-9 * problem.alpha.sum()
    K = rbf_kernel(np.asarray(X, np.float64), gamma=model.gamma)
    gap = dual.dual_gap(K, problem.y, problem.upper, problem.alpha, problem.intercept)
    assert gap > 0
    assert model.dual_gap_ == pytest.approx(gap, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_max_iter_returns_a_usable_model(fit_intercept: bool, digits: Any) -> None:
    X, y = digits
    model = DCSVMClassifier(C=8.0, gamma=0.1, max_iter=1, fit_intercept=fit_intercept)
    assert_states_violation_and_gap(fit_stopped(model, X, y))
    assert model.n_iter_ == 1
    assert_usable(model, X, y, least=0.6)


def test_the_warning_points_at_the_users_line(digits: Any) -> None:
    with pytest.warns(ConvergenceWarning) as caught:
        DCSVMClassifier(max_iter=1).fit(*digits)
    assert [w.filename for w in caught] == [__file__]


def test_gap_in_the_warning_is_the_attribute(digits: Any) -> None:
    model = DCSVMClassifier(C=8.0, gamma=0.1, max_iter=1)
    message = fit_stopped(model, *digits)
    stated = [float(n) for n in re.findall(NUMBER, message[message.lower().index("gap") :])]
    relative = model.dual_gap_ / model.objective_
    assert any(n == pytest.approx(model.dual_gap_, rel=0.05) or n == pytest.approx(relative, rel=0.05) for n in stated)


def test_a_finished_fit_is_silent(digits: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DCSVMClassifier(C=8.0, gamma=0.1, max_time=60.0, max_iter=10**6).fit(*digits)
    assert model.converged_ is True
