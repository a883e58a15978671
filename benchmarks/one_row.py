"""Microseconds of one row: `predict`, and the function that `as_function` returns, for every kind of machine.

On 4,000 of the bundled patches (75 columns, float32). The fastest of 20 rounds of 50 calls each, alternating.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from measuring.experiment import Experiment, Row
from widemargin import BSGDClassifier, DCOneClassSVM, DCPredClassifier, DCSVMClassifier, DCSVMRegressor, OCASClassifier
from widemargin.datasets import load_patches

_MACHINES: dict[str, Any] = {
    "DCPredClassifier": DCPredClassifier(C=8, gamma=1.0, prediction_cost=20, random_state=0),
    "OCASClassifier": OCASClassifier(),
    "BSGDClassifier": BSGDClassifier(C=8, gamma=1.0, random_state=0),
    "DCSVMClassifier, exact": DCSVMClassifier(C=8, gamma=1.0),
    "DCSVMClassifier, early": DCSVMClassifier(C=8, gamma=1.0, n_levels=2, stop_level=2, partition="input"),
    "DCSVMRegressor": DCSVMRegressor(gamma=1.0),
    "DCOneClassSVM": DCOneClassSVM(nu=0.1, gamma=1.0),
}
_ROUNDS, _CALLS = 20, 50


def measure(machine: str, run: Any = None) -> Row:
    """Microseconds of one machine."""
    X, y = load_patches(4_000)
    row = X[:1]
    model = _MACHINES[machine].fit(X, y)
    function = model.as_function()
    before, after = _microseconds(lambda: model.predict(row), lambda: function(row[0]))
    n_support = np.shape(getattr(model, "dual_coef_", np.empty((0, 0))))[1]
    return {"machine": machine, "support_vectors": n_support, "predict": before, "as_function": after}


def _microseconds(*calls: Callable[[], Any]) -> list[float]:
    """Of each call, the fastest round of them."""
    rounds = [[timeit.timeit(call, number=_CALLS) for call in calls] for _ in range(_ROUNDS)]
    return [1e6 * seconds / _CALLS for seconds in np.min(rounds, axis=0)]


ONE_ROW = Experiment("one_row", tuple(_MACHINES), ("machine",), measure, seconds=15.0)
