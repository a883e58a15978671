"""Small data: DCSVMClassifier and OCASClassifier beside scikit-learn's SVC and LinearSVC, in one process run.

Fits and one-row predictions alternate; times are medians. `ratio` is the rival's time divided by ours: above 1, we are
faster. Features are standardised, parameters are the defaults of each.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_moons
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from measuring.experiment import Experiment, Row, Run
from widemargin import DCSVMClassifier, OCASClassifier


def problems() -> dict[str, tuple[Any, Any]]:
    """Name, features and labels of the sets."""
    sets = {
        "iris": load_iris(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "3,000 moons": make_moons(3000, noise=0.2, random_state=0),
    }
    return {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in sets.items()}


def measure(name: str, run: Run) -> list[Row]:
    """Our machine and its rival, alternating."""
    warnings.simplefilter("ignore")
    X, y = problems()[name]
    rows = []
    for ours, rival in ((DCSVMClassifier(), SVC()), (OCASClassifier(), LinearSVC())):
        seconds = in_turns(lambda ours=ours: ours.fit(X, y), lambda rival=rival: rival.fit(X, y), run.repetitions)
        row = {"set": name, "machine": type(ours).__name__, "rival": type(rival).__name__}
        scores = {"accuracy": ours.score(X, y), "rival_accuracy": rival.score(X, y)}
        rows.append({**row, "what": "fit", **compared(*seconds), **scores})
        seconds = in_turns(
            lambda ours=ours: ours.predict(X[:1]), lambda rival=rival: rival.predict(X[:1]), run.repetitions
        )
        rows.append({**row, "what": "predict one row", **compared(*seconds)})
    return rows


def in_turns(ours: Callable[[], Any], rival: Callable[[], Any], least: float) -> tuple[float, float]:
    """Median seconds of each, of so many seconds of repetitions, after a first call that is not counted."""
    ours()
    rival()
    times: tuple[list[float], list[float]] = [], []
    end = time.perf_counter() + least
    while time.perf_counter() < end or len(times[0]) < 5:
        for seconds, call in zip(times, (ours, rival), strict=True):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def compared(ours: float, rival: float) -> Row:
    """Both times and their ratio."""
    return {"seconds": ours, "rival_seconds": rival, "ratio": rival / ours}


SMALL_DATA = Experiment(
    "small_data",
    ("iris", "breast cancer", "digits", "3,000 moons"),
    ("set", "machine", "what"),
    measure,
    seconds=20.0,
    settings={"repetitions": 2.0},
    quick={"repetitions": 0.1},
)
