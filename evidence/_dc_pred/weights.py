"""Figure 4: landmarks by weighted and by plain k-means, over seeds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from evidence._dc_pred.machines import OURS, compile_all
from evidence._dc_pred.problems import load_classes, load_numbers
from evidence._dc_pred.tables import SETTINGS
from measuring.experiment import Axes, Experiment, Row, Run, panels_of
from widemargin import DCPredClassifier, DCPredRegressor

_WAYS = {"plain": None, "weighted": "alpha", "better of both": "auto"}
_PARTS: dict[str, dict[str, Any]] = {"whole": {}, "landmarks alone": {"pseudo": None, "linear_term": False}}
_SIZES = (8, 32)
_NUMBERS = ("cadata", "cpusmall", "census_house8L")
_CLASS_LEAVES, _NUMBER_LEAVES = (16,), (1, 8)
_RIDGE = {"alpha": 0.1, "gamma": 0.02}


def _score(model: Any, problem: Any) -> float:
    """Accuracy in percent, or the root of the mean squared error."""
    given = model.fit(problem.X, problem.y).predict(problem.X_test)
    if isinstance(model, DCPredClassifier):
        return float(100 * np.mean(given == problem.y_test))
    return float(np.sqrt(np.mean(np.square(given - problem.y_test))))


def _figure4(name: str, options: Run) -> Iterator[list[Row]]:
    compile_all()
    is_class = name not in _NUMBERS
    problem: Any = (load_classes if is_class else load_numbers)(name, options.rows)
    make: Any = DCPredClassifier if is_class else DCPredRegressor
    base = {key: SETTINGS[name][OURS][key] for key in ("C", "gamma")} if is_class else _RIDGE
    leaves, seeds = _CLASS_LEAVES if is_class else _NUMBER_LEAVES, range(options.seeds)
    for (parts, without), k, m in product(_PARTS.items(), leaves, _SIZES):
        cell = {"set": name, "parts": parts, "clusters": k, "n_landmarks": m}
        if not options.wants(**cell):
            continue
        plain, rows = None, []
        for way, weights in _WAYS.items():
            machine = make(n_clusters=k, n_landmarks=m, landmark_weights=weights, **base, **without)
            scores = np.array([_score(machine.set_params(random_state=seed), problem) for seed in seeds])
            plain = scores if plain is None else plain
            gain = scores - plain if is_class else 100 * (1 - scores / plain)
            rows.append(
                cell
                | {
                    "landmarks": way,
                    "measure": "accuracy, %" if is_class else "RMSE",
                    "score": scores.mean(),
                    "gain": gain.mean(),
                    "standard_error": gain.std(ddof=min(1, len(gain) - 1)) / np.sqrt(len(gain)),
                    "seeds": len(gain),
                }
            )
        yield rows


FIGURE4 = Experiment(  # Figure 4: weighted against plain k-means landmarks, over seeds
    "dc_pred/figure4",
    ("usps", "covtype_20k", *_NUMBERS),
    ("set", "parts", "clusters", "n_landmarks"),
    _figure4,
    settings={"rows": None, "seeds": 3},
    parts=True,
    seconds={"usps": 45.0, "covtype_20k": 55.0, "": 90.0},
    panels=lambda rows: panels_of(
        rows,
        ("set", "parts"),
        ("landmarks", "clusters"),
        Axes("n_landmarks", "landmarks", "gain", "gain over plain k-means, % or points", "x"),
    ),
)
