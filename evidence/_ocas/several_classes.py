"""Crammer and Singer's machine, ours on one and two threads beside LIBLINEAR's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from evidence._ocas import ours
from measuring.experiment import Experiment, Row, Run, repeated
from measuring.linear_problems import Linear, Matrix, scaled
from widemargin.datasets import load_benchmark

_REPEATS, _LONG = 5, 5.0


def crammer_singer_objective(X: Any, labels: NDArray[Any], W: Matrix, C: float) -> float:
    """1/2 |W|^2 + C sum_i max(0, 1 + max_{k != y_i} <w_k, x_i> - <w_{y_i}, x_i>) in float64; W (q, d)."""
    W = np.asarray(W, dtype=np.float64)
    total = 0.5 * float(np.vdot(W, W))
    places = np.searchsorted(np.unique(labels), labels)
    for start in range(0, X.shape[0], 50_000):
        rows = slice(start, start + 50_000)
        values = np.asarray(X[rows].astype(np.float64) @ W.T)
        own = values[np.arange(len(values)), places[rows]].copy()
        values[np.arange(len(values)), places[rows]] = -np.inf
        total += C * float(np.maximum(0.0, 1.0 + values.max(axis=1) - own).sum())
    return total


def _measure(name: str, options: Run) -> Iterator[list[Row]]:
    data = load_benchmark(name)
    X = scaled(data.X[: options.rows])
    problem = Linear(name, X, data.y[: options.rows], np.empty((0, 0)))
    for C in options.C or (0.01, 1.0):
        if options.wants(set=name, C=C):
            rows = [{"set": name, "n": X.shape[0], "C": C, **row} for row in _machines(problem, C, options.limit)]
            best = min(row["objective"] for row in rows)
            yield [row | {"excess": row["objective"] / best - 1} for row in rows]


def _machines(problem: Linear, C: float, limit: float) -> Iterator[Row]:
    double = problem._replace(X=problem.X.astype(np.float64))
    ours.fit(problem, C, multi_class="crammer_singer", max_iter=2)
    for who, threads in ((ours.OCAS, 1), (ours.OCAS, 2), (ours.PLAIN, 2)):
        how = {"multi_class": "crammer_singer", "n_jobs": threads, "max_time": limit, **ours.WAYS[who]}
        yield _timed(problem, C, who, threads, lambda how=how: ours.fit(problem, C, **how)[0].coef_)
    rival = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, random_state=0)
    yield _timed(problem, C, "LIBLINEAR", 1, lambda: rival.fit(double.X, double.labels).coef_)


def _timed(problem: Linear, C: float, who: str, threads: int, train: Any) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `excess` says how far it came
        W, seconds = ours.repeat(train, _REPEATS, _LONG)
    value = crammer_singer_objective(problem.X, problem.labels, W, C)
    return {"solver": who, "threads": threads, **repeated(seconds), "objective": value}


CRAMMER_SINGER = Experiment(  # Crammer and Singer's machine beside LIBLINEAR's
    "ocas/crammer_singer",
    ("usps", "pendigits", "letter", "mnist"),
    ("set", "n", "C"),
    _measure,
    settings=ours.SETTINGS,
    parts=True,
    seconds={"mnist": 100.0, "": 20.0},
)
