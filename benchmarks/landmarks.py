"""Error of `LandmarkNystroem` on rows it has not seen, and seconds, by how its landmarks are chosen.

The error is that of the kernel matrix of 2,000 test rows, in the Frobenius norm, divided by its norm; seconds are those
of a processor, on one thread; both are means over three seeds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import LandmarkNystroem

_TEST_ROWS = 2000
_LANDMARKS = (100, 500)
_METHODS = ("kmeans", "uniform")
_SEEDS = range(3)


def _all(name: str, run: Run) -> Iterator[Row]:
    problem = load_problem(name, n_rows=run.rows)
    for m in _LANDMARKS:
        yield from (measure(problem, m, landmarks) for landmarks in _METHODS)


def measure(problem: Any, m: int, landmarks: str) -> Row:
    """The error and the seconds, means over the seeds."""
    errors, seconds, X_test = [], [], problem.X_test[:_TEST_ROWS]
    K = rbf_kernel(X_test, gamma=problem.gamma)
    for seed in _SEEDS:
        model = LandmarkNystroem(m, landmarks=landmarks, gamma=problem.gamma, n_jobs=1, random_state=seed)
        start = time.process_time()
        model.fit(problem.X)
        seconds.append(time.process_time() - start)
        features = model.transform(X_test)
        errors.append(float(np.linalg.norm(K - features @ features.T) / np.linalg.norm(K)))
    n, d = problem.X.shape
    row = {"set": problem.name, "n": n, "n_features": d, "m": m, "landmarks": landmarks}
    return row | {"error": float(np.mean(errors)), "seconds": float(np.mean(seconds))}


LANDMARKS = Experiment(
    "landmarks",
    ("usps", "letter", "a9a", "covtype_20k", "ijcnn1", "pendigits"),
    ("set", "m", "landmarks"),
    _all,
    seconds=30.0,
    settings={"rows": 5000},
    quick={"rows": 2500},
)
