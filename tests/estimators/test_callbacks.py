"""scikit-learn's callbacks: every round of the solver is a task, scored and stoppable."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from recorder import Recorder
from widemargin import BSGDClassifier, DCSVMClassifier, LandmarkNystroem, OCASClassifier, TwoStepKernelKMeans

callback = pytest.importorskip("sklearn.callback")


@pytest.fixture
def moons() -> tuple[np.ndarray, np.ndarray]:
    return make_moons(1500, noise=0.25, random_state=0)


def test_rounds_are_tasks_with_a_machine_to_score(moons: tuple[np.ndarray, np.ndarray]) -> None:
    recorder = Recorder()
    model = DCSVMClassifier(C=100, gamma=1.0).set_callbacks(recorder).fit(*moons)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert recorder.events.count("begin round") == recorder.events.count("end round") >= 2
    assert recorder.scores[-1] == pytest.approx(model.score(*moons), abs=0.01)
    assert model.converged_


def test_rounds_have_machines_of_rows_far_from_the_origin(moons: tuple[np.ndarray, np.ndarray]) -> None:
    X, recorder = moons[0] + 1e6, Recorder()
    model = DCSVMClassifier(kernel="linear").set_callbacks(recorder).fit(X, moons[1])
    assert recorder.scores[-1] == pytest.approx(model.score(X, moons[1]), abs=0.01)


@pytest.mark.parametrize(
    ("model", "n_rounds"),
    [(DCSVMClassifier(C=100, gamma=1.0), 2), (OCASClassifier(tol=1e-9, acceleration=None), 3)],  # one has no machine
)
def test_a_callback_stops_the_fit(model: Any, n_rounds: int, moons: tuple[np.ndarray, np.ndarray]) -> None:
    recorder = Recorder(stop_after=n_rounds)
    with pytest.warns(ConvergenceWarning, match=r"stopped by callback.*gap"):
        model.set_callbacks(recorder).fit(*moons)
    assert recorder.scores[-1] > 0.6
    assert not model.converged_
    assert model.score(*moons) > 0.8


def test_passes_of_stochastic_steps_are_rounds(moons: tuple[np.ndarray, np.ndarray]) -> None:
    model = BSGDClassifier(gamma=1.0, n_epochs=4, random_state=0)
    recorder = Recorder()
    model.set_callbacks(recorder).fit(*moons)
    assert recorder.events.count("end round") == len(recorder.scores) == 4
    assert recorder.scores[-1] == model.score(*moons)
    model.set_callbacks(Recorder(stop_after=2))
    with pytest.warns(ConvergenceWarning, match="stopped by callback after 3000 steps"):
        model.fit(*moons)
    assert model.n_iter_ == 2


def test_a_scoring_monitor_logs_every_round(moons: tuple[np.ndarray, np.ndarray]) -> None:
    monitor = callback.ScoringMonitor(scoring="accuracy")
    DCSVMClassifier(C=100, gamma=1.0).set_callbacks(monitor).fit(*moons)
    scores = [row["accuracy"] for row in monitor.get_logs().data if "accuracy" in row]
    assert len(scores) >= 2
    assert max(scores) > 0.9


def test_without_callbacks_nothing_is_left_behind(moons: tuple[np.ndarray, np.ndarray]) -> None:
    model = DCSVMClassifier().set_callbacks(Recorder()).fit(*moons)
    model.set_callbacks()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*moons)
    assert not hasattr(model, "_callback_fit_ctx")


def test_a_failed_fit_ends_its_callbacks() -> None:
    recorder = Recorder()
    model = DCSVMClassifier().set_callbacks(recorder)
    with pytest.raises(ValueError, match="X must be at most"):
        model.fit([[1e200], [0.0]], [0, 1])
    assert recorder.events == ["setup", "begin fit", "teardown"]
    assert not hasattr(model, "_callback_fit_ctx")


def test_transformers_and_clusterers_call_their_callbacks() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    for model in (LandmarkNystroem(5), TwoStepKernelKMeans(2)):
        recorder = Recorder()
        model.set_callbacks(recorder).fit(X)
        assert recorder.events == ["setup", "begin fit", "end fit", "teardown"]


@pytest.mark.slow
@pytest.mark.parametrize("warm", [False, True])
def test_each_rounds_machine_is_scored_with_its_own_rows(warm: bool) -> None:
    """After levels and after a warm start the solver has the rows in another order."""
    X, y = make_moons(6000, noise=0.3, random_state=0)
    model = DCSVMClassifier(C=100, gamma=1.0, n_levels=0 if warm else 1, warm_start=warm)
    if warm:
        model.fit(X, y)
    recorder = Recorder()
    model.set_params(C=50).set_callbacks(recorder).fit(X, y)
    assert len(model.support_) > 512
    assert min(recorder.scores[-2:]) > model.score(X, y) - 0.01
