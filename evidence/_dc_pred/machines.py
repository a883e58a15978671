"""Everything that is trained here, by name, and what is measured of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from evidence import _published as as_published
from evidence._dc_pred.aesvm import AESVM
from evidence._dc_pred.cost import Linear
from evidence._dc_pred.ldkl import LDKL
from evidence._dc_pred.reduced_set import ReducedSet
from evidence._dc_pred.rivals import Exact, Fastfood, Fourier, Landmarks
from measuring.experiment import Row
from widemargin import DCPredClassifier, DCPredRegressor

OURS, NYSTROEM, FOURIER, REDUCED = "DC-Pred++", "k-means Nyström", "Fourier features", "reduced set"
LDKL_NAME, EXACT, EARLY, UNIFORM = "LDKL", "exact SVM", "DC-SVM early", "Nyström"
FASTFOOD, AESVM_NAME = "Fastfood", "AESVM"
PUBLISHED = "DC-Pred++ as published"

_AS_PUBLISHED = {"linear_term": False, "landmark_weights": "alpha", "damping": 0.0}
_MAKERS: dict[str, Callable[..., Any]] = {
    OURS: lambda **options: DCPredClassifier(random_state=0, **options),
    PUBLISHED: lambda **options: DCPredClassifier(random_state=0, **_AS_PUBLISHED, **options),
    NYSTROEM: Landmarks,
    FOURIER: Fourier,
    FASTFOOD: Fastfood,
    REDUCED: ReducedSet,
    AESVM_NAME: AESVM,
    LDKL_NAME: LDKL,
    EXACT: Exact,
    EARLY: Exact,
}
_REGRESSORS: dict[str, Callable[..., Any]] = {
    OURS: lambda C, **options: DCPredRegressor(alpha=1 / C, **options),
    PUBLISHED: lambda C, **options: DCPredRegressor(alpha=1 / C, **_AS_PUBLISHED, **options),
    UNIFORM: lambda **options: Landmarks(method="uniform", is_ridge=True, **options),
    NYSTROEM: lambda **options: Landmarks(is_ridge=True, **options),
    FOURIER: lambda **options: Fourier(is_ridge=True, **options),
    FASTFOOD: lambda **options: Fastfood(is_ridge=True, **options),
}


class Machine(NamedTuple):
    """What is trained, its constructor arguments, and its name in tables where that is another one."""

    label: str
    options: Mapping[str, Any]
    shown: str = ""

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.shown or self.label

    @property
    def settings(self) -> str:
        """The arguments as text, for tables."""
        return " ".join(f"{key}={value}" for key, value in self.options.items())


def compile_all() -> None:
    """Compile the loops of LDKL and AESVM, so that no time has it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    LDKL(1, epochs=1).fit(X, np.sign(X[:, 0])).decision_function(X)
    AESVM(1.0, 1.0).fit(X, np.sign(X[:, 0]))


def classify(machines: Sequence[Machine], problems: Sequence[Any], linear: Linear) -> list[Row]:
    """Train machines of two classes, each on its problem; their decision functions are timed one by one."""
    rows, trained = [], []
    for machine, problem in zip(machines, problems, strict=True):
        model, row = _train(_MAKERS[machine.label], machine, problem)
        values = model.decision_function(problem.X_test)
        row["accuracy"] = float(np.mean((values > 0) == (problem.y_test > 0)))
        rows.append(row | _operations(model))
        trained.append(model.decision_function)
    return [row | cost for row, cost in zip(rows, linear.multiples(trained), strict=True)]


def regress(machines: Sequence[Machine], problem: Any, linear: Linear | None = None, seed: int = 0) -> list[Row]:
    """Train regressors and measure their errors; and their costs, if the unit of cost is given."""
    rows, trained = [], []
    for machine in machines:
        model, row = _train(partial(_REGRESSORS[machine.label], random_state=seed), machine, problem)
        decide = model.predict if hasattr(model, "predict") else model.decision_function
        row["rmse"] = float(np.sqrt(np.mean(np.square(decide(problem.X_test) - problem.y_test))))
        rows.append(row | _operations(model))
        trained.append(decide)
    if linear is None:
        return rows
    return [row | cost for row, cost in zip(rows, linear.multiples(trained), strict=True)]


def _train(make: Callable[..., Any], machine: Machine, problem: Any) -> tuple[Any, Row]:
    model = make(**machine.options)
    start = time.perf_counter()
    block = as_published.dc_pred() if machine.label == PUBLISHED else nullcontext()
    with block, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that LIBLINEAR did not converge is seen in the error
        model.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    return model, {
        "set": problem.name,
        "machine": machine.name,
        "options": machine.settings,
        "n": len(problem.X),
        "n_features": problem.X.shape[1],
        "seconds": seconds,
    }


def _operations(model: Any) -> Row:
    return {"operations": float(getattr(model, "prediction_cost_", None) or model.n_operations)}
