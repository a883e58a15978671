"""Everything that is trained here, by name, and what is measured of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.papers._dc_pred.cost import Linear
from benchmarks.papers._dc_pred.ldkl import LDKL
from benchmarks.papers._dc_pred.rivals import Exact, Fourier, Landmarks, ReducedSet
from benchmarks.papers._experiment import Row
from widemargin import DCPredClassifier, DCPredRegressor

OURS, NYSTROEM, FOURIER, REDUCED = "DC-Pred++", "k-means Nyström", "Fourier features", "reduced set"
LDKL_NAME, EXACT, EARLY, UNIFORM = "LDKL", "exact SVM", "DC-SVM early", "Nyström"

_MAKERS: dict[str, Callable[..., Any]] = {
    OURS: lambda **options: DCPredClassifier(random_state=0, **options),
    NYSTROEM: Landmarks,
    FOURIER: Fourier,
    REDUCED: ReducedSet,
    LDKL_NAME: LDKL,
    EXACT: Exact,
    EARLY: Exact,
}
_REGRESSORS: dict[str, Callable[..., Any]] = {
    OURS: lambda C, **options: DCPredRegressor(random_state=0, alpha=1 / C, **options),
    UNIFORM: lambda **options: Landmarks(method="uniform", is_ridge=True, **options),
    NYSTROEM: lambda **options: Landmarks(is_ridge=True, **options),
    FOURIER: lambda **options: Fourier(is_ridge=True, **options),
}


class Machine(NamedTuple):
    """A label for tables, and constructor arguments."""

    label: str
    options: Mapping[str, Any]


def compile_all() -> None:
    """Compile ours and LDKL's loops, so that no time has it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    LDKL(1, epochs=1).fit(X, np.sign(X[:, 0])).decision_function(X)


def classify(machine: Machine, problem: Any, linear: Linear) -> Row:
    """Train and measure a machine of two classes."""
    model, row = _train(_MAKERS[machine.label], machine, problem)
    values = model.decision_function(problem.X_test)
    row["accuracy"] = float(np.mean((values > 0) == (problem.y_test > 0)))
    return row | _cost(model, model.decision_function, linear)


def regress(machine: Machine, problem: Any, linear: Linear | None) -> Row:
    """Train a regressor and measure its error; and its cost, if a `Yardstick` is given."""
    model, row = _train(_REGRESSORS[machine.label], machine, problem)
    decide = model.predict if hasattr(model, "predict") else model.decision_function
    row["rmse"] = float(np.sqrt(np.mean(np.square(decide(problem.X_test) - problem.y_test))))
    return row if linear is None else row | _cost(model, decide, linear)


def _train(make: Callable[..., Any], machine: Machine, problem: Any) -> tuple[Any, Row]:
    model = make(**machine.options)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that LIBLINEAR did not converge is seen in the error
        model.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    return model, {
        "set": problem.name,
        "machine": machine.label,
        "options": " ".join(f"{key}={value}" for key, value in machine.options.items()),
        "n": len(problem.X),
        "n_features": problem.X.shape[1],
        "seconds": seconds,
    }


def _cost(model: Any, decide: Callable[[Any], Any], linear: Linear) -> Row:
    n_operations = getattr(model, "prediction_cost_", None) or model.n_operations
    return linear.multiple(decide) | {"operations": float(n_operations)}
