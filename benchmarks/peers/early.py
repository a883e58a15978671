"""Early kernel machines side by side with exact ones, ours and scikit-learn-intelex's, in one process run.

Rows (float32), C, gamma and tolerance are the same for all; the order is reversed with every repeat; times are medians.
An early machine has the parameter `stop_level`: its clusters' seconds, and the points of accuracy that it has less than
our exact machine, are those of the last repeat. Rows are CSR where the source is sparse; the rival gets both forms, and
the faster one counts.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.peers.kernel_svm import SETS, load
from measuring import competitors, process
from measuring.experiment import Experiment, Row, Run

OURS, RIVAL, DENSE_RIVAL = "widemargin", "sklearnex", "sklearnex, dense"


def measure_set(name: str, run: Run) -> list[Row]:
    """Run all competitors on one set, alternating, and return a row for each."""
    problem = load(name)
    settings = competitors.Settings(problem.C, problem.gamma, run.tol, None, run.cache_mb)
    form = "csr" if problem.sparse else "dense"
    exact = competitors.get_competitor(OURS)._replace(form=form)
    X, X_test = competitors.make_forms([exact], problem.X, problem.X_test)[form]
    makers = _makers(settings, run.levels, is_sparse=problem.sparse)
    rows_of = dict.fromkeys(makers, (X, X_test)) | {DENSE_RIVAL: (problem.X, problem.X_test)}
    predict: dict[str, list[float]] = {name: [] for name in makers}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, make in makers.items():
            own = rows_of[key][0]
            make().fit(own[:1000], problem.y[:1000]).predict(own[:100])
    models, seconds = process.in_turns(
        {key: lambda key=key: makers[key]().fit(rows_of[key][0], problem.y) for key in makers},  # type: ignore[misc]
        run.repeats,
        len(problem.y),
        lambda key, model: predict[key].append(process.time_predict(model, rows_of[key][1])),
    )
    rows, half = [], len(problem.y_test) // 2  # levels are chosen by the first half, and judged by the second
    for key, model in models.items():
        row = {"set": problem.name, "n": len(problem.y), "n_features": X.shape[1], "competitor": key}
        row |= _describe_level(model) | {"repeats": run.repeats, "seconds": statistics.median(seconds[key])}
        row["form"] = "dense" if key == DENSE_RIVAL else form
        is_right = model.predict(rows_of[key][1]) == problem.y_test
        row |= {"held_accuracy": float(np.mean(is_right[:half])), "accuracy": float(np.mean(is_right[half:]))}
        row["predict_us"] = 1e6 * statistics.median(predict[key]) / len(problem.y_test)
        row["support_vectors"] = len(model.support_)
        rows.append(row)
    _compare(rows)
    return sorted(rows, key=lambda row: list(makers).index(row["competitor"]))


def _makers(settings: competitors.Settings, levels: Sequence[int], *, is_sparse: bool) -> dict[str, Callable[[], Any]]:
    """A machine of each competitor: our exact one, the early ones of these levels, and the rival, on either form."""
    ours = competitors.get_competitor(OURS).make
    rival = competitors.get_competitor(RIVAL).make
    early = {f"early, level {k}": lambda k=k: ours(settings).set_params(stop_level=k) for k in levels}
    rivals = (RIVAL, DENSE_RIVAL) if is_sparse else (RIVAL,)
    return {OURS: lambda: ours(settings), **early, **{name: lambda: rival(settings) for name in rivals}}


def _describe_level(model: Any) -> Row:
    """Clusters of an early machine, and the seconds in which they were found and solved."""
    if not getattr(model, "stop_level", 0):
        return {}
    level = model.levels_[-1]
    return {
        "n_clusters": level["n_clusters"],
        "clustering_seconds": level["clustering_seconds"],
        "solving_seconds": level["seconds"] - level["clustering_seconds"],
    }


def _compare(rows: Sequence[Row]) -> None:
    """Add how many times faster than the two exact machines each is, and the points that it has less than ours."""
    of = {row["competitor"]: row for row in rows}
    rival = min(row["seconds"] for name, row in of.items() if name.startswith(RIVAL))
    for row in rows:
        row["times_exact"] = of[OURS]["seconds"] / row["seconds"]
        row["times_rival"] = rival / row["seconds"]
        for column, name in (("accuracy", "points_lost"), ("held_accuracy", "held_points_lost")):
            row[name] = 100 * (of[OURS][column] - row[column])


EARLY = Experiment(
    "early",
    SETS,
    ("set", "competitor"),
    measure_set,
    seconds={"kddcup99_10": 100.0, "mnist": 100.0, "": 30.0},
    settings={"levels": (1, 2, 3), "repeats": 3, "tol": 1e-3, "cache_mb": 4000},
    quick={"cells": ["patches:1500"], "levels": (1,), "repeats": 1},
)
