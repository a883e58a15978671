"""Kernel machines of dask collections: early ones on the workers, also when one dies; exact ones in this process."""

import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from widemargin import DCOneClassSVM, DCSVMClassifier, DCSVMRegressor
from widemargin._native import Stopped
from widemargin.algorithms import dc_svm_levels as dc_svm
from widemargin.algorithms import dc_svm_on_workers
from widemargin.data import LostPartitionError
from widemargin.data.remote.remote_rows import RemoteRows
from widemargin.solvers.dual.in_memory import result_at_start

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
N = 900
X = RNG.normal(size=(N, 4))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0, "yes", "no")
CLASSES = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=N), [-0.5, 0.5])
WEIGHTS = RNG.integers(3, size=N).astype(float)
VALUES = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=N)
RIDGE: dict[str, Any] = {"epsilon": 0.0, "loss": "squared_epsilon_insensitive"}
EARLY: dict[str, Any] = {"n_levels": 1, "stop_level": 1}

MODELS: dict[str, tuple[Callable[..., Any], Any]] = {
    "svm": (DCSVMClassifier, Y),
    "intercept": (lambda **how: DCSVMClassifier(fit_intercept=True, C=5, **how), Y),
    "three classes": (DCSVMClassifier, CLASSES),
    "balanced": (lambda **how: DCSVMClassifier(class_weight="balanced", **how), Y),
    "regression": (DCSVMRegressor, VALUES),
    "kernel ridge": (lambda **how: DCSVMRegressor(C=5, **RIDGE, **how), VALUES),
    "quantiles": (lambda **how: DCSVMRegressor(loss="quantile", quantile=[0.1, 0.9], **how), VALUES),
    "two targets": (DCSVMRegressor, np.column_stack([VALUES, X[:, 1]])),
    "novelty": (lambda **how: DCOneClassSVM(nu=0.2, **how), None),
    "float64 kernel": (lambda **how: DCSVMClassifier(kernel="laplacian", **how), Y),
}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def threads() -> Iterator[Any]:
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        yield client


def with_blocks(rows: Any = X, size: int = 250) -> Any:
    return da.from_array(rows, chunks=(size, -1))


def assert_same(model: Any, local: Any, rows: Any = X) -> None:
    assert model.converged_
    assert model.objective_ - model.dual_gap_ == pytest.approx(local.objective_ - local.dual_gap_, rel=1e-4)
    predicted, expected = model.predict(rows), local.predict(rows)
    if predicted.dtype.kind == "f":
        np.testing.assert_allclose(predicted, expected, atol=5e-3)
    else:
        assert np.mean(predicted == expected) >= 0.998


def test_an_exact_machine_is_that_of_the_computed_rows(threads: Any) -> None:
    model, local = DCSVMClassifier().fit(with_blocks(), da.from_array(Y), da.from_array(WEIGHTS)), DCSVMClassifier()
    np.testing.assert_array_equal(model.decision_function(X), local.fit(X, Y, WEIGHTS).decision_function(X))
    novelty = DCOneClassSVM(nu=0.2).fit(with_blocks())
    np.testing.assert_array_equal(novelty.score_samples(X), DCOneClassSVM(nu=0.2).fit(X).score_samples(X))
    with pytest.raises(ValueError, match="memory_budget must be at least .* blocks of X, which are computed"):
        DCSVMClassifier(memory_budget=10_000).fit(with_blocks(), Y)


@pytest.mark.filterwarnings("ignore:the rows' mean is:UserWarning")
def test_a_linear_machine_of_float32_rows_far_from_the_origin(threads: Any) -> None:
    far, local = (X + 1e4).astype("float32"), DCSVMClassifier(kernel="linear", **EARLY)
    y = np.where(CLASSES > 0, "yes", "no")
    assert_same(DCSVMClassifier(kernel="linear", **EARLY).fit(with_blocks(far), y), local.fit(far, y), far)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_early_machine_on_processes(client: Any, name: str) -> None:
    make, y = MODELS[name]
    model = make(**EARLY).fit(with_blocks(), y)
    assert_same(model, make(**EARLY).fit(X, y))
    assert model.n_features_in_ == 4
    assert model.shape_fit_ == X.shape
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


def test_early_machine(threads: Any) -> None:
    how = {**EARLY, "random_state": 0}
    model = DCSVMClassifier(**how).fit(with_blocks(), Y)
    local = DCSVMClassifier(**how).fit(X, Y)
    assert model.early_level_ == 1
    assert_same(model, local)
    assert model.levels_[0].keys() == local.levels_[0].keys()
    assert model.levels_[0]["objective"] == model.objective_
    ridge = DCSVMRegressor(**RIDGE, **how)
    assert_same(ridge.fit(with_blocks(), VALUES), DCSVMRegressor(**RIDGE, **how).fit(X, VALUES))


@pytest.mark.slow
def test_weights_sparse_blocks_and_float32(client: Any) -> None:
    sparse = sp.csr_array(np.where(X > 0.3, X, 0.0).astype(np.float32))
    parts = with_blocks(sparse.toarray()).map_blocks(sp.csr_array)
    model = DCSVMClassifier(**EARLY).fit(parts, da.from_array(Y), WEIGHTS)
    assert_same(model, DCSVMClassifier(**EARLY).fit(sparse, Y, WEIGHTS), sparse)
    assert sp.issparse(model.support_vectors_)
    assert model.support_vectors_.dtype == np.float32
    assert (WEIGHTS[model.support_] > 0).all()


def test_bad_input_is_named_and_changes_nothing(threads: Any) -> None:
    spoiled = X.copy()
    spoiled[600, 2] = np.nan
    model = DCSVMClassifier(**EARLY)
    for rows, y, message in [
        (with_blocks(spoiled), Y, "NaN or infinity, in partition 2"),
        (with_blocks(), Y[:-1], "inconsistent numbers of samples"),
        (with_blocks(), None, "requires y"),
        (with_blocks()[with_blocks()[:, 0] > 99], Y[:0], "must have rows, got none"),
        (da.from_array(X[0]), Y, "two dimensions, got 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(rows, y)
    with pytest.raises(ValueError, match="sample_weight must have a sum of at most"):
        DCOneClassSVM(**EARLY).fit(with_blocks(), sample_weight=np.full(N, 1e299))
    with pytest.raises(ValueError, match="'precomputed' for a dask collection"):
        DCSVMClassifier(kernel="precomputed").fit(da.from_array(X @ X.T), Y)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.slow
def test_max_time_gives_the_best_machine_so_far(threads: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        model = DCSVMClassifier(max_time=0, **EARLY).fit(with_blocks(), Y)
    assert np.isfinite(model.dual_gap_)
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        novelty = DCOneClassSVM(nu=0.2, max_time=0, **EARLY).fit(with_blocks())
    assert np.mean(novelty.predict(X) < 0) < 0.5


def kill_before(client: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """End a worker's process as the system would when memory runs out, before a call of a method of `RemoteRows`."""
    original, pids = getattr(RemoteRows, name), list(client.run(os.getpid).values())

    def method(self: Any, *args: Any) -> Any:
        if pids:
            os.kill(pids.pop(), signal.SIGKILL)
            pids.clear()
        return original(self, *args)

    monkeypatch.setattr(RemoteRows, name, method)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["assign_labels", "shuffle", "map_blocks"])
def test_a_worker_that_dies(client: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    kill_before(client, monkeypatch, name)
    start = time.perf_counter()
    model = DCSVMClassifier(fit_intercept=True, C=5, **EARLY).fit(with_blocks(), Y)
    assert_same(model, DCSVMClassifier(fit_intercept=True, C=5, **EARLY).fit(X, Y))
    assert time.perf_counter() - start < 120


@pytest.mark.slow
def test_rows_that_are_gone_for_good(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import dask

    futures = client.scatter([X[:450], X[450:]], hash=False)  # put there by hand: no recipe
    rows = da.concatenate([da.from_delayed(dask.delayed(part), (450, 4), float) for part in futures])
    kill_before(client, monkeypatch, "map_blocks")
    model = DCSVMClassifier(**EARLY)
    with pytest.raises(LostPartitionError, match="were lost with their worker"):
        model.fit(rows, Y)


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [1, 2])
def test_a_pair_that_is_stopped_is_an_early_machine_as_the_others(
    threads: Any, monkeypatch: pytest.MonkeyPatch, stopped: int
) -> None:
    train_clusters, calls = dc_svm_on_workers._train_clusters, list[int]()

    def stop_one(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == stopped:
            raise Stopped
        return train_clusters(*args)

    monkeypatch.setattr(dc_svm_on_workers, "_train_clusters", stop_one)
    with pytest.warns(ConvergenceWarning):
        model = DCSVMClassifier(**EARLY).fit(with_blocks(), CLASSES)
    assert model.early_level_ == 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["max_time", "interrupt"])
def test_early_machine_out_of_time_has_the_clusters_that_were_solved(
    threads: Any, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    solve, solved = dc_svm.DCSVMTraining._solve_part, list[Any]()

    def solve_three(fit: Any, *args: Any) -> Any:
        if len(solved) < 3:
            solved.append(solve(fit, *args))
            if len(solved) == 3 and reason == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            return solved[-1]
        while fit.progress.go_on():
            time.sleep(0.01)
        data, start, *_ = args
        return result_at_start(data.problem, start, fit.progress.elapsed)

    monkeypatch.setattr(dc_svm.DCSVMTraining, "_solve_part", solve_three)
    model = DCSVMClassifier(n_levels=2, stop_level=2, max_time=3.0 if reason == "max_time" else None)
    with pytest.warns(ConvergenceWarning, match=f"stopped by {reason}"):
        model.fit(with_blocks(), Y)
    assert len(model.support_) == sum(int(np.count_nonzero(part.beta)) for part in solved) > 0
    assert not model.converged_
    assert 0 < model.relative_gap_ < 1
