"""What a prediction costs, in multiples of a linear one: measured, beside the count of operations."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from benchmarks.papers._load import Others

_ROWS = 10_000, 20_000  # at least and at most
_ROUNDS = 3, 300
_SECONDS = 0.5
_QUIET, _TRIES = 0.2, 3


class Linear:
    """The unit of cost: `LinearSVC.decision_function` on float32 rows, with as many threads as all machines.

    What it was fitted to does not change its time, so that few rows are enough.
    """

    def __init__(self, X: NDArray[np.float32]) -> None:
        self._model = LinearSVC(C=1e-6).fit(X[:500], np.arange(len(X[:500])) % 2)
        self.rows = np.resize(X, (max(_ROWS[0], min(len(X), _ROWS[1])), X.shape[1]))

    def multiple(self, decide: Callable[[Any], Any]) -> dict[str, float]:
        """Time a decision function and the linear one, alternating; medians, and their ratio.

        Each is called once before it is timed: a change in the number of BLAS's threads costs the next call dearly.
        Where another process was busy meanwhile, all is timed again, some times at most: `beside` is how many cores it
        took in the end.
        """
        for _ in range(_TRIES):
            others = Others()
            us = [1e6 * statistics.median(times) / len(self.rows) for times in self._turns(decide)]
            beside = others.look() or 0.0
            if beside < _QUIET:
                break
            time.sleep(_SECONDS)
        return {"multiple": us[0] / us[1], "predict_us": us[0], "linear_us": us[1], "beside": beside}

    def _turns(self, decide: Callable[[Any], Any]) -> tuple[list[float], list[float]]:
        mine: list[float] = []
        linear: list[float] = []
        while len(mine) < _ROUNDS[0] or (sum(mine) + sum(linear) < _SECONDS and len(mine) < _ROUNDS[1]):
            linear.append(_seconds(self._model.decision_function, self.rows))
            mine.append(_seconds(decide, self.rows))
        return mine, linear


def _seconds(decide: Callable[[Any], Any], X: NDArray[np.float32]) -> float:
    decide(X)
    start = time.perf_counter()
    decide(X)
    return time.perf_counter() - start
