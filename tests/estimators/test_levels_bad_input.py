"""Levels on data that cannot be divided well: each works or gets a clear error, none hangs."""

from typing import Any

import numpy as np
import pytest

from widemargin import DCSVMClassifier

pytestmark = pytest.mark.filterwarnings("ignore:gamma=", "ignore:Number of distinct clusters")
PARTITIONS = ("kernel", "input")


def fit(X: Any, y: Any, *, has_bound: bool = True, **options: Any) -> DCSVMClassifier:
    model = DCSVMClassifier(**({"n_levels": 2, "random_state": 0, "max_time": 20.0} | options)).fit(X, y)
    assert model.converged_
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.dual_gap_) == has_bound
    return model


def dual(model: DCSVMClassifier) -> float:
    return model.objective_ - model.dual_gap_


def noisy(n: int = 100) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_levels": 1, "stop_level": 2}, r"stop_level must be at most n_levels=1, got 2"),
        ({"kernel": "precomputed", "partition": "input"}, r"partition.*input.*no features"),
        ({"partition": "random"}, r"partition.*random"),
    ],
)
def test_bad_parameters_are_named_with_their_value(options: dict[str, Any], message: str) -> None:
    X, y = noisy(20)
    with pytest.raises((ValueError, TypeError), match=message):
        DCSVMClassifier(**options).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_more_clusters_than_rows(partition: str, fit_intercept: bool) -> None:
    X, y = noisy()
    options: dict[str, Any] = {"partition": partition, "fit_intercept": fit_intercept}
    exact = fit(X, y, n_levels=0, **options)
    model = fit(X, y, n_levels=5, **options)
    assert dual(model) == pytest.approx(dual(exact), rel=1e-6)
    assert all(level["n_clusters"] <= 100 for level in model.levels_)
    assert fit(X, y, n_levels=5, stop_level=5, **options).levels_[-1]["n_clusters"] == 100
    wide = fit(X, y, n_levels=1, branching=10**6, **options)
    assert dual(wide) == pytest.approx(dual(exact), rel=1e-6)


@pytest.mark.slow
def test_a_branching_larger_than_the_number_of_rows() -> None:
    """Clusters of the automatic level have less than a row on average."""
    X, y = noisy(5000)
    assert len(fit(X, y, n_levels="auto", branching=10_000).levels_) == 1


def test_two_rows() -> None:
    for stop_level in (0, 1, 2):
        assert fit([[0.0], [1.0]], [0, 1], stop_level=stop_level).score([[0.0], [1.0]], [0, 1]) == 1.0


@pytest.mark.parametrize(("distinct", "fit_intercept"), [(1, False), (3, True)])
@pytest.mark.parametrize("stop_level", [0, 1, 2])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_copies_of_one_or_a_few_points(distinct: int, partition: str, stop_level: int, fit_intercept: bool) -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(distinct, 2)), 60 // distinct, axis=0)
    y = np.arange(60) % 2
    options: dict[str, Any] = {"partition": partition, "fit_intercept": fit_intercept}
    model = fit(X, y, stop_level=stop_level, **options)
    if stop_level == 0:
        assert dual(model) == pytest.approx(dual(fit(X, y, n_levels=0, **options)), rel=1e-6)
        assert dual(model) == pytest.approx(60.0, rel=1e-6)  # nothing can be told apart: every loss is 1
    else:
        assert len(np.unique(model.decision_function(X).round(9))) <= distinct


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_clusters_of_one_class(partition: str, fit_intercept: bool) -> None:
    """Sorted rows, far apart: with an intercept a pure cluster has no support vectors, and its sign is its class."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 20])
    y = np.repeat(["left", "right"], 60)
    options: dict[str, Any] = {"partition": partition, "fit_intercept": fit_intercept, "gamma": 0.1}
    exact = fit(X, y, n_levels=0, **options)
    for stop_level in (0, 1, 2):
        model = fit(X, y, stop_level=stop_level, **options)
        assert model.score(X, y) == 1.0
        if stop_level == 0:
            assert dual(model) == pytest.approx(dual(exact), rel=1e-5)
        elif fit_intercept:
            assert len(model.support_) == 0
            np.testing.assert_array_equal(np.abs(model.decision_function(X)), 1.0)


def test_zero_weights_shift_the_row_numbers_of_a_precomputed_early_machine() -> None:
    X, y = noisy()
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(-1))
    weights = (np.arange(100) % 5 > 0).astype(float)
    kept = np.flatnonzero(weights)
    options: dict[str, Any] = {"kernel": "precomputed", "n_levels": 1, "stop_level": 1}
    model = DCSVMClassifier(**options, random_state=0).fit(K, y, sample_weight=weights)
    small = DCSVMClassifier(**options, random_state=0).fit(K[np.ix_(kept, kept)], y[kept])
    np.testing.assert_array_equal(model.support_, kept[small.support_])
    np.testing.assert_allclose(model.decision_function(K), small.decision_function(K[:, kept]), atol=1e-12)
