"""Table 1: three ways to combine the clusters' decision values; and the share of clustering in the training time."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np

from evidence._dc_svm.compare import PAPER
from evidence._dc_svm.machines import SETTINGS, Machine, load, measure, measure_often, settings_of, warm_up
from evidence._dc_svm.rules import RULES, combined
from measuring import process
from measuring.experiment import Axes, Experiment, Row, Run, panels_of

_TEST_ROWS = 10_000  # at most: of covtype the sum over all clusters takes minutes


def _table1(name: str, options: Run) -> Iterator[list[Row]]:
    """The rules share a training: by kernel k-means as published, by k-means of the rows as ours."""
    problem = load(name, options.rows)
    problem = problem._replace(X_test=problem.X_test[:_TEST_ROWS], y_test=problem.y_test[:_TEST_ROWS])
    settings = settings_of(problem, tol=options.tol)
    for partition in options.partitions:
        for level in options.levels:
            cell = {"level": level, "partition": partition}
            if options.wants(set=name, **cell):
                chosen = PAPER.options if partition == "kernel" else {"partition": "input"}
                machine = Machine("early", "exact", {**chosen, "stop_level": level})
                warm_up(machine, settings, problem)
                row, model = measure(machine, settings, problem)
                rows = []
                for rule in RULES:
                    ruled = copy(model)
                    ruled._model = combined(model, rule, problem.X, problem.y)
                    right = float(np.mean(ruled.predict(problem.X_test) == problem.y_test))
                    us = 1e6 * process.time_predict(ruled, problem.X_test) / len(problem.y_test)
                    rows.append(row | cell | {"machine": rule, "accuracy": right, "predict_us": us})
                yield rows


TABLE1 = Experiment(  # Table 1: early, naive and Bayesian committee prediction
    "dc_svm/table1",
    ("ijcnn1", "covtype_20k", "codrna", "kddcup99_10", "covtype"),
    ("set", "n", "machine", "level", "partition"),
    _table1,
    settings={**SETTINGS, "levels": (3, 4), "partitions": ("kernel", "input")},
    parts=True,
    seconds={"covtype": 180.0, "kddcup99_10": 80.0, "": 25.0},
    panels=lambda rows: panels_of(
        [row for row in rows if row["partition"] == "kernel"],
        ("set",),
        ("machine",),
        Axes("predict_us", "microseconds a row", "accuracy", "test accuracy", "x"),
        lines=False,
    ),
)

# ------------------------------------------------------------------------------------------------ share of clustering

_CONFIGURATIONS = (
    Machine("default", "exact"),
    Machine("4 levels, k-means", "exact", {"n_levels": 4, "partition": "input"}),
    Machine("4 levels, kernel k-means", "exact", PAPER.options),
)


def _share(name: str, options: Run) -> Iterator[Row]:
    problem = load(name, options.rows)
    settings = settings_of(problem, tol=options.tol)
    for machine in _CONFIGURATIONS:
        if not options.wants(machine.label, set=name, machine=machine.label):
            continue
        warm_up(machine, settings, problem)
        row, _ = measure_often(machine, settings, problem, options.repeats)
        clustering = row["clustering_seconds"]
        yield row | {"training_seconds": row["seconds"] - clustering, "share": clustering / row["seconds"]}


SHARE = Experiment(  # section 8.5: the share of time that clustering takes
    "dc_svm/clustering",
    ("ijcnn1", "covtype_20k", "codrna", "kddcup99_10"),
    ("set", "n", "machine"),
    _share,
    settings=SETTINGS,
    parts=True,
    seconds={"kddcup99_10": 30.0, "": 10.0},
)
