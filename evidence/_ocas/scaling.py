"""Figure 3 (time and iterations against n), Table 4 (threads), and passes against the bandwidth of the memory."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evidence._ocas import ours
from evidence._ocas.rivals import liblinear, sgd
from measuring.experiment import Axes, Experiment, Row, Run, panels_of, repeated
from measuring.linear_problems import Linear, Matrix, load_linear, most_epochs, objective

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
# The paper's C is that of the mean loss, C n here: with it fixed, its Theorem 1 bounds the iterations whatever n is.
SETTINGS = {"C = 0.01": lambda n: 0.01, "C n = 10,000": lambda n: 10_000 / n}
_LONG = 20.0  # seconds
PARTS = ("active_rows", "dual_ascent", "decision_values", "line_search", "plane", "master_problem")


def _figure3(name: str, options: Run) -> Iterator[Row]:
    whole = _shuffled(load_linear(name))
    for n in (1000, 100_000):  # each has kernels of its own
        ours.warm_up(_head(whole, n))
    liblinear(whole.X[:1000].astype(np.float64), _head(whole, 1000), 1.0, epochs=1, tol=0.1)
    for setting, C_of in SETTINGS.items():
        for n in (options.rows,) if options.rows else [n for n in SIZES if n <= len(whole.labels)]:
            problem, C = _head(whole, n), C_of(n)
            cell = {"set": name, "setting": setting, "n": n}
            for row in _solve_all(problem, C, options, cell):
                yield cell | {"C": C, **row}


def _shuffled(problem: Linear) -> Linear:
    """In random order: some sets are published class by class."""
    order = np.random.default_rng(0).permutation(len(problem.labels))
    return problem._replace(X=problem.X[order], labels=problem.labels[order], Y=problem.Y[order])


def _head(problem: Linear, n: int) -> Linear:
    return problem._replace(X=problem.X[:n], labels=problem.labels[:n], Y=problem.Y[:n])


def _solve_all(problem: Linear, C: float, options: Run, cell: Row) -> Iterator[Row]:
    for who, how in ours.WAYS.items():
        if options.wants(who, **cell, solver=who):
            (model, _), seconds = ours.repeat(lambda how=how: ours.fit(problem, C, max_time=options.limit, **how))
            row = {"solver": who, **repeated(seconds), "iterations": model.n_iter_, "converged": model.converged_}
            yield row | {"objective": objective(problem, model.coef_, C)}
    rivals: dict[str, tuple[Callable[[Any], Matrix], Callable[[Any], Any]]] = {
        "LIBLINEAR": (
            lambda X: liblinear(X, problem, C, epochs=min(1000, most_epochs(X)), tol=0.1),
            lambda X: X.astype(np.float64),
        ),
        "SGD, averaged, 10 epochs": (lambda X: sgd(X, problem, C, 10), lambda X: X),
    }
    for who, (train, prepare) in rivals.items():
        if options.wants(who, **cell, solver=who):
            X = prepare(problem.X)
            W, seconds = ours.repeat(lambda train=train, X=X: train(X))
            yield {"solver": who, **repeated(seconds), "objective": objective(problem, W, C)}


def _slopes(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The exponent of n in the time, by least squares over the sizes from 10,000 on, without fits that were stopped."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["setting"], row["solver"]), []).append(row)
    table = []
    for (name, setting, solver), group in groups.items():
        large = [row for row in group if row["n"] >= 10_000 and row.get("converged", True)]
        line: Row = {"set": name, "setting": setting, "solver": solver}
        if len(large) > 1:
            line["slope"] = _slope(large, "seconds")
        if all("iterations" in row for row in group):
            line |= {f"iterations, n = {row['n']:,}": row["iterations"] for row in group if row["converged"]}
        table.append(line)
    return {"figure3_slopes": table}


def _slope(rows: Sequence[Row], column: str) -> float:
    return float(np.polyfit([math.log(row["n"]) for row in rows], [math.log(row[column]) for row in rows], 1)[0])


FIGURE3 = Experiment(  # Figure 3: time and iterations against the number of rows
    "ocas/figure3",
    ("cov1", "gaussians"),
    ("set", "setting", "n", "solver"),
    _figure3,
    settings=ours.SETTINGS,
    parts=True,
    seconds={"gaussians": 180.0, "": 40.0},
    tables=_slopes,
    panels=lambda rows: panels_of(
        [row for row in rows if row.get("converged", True)],
        ("set", "setting"),
        ("solver",),
        Axes("n", "rows", "seconds", "seconds", "xy"),
        Axes("n", "rows", "iterations", "iterations", "xy"),
    ),
)

# ------------------------------------------------------------------------------------------------------- threads


def _table4(name: str, options: Run) -> Iterator[list[Row]]:
    problem = load_linear(name, options.rows)
    ours.warm_up(problem)
    for C in options.C or (0.01, 1.0):
        for who in (ours.OCAS, ours.PLAIN):
            if options.wants(who, set=name, C=C, solver=who):
                yield _threads(problem, C, who, options.limit)


def _threads(problem: Linear, C: float, who: str, limit: float) -> list[Row]:
    """A row for one and for two threads: medians of fits in turns, 9 of each, or as many as take 20 seconds."""
    runs: dict[int, list[Row]] = {1: [], 2: []}
    for repeat in range(9):
        for n_jobs in (1, 2) if repeat % 2 == 0 else (2, 1):
            model, seconds = ours.fit(problem, C, n_jobs=n_jobs, max_time=limit, **ours.WAYS[who])
            runs[n_jobs].append({"seconds": seconds, **_split(model), "iterations": model.n_iter_})
        if sum(row["seconds"] for rows in runs.values() for row in rows) > _LONG:
            break
    found = []
    for n_jobs, rows in runs.items():
        median = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        least = {k: min(row["seconds"] for row in runs[k]) for k in (1, n_jobs)}  # with the least of a neighbour
        row = {"set": problem.name, "n": problem.X.shape[0], "C": C, "solver": who, "threads": n_jobs, **median}
        row |= repeated([row["seconds"] for row in rows])
        row["speedup"] = statistics.median(row["seconds"] for row in runs[1]) / median["seconds"]
        found.append(row | {"least": least[n_jobs], "speedup, least": least[1] / least[n_jobs]})
    return found


def _split(model: Any) -> Row:
    """Seconds of each part of the algorithm, over the whole fit."""
    return {part: float(np.sum(model.history_[f"seconds_{part}"])) for part in PARTS}


TABLE4 = Experiment(  # Table 4: one and two threads, split by part
    "ocas/table4",
    ("cov1", "gaussians"),
    ("set", "n", "C", "solver"),
    _table4,
    settings=ours.SETTINGS,
    parts=True,
    seconds=80.0,
)
