"""Section 5, tables 4 and 7 to 10: all settings of a grid of C and gamma."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sklearn.model_selection import StratifiedKFold, cross_val_score

from evidence._dc_svm.compare import EXACT, INTELEX, LIBSVM, early
from evidence._dc_svm.machines import SETTINGS, Machine, load, make, measure_often, settings_of, warm_up
from measuring.competitors import Settings
from measuring.experiment import Experiment, Row, Run
from measuring.plots import Surface
from measuring.problems import Problem
from measuring.tables import by

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
            cell = {"log2_C": c, "log2_gamma": g}
            yield [
                row
                | cell
                | _choice(machine, settings, problem)
                | {"times": rows[0]["seconds"] / row["seconds"], "times_libsvm": rows[1]["seconds"] / row["seconds"]}
                for machine, row in zip(machines, rows, strict=True)
            ]


def _choice(machine: Machine, settings: Settings, problem: Problem) -> Row:
    """Mean accuracy of five folds of the training rows; of ours alone, as the rivals have the same problem."""
    if machine.name != "exact":
        return {}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(make(machine, settings), problem.X, problem.y, cv=folds)
    return {"folds_accuracy": float(scores.mean())}


def totals(rows: Sequence[Row]) -> list[Row]:
    """A row for each set and machine.

    The settings in which it beat the rivals, those within a point of its best accuracy, the sum of seconds, and the
    accuracy of the setting that five folds choose.
    """
    found = []
    for (name, machine), mine in by(rows, "set", "machine").items():
        accuracy = [row["accuracy"] for row in mine]
        total: Row = {
            "set": name,
            "machine": machine,
            "settings": len(mine),
            "won": sum(row["times"] > 1 for row in mine),
            "won_libsvm": sum(row["times_libsvm"] > 1 for row in mine),
            "seconds": sum(row["seconds"] for row in mine),
            "best_accuracy": max(accuracy),
            "near_best": sum(value >= max(accuracy) - 0.01 for value in accuracy),
        }
        if all("folds_accuracy" in row for row in mine):
            total["chosen_accuracy"] = max(mine, key=lambda row: float(row["folds_accuracy"]))["accuracy"]
        found.append(total)
    return found


def _surfaces(rows: Sequence[Row]) -> list[Surface]:
    """Figures 6 to 9: accuracy over C and gamma."""
    surfaces = []
    for (name, machine), mine in by(rows, "set", "machine").items():
        accuracy = {(row["log2_C"], row["log2_gamma"]): row["accuracy"] for row in mine}
        C, gamma = (sorted({setting[k] for setting in accuracy}) for k in (0, 1))
        values = [[accuracy.get((c, g), math.nan) for g in gamma] for c in C]
        surfaces.append(Surface(f"{name}, {machine}: accuracy", "log2 gamma", "log2 C", gamma, C, values))
    return surfaces


SWEEP = Experiment(  # section 5: a 5 x 5 grid of C and gamma
    "dc_svm/sweep",
    ("ijcnn1", "covtype"),
    ("set", "n", "log2_C", "log2_gamma"),
    _sweep,
    settings={**SETTINGS, "log2_C": tuple(_EXPONENTS), "level": 2, "repeats": 1},
    parts=True,
    seconds=120.0,
    tables=lambda rows: {"sweep_totals": totals(rows)},
    panels=_surfaces,
)
