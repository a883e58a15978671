"""Numeric constants of the dual solver: what half and twice the value of each changes.

Measured are kernel entries and working sets of fits with predictions, and the answer, objective and score; they do not
depend on the load of the machine. "change" is the ratio to the measure with the value as it is, less 1, of the count
that differs more; "answer" the relative change of objective or score, whichever is larger.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.shrinking import counted
from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import DCSVMClassifier, DCSVMRegressor
from widemargin.datasets import load_benchmark
from widemargin.solvers.dual import solver

_PREFIX = "solvers/dual/solver.py:"
_FITS: dict[str, tuple[Any, str, int, dict[str, Any]]] = {
    "exact": (DCSVMClassifier, "codrna", 20_000, {}),
    "tight": (DCSVMClassifier, "letter", 4_000, {"memory_budget": "24MB"}),
    "level": (DCSVMClassifier, "codrna", 10_000, {"n_levels": 2}),
    "early": (DCSVMClassifier, "codrna", 20_000, {"n_levels": 1, "stop_level": 1}),
    "regression": (DCSVMRegressor, "cpusmall", 3_000, {"C": 10.0}),
}
_OWN = re.findall(r"^(_?[A-Z_]+) = ", Path(solver.__file__).read_text(encoding="utf-8"), re.MULTILINE)


def _rows(key: str, run: Run) -> Iterator[list[Row]]:
    """For each problem a row for half the value, and one for twice it."""
    name = key.removeprefix(_PREFIX)
    value = getattr(solver, name)
    for problem in _FITS:
        usual, usual_answer = _counts(problem)
        rows = []
        for factor in (0.5, 2.0):
            other = _scaled(value, factor)
            with mock.patch.object(solver, name, other):
                changed, answer = _counts(problem)
            changes = changed / usual - 1
            answers = np.abs(answer - usual_answer) / np.maximum(np.abs(usual_answer), 1e-300)
            row = {"constant": key, "value": str(other), "problem": problem, "measure": "counts"}
            rows.append(row | {"change": float(max(changes, key=abs)), "answer": float(answers.max())})
        yield rows


def _scaled(value: Any, factor: float) -> Any:
    """The value, or each of a tuple, times the factor; a share above a half comes half as near to 1."""
    if isinstance(value, tuple):
        return tuple(_scaled(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, int(value * factor))
    return (1 + value) / 2 if 0.5 <= value < 1 < factor else value * factor


def _counts(problem: str) -> tuple[Any, Any]:
    """Kernel entries and working sets of a fit with predictions; objective and score."""
    kind, name, n_rows, options = _FITS[problem]
    X, y, X_test, y_test, parameters = _load(name, n_rows)
    with warnings.catch_warnings(), counted() as counts:
        warnings.simplefilter("ignore")
        model = kind(**{"n_jobs": 1, **parameters, **options}).fit(X, y)
        answer = model.objective_, model.score(X_test, y_test)
    return np.array([counts["rows"] + counts["active"], np.sum(model.n_iter_)], float), np.array(answer)


@cache
def _load(name: str, n_rows: int) -> tuple[Any, Any, Any, Any, dict[str, float]]:
    """Rows and labels or targets to train on, up to 2,000 to score on, and the published C and gamma, if any."""
    if name == "cpusmall":
        X, y, *_ = load_benchmark(name)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = np.asarray(X, dtype=np.float32)[order], np.asarray(y)[order]
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-6)
        return X[:n_rows], y[:n_rows], X[-2000:], y[-2000:], {}
    p = load_problem(name, n_rows=n_rows)
    return p.X, p.y, p.X_test[:2000], p.y_test[:2000], {"C": p.C, "gamma": p.gamma}


CONSTANTS = Experiment("constants", [_PREFIX + name for name in _OWN], ("constant", "problem"), _rows, seconds=90.0)
