"""Early kernel models of dask arrays beside the fit of the same rows in one process.

::

    export WIDEMARGIN_DATA=...                     # a folder of .npz files, see widemargin.datasets.load_benchmark
    python benchmarks/peers/dask_kernel.py         # a9a and codrna on two worker processes
    python benchmarks/peers/dask_kernel.py --sets patches --rows 200000 --append
    python benchmarks/peers/dask_kernel.py --memory        # rows that do not fit into one worker's limit

Workers are processes of one thread each, the local fit has two threads. `same_labels` is a share of the test rows: the
clusters are other ones. Seconds are medians of alternating repeats. `worker_mb` is the largest peak of a worker's
memory, of which `idle_mb` is there before a fit.

Of `--memory`, the rows are made on the workers. `peak_mb` is the largest memory of a worker during the fit beyond what
it has after a small one (`idle_mb`); `share_mb` are its rows, `budget_mb` is `memory_budget`.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import dask.array as da
from distributed import Client, LocalCluster

from measuring import report
from measuring.problems import Problem, load_problem
from widemargin import DCSVMClassifier

_CHUNKS = 16  # partitions of X
_EARLY = {"n_levels": 2, "stop_level": 2}

# rows of `--memory`: the first column tells the class, the next four the cluster
_WIDE_WORKERS, _WIDE_LIMIT, _WIDE_BUDGET = 4, 10**9, 64 * 10**6
_WIDE_PARTS, _WIDE_PART, _WIDE_COLUMNS = 60, 12_000, 400
_WIDE_GAMMA, _WIDE_OFFSETS = 1e-3, np.float32([4, 8, 8, 8, 8] + 395 * [0])

Row = dict[str, Any]


def measure(problem: Problem, repeats: int) -> Row:
    """The fit on two workers beside the local one, alternating."""
    how: Row = {"C": problem.C, "gamma": problem.gamma, **_EARLY}
    seconds: dict[str, list[float]] = {"local": [], "dask": []}
    with _cluster(2) as cluster, Client(cluster) as client:
        X = client.persist(da.from_array(problem.X, chunks=(-(-len(problem.X) // _CHUNKS), -1)))
        idle = max(client.run(_peak_mb).values())
        for _ in range(repeats):
            local, taken = _timed(DCSVMClassifier(**how, n_jobs=2), problem.X, problem.y)
            seconds["local"].append(taken)
            model, taken = _timed(DCSVMClassifier(**how), X, problem.y)
            seconds["dask"].append(taken)
        peak = max(client.run(_peak_mb).values())
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


def measure_memory() -> Row:
    """The largest memory of a worker during a fit of rows that are made there and exceed one worker's limit."""
    how: Row = {"C": 1.0, "gamma": _WIDE_GAMMA, "memory_budget": _WIDE_BUDGET, **_EARLY}
    limit = f"{_WIDE_LIMIT}B"
    with _cluster(_WIDE_WORKERS, memory_limit=limit) as cluster, Client(cluster) as client:
        small = _make_wide(_WIDE_WORKERS)
        DCSVMClassifier(**how).fit(small, _wide_labels(small))
        client.run(gc.collect)
        idle = client.run(_forget_peak)
        X = _make_wide(_WIDE_PARTS)
        y = _wide_labels(X)
        start = time.perf_counter()
        model = DCSVMClassifier(**how).fit(X, y)
        seconds = time.perf_counter() - start
        peak, pids = client.run(_peak_mb), client.run(os.getpid)
    worst = max(peak, key=lambda worker: peak[worker] - idle.get(worker, 0.0))
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "total_mb": X.nbytes / 1e6,
        "workers": len(pids),
        "limit_mb": _WIDE_LIMIT / 1e6,
        "share_mb": X.nbytes / 1e6 / len(pids),
        "budget_mb": _WIDE_BUDGET / 1e6,
        "idle_mb": idle.get(worst, 0.0),
        "peak_mb": peak[worst] - idle.get(worst, 0.0),
        "restarts": len(set(peak) - set(idle)),
        "support_vectors": len(model.support_),
        "converged": model.converged_,
        "rel_gap": model.relative_gap_,
        "seconds": seconds,
    }


def _make_wide(n_parts: int) -> da.Array:
    """Rows of 16 Gaussian clusters with both classes in each, one generated partition after the other."""
    return da.map_blocks(
        _wide_part,
        chunks=((_WIDE_PART,) * n_parts, (_WIDE_COLUMNS,)),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )


def _wide_part(block_info: Any = None) -> np.ndarray[Any, Any]:
    number = block_info[None]["chunk-location"][0]
    rng = np.random.default_rng(number)
    X = rng.standard_normal((_WIDE_PART, _WIDE_COLUMNS), dtype=np.float32)
    return X + _WIDE_OFFSETS * rng.choice(np.float32([-1, 1]), (_WIDE_PART, _WIDE_COLUMNS))


def _wide_labels(X: da.Array) -> Any:
    """The class of each row, by the sign of the first column."""
    return (X[:, 0] > 0).compute()


def _cluster(n_workers: int, **how: Any) -> LocalCluster:
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", **how)


def _timed(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


def _peak_mb() -> float:
    """The largest memory of this process so far; that of the one it was started from does not count (Linux)."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1e3


def _forget_peak() -> float:
    """The memory of this process now, from which `_peak_mb` begins anew (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_mb()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["a9a", "codrna"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--append", action="store_true", help="keep what other runs have measured in the CSV")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args(arguments)
    if options.memory:
        report.write_csv(report.RESULTS / "dask_memory.csv", [measure_memory()])
        return
    path = report.RESULTS / "dask_kernel.csv"
    rows = [measure(load_problem(name, n_rows=options.rows), options.repeats) for name in options.sets]
    measured = {(row["set"], row["rows"]) for row in rows}
    known = report.read_csv(path) if options.append else []
    report.write_csv(path, [*(row for row in known if (row["set"], row["rows"]) not in measured), *rows])


if __name__ == "__main__":
    main()
