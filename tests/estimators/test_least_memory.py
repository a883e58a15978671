"""A memory budget that a fit cannot keep is refused at the start, with the least that it can keep."""

from typing import Any

import numpy as np
import pytest

from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    LandmarkNystroem,
    OCASClassifier,
    OCASClassifierCV,
    RelevanceScaler,
    config_context,
)


def problem(n: int = 6000, d: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, rng.integers(4, size=n)


def least_of(call: Any, *args: Any) -> int:
    with pytest.raises(ValueError, match=r"memory_budget must be at least \d+ bytes for .*, got \d+$") as refusal:
        call(*args)
    return int(str(refusal.value).split()[5])


REFUSED: list[tuple[Any, tuple[int, int]]] = [
    (DCSVMClassifier(max_iter=3), (6000, 30)),
    (DCSVMClassifier(n_levels=1, stop_level=1), (6000, 30)),
    (DCSVMRegressor(max_iter=3), (6000, 30)),
    (DCOneClassSVM(max_iter=3), (6000, 30)),
    (DCSVMClassifierCV(max_time=0), (6000, 30)),
    (DCSVMRegressorCV(max_time=0), (6000, 30)),
    (DCPredClassifier(n_clusters=2, max_time=0), (6000, 30)),
    (DCPredRegressor(max_time=0), (6000, 30)),
    (OCASClassifier(max_iter=2), (200_000, 2)),
    (OCASClassifier(max_iter=2, multi_class="crammer_singer"), (100_000, 2)),
    (OCASClassifierCV(Cs=2, max_time=0), (200_000, 2)),
    (OCASClassifierCV(Cs=2, cv=2, max_time=0), (20_000, 150)),
    (BSGDClassifier(n_epochs=1, max_time=0), (50_000, 10)),
    (BSGDClassifier(n_epochs=1, budget=500, maintenance="projection", max_time=0), (1000, 10)),
    (RelevanceScaler(n_iter=1), (5000, 30)),
    (LandmarkNystroem(1000, landmarks="uniform"), (2000, 5)),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "shape"), REFUSED, ids=str)
def test_too_small_a_budget_is_refused_with_the_least(model: Any, shape: tuple[int, int]) -> None:
    X, y = problem(*shape)
    least = least_of(model.set_params(memory_budget=1000).fit, X, y)
    assert least_of(model.set_params(memory_budget=least - 1).fit, X, y) == least
    model.set_params(memory_budget=least).fit(X, y)


def test_a_chunk_of_a_stream_is_refused_too() -> None:
    X, y = problem(50_000, 10)
    model = BSGDClassifier(memory_budget=1000)
    model.partial_fit(X[:100], y[:100], classes=range(4))
    least_of(model.partial_fit, X, y)
    assert model.t_ == 100
    least_of(BSGDClassifier(memory_budget=1000).partial_fit, X, y, range(4))


def test_the_budget_of_the_configuration_is_named() -> None:
    X, y = problem()
    with config_context(memory_budget="1kB"):
        assert least_of(DCSVMClassifier(max_iter=3).fit, X, y) > 1000


def test_more_threads_rows_and_classes_need_more() -> None:
    X, y = problem()

    def least(model: Any, n: int, classes: int) -> int:
        return least_of(model.fit, X[:n], y[:n] % classes)

    one, two = (DCSVMClassifier(memory_budget=1, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert least(one, 6000, 2) < least(two, 6000, 2) < least(two, 6000, 4)
    assert least(two, 4000, 2) < least(two, 6000, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({type(model) for model, _ in REFUSED}, key=lambda kind: kind.__name__))
def test_a_few_rows_fit_into_any_budget(kind: Any) -> None:
    """The ten megabytes that a fit may take beyond its budget are more than it needs."""
    X, y = problem(200)
    model = kind(memory_budget=1, **({"cv": 2} if kind.__name__.endswith("CV") else {})).fit(X, y % 2)
    assert getattr(model, "converged_", True)


def test_the_folds_of_a_path_are_counted() -> None:
    X, y = problem(20_000, 150)
    search = OCASClassifierCV([1.0], memory_budget=1000, max_time=0)
    assert least_of(search.fit, X, y) > 0.7 * X.nbytes - 10**7


def test_rows_of_weight_zero_cost_a_copy_of_the_others() -> None:
    X, y = problem(50_000, 40)
    model = BSGDClassifier(memory_budget=1000)
    whole, others = (least_of(model.fit, X, y, weights) for weights in (None, np.arange(len(y)) > 0))
    assert others - whole > 0.9 * X.nbytes
