"""How many functions are between `fit` and a compiled step: `building/frames.py` prints them."""

import sys
from typing import Any

import numpy as np
import pytest

from widemargin import DCOneClassSVM, DCSVMClassifier, DCSVMRegressor
from widemargin._native import dual


@pytest.mark.parametrize("estimator", [DCSVMClassifier(), DCSVMRegressor(), DCOneClassSVM()])
def test_few_functions_are_between_a_fit_and_a_working_set(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of a shrunk problem within rounds count once."""
    solve, counts = dual.solve_working_sets, []

    def counted(*arguments: Any) -> Any:
        frame, functions = sys._getframe(1), set()
        while frame is not None:
            if frame.f_globals["__name__"].startswith("widemargin."):
                functions.add(frame.f_code)
            frame = frame.f_back
        counts.append(len(functions))
        return solve(*arguments)

    monkeypatch.setattr(dual, "solve_working_sets", counted)
    X = np.random.default_rng(0).normal(size=(6000, 5))
    estimator.set_params(n_jobs=1).fit(X, np.sign(X[:, 0] * X[:, 1]))
    assert 0 < max(counts) <= 18
