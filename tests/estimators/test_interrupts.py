"""The first Ctrl-C: the best so far and a warning, whatever runs."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import widemargin._progress
from caught_warnings import warnings_of
from widemargin import (
    DCPredClassifier,
    DCPredRegressor,
    LandmarkNystroem,
    OCASClassifierCV,
    RelevanceScaler,
    TwoStepKernelKMeans,
    compress,
)
from widemargin.algorithms import dc_pred_leaves as dc_pred
from widemargin.algorithms import relevance
from widemargin.compression import search as _compression
from widemargin.estimators import landmark_nystroem
from widemargin.nystroem import landmarks as selection
from widemargin.nystroem import leaf_problems
from widemargin.partition import hierarchy
from widemargin.partition.routing import KernelRouter

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT can't be sent to one process there")


@pytest.fixture(autouse=True)
def first_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupts of other tests are long ago."""
    monkeypatch.setattr(widemargin._progress, "_last_sigint", -np.inf)


def problem(n: int = 3000, d: int = 10) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0).astype(int)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def stopped(call: Callable[[], Any]) -> tuple[Any, str]:
    results: list[Any] = []
    (message,) = warnings_of(ConvergenceWarning, lambda: results.append(call()))
    return results[0], message


@pytest.fixture
def interrupted_before(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], None]:

    def patch(module: Any, name: str) -> None:
        original, calls = getattr(module, name), iter([interrupt])

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            next(calls, lambda: None)()
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, wrapped)

    return patch


@pytest.mark.parametrize("model", [DCPredClassifier(), DCPredRegressor()], ids=str)
def test_ctrl_c_of_a_tree_of_machines(model: Any, interrupted_before: Callable[[Any, str], None]) -> None:
    interrupted_before(dc_pred, "nystroem_factor")
    X, y = problem()
    model, message = stopped(lambda: model.fit(X, y))
    assert "interrupt" in message
    assert model.converged_ is False
    assert 0 < model.dual_gap_ <= model.objective_
    assert np.isfinite(model.predict(X)).all()


@pytest.fixture
def interrupted_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any, str], threading.Event]]:
    """Send Ctrl-C in a function, whose long calls then end after the test alone; the event is set if one ends."""
    is_over, has_ended, earlier = threading.Event(), threading.Event(), threading.enumerate()
    monkeypatch.setattr("widemargin._threads._LONG_WORK", 0.0)

    def patch(module: Any, name: str) -> threading.Event:
        original = getattr(module, name)

        def endless(A: Any, *args: Any, **kwargs: Any) -> Any:
            if A.shape[0] > 1000:
                interrupt()
                is_over.wait(60)
                has_ended.set()
            return original(A, *args, **kwargs)

        monkeypatch.setattr(module, name, endless)
        return has_ended

    yield patch
    is_over.set()
    for thread in set(threading.enumerate()).difference(earlier):
        thread.join(60)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), [(selection, "kmeans"), (landmark_nystroem, "nystroem_factor")])
def test_ctrl_c_of_landmarks(module: Any, name: str, interrupted_in: Callable[[Any, str], threading.Event]) -> None:
    """Also during a call that cannot end early: here k-means, or the decomposition, ends after the fit alone."""
    has_ended = interrupted_in(module, name)
    X, _ = problem()
    model, message = stopped(lambda: LandmarkNystroem(150, random_state=0).fit(X))
    assert not has_ended.is_set()
    assert "interrupt" in message
    assert "100 random rows" in message
    K, Z = rbf_kernel(model.landmarks_, gamma=model._gamma), model.transform(model.landmarks_)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-9)  # exact on the landmarks


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rms_gradients", "scale_columns"])
def test_ctrl_c_of_relevance(name: str, interrupted_before: Callable[[Any, str], None]) -> None:
    interrupted_before(relevance, name)
    X, y = problem()
    model, message = stopped(lambda: RelevanceScaler().fit(X, y))
    assert "stopped by interrupt after 1 of 3 models" in message
    assert model.scale_.shape == (10,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "module", "name"),
    [
        (DCPredClassifier(n_clusters=2), hierarchy, "kmeans"),
        (DCPredClassifier(n_clusters=1), selection, "kmeans"),
        (DCPredClassifier(n_clusters=1), dc_pred, "nystroem_factor"),
        (DCPredClassifier(n_clusters=1), dc_pred, "_residual"),
        (DCPredRegressor(n_clusters=1, alpha=0.0), leaf_problems, "lstsq"),
        (DCPredRegressor(n_clusters=1), leaf_problems, "_solve_regular"),
    ],
    ids=str,
)
def test_ctrl_c_of_a_tree_in_a_long_call(
    model: Any, module: Any, name: str, interrupted_in: Callable[[Any, str], threading.Event]
) -> None:
    has_ended = interrupted_in(module, name)
    X, y = problem()
    model, message = stopped(lambda: model.fit(X, y))
    assert not has_ended.is_set()
    assert "interrupt" in message
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.slow
def test_ctrl_c_of_compress_in_a_long_call(interrupted_in: Callable[[Any, str], threading.Event]) -> None:
    X, y = problem(2000, 60)
    machine = SVC(C=10).fit(X, y)
    has_ended = interrupted_in(_compression, "principal_directions")
    small, message = stopped(lambda: compress(machine, X, random_state=0))
    assert not has_ended.is_set()
    assert "interrupt" in message
    assert small.predict(X).shape == y.shape


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_ctrl_c_of_kernel_kmeans(passes: int, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the pass over all rows that comes after so many complete ones: no row of that pass is assigned."""
    divide, n_passes, after_stop = sys.modules["widemargin.partition.divide"], iter(range(10)), []
    monkeypatch.setattr(divide, "_SIZES", (0.125, 1.01))  # never balanced
    assign, scores = KernelRouter.assign, KernelRouter._scores

    def interrupted(router: KernelRouter, *args: Any) -> Any:
        if next(n_passes) == passes:
            interrupt()
        return assign(router, *args)

    def count(router: KernelRouter, sums: Any, samples: Any, team: Any) -> Any:
        result = scores(router, sums, samples, team)
        after_stop.append(len(samples))
        return result

    monkeypatch.setattr(KernelRouter, "assign", interrupted)
    monkeypatch.setattr(KernelRouter, "_scores", count)
    X, _ = problem(1500)
    X = rbf_kernel(X, gamma=0.1) if kernel == "precomputed" else X
    model, message = stopped(lambda: TwoStepKernelKMeans(8, kernel=kernel, random_state=0).fit(X))
    assert "interrupt" in message
    assert ("8 single rows" in message) == (passes == 0)
    assert sum(after_stop) == len(X) * max(passes, 1)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(-model.score(X), model.inertia_, rtol=1e-6)
    assert len(np.unique(model.labels_)) == model.n_clusters_


def test_ctrl_c_of_compress(interrupted_before: Callable[[Any, str], None]) -> None:
    interrupted_before(_compression, "train_forest")
    X, y = problem(1500)
    small, message = stopped(lambda: compress(SVC(C=10).fit(X, y), X, random_state=0))
    assert "interrupt" in message
    assert "of the labels agree" in message
    assert small.predict(X).shape == y.shape


def test_compress_out_of_time_keeps_the_rows_it_could_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem(1500)
    small, message = stopped(lambda: compress(SVC(C=10).fit(X, y), X, random_state=0, max_time=0))
    assert "max_time" in message
    assert np.isfinite(small.decision_function(X)).all()


def test_ctrl_c_of_a_path_of_C_ends_all_folds(interrupted_before: Callable[[Any, str], None]) -> None:
    X, y = problem()
    scored: list[int] = []

    def score(model: Any, X: Any, y: Any) -> float:
        scored.append(1)
        if len(scored) == 5:  # in the second fold
            interrupt()
        return float(model.score(X, y))

    search, message = stopped(lambda: OCASClassifierCV([0.01, 0.1, 1.0], cv=5, scoring=score).fit(X, y))
    assert "interrupt" in message
    assert "2 of 5 folds" in message
    assert np.isnan(search.scores_[2:]).all()
