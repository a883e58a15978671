"""What a prediction costs, in multiples of a linear one: measured, beside the count of operations."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from benchmarks.papers._load import QUIET, Others

Decide = Callable[[Any], Any]

_ROWS = 10_000, 20_000  # at least and at most
_ROUNDS = 3, 300
_SECONDS = 0.5
_TRIES = 3


class Linear:
    """The unit of cost: `LinearSVC.decision_function` on float32 rows, with as many threads as all machines.

    What it was fitted to does not change its time, so that few rows are enough.
    """

    def __init__(self, X: NDArray[np.float32]) -> None:
        self._model = LinearSVC(C=1e-6).fit(X[:500], np.arange(len(X[:500])) % 2)
        self.rows = np.resize(X, (max(_ROWS[0], min(len(X), _ROWS[1])), X.shape[1]))

    def multiples(self, decide: Sequence[Decide]) -> list[dict[str, float]]:
        """Time decision functions and the linear one in turns; medians, and their ratios to the one linear median.

        Each is called once before it is timed: a change in the number of BLAS's threads costs the next call dearly.
        Where another process was busy meanwhile, all is timed again, some times at most: `beside` is how many cores it
        took in the end.
        """
        for _ in range(_TRIES):
            others = Others()
            linear, *machines = (1e6 * statistics.median(times) / len(self.rows) for times in self._turns(decide))
            beside = others.look() or 0.0
            if beside < QUIET:
                break
            time.sleep(_SECONDS)
        return [{"multiple": us / linear, "predict_us": us, "linear_us": linear, "beside": beside} for us in machines]

    def _turns(self, decide: Sequence[Decide]) -> list[list[float]]:
        """Seconds of the linear machine, then of the others, one of each a turn."""
        everyone = [self._model.decision_function, *decide]
        times: list[list[float]] = [[] for _ in everyone]
        start, seconds = time.perf_counter(), _SECONDS * len(everyone)
        while len(times[0]) < _ROUNDS[0] or (time.perf_counter() - start < seconds and len(times[0]) < _ROUNDS[1]):
            for mine, machine in zip(times, everyone, strict=True):
                mine.append(_seconds(machine, self.rows))
        return times


def _seconds(decide: Decide, X: NDArray[np.float32]) -> float:
    decide(X)
    start = time.perf_counter()
    decide(X)
    return time.perf_counter() - start
