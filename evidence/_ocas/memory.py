"""A memory-mapped file twice as large as the memory budget: what a fit allocates beside it."""

from __future__ import annotations

import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence._ocas import ours
from measuring import process
from measuring.experiment import Experiment, Row, is_wanted
from measuring.linear_problems import make_linear, two_gaussians
from measuring.plots import Panel

_STATUS = Path("/proc/self/status")


def _memory(name: str, options: Namespace) -> Iterator[Row]:
    n = options.rows or 1_000_000
    if not is_wanted(options, set=name, n=n):
        return
    yield {"set": name, **process.run_apart(measure, name, n)}


def measure(name: str, n: int) -> Row:
    """In a process of its own: write the file, map it, fit with half its size as the budget."""
    with tempfile.TemporaryDirectory() as folder:
        X, labels = two_gaussians(n)
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        size = X.nbytes
        del X
        problem = make_linear(name, np.load(path, mmap_mode="r"), labels)
        ours.warm_up(problem._replace(X=problem.X[:100], labels=labels[:100]))
        held = anonymous_bytes()
        start = time.perf_counter()
        with Watch(anonymous_bytes) as watch:
            model, _ = ours.fit(problem, 0.01, memory_budget=size // 2)
        return {
            "n": n,
            "megabytes": size / 1e6,
            "budget_mb": size / 2e6,
            "extra_mb": (watch.peak - held) / 1e6,
            "seconds": time.perf_counter() - start,
            "iterations": model.n_iter_,
            "converged": bool(model.converged_),
        }


def anonymous_bytes() -> int:
    """Resident bytes without those of mapped files, whose pages the system can drop."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("no RssAnon in /proc/self/status: this experiment needs Linux")


class Watch:
    """The largest value of a function, which a thread calls every two milliseconds."""

    def __init__(self, look: Callable[[], int]) -> None:
        self.peak = look()
        self._look = look
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.002):
            self.peak = max(self.peak, self._look())


def _panels(rows: Sequence[Row]) -> list[Panel]:
    series = {
        "budget": ([row["megabytes"] for row in rows], [row["budget_mb"] for row in rows]),
        "allocated": ([row["megabytes"] for row in rows], [row["extra_mb"] for row in rows]),
    }
    return [Panel("a mapped file twice the budget", "megabytes of the file", "megabytes", series, lines=False)]


MEMORY = Experiment(
    "a memory-mapped file twice as large as memory_budget",
    ("gaussians",),
    ("set", "n"),
    ("set", "n", "megabytes", "budget_mb", "extra_mb", "seconds", "iterations", "converged"),
    _memory,
    _panels,
)
