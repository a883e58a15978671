"""Table 2, the early machine against the exact ones, and what levels bring."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from evidence._dc_svm.approximate import most_features
from evidence._dc_svm.machines import (
    SETS,
    SETTINGS,
    Machine,
    load,
    measure,
    measure_apart,
    measure_often,
    settings_of,
    warm_up,
)
from measuring import process
from measuring.experiment import Experiment, Row, Run, grouped, repeated
from measuring.plots import Panel

SIX = ("a9a", "ijcnn1", "letter", "codrna", "mnist", "covtype_20k")
EXACT = Machine("DC-SVM", "exact")
DIRECT = Machine("ours, no levels", "direct")
INTELEX = Machine("scikit-learn-intelex", "sklearnex")
LIBSVM = Machine("LIBSVM", "libsvm")
PAPER = Machine("DC-SVM as in the paper", "exact", {"n_levels": 4, "partition": "kernel"})
EARLY_PAPER = Machine(
    "DC-SVM early as in the paper",
    "exact",
    {"n_levels": 4, "stop_level": 3, "partition": "kernel", "combine": "early"},
)
GREEDY = Machine("greedy coordinate descent", "greedy", {"n_levels": 0})
GREEDY_LEVELS = Machine("greedy coordinate descent, four levels", "greedy", {"n_levels": 4})
LASVM = Machine("LaSVM", "lasvm")
_GREEDY_COLUMNS = 100  # at most: its kernel rows are matrix-vector products


def early(level: int, partition: str = "input", combine: str = "soft") -> Machine:
    """Return the early machine of a level; `combine="early"` is the paper's rule, one cluster decides."""
    label = f"early, {4**level} clusters" + (" (kernel k-means)" if partition == "kernel" else "")
    label += ", the paper's rule" if combine == "early" else ""
    return Machine(label, "exact", {"stop_level": level, "partition": partition, "combine": combine})


def everyone(n: int, n_columns: int) -> list[Machine]:
    """Return the columns of Table 2 for n training rows."""
    features = {"n_components": most_features(n)}
    greedy = [GREEDY_LEVELS, GREEDY] if n <= 50_000 and n_columns <= _GREEDY_COLUMNS else []
    return [
        early(3),
        early(3, "kernel"),
        early(3, "input", "early"),
        early(3, "kernel", "early"),
        EARLY_PAPER,
        EXACT,
        DIRECT,
        PAPER,
        INTELEX,
        LIBSVM,
        Machine("Cascade SVM", "cascade", {"n_parts": 16}),
        LASVM,
        Machine("SpSVM", "spsvm", {"n_basis": 200}),  # as many as in the paper
        Machine("k-means Nyström", "nystroem", features),
        Machine("Fourier features", "fourier", features),
        Machine("Fastfood", "fastfood", features),
        Machine("LTPU", "ltpu", features),
        *greedy,
    ]


def _table2(name: str, options: Run) -> Iterator[Row]:
    problem = load(name, options.rows)
    settings = settings_of(problem, tol=options.tol)
    for machine in everyone(*problem.X.shape):
        if options.wants(machine.label, set=name, machine=machine.label, n=len(problem.X)):
            apart = {"rows": options.rows, "limit": options.limit, "repeats": options.repeats}
            yield measure_apart(machine, settings, problem, **apart)


def _time_and_accuracy(rows: Sequence[Row]) -> list[Panel]:
    panels = []
    for (name,), mine in grouped([row for row in rows if "seconds" in row], "set"):
        series = {row["machine"]: ([row["seconds"]], [100 * row["accuracy"]]) for row in mine}
        panels.append(Panel(str(name), "training time, seconds", "test accuracy, %", series, "x", lines=False))
    return panels


TABLE2 = Experiment(  # Table 2: time and accuracy of exact and approximate machines
    "dc_svm/table2",
    (*(name for name in SETS if name != "patches"), "deformed_digits"),
    ("set", "machine", "n"),
    _table2,
    settings=SETTINGS,
    parts=True,
    seconds={"covtype": 240.0, "deformed_digits": 240.0, "mnist": 200.0, "": 150.0},
    panels=_time_and_accuracy,
)

# ------------------------------------------------------------------------------------------------------ early


def _early(name: str, options: Run) -> Iterator[list[Row]]:
    """One cell a set: an early machine is compared with the exact ones of the same run."""
    if not options.wants(set=name):
        return
    problem = load(name, options.rows)
    settings = settings_of(problem, tol=options.tol)
    ways = [(p, c, level) for p in options.partitions for c in ("soft", "early") for level in options.levels]
    machines = [INTELEX, EXACT, DIRECT, *(early(level, partition, combine) for partition, combine, level in ways)]
    rows: dict[str, Row] = {}
    for machine in machines:
        warm_up(machine, settings, problem)
        row, _ = measure_often(machine, settings, problem, options.repeats)
        rows[machine.label] = row
        if machine.name == "exact" and machine.options:
            row |= _against(row, rows)
    yield list(rows.values())


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
            label += ", the paper's rule" if "rule" in row["machine"] else ""
            x, y = series.setdefault(label, ([], []))
            x.append(row["times_intelex"])
            y.append(row["points_lost"])
        panels.append(Panel(str(name), "times faster to train than scikit-learn-intelex", "points lost", series, "x"))
    return panels


EARLY = Experiment(  # early machines of several levels against the exact ones
    "dc_svm/early",
    SIX,
    ("set", "n"),
    _early,
    settings={**SETTINGS, "levels": (1, 2, 3, 4), "partitions": ("input", "kernel")},
    parts=True,
    seconds={"mnist": 100.0, "": 25.0},
    panels=_loss_and_gain,
)

# ------------------------------------------------------------------------------------------------------ levels


def _levels(name: str, options: Run) -> Iterator[list[Row]]:
    """Fits with levels and without, in turns: their medians, and the median of the ratios of the turns."""
    if not options.wants(set=name):
        return
    problem = load(name, options.rows)
    settings = settings_of(problem, tol=options.tol)
    machines = (EXACT, DIRECT, PAPER) if options.four else (EXACT, DIRECT)
    for machine in machines:
        warm_up(machine, settings, problem)
    runs: dict[str, list[Row]] = {machine.label: [] for machine in machines}
    for turn in range(options.turns):
        for machine in machines if turn % 2 == 0 else machines[::-1]:
            process.touch_memory(len(problem.y))
            runs[machine.label].append(measure(machine, settings, problem)[0])
    seconds = {label: [row["seconds"] for row in rows] for label, rows in runs.items()}
    yield [
        runs[label][-1]
        | repeated(mine)
        | {
            "memory": "touched",
            "ratio": statistics.median(b / a for a, b in zip(seconds[EXACT.label], mine, strict=True)),
        }
        for label, mine in seconds.items()
    ]


LEVELS = Experiment(  # training with levels and without, in turns
    "dc_svm/levels",
    (*SIX, "patches", "kddcup99_10"),
    ("set", "n"),
    _levels,
    settings={**SETTINGS, "turns": 5, "four": False},
    parts=True,
    seconds={"mnist": 60.0, "": 15.0},
)
