"""Table 2, the share of clustering, and the early machine against the exact ones."""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Iterator, Sequence

from benchmarks._report import Panel
from benchmarks.papers._dc_svm.approximate import most_features
from benchmarks.papers._dc_svm.machines import SETS, Machine, load, measure, measure_apart, settings_of, warm_up
from benchmarks.papers._experiment import Experiment, Row, grouped, is_asked

SIX = ("a9a", "ijcnn1", "letter", "codrna", "mnist", "covtype_20k")
EXACT = Machine("DC-SVM", "exact")
DIRECT = Machine("ours, no levels", "direct")
INTELEX = Machine("scikit-learn-intelex", "sklearnex")
LIBSVM = Machine("LIBSVM", "libsvm")
PAPER = Machine("DC-SVM as in the paper", "exact", {"n_levels": 4, "partition": "kernel"})


def early(level: int, partition: str = "input") -> Machine:
    """Return the early machine of a level."""
    label = f"early, {4**level} clusters" + (" (kernel k-means)" if partition == "kernel" else "")
    return Machine(label, "exact", {"stop_level": level, "partition": partition})


def everyone(n: int) -> list[Machine]:
    """Return the columns of Table 2 for n training rows."""
    features = {"n_components": most_features(n)}
    return [
        early(3),
        early(3, "kernel"),
        EXACT,
        DIRECT,
        PAPER,
        INTELEX,
        LIBSVM,
        Machine("Cascade SVM", "cascade", {"n_parts": 16}),
        Machine("k-means Nyström", "nystroem", features),
        Machine("Fourier features", "fourier", features),
        Machine("LTPU", "ltpu", features),
    ]


def _table2(name: str, options: Namespace) -> Iterator[Row]:
    problem = load(name, options.rows)
    settings = settings_of(problem, tol=options.tol)
    for machine in everyone(len(problem.X)):
        if is_asked(machine.label, options):
            yield measure_apart(machine, settings, problem, rows=options.rows, limit=options.limit)


def _time_and_accuracy(rows: Sequence[Row]) -> list[Panel]:
    panels = []
    for (name,), mine in grouped([row for row in rows if "seconds" in row], "set"):
        series = {row["machine"]: ([row["seconds"]], [100 * row["accuracy"]]) for row in mine}
        panels.append(Panel(str(name), "training time, seconds", "test accuracy, %", series, "x", lines=False))
    return panels


TABLE2 = Experiment(
    "Table 2: time and accuracy of exact and approximate machines",
    SETS,
    ("set", "machine", "n"),
    ("set", "machine", "n", "seconds", "over_limit", "accuracy", "predict_us", "support_vectors", "peak_mb"),
    _table2,
    _time_and_accuracy,
)

# ------------------------------------------------------------------------------------------------------ early


def _early(name: str, options: Namespace) -> Iterator[Row]:
    problem = load(name, options.rows)
    settings = settings_of(problem, tol=options.tol)
    machines = [INTELEX, EXACT, DIRECT, *(early(level, p) for p in options.partitions for level in options.levels)]
    rows: dict[str, Row] = {}
    for machine in machines:
        warm_up(machine, settings, problem)
        runs = [measure(machine, settings, problem)[0] for _ in range(options.repeats)]
        row = runs[-1] | {key: statistics.median(run[key] for run in runs) for key in ("seconds", "predict_us")}
        rows[machine.label] = row
        if machine.name == "exact" and machine.options:
            row |= _against(row, rows)
        yield row


def _against(row: Row, rows: dict[str, Row]) -> Row:
    ours = min(rows[EXACT.label], rows[DIRECT.label], key=lambda other: float(other["seconds"]))
    return {
        "points_lost": 100 * (rows[EXACT.label]["accuracy"] - row["accuracy"]),
        "times_intelex": rows[INTELEX.label]["seconds"] / row["seconds"],
        "times_ours": ours["seconds"] / row["seconds"],
        "predict_gain": rows[EXACT.label]["predict_us"] / row["predict_us"],
    }


def _loss_and_gain(rows: Sequence[Row]) -> list[Panel]:
    panels = []
    for (name,), mine in grouped([row for row in rows if "points_lost" in row], "set"):
        series: dict[str, tuple[list[float], list[float]]] = {}
        for row in mine:
            label = "kernel k-means" if "kernel" in row["machine"] else "k-means"
            x, y = series.setdefault(label, ([], []))
            x.append(row["times_intelex"])
            y.append(row["points_lost"])
        panels.append(Panel(str(name), "times faster to train than scikit-learn-intelex", "points lost", series, "x"))
    return panels


EARLY = Experiment(
    "early machines of several levels against the exact ones",
    SIX,
    ("set", "machine", "n"),
    (
        "set",
        "machine",
        "seconds",
        "accuracy",
        "predict_us",
        "support_vectors",
        "points_lost",
        "times_intelex",
        "times_ours",
        "predict_gain",
    ),
    _early,
    _loss_and_gain,
    arguments={
        "--levels": {"type": int, "nargs": "+", "default": [1, 2, 3, 4]},
        "--partitions": {"nargs": "+", "default": ["input", "kernel"]},
    },
)
