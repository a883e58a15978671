"""A fit that is stopped returns the best point so far and its gap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from widemargin import OCASClassifier
from widemargin.solvers.cutting_plane import accelerations

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def assert_certified(model: OCASClassifier, best: float) -> None:
    assert not model.converged_
    assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-9) <= model.objective_ * (1 + 1e-9)


@pytest.fixture
def by_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve few rows by rounds, without the Gram dual."""
    monkeypatch.setattr(accelerations, "_GRAM_SIZE", 0)
    monkeypatch.setattr("widemargin.algorithms.ocas._FIRST_ROUNDS", 10**6)


@pytest.mark.usefixtures("by_rounds")
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"line_search": False}])
def test_max_iter(binary: Data, options: dict[str, Any]) -> None:
    best = OCASClassifier(tol=1e-6, **{**options, "line_search": True}).fit(*binary).objective_
    with pytest.warns(
        ConvergenceWarning, match=r"stopped by max_iter .* duality gap .* of the objective\) where tol=1e-06"
    ):
        model = OCASClassifier(tol=1e-6, max_iter=3, **options).fit(*binary)
    assert model.n_iter_ == 3
    assert_certified(model, best)


class Stopper:
    """Keeps the objective of every round, and stops after the third."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        if fitted_estimator is not None and context.task_name == "round":
            self.seen.append(fitted_estimator.objective_)
        return len(self.seen) >= 3


def test_a_callback_gets_every_round_and_stops_the_fit(binary: Data) -> None:
    pytest.importorskip("sklearn.callback")
    stopper = Stopper()
    with pytest.warns(ConvergenceWarning, match="stopped by callback"):
        model = OCASClassifier(tol=1e-9).set_callbacks(stopper).fit(*binary)
    assert len(stopper.seen) >= 3
    assert stopper.seen == sorted(stopper.seen, reverse=True)
    assert model.objective_ <= stopper.seen[-1]


SCRIPT = """
import os, signal, threading, warnings
import numpy as np
from widemargin import OCASClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(200000, 40)); y = X[:, 0] + rng.normal(size=len(X)) > 0
OCASClassifier(max_iter=2, tol=0.9).fit(X[:100], y[:100])
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = OCASClassifier(C=1e4, tol=1e-15, max_iter=10**6).fit(X, y)
print(model.converged_, "stopped by interrupt" in str(caught[-1].message), model.score(X, y) > 0.6)
"""


@pytest.mark.slow
def test_an_interrupt_keeps_the_best_point(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.split() == ["False", "True", "True"]
