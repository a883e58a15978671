"""Held-out values of early machines: as those of machines trained cluster by cluster, fold by fold."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from naive.held_out_clusters import classifier_values, regressor_values
from widemargin import DCSVMClassifier, DCSVMRegressor
from widemargin._memory import MemoryPlan
from widemargin._progress import Progress
from widemargin._threads import ThreadTeam
from widemargin.algorithms.held_out import Fold
from widemargin.algorithms.held_out_clusters import ClusteredHeldOut, ClusterValues
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF
from widemargin.model_selection._cv_problem import Classification, CVProblem, Regression
from widemargin.solvers.dual.certificate import Limits

pytestmark = pytest.mark.filterwarnings("ignore:the model predicts the class")  # of few rows and a small C

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]
CS, GAMMA, N = (0.3, 3.0, 30.0), 0.7, 120
Split = tuple[Indices, Indices]


def make_rows() -> tuple[Vector, list[Indices]]:
    """Rows (n, 3) about three centres, and the rows of each."""
    rng = np.random.default_rng(0)
    centre = rng.permutation(np.repeat(np.arange(3), N // 3))
    X = rng.normal(size=(N, 3)) + 4.0 * np.eye(3)[centre]
    return X, [np.flatnonzero(centre == c) for c in range(3)]


def noise() -> tuple[Vector, list[Indices], Classification]:
    """Rows, their clusters, and two classes that do not follow from them, with an intercept."""
    problem = Classification(np.random.default_rng(2).integers(0, 2, N), np.arange(2), True, None, "ovr", False)
    return *make_rows(), problem


def make_folds(n_train: int = N) -> list[Split]:
    """Three folds; with `n_train` fewer than two thirds of the rows they don't cover the rows."""
    order = np.random.default_rng(1).permutation(N)
    parts = np.array_split(order, 3)
    return [(np.sort(np.setdiff1d(order, part)[:n_train]), np.sort(part)) for part in parts]


def shared(
    problem: CVProblem,
    X: Any,
    clusters: Sequence[Indices],
    splits: Sequence[Split],
    weights: Vector,
    epsilon: float = 0.0,
    chosen: Sequence[int] | None = None,
    max_time: float | None = None,
    n_bytes: int = 2**30,
) -> list[ClusterValues]:
    counts = [np.bincount(train, minlength=len(weights)) for train, _ in splits]
    folds = [
        Fold(test, problem.duals(weights * count, epsilon), CS) for count, (_, test) in zip(counts, splits, strict=True)
    ]
    with Progress(max_time=max_time) as progress, ThreadTeam(1) as team:
        solver = ClusteredHeldOut(
            clusters, problem.machines, len(weights), Limits(1e-9), MemoryPlan(n_bytes), progress, team
        )
        chosen = range(len(clusters)) if chosen is None else chosen
        return solver.held_out_values(RBF(GAMMA), make_samples(X, "distances"), folds, chosen)


def assert_same(found: ClusterValues, wanted: Sequence[tuple[Indices, Vector]]) -> None:
    """Values of each C (n_C, n_test, n_machines) against those of each C by loops."""
    for values, (rows, by_loops) in zip(found.values, wanted, strict=True):
        np.testing.assert_array_equal(found.rows, rows)
        np.testing.assert_allclose(values, by_loops, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("n_train", "has_intercept", "form"), [(N, True, np.asarray), (50, False, sp.csr_array)])
def test_two_classes(n_train: int, has_intercept: bool, form: Any) -> None:
    X, clusters = make_rows()
    y = (X.sum(axis=1) + np.random.default_rng(2).normal(size=N) > 4.0).astype(np.intp)
    problem = Classification(y, np.arange(2), has_intercept, None, "ovr", False)
    splits, ones = make_folds(n_train), np.ones(N)
    machine = DCSVMClassifier(gamma=GAMMA, fit_intercept=has_intercept)
    for (train, test), found in zip(splits, shared(problem, form(X), clusters, splits, ones), strict=True):
        assert_same(found, [classifier_values(machine, X, y, ones, clusters, train, test, C) for C in CS])


@pytest.mark.slow
@pytest.mark.parametrize("has_intercept", [True, False])
def test_four_classes_of_which_clusters_lack_some(has_intercept: bool) -> None:
    X, clusters = make_rows()
    y = np.random.default_rng(2).integers(0, 3, N)
    y[clusters[1]] = np.where(y[clusters[1]] == 0, 1, 3)
    y[clusters[2]] = 3
    problem = Classification(y, np.arange(4), has_intercept, None, "ovr", False)
    splits, ones = make_folds(), np.ones(N)
    machine = DCSVMClassifier(gamma=GAMMA, fit_intercept=has_intercept)
    for (train, test), found in zip(splits, shared(problem, X, clusters, splits, ones), strict=True):
        assert_same(found, [classifier_values(machine, X, y, ones, clusters, train, test, C) for C in CS])


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_class_weights_count_the_training_rows_of_all_clusters(n_classes: int) -> None:
    X, clusters = make_rows()
    rng = np.random.default_rng(2)
    y, weights = np.minimum(rng.integers(0, 6, N), n_classes - 1), rng.integers(0, 3, N).astype(float)
    problem = Classification(y, np.arange(n_classes), True, "balanced", "ovr", False)
    splits = make_folds()
    for (train, test), found in zip(splits, shared(problem, X, clusters, splits, weights), strict=True):
        totals = np.bincount(y[train], weights[train])
        balanced = weights * (weights[train].sum() / (n_classes * totals))[y]
        machine = DCSVMClassifier(gamma=GAMMA)
        assert_same(found, [classifier_values(machine, X, y, balanced, clusters, train, test, C) for C in CS])


@pytest.mark.slow
@pytest.mark.parametrize(("n_targets", "epsilon", "has_intercept"), [(2, 0.0, False), (3, 0.2, True)])
def test_several_targets(n_targets: int, epsilon: float, has_intercept: bool) -> None:
    X, clusters = make_rows()
    rng = np.random.default_rng(2)
    Y = np.stack([np.sin(X[:, 0]), 1e4 * X[:, 1] * X[:, 2], X[:, 0]], axis=1)[:, :n_targets]
    weights = rng.integers(1, 3, N).astype(float)
    problem = Regression.of_targets(Y, weights, [(1.0, 1.0)], has_intercept=has_intercept)
    splits = make_folds(50)
    machine = DCSVMRegressor(gamma=GAMMA, epsilon=epsilon, fit_intercept=has_intercept)
    for (train, test), found in zip(splits, shared(problem, X, clusters, splits, weights, epsilon), strict=True):
        assert_same(found, [regressor_values(machine, X, problem.y, weights, clusters, train, test, C) for C in CS])


@pytest.mark.slow
def test_a_cluster_of_equal_targets_is_not_taken_for_one_class() -> None:
    """Targets of +-1 without an intercept: the machine of a cluster of ones decays away from its rows."""
    X, clusters = make_rows()
    y = np.random.default_rng(2).choice([-1.0, 1.0], N)
    y[clusters[0]] = 1.0
    problem, splits, ones = Regression(y, [(1.0, 1.0)], False, 0.0, 1.0), make_folds(), np.ones(N)
    machine = DCSVMRegressor(gamma=GAMMA, epsilon=0.0, fit_intercept=False)
    for (train, test), found in zip(splits, shared(problem, X, clusters, splits, ones), strict=True):
        assert_same(found, [regressor_values(machine, X, y[:, None], ones, clusters, train, test, C) for C in CS])


def test_some_of_the_clusters_have_the_values_that_they_have_among_all() -> None:
    X, clusters, problem = noise()
    everything = shared(problem, X, clusters, make_folds(), np.ones(N))
    for one, part in zip(everything, shared(problem, X, clusters, make_folds(), np.ones(N), chosen=[1]), strict=True):
        np.testing.assert_array_equal(part.rows, one.rows[np.isin(one.rows, clusters[1])])
        np.testing.assert_allclose(part.values, one.values[:, np.isin(one.rows, clusters[1])], atol=1e-6)


@pytest.mark.slow
def test_little_memory_gives_the_same_values() -> None:
    X, clusters, problem = noise()
    ample, scarce = (shared(problem, X, clusters, make_folds(), np.ones(N), n_bytes=m) for m in (2**30, 0))
    for a, b in zip(ample, scarce, strict=True):
        np.testing.assert_allclose(a.values, b.values, atol=1e-5)


def test_no_time_leaves_what_is_not_solved_as_nan() -> None:
    X, clusters = make_rows()
    y = np.random.default_rng(2).integers(0, 2, N)
    y[clusters[2]] = 1
    problem = Classification(y, np.arange(2), True, None, "ovr", False)
    for found in shared(problem, X, clusters, make_folds(), np.ones(N), max_time=0):
        is_pure = np.isin(found.rows, clusters[2])
        assert (found.values[:, is_pure] == 1.0).all()
        assert np.isnan(found.values[:, ~is_pure]).all()


@pytest.mark.parametrize("held_out", [0, 1])
def test_a_fold_without_held_out_or_training_rows_in_a_cluster(held_out: int) -> None:
    """Groups that are the clusters: a cluster is held out as a whole, where values are 0, or not at all."""
    X, clusters, problem = noise()
    split = np.concatenate(clusters[1:]), clusters[0]
    (found,) = shared(problem, X, clusters, [split], np.ones(N), chosen=[held_out])
    assert found.values.shape == (3, 0 if held_out else len(clusters[0]), 1)
    assert not found.values.any()
