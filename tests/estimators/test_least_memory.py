"""A memory budget that an exact machine cannot keep is refused at the start, with the least that it can keep."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from widemargin import DCOneClassSVM, DCSVMClassifier, DCSVMClassifierCV, DCSVMRegressor, DCSVMRegressorCV


def problem() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 30))
    return X, rng.integers(4, size=6000)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        DCSVMClassifier(),
        DCSVMClassifier(n_levels=1, stop_level=1),
        DCSVMRegressor(),
        DCOneClassSVM(),
        DCSVMClassifierCV(),
        DCSVMRegressorCV(),
    ],
    ids=str,
)
def test_too_small_a_budget_is_refused_with_the_least(model: Any) -> None:
    X, y = problem()
    with pytest.raises(ValueError, match=r"memory_budget must be at least \d+ bytes .* got 1000$") as refusal:
        model.set_params(memory_budget=1000).fit(X, y)
    found = re.search("at least ([0-9]+) bytes", str(refusal.value))
    assert found
    with pytest.raises(ValueError, match=found[0]):
        model.set_params(memory_budget=int(found[1]) - 1).fit(X, y)
    if not isinstance(model, DCSVMClassifierCV | DCSVMRegressorCV):  # they take long
        model.set_params(memory_budget=int(found[1]), max_iter=3).fit(X, y).predict(X)


def test_more_threads_rows_and_classes_need_more() -> None:
    X, y = problem()

    def least(model: Any, n: int, classes: int) -> int:
        with pytest.raises(ValueError, match="memory_budget") as refusal:
            model.fit(X[:n], y[:n] % classes)
        return int(str(refusal.value).split()[5])

    one, two = (DCSVMClassifier(memory_budget=1, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert least(one, 6000, 2) < least(two, 6000, 2) < least(two, 6000, 4)
    assert least(two, 4000, 2) < least(two, 6000, 2)


def test_a_few_rows_fit_into_any_budget() -> None:
    """The ten megabytes that a fit may take beyond its budget are more than it needs."""
    X, y = problem()
    assert DCSVMClassifier(memory_budget=1).fit(X[:200], y[:200] % 2).converged_
