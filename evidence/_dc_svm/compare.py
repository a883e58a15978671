"""Table 2, the early machine against the exact ones, and what levels bring."""

from __future__ import annotations

from collections.abc import Iterator

from evidence._dc_svm.machines import (
    MANY,
    SETTINGS,
    Machine,
    limit_of,
    load,
    measure_apart,
    settings_of,
)
from measuring.experiment import Axes, Experiment, Row, Run, panels_of

EXACT = Machine("DC-SVM", "exact")
DIRECT = Machine("ours, no levels", "direct")
INTELEX = Machine("scikit-learn-intelex", "sklearnex")
LIBSVM = Machine("LIBSVM", "libsvm")
PAPER = Machine("DC-SVM as in the paper", "exact", {"n_levels": 4, "partition": "kernel", "published": True})
EARLY_PAPER = Machine(
    "DC-SVM early as in the paper",
    "exact",
    {"n_levels": 4, "stop_level": 3, "partition": "kernel", "combine": "early", "published": True},
)
GREEDY = Machine("greedy coordinate descent", "greedy", {"n_levels": 0})
GREEDY_LEVELS = Machine("greedy coordinate descent, four levels", "greedy", {"n_levels": 4})
LASVM = Machine("LaSVM", "lasvm")
TIME_AND_ACCURACY = Axes("seconds", "training time, seconds", "accuracy", "test accuracy", "x")
_FEATURES, _MOST_NUMBERS = 3000, 6e7  # the paper's, and numbers in their matrix: LIBLINEAR takes half a minute
_ROWS = {"deformed_digits": 500_000}
GREEDY_COLUMNS = 100  # at most: its kernel rows are matrix-vector products


def early(level: int, partition: str = "input", combine: str = "soft") -> Machine:
    """Return the early machine of a level; `combine="early"` is the paper's rule, one cluster decides."""
    label = f"early, {4**level} clusters" + (" (kernel k-means)" if partition == "kernel" else "")
    label += ", the paper's rule" if combine == "early" else ""
    return Machine(label, "exact", {"stop_level": level, "partition": partition, "combine": combine})


def everyone(n: int, n_columns: int) -> list[Machine]:
    """Return the columns of Table 2 for n training rows."""
    features = {"m": int(min(_FEATURES, _MOST_NUMBERS // n))}
    greedy = [GREEDY_LEVELS, GREEDY] if n_columns <= GREEDY_COLUMNS and n <= 100_000 else []
    first = [early(3), EARLY_PAPER, LIBSVM, INTELEX]
    if n > MANY:  # making the rows takes half a minute
        return first
    return [
        *first,
        EXACT,
        PAPER,
        DIRECT,
        early(3, "input", "early"),
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
    rows = options.rows or _ROWS.get(name)
    problem = load(name, rows)
    settings = settings_of(problem, tol=options.tol)
    how = {"rows": rows, "repeats": options.repeats, "limit": limit_of(problem, options)}
    for machine in everyone(*problem.X.shape):
        if options.wants(machine.label, set=name, machine=machine.label):
            yield measure_apart(machine, settings, problem, **how)


TABLE2 = Experiment(  # Table 2: time and accuracy of exact and approximate machines
    "dc_svm/table2",
    ("ijcnn1", "kddcup99_10", "covtype", "deformed_digits"),
    ("set", "machine"),
    _table2,
    settings=SETTINGS,
    parts=True,
    seconds={"covtype": 630.0, "kddcup99_10": 210.0, "ijcnn1": 200.0, "": 140.0},
    panels=lambda rows: panels_of(rows, ("set",), ("machine",), TIME_AND_ACCURACY, lines=False),
)
