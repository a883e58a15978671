"""Table 1: three ways to combine the clusters' decision values; and the share of clustering in the training time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evidence._dc_svm.machines import SETS, SETTINGS, Machine, load, measure, measure_often, settings_of, warm_up
from measuring.experiment import Experiment, Row, Run, grouped
from measuring.plots import Panel


def _table1(name: str, options: Run) -> Iterator[Row]:
    problem = load(name, options.rows)
    settings = settings_of(problem, tol=options.tol)
    for partition in options.partitions:
        for level in options.levels:
            for combine in ("early", "soft", "naive", "bcm"):
                chosen = {"stop_level": level, "partition": partition, "combine": combine}
                cell = {"clusters": 4**level, "partition": partition}
                if options.wants(combine, set=name, machine=combine, **cell):
                    machine = Machine(combine, "exact", chosen)
                    warm_up(machine, settings, problem)
                    yield measure_often(machine, settings, problem, options.repeats)[0] | cell


def _accuracy_panels(rows: Sequence[Row]) -> list[Panel]:
    names = list(dict.fromkeys(row["set"] for row in rows))
    shown = [row for row in rows if row["partition"] == "kernel"]
    panels = []
    for column, ylabel, axes in (("accuracy", "test accuracy", ""), ("predict_us", "microseconds a row", "y")):
        series = {
            f"{combine}, {clusters} clusters": (
                [names.index(row["set"]) for row in mine],
                [row[column] for row in mine],
            )
            for (combine, clusters), mine in grouped(shown, "machine", "clusters")
        }
        panels.append(Panel("kernel k-means", "", ylabel, series, axes, lines=False, names=names))
    return panels


TABLE1 = Experiment(  # Table 1: early, naive and Bayesian committee prediction
    "dc_svm/table1",
    SETS,
    ("set", "n", "machine", "clusters", "partition"),
    _table1,
    settings={**SETTINGS, "levels": (3, 4), "partitions": ("kernel", "input")},
    parts=True,
    seconds={"covtype": 120.0, "mnist": 80.0, "kddcup99_10": 80.0, "": 20.0},
    panels=_accuracy_panels,
)

# ------------------------------------------------------------------------------------------------ share of clustering

_CONFIGURATIONS = (
    Machine("default", "exact"),
    Machine("4 levels, k-means", "exact", {"n_levels": 4, "partition": "input"}),
    Machine("4 levels, kernel k-means", "exact", {"n_levels": 4, "partition": "kernel"}),
)


def _share(name: str, options: Run) -> Iterator[list[Row]]:
    problem = load(name, options.rows)
    settings = settings_of(problem, tol=options.tol)
    for machine in _CONFIGURATIONS:
        if not options.wants(machine.label, set=name, machine=machine.label):
            continue
        warm_up(machine, settings, problem)
        row, model = measure(machine, settings, problem)
        shares = [
            row
            | {key: level[key] for key in ("level", "n_clusters", "clustering_seconds")}
            | {
                "training_seconds": level["seconds"] - level["clustering_seconds"],
                "share": level["clustering_seconds"] / row["seconds"],
            }
            for level in model.levels_
        ]
        whole = {
            "level": "all",
            "training_seconds": row["seconds"] - row["clustering_seconds"],
            "share": row["clustering_seconds"] / row["seconds"],
        }
        yield [*shares, row | whole]


SHARE = Experiment(  # section 8.5: the share of time that clustering takes
    "dc_svm/clustering",
    SETS,
    ("set", "n", "machine"),
    _share,
    settings=SETTINGS,
    parts=True,
    seconds={"covtype": 150.0, "mnist": 60.0, "": 15.0},
)
