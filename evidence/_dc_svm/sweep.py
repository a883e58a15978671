"""Section 5, tables 4 and 7 to 10: all settings of a grid of C and gamma."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evidence._dc_svm.compare import EXACT, INTELEX, LIBSVM, early
from evidence._dc_svm.machines import SETTINGS, load, measure_often, settings_of, warm_up
from measuring.experiment import Experiment, Row, Run, grouped
from measuring.plots import Panel, Surface

_EXPONENTS = (-10, -6, 1, 6, 10)
_ROWS, _TEST_ROWS = 5000, 10_000  # at most: on all rows of codrna LIBSVM takes 40 s a fit, of covtype to predict


def _sweep(name: str, options: Run) -> Iterator[list[Row]]:
    problem = load(name, options.rows or _ROWS)
    problem = problem._replace(X_test=problem.X_test[:_TEST_ROWS], y_test=problem.y_test[:_TEST_ROWS])
    machines = (INTELEX, LIBSVM, EXACT, early(options.level), early(options.level, "input", "early"))
    for machine in machines:
        warm_up(machine, settings_of(problem), problem)
    for c in options.log2_C:
        for g in _EXPONENTS:
            if not options.wants(set=name, log2_C=c, log2_gamma=g):
                continue
            settings = settings_of(problem, tol=options.tol, C=2.0**c, gamma=2.0**g)
            rows = [measure_often(machine, settings, problem, options.repeats)[0] for machine in machines]
            yield [
                row
                | {"log2_C": c, "log2_gamma": g, "times": rows[0]["seconds"] / row["seconds"]}
                | {"times_libsvm": rows[1]["seconds"] / row["seconds"]}
                for row in rows
            ]


def totals(rows: Sequence[Row]) -> list[Row]:
    """Return for each set and machine the settings in which it beat scikit-learn-intelex, and the sum of seconds."""
    return [
        {
            "set": name,
            "machine": machine,
            "settings": len(mine),
            "won": sum(row["times"] > 1 for row in mine),
            "won_libsvm": sum(row.get("times_libsvm", 0) > 1 for row in mine),
            "seconds": sum(row["seconds"] for row in mine),
            "best_accuracy": max(row["accuracy"] for row in mine),
        }
        for (name, machine), mine in grouped(rows, "set", "machine")
    ]


def _panels(rows: Sequence[Row]) -> list[Panel | Surface]:
    panels: list[Panel | Surface] = []
    for (name,), some in grouped([row for row in rows if row["machine"] != INTELEX.label], "set"):
        series = {}
        for (machine,), mine in grouped(some, "machine"):
            ordered = sorted(row["times"] for row in mine)
            series[str(machine)] = list(range(1, len(ordered) + 1)), ordered
        panels.append(Panel(str(name), "settings, sorted", "times faster than scikit-learn-intelex", series, "y"))
    for (name, machine), mine in grouped(rows, "set", "machine"):
        accuracy = {(row["log2_C"], row["log2_gamma"]): row["accuracy"] for row in mine}
        C, gamma = (sorted({setting[k] for setting in accuracy}) for k in (0, 1))
        values = [[accuracy.get((c, g), math.nan) for g in gamma] for c in C]
        panels.append(Surface(f"{name}, {machine}: accuracy", "log2 gamma", "log2 C", gamma, C, values))
    return panels


SWEEP = Experiment(  # section 5: a 5 x 5 grid of C and gamma
    "dc_svm/sweep",
    ("ijcnn1", "covtype_20k", "codrna", "covtype"),
    ("set", "n", "log2_C", "log2_gamma"),
    _sweep,
    settings={**SETTINGS, "log2_C": tuple(_EXPONENTS), "level": 2},
    parts=True,
    seconds=50.0,
    tables=lambda rows: {"sweep_totals": totals(rows)},
    panels=_panels,
)
