"""Time of each solver to an objective within a thousandth of the optimum; Figure 2.

Every solver has one knob (iterations, epochs, tolerance). Its ladder is climbed until the objective, recomputed from
the weights in float64, is at most 1.001 times the best one known; then the last step of the ladder is halved three
times. Each rung is a fit of its own, from nothing, timed as a user would.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from evidence._ocas import ours
from evidence._ocas.rivals import RIVALS, Rival, liblinear
from measuring.experiment import Axes, Experiment, Row, Run, panels_of
from measuring.linear_problems import DENSE, Linear, load_linear, most_epochs, objective
from measuring.plots import Panel

GOAL = 1.001
COSTS = (0.01, 1.0, 100.0)
_RIVAL_NAMES = tuple(dict.fromkeys(rival.name for rival in RIVALS))
SETS = ("ijcnn1", "codrna", "a9a", "news20_1", "kddcup99_10", "cov1", "mnist", "gaussians")
_FINE = 1e-6  # relative gap to which Figure 2 is drawn


class Trial(NamedTuple):
    """One fit."""

    effort: float
    seconds: float
    objective: float


def climb(
    run: Callable[[float], Trial], ladder: Callable[[int], int], goal: float, limit: float, finest: float = math.inf
) -> list[Trial]:
    """Try growing efforts until one reaches the goal or the next would take longer than the limit; then refine.

    Returns
    -------
    list of Trial
        Of the refinement, the efforts between the last one that failed and the first one that did not. Then, where the
        goal was reached, further growing efforts, until one reaches `finest`.
    """
    trials: list[Trial] = []
    _rise(run, ladder, trials, goal, limit)
    if trials[-1].objective > goal:
        return trials
    risen = list(trials)
    if len(trials) > 1:
        trials += _refinement(run, *trials[-2:], goal)
    if finest < risen[-1].objective and ladder(len(risen)) / risen[-1].effort * risen[-1].seconds <= limit:
        n_risen = len(risen)
        _rise(run, ladder, risen, finest, limit)
        trials += risen[n_risen:]
    return trials


def _rise(
    run: Callable[[float], Trial], ladder: Callable[[int], int], trials: list[Trial], goal: float, limit: float
) -> None:
    """Add trials of the next efforts of the ladder, one at least."""
    while True:
        trials.append(run(ladder(len(trials))))
        growth = ladder(len(trials)) / trials[-1].effort
        is_stuck = len(trials) > 5 and trials[-1].objective == trials[-6].objective  # has reached a limit of its own
        if trials[-1].objective <= goal or growth * trials[-1].seconds > limit or is_stuck or len(trials) > 40:
            return


def _refinement(run: Callable[[float], Trial], failed: Trial, reached: Trial, goal: float) -> list[Trial]:
    """Halve, three times, the efforts between one that failed and one that reached the goal."""
    trials: list[Trial] = []
    low, high = failed.effort, reached.effort
    for _ in range(3):
        middle = round(math.sqrt(low * high))
        if middle in (low, high):
            break
        trials.append(run(middle))
        low, high = (low, middle) if trials[-1].objective <= goal else (middle, high)
    return trials


def _rival_trials(rival: Rival, problem: Linear, C: float, best: float, limit: float) -> list[Trial]:
    X = rival.prepare(problem.X)
    rival.fit(X, problem, C, 1)  # imports and compiles

    def run(effort: float) -> Trial:
        W, seconds = ours.repeat(lambda: rival.fit(X, problem, C, effort), 3, 1.0)
        return Trial(effort, statistics.median(seconds), objective(problem, W, C))

    return climb(run, rival.efforts, GOAL * best, limit, (1 + _FINE) * best)


def _our_rows(problem: Linear, C: float, goal: float, name: str, limit: float) -> Iterator[Row]:
    """Objectives in the course of one fit to 1e-6, the fit to its gap, and the shortest fit that reaches the goal."""
    how = ours.WAYS[name]
    columns = ours.fit(problem, C, tol=_FINE, max_time=limit, **how)[0].history_
    for k in np.unique(np.geomspace(1, len(columns["time"]), 10).astype(int)) - 1:  # enough for a plot
        yield {
            "kind": "course",
            "knob": "iterations",
            "effort": k + 1,
            "seconds": columns["time"][k],
            "objective": columns["objective"][k],
        }
    model, seconds = ours.fit(problem, C, tol=1e-3, max_time=limit, **how)
    kind = "proof" if model.converged_ else "fit"
    yield {
        "kind": kind,
        "knob": "iterations",
        "effort": model.n_iter_,
        "seconds": seconds,
        "objective": objective(problem, model.coef_, C),
    }
    for k in np.flatnonzero(columns["objective"] <= goal)[:1]:
        yield _least_fit(problem, C, goal, int(k) + 1, how)


def _least_fit(problem: Linear, C: float, goal: float, n_iter: int, how: dict[str, Any]) -> Row:
    """A fit with that `max_iter`, or a little more: the objective of the history is not recomputed."""
    while True:
        seconds, W = ours.timed(problem, C, tol=1e-12, max_iter=n_iter, **how)
        reached = objective(problem, W, C)
        if reached <= goal:
            return {"kind": "fit", "knob": "iterations", "effort": n_iter, "seconds": seconds, "objective": reached}
        n_iter += 1


def _reference(problem: Linear, C: float, limit: float) -> tuple[float, float]:
    """The least objective known and our lower bound; LIBLINEAR runs long too where our fit did not converge."""
    best, bound = ours.reference(problem, C, limit)
    if bound < best * (2 - GOAL):
        X = problem.X.astype(np.float64)
        W = liblinear(X, problem, C, epochs=most_epochs(X), tol=1e-6)
        best = min(best, objective(problem, W, C))
    return best, bound


def _measure(name: str, options: Run) -> Iterator[list[Row]]:
    problem = load_linear(name, options.rows)
    ours.warm_up(problem)
    for C in options.C or COSTS:
        wanted = {who: options.wants(who, set=name, C=C, competitor=who) for who in (*ours.WAYS, *_RIVAL_NAMES)}
        if not any(wanted.values()):
            continue
        best, bound = _reference(problem, C, options.reference)
        facts = {"set": name, "form": problem.form, "n": problem.X.shape[0], "d": problem.X.shape[1], "C": C}
        facts |= {"best": best, "bound": bound}
        limit = options.limit
        for competitor in ours.WAYS:
            if wanted[competitor]:
                rows = list(_our_rows(problem, C, GOAL * best, competitor, options.limit))
                yield [{**facts, "competitor": competitor, **row} for row in rows]
                if competitor == ours.PLAIN:  # rivals are compared with Algorithm 1 itself, too
                    limit = min(limit, max(2.0, options.factor * rows[-1]["seconds"]))
        for name_of_rival in filter(wanted.get, _RIVAL_NAMES):
            yield [
                {**facts, "competitor": rival.name, "kind": "fit", "knob": rival.knob, **trial._asdict()}
                for rival in RIVALS
                if rival.name == name_of_rival
                for trial in _checked(_rival_trials(rival, problem, C, best, limit), rival.name, bound)
            ]


def _checked(trials: list[Trial], name: str, bound: float) -> list[Trial]:
    """The trials, none of which may be below a proven lower bound."""
    for trial in trials:
        if trial.objective < bound * (1 - 1e-9):
            raise AssertionError(f"{name} is below our lower bound: {trial} < {bound}")
    return trials


# ------------------------------------------------------------------------------------------------------ what it says


def cells(rows: Sequence[Row]) -> dict[tuple[str, float], list[Row]]:
    """The rows of each set and C."""
    found: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        found.setdefault((row["set"], float(row["C"])), []).append(row)
    return found


def _least(rows: Sequence[Row], goal: float) -> tuple[float, bool]:
    """Seconds to the goal, or the most seconds tried without reaching it."""
    reached = [row["seconds"] for row in rows if row["objective"] <= goal]
    return (min(reached), True) if reached else (max((row["seconds"] for row in rows), default=math.nan), False)


def summary(rows: Sequence[Row]) -> list[Row]:
    """One row for each set and C: seconds of everyone, and ratios to ours.

    Who has not reached the goal counts with the longest time tried, and there is no ratio where neither has. Where our
    bound is too low to prove that the best objective known is the goal, we count as not having reached it.
    """
    table = []
    for (_, C), cell in cells(rows).items():
        best = min(min(row["best"], row["objective"]) for row in cell)
        fits = [row for row in cell if row["kind"] != "course"]
        line = {key: cell[0][key] for key in ("set", "form", "n", "d")} | {"C": C, "best": best}
        line["bound_gap"] = 1 - max(row["bound"] for row in cell) / best
        known = dict.fromkeys(row["competitor"] for row in fits)
        if ours.OCAS not in known:
            continue
        first = [ours.OCAS, ours.PLAIN]  # the others are compared with these
        for who in sorted(known, key=lambda name: first.index(name) if name in first else len(first)):
            mine = [row for row in fits if row["competitor"] == who]
            is_unproven = who in ours.WAYS and line["bound_gap"] >= GOAL - 1
            seconds, reached = _least(mine, -math.inf if is_unproven else GOAL * best)
            line |= {who: seconds, f"{who} reached": reached}
            for method in (ours.OCAS, ours.PLAIN):
                if method in line and (reached or line[f"{method} reached"]):
                    line[f"{who} / {method}"] = seconds / line[method]
        proofs = [row["seconds"] for row in fits if row["kind"] == "proof" and row["competitor"] == ours.OCAS]
        line["OCAS proof"] = proofs[0] if proofs else math.nan
        table.append(line)
    return table


def _mean(lines: Sequence[Row], ratio: str) -> float:
    ratios = [line[ratio] for line in lines if ratio in line]
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan


def means(table: Sequence[Row]) -> list[Row]:
    """Geometric means of the ratios over groups of cells (set, C), and the worst cell; none for an empty table."""
    if not table:
        return []
    groups = {
        "dense": [line for line in table if line["set"] in DENSE],
        "dense, C = 100": [line for line in table if line["set"] in DENSE and line["C"] == 100],
        "at least 490,000 rows": [line for line in table if line["n"] >= 490_000],
        "sparse": [line for line in table if line["set"] not in DENSE],
        "all": list(table),
    }
    names = {key for line in table for key in line if " / OCAS" in key and not key.startswith("OCAS")}
    result = []
    for group, lines in groups.items():
        if lines:
            row: Row = {"cells": group, "number": len(lines)}
            row |= {name: _mean(lines, name) for name in sorted(names)}
            row["LIBLINEAR, worst"] = min((line.get("LIBLINEAR / OCAS", math.inf) for line in lines), default=math.nan)
            result.append(row)
    return result


def _tables(rows: Sequence[Row]) -> dict[str, list[Row]]:
    table = summary(rows)
    return {"reach": table, "reach_means": means(table)}


def _panels(rows: Sequence[Row]) -> list[Panel]:
    """Figure 2: relative error of the objective against seconds, for each solver."""
    points = []
    for cell in cells(rows).values():
        best = min(min(row["best"], row["objective"]) for row in cell)
        shown = [row for row in cell if row["kind"] == ("course" if row["competitor"] in ours.WAYS else "fit")]
        points += [row | {"above": max(row["objective"] / best - 1, 0.1 * _FINE)} for row in shown]
    return panels_of(points, ("set", "C"), ("competitor",), Axes("seconds", "seconds", "above", "F / F* − 1", "xy"))


FIGURE2 = Experiment(  # Figure 2 and the time to 1.001 of the optimum: objective against time
    "ocas/figure2",
    SETS,
    ("set", "C", "competitor"),
    _measure,
    settings=ours.SETTINGS | {"limit": 5.0, "reference": 5.0},
    parts=True,
    seconds={"gaussians": 300.0, "mnist": 240.0, "cov1": 180.0, "kddcup99_10": 150.0, "news20_1": 110.0, "": 60.0},
    tables=_tables,
    panels=_panels,
)
