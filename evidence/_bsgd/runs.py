"""Runs of BSGD by several rules of merging, and what a step, a merger and its search take. One thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from measuring.problems import Problem, load_problem
from widemargin._progress import Progress
from widemargin.algorithms.bsgd_epochs import BudgetedSGD
from widemargin.kernels.functions import RBF
from widemargin.solvers.sgd.budgeted_machine import N_BACK, N_FRONT, StepSettings

Vector = NDArray[np.float64]

PAPER_RULE = "gss-paper"  # Algorithm 1 as published
FAST = ("lookup-wd", "lookup-h", "gss", PAPER_RULE)
LAST_STEP = ", last step"  # after a rule: the machine of the last step, as published, not the average of the steps
PUBLISHED = tuple(rule + LAST_STEP for rule in (PAPER_RULE, "lookup-wd", "lookup-h", "gss-precise"))
PIECES = 40  # of a run of several rules, which alternate
EPOCHS = {"ijcnn1": 20, "a9a": 20, "codrna": 20, "covtype_20k": 20, "kddcup99_10": 5, "mnist": 5, "patches": 1}
SETS = tuple(EPOCHS)
_TIMED_ROWS, _TIMINGS = 2000, 5


class Training(NamedTuple):
    """One training."""

    seconds: Vector  # of each piece
    steps: int
    mergers: int
    sgd: BudgetedSGD


def settings_of(problem: Problem, budget: int, rule: str, lam: float | None = None) -> StepSettings:
    """lam = 1 / (C n)."""
    lam = lam or 1 / (problem.C * len(problem.y))
    merge, average = rule.removesuffix(LAST_STEP), not rule.endswith(LAST_STEP)
    return StepSettings(RBF(problem.gamma), lam, budget=budget, merge=merge, average=average)


def load(name: str, n_rows: int | None = None) -> Problem:
    """Return a problem of `measuring.problems`; of patches, 500,000 rows."""
    return load_problem(name, n_rows=n_rows or (500_000 if name == "patches" else None))


def train(problem: Problem, budget: int, rules: Sequence[str], n_epochs: int, seed: int) -> dict[str, Training]:
    """Passes in random order, the same for all rules, which alternate piece by piece.

    So whatever else the machine does slows all of them. Only steps are timed.
    """
    rng, signed_weights = np.random.default_rng(seed), problem.y.astype(np.float64)
    order = np.concatenate([rng.permutation(len(problem.y)) for _ in range(n_epochs)])
    first = seed % len(rules)  # where its memory lies is luck: none is always the first to get some
    rules = (*rules[first:], *rules[:first])
    solvers = {rule: BudgetedSGD(settings_of(problem, budget, rule), problem.X, 1) for rule in rules}
    seconds = {rule: np.zeros(PIECES) for rule in rules}
    for at, piece in enumerate(np.array_split(order, PIECES)):
        first = at % len(rules)
        for rule in (*rules[first:], *rules[:first]):
            start = time.perf_counter()
            solvers[rule].machines[0].run(problem.X, piece, signed_weights)
            seconds[rule][at] = time.perf_counter() - start
    totals = {rule: sgd.totals() for rule, sgd in solvers.items()}
    return {rule: Training(seconds[rule], t.steps, t.mergers, solvers[rule]) for rule, t in totals.items()}


def step_seconds(problem: Problem, sgd: BudgetedSGD) -> float:
    """Seconds of a step without its merger: of rows of weight 0, whose decision values are computed as well."""
    order = np.random.default_rng(0).permutation(len(problem.y))[:100_000]
    nothing = np.zeros((1, len(problem.y)))
    start = time.perf_counter()
    sgd.take_steps(problem.X, nothing, order, Progress(), 1)
    return (time.perf_counter() - start) / len(order)


class MergerTime(NamedTuple):
    """Seconds of a merger, and of the search for its partner, which is a part of it."""

    whole: float
    search: float


def merger_seconds(problem: Problem, sgd: BudgetedSGD, rule: str) -> MergerTime:
    """Time mergers of a trained machine, each the least of some timings: the mean over the rows within the margin.

    Candidates are the support vectors of the row's sign, so that rows of either sign are timed apart.

    At a tiny step size every row is within the margin, is added and merged: `whole` is the time of such a step less
    that of the same step on rows of weight 0. The rest of a merger is measured in the same way on a machine of as many
    points of which one alone has the sign of the row, so that there is one candidate: `search` is the difference.
    """
    settings = settings_of(problem, sgd.settings.budget, rule, lam=1e12)
    times = []
    for sign in (1.0, -1.0):
        whole, rest = (
            _merging_step(problem, settings, states, sign)
            for states in (sgd.states(), [_with_one_candidate(sgd, sign)])
        )
        times.append((whole, max(0.0, whole - rest)))
    share = _positive_share(problem, sgd)
    return MergerTime(*np.average(times, axis=0, weights=(share, 1 - share)))


def _positive_share(problem: Problem, sgd: BudgetedSGD) -> float:
    """The share of positive rows among those within the margin, which are merged."""
    margins = problem.y * sgd.model().decision_values(problem.X)[:, 0]
    return float(np.mean(problem.y[margins < 1] > 0)) if margins.min() < 1 else 0.5


def _merging_step(problem: Problem, settings: StepSettings, states: list[Any], sign: float) -> float:
    """Seconds of a step that merges, on rows that are given one sign, less those of a step that does not."""
    order = np.random.default_rng(1).permutation(len(problem.y))[:_TIMED_ROWS]
    seconds = dict.fromkeys((sign, 0.0), np.inf)
    for _ in range(_TIMINGS):
        for weight in seconds:
            machine = BudgetedSGD(settings, problem.X, 1, states)
            weights = np.full((1, len(problem.y)), weight)
            start = time.perf_counter()
            machine.take_steps(problem.X, weights, order, Progress(), 1)
            seconds[weight] = min(seconds[weight], time.perf_counter() - start)
    return (seconds[sign] - seconds[0.0]) / len(order)


def _with_one_candidate(sgd: BudgetedSGD, sign: float) -> dict[str, Any]:
    """The state of a machine whose points have the other sign, but for one."""
    machine = sgd.machines[0]
    state = {name: np.array(array) for name, array in machine.state().items()}
    used, n_slots = machine._used_slots(), state["slots"].shape[1]
    n_front = 1 if sign > 0 else len(used) - 1
    places = np.concatenate([np.arange(n_front), np.arange(n_slots - (len(used) - n_front), n_slots)])
    points, slots = state["points"][:, used], state["slots"][:, used]
    slots[:2] = np.abs(slots[:2]) * np.where(np.arange(len(used)) < n_front, 1.0, -1.0)
    state["points"][:], state["slots"][:] = 0.0, 0.0
    state["points"][:, places], state["slots"][:, places] = points, slots
    state["counts"][[N_FRONT, N_BACK]] = n_front, len(used) - n_front
    return state


def accuracy(problem: Problem, sgd: BudgetedSGD) -> float:
    """Test accuracy in percent."""
    return 100 * float(np.mean((sgd.model().decision_values(problem.X_test)[:, 0] > 0) == (problem.y_test > 0)))
