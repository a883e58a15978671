"""What a prediction costs, in multiples of a linear one: measured, beside the count of operations."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from measuring.experiment import Axes
from measuring.load import QUIET, Others


def costs_and(y: str, ylabel: str, logarithmic: str = "x") -> tuple[Axes, Axes]:
    """The axes of a column over the measured cost, and over the count."""
    measured = Axes("multiple", "measured cost, linear predictions", y, ylabel, logarithmic)
    return measured, measured._replace(x="operations", xlabel="inner products")


Decide = Callable[[Any], Any]

_ROWS = 10_000, 20_000  # at least and at most
_ROUNDS = 3, 300
_SECONDS = 0.5
_TRIES = 3
_DRIFT = 1.25  # of the linear machine's time, from the start to the end of a run: above, all is timed again


class Linear:
    """The unit of cost: `LinearSVC.decision_function` on float32 rows, with as many threads as all machines.

    What it was fitted to does not change its time, so that few rows are enough.
    """

    def __init__(self, X: NDArray[np.float32]) -> None:
        self._model = LinearSVC(C=1e-6).fit(X[:500], np.arange(len(X[:500])) % 2)
        self.rows = np.resize(X, (max(_ROWS[0], min(len(X), _ROWS[1])), X.shape[1]))

    def multiples(self, decide: Sequence[Decide]) -> list[dict[str, float]]:
        """Time decision functions one after the other, and the linear one before and after them: medians and ratios.

        Each is timed alone, call after call: beside other machines, which change caches and BLAS's threads, a linear
        prediction takes up to five times as long. Where another process was busy meanwhile, or the linear machine's
        time changed, all is timed again, some times at most: `beside` is how many cores it took in the end.
        """
        for _ in range(_TRIES):
            others = Others()
            first, *machines, last = map(self._microseconds, [self._linear, *decide, self._linear])
            beside, drift = others.look() or 0.0, max(first, last) / min(first, last)
            if beside < QUIET and drift < _DRIFT:
                break
            time.sleep(_SECONDS)
        unit = (first + last) / 2
        common = {"linear_us": unit, "linear_drift": last / first, "beside": beside}
        return [{"multiple": us / unit, "predict_us": us} | common for us in machines]

    def _linear(self, X: Any) -> Any:
        return self._model.decision_function(X)

    def _microseconds(self, decide: Decide) -> float:
        """Median time of a row, over calls in a row."""
        decide(self.rows)
        times: list[float] = []
        while len(times) < _ROUNDS[0] or (sum(times) < _SECONDS and len(times) < _ROUNDS[1]):
            start = time.perf_counter()
            decide(self.rows)
            times.append(time.perf_counter() - start)
        return 1e6 * statistics.median(times) / len(self.rows)
