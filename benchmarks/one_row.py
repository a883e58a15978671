"""Microseconds of one row: `predict`, and the function that `as_function` returns, for every kind of machine.

python benchmarks/one_row.py

On 4,000 of the bundled patches (75 columns, float32). The fastest of 20 rounds of 50 calls each, alternating.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

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


def _microseconds(*calls: Callable[[], Any]) -> list[float]:
    """Of each call, the fastest round of them."""
    rounds = [[timeit.timeit(call, number=_CALLS) for call in calls] for _ in range(_ROUNDS)]
    return [1e6 * seconds / _CALLS for seconds in np.min(rounds, axis=0)]


def main() -> None:
    """Print the table of the guide."""
    X, y = load_patches(4_000)
    row = X[:1]
    print("| machine | support vectors | `predict` | `as_function` |\n| --- | --- | --- | --- |")
    for name, machine in _MACHINES.items():
        model = machine.fit(X, y)
        function = model.as_function()
        before, after = _microseconds(lambda model=model: model.predict(row), lambda f=function: f(row[0]))
        n_support = len(getattr(model, "dual_coef_", np.empty((0, 0))).T) or "–"
        print(f"| {name} | {n_support} | {before:.0f} | {after:.0f} |")


if __name__ == "__main__":
    main()
