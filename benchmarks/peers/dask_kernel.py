"""Kernel machines of dask arrays beside the fit of the same rows in one process; and fits during which a worker dies.

::

    export WIDEMARGIN_DATA=...                     # a folder of .npz files, see widemargin.datasets.load_benchmark
    python benchmarks/peers/dask_kernel.py         # a9a and codrna on 1, 2, 4 and 8 worker processes
    python benchmarks/peers/dask_kernel.py --sets patches --rows 200000 --workers 2 --append
    python benchmarks/peers/dask_kernel.py --kills 20      # a worker is killed at a random moment of each fit

Workers are processes of one thread each, the local fit has two threads: with two workers, `ratio` compares equal
numbers of threads. More workers than cores are for `rounds` and `megabytes`, which do not depend on the clock.
`dual_difference` is relative, `same_labels` a share of the test rows (early machines: other clusters, so other
machines). Seconds are medians of alternating repeats. `worker_mb` is the largest peak of a worker's memory, of which
`idle_mb` is there before a fit.

Of `--kills`, a fit with `seconds` below `killed_after` had ended before.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import dask.array as da
from distributed import Client, LocalCluster

from benchmarks import _report
from benchmarks._problems import Problem, load_problem
from widemargin import DCSVMClassifier
from widemargin.data import LostPartitionError

_CHUNKS = 16  # partitions of X
_EARLY = {"n_levels": 2, "stop_level": 2}
_KILL_ROWS = 20_000

Row = dict[str, Any]


def measure(problem: Problem, n_workers: int, machine: str, repeats: int) -> Row:
    """The fit on so many workers beside the local one, alternating."""
    how: Row = {"C": problem.C, "gamma": problem.gamma, **(_EARLY if machine == "early" else {})}
    seconds: dict[str, list[float]] = {"local": [], "dask": []}
    with _cluster(n_workers) as cluster, Client(cluster) as client:
        X = client.persist(da.from_array(problem.X, chunks=(-(-len(problem.X) // _CHUNKS), -1)))
        idle = max(client.run(_peak_mb).values())
        for _ in range(repeats):
            local, taken = _timed(DCSVMClassifier(**how, n_jobs=2), problem.X, problem.y)
            seconds["local"].append(taken)
            model, taken = _timed(DCSVMClassifier(**how), X, problem.y)
            seconds["dask"].append(taken)
        peak = max(client.run(_peak_mb).values())
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    dual, dual_local = (m.objective_ - m.dual_gap_ for m in (model, local))
    return {
        "set": problem.name,
        "rows": len(problem.X),
        "machine": machine,
        "workers": n_workers,
        "seconds": medians["dask"],
        "local_seconds": medians["local"],
        "ratio": medians["dask"] / medians["local"],
        "rounds": len(model.history_["time"]) - 1,
        "megabytes": float(model.history_["bytes"][-1]) / 1e6,
        "support_vectors": len(model.support_),
        "dual_difference": abs(dual - dual_local) / abs(dual_local),
        "rel_gap": model.relative_gap_,
        "converged": model.converged_,
        "same_labels": float(np.mean(model.predict(problem.X_test) == local.predict(problem.X_test))),
        "worker_mb": peak,
        "idle_mb": idle,
    }


def measure_kills(runs: range) -> list[Row]:
    """Fits during which one of two workers is killed after a random share of the time of an undisturbed fit."""
    problem, rng, rows = load_problem("patches", n_rows=_KILL_ROWS), np.random.default_rng(runs.start), []
    local = DCSVMClassifier(C=problem.C, gamma=problem.gamma).fit(problem.X, problem.y)
    undisturbed = min(fit_and_kill(problem, local, None, 0)["seconds"] for _ in range(2))
    for run in runs:
        delay, victim = float(rng.uniform(0, undisturbed)), int(rng.integers(2))
        row = fit_and_kill(problem, local, delay, victim)
        rows.append({"run": run, "killed_after": delay, "undisturbed_seconds": undisturbed, **row})
        print(rows[-1], flush=True)
    return rows


def fit_and_kill(problem: Problem, local: DCSVMClassifier, delay: float | None, victim: int) -> Row:
    """A fit on two workers of its own, and what came of it."""
    model = DCSVMClassifier(C=problem.C, gamma=problem.gamma)
    with _cluster(2) as cluster, Client(cluster) as client:
        pids = sorted(client.run(os.getpid).values())
        X = da.from_array(problem.X, chunks=(_KILL_ROWS // 8, -1))
        killer = threading.Timer(delay or 0.0, os.kill, (pids[victim], signal.SIGKILL))
        if delay is not None:
            killer.start()
        start = time.perf_counter()
        try:
            model.fit(X, problem.y)
        except LostPartitionError as error:
            return {"seconds": time.perf_counter() - start, "outcome": str(error)}
        seconds = time.perf_counter() - start
        killer.cancel()
    dual, dual_local = (m.objective_ - m.dual_gap_ for m in (model, local))
    return {
        "seconds": seconds,
        "outcome": "machine" if model.converged_ else "not converged",
        "dual_difference": abs(dual / dual_local - 1),
        "same_labels": float(np.mean(model.predict(problem.X_test) == local.predict(problem.X_test))),
    }


def _cluster(n_workers: int) -> LocalCluster:
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0")


def _timed(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


def _peak_mb() -> float:
    """The largest memory of this process so far; that of the one it was started from does not count (Linux)."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1e3


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["a9a", "codrna"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--append", action="store_true", help="keep the rows of other runs in the CSV")
    parser.add_argument("--machines", nargs="+", default=["exact", "early"], help="early ones on two workers only")
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.kills:
        path = _report.RESULTS / "dask_failures.csv"
        known = _report.read_csv(path) if options.append else []
        rows = [*known, *measure_kills(range(len(known), len(known) + options.kills))]
    else:
        path, rows = _report.RESULTS / "dask_kernel.csv", []
        for name in options.sets:
            problem = load_problem(name, n_rows=options.rows)
            for n_workers in options.workers:
                for machine in options.machines if n_workers == 2 else ["exact"]:
                    rows.append(measure(problem, n_workers, machine, options.repeats))
                    print(rows[-1], flush=True)
        rows = [*(_report.read_csv(path) if options.append else []), *rows]
    _report.write_csv(path, rows, _report.machine_card())


if __name__ == "__main__":
    main()
