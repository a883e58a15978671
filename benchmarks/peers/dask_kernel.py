"""Early kernel models of dask arrays beside the fit of the same rows in one process.

Workers are processes of one thread each, the local fit has two threads. `same_labels` is a share of the test rows: the
clusters are other ones. Seconds are medians of alternating repeats. `worker_mb` is the largest peak of a worker's
memory, of which `idle_mb` is there before a fit.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from measuring import process
from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import DCSVMClassifier

_CHUNKS = 16  # partitions of X
_EARLY = {"n_levels": 2, "stop_level": 2}


def measure(name: str, run: Run) -> Row:
    """The fit on two workers beside the local one, alternating."""
    problem = load_problem(name, n_rows=run.rows)
    how: Row = {"C": problem.C, "gamma": problem.gamma, **_EARLY}
    seconds: dict[str, list[float]] = {"local": [], "dask": []}
    with _cluster() as cluster, Client(cluster) as client:
        X = client.persist(da.from_array(problem.X, chunks=(-(-len(problem.X) // _CHUNKS), -1)))
        idle = max(client.run(process.peak_bytes).values()) / 1e6
        for _ in range(run.repeats):
            local, taken = _timed(DCSVMClassifier(**how, n_jobs=2), problem.X, problem.y)
            seconds["local"].append(taken)
            model, taken = _timed(DCSVMClassifier(**how), X, problem.y)
            seconds["dask"].append(taken)
        peak = max(client.run(process.peak_bytes).values()) / 1e6
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "set": problem.name,
        "rows": len(problem.X),
        "seconds": medians["dask"],
        "local_seconds": medians["local"],
        "ratio": medians["dask"] / medians["local"],
        "support_vectors": len(model.support_),
        "rel_gap": model.relative_gap_,
        "converged": model.converged_,
        "same_labels": float(np.mean(model.predict(problem.X_test) == local.predict(problem.X_test))),
        "worker_mb": peak,
        "idle_mb": idle,
    }


def _cluster() -> LocalCluster:
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")


def _timed(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


DASK_KERNEL = Experiment(
    "dask_kernel",
    ("a9a", "codrna"),
    ("set", "rows"),
    measure,
    settings={"rows": None, "repeats": 3},
    quick={"cells": ["patches"], "rows": 2000, "repeats": 1},
)
