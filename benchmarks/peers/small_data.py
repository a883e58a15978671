"""Small data: DCSVMClassifier and OCASClassifier beside scikit-learn's SVC and LinearSVC, in one process run.

::

    python benchmarks/peers/small_data.py

Fits and one-row predictions alternate; times are medians. `ratio` is the rival's time divided by ours: above 1, we are
faster. Features are standardised, parameters are the defaults of each.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_moons
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from measuring import report
from widemargin import DCSVMClassifier, OCASClassifier

_SECONDS = 2.0  # of repetitions for each pair of fits, at least
_COLUMNS = ["set", "machine", "rival", "what", "seconds", "rival_seconds", "ratio", "accuracy", "rival_accuracy"]

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=report.RESULTS / "small_data.csv")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = [row for name, (X, y) in problems().items() for row in measure(name, X, y)]
    for what in ("fit", "predict one row"):
        ratios = [row["ratio"] for row in rows if row["what"] == what]
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        rows.append({"set": "geometric mean", "what": what, "ratio": mean})
        rows.append({"set": "worst", "what": what, "ratio": min(ratios)})
    print(report.format_table(rows, _COLUMNS))
    report.write_csv(options.output, rows)


def problems() -> dict[str, tuple[Any, Any]]:
    """Name, features and labels of the sets."""
    sets = {
        "iris": load_iris(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "3,000 moons": make_moons(3000, noise=0.2, random_state=0),
    }
    return {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in sets.items()}


def measure(name: str, X: Any, y: Any) -> list[Row]:
    """Our machine and its rival, alternating."""
    rows = []
    for ours, rival in ((DCSVMClassifier(), SVC()), (OCASClassifier(), LinearSVC())):
        seconds = in_turns(lambda ours=ours: ours.fit(X, y), lambda rival=rival: rival.fit(X, y))
        row = {"set": name, "machine": type(ours).__name__, "rival": type(rival).__name__}
        scores = {"accuracy": ours.score(X, y), "rival_accuracy": rival.score(X, y)}
        rows.append({**row, "what": "fit", **compared(*seconds), **scores})
        seconds = in_turns(lambda ours=ours: ours.predict(X[:1]), lambda rival=rival: rival.predict(X[:1]))
        rows.append({**row, "what": "predict one row", **compared(*seconds)})
    return rows


def in_turns(ours: Callable[[], Any], rival: Callable[[], Any]) -> tuple[float, float]:
    """Median seconds of each, after a first call that is not counted."""
    ours()
    rival()
    times: tuple[list[float], list[float]] = [], []
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end or len(times[0]) < 5:
        for seconds, call in zip(times, (ours, rival), strict=True):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def compared(ours: float, rival: float) -> Row:
    """Both times and their ratio."""
    return {"seconds": ours, "rival_seconds": rival, "ratio": rival / ours}


if __name__ == "__main__":
    main()
