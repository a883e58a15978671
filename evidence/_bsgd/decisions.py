"""Merging problems as they occur in a run, and how well the rules solve them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evidence._bsgd import full_square
from evidence._bsgd.partner import find_partner
from evidence._bsgd.runs import FAST, PAPER_RULE, settings_of
from measuring.problems import Problem
from widemargin._progress import Progress
from widemargin.algorithms.bsgd_epochs import BudgetedSGD

Vector = NDArray[np.float64]


class Decision(NamedTuple):
    """Coefficients of one sign, and ln k of their points with point i of the smallest one, which is to be merged."""

    i: int
    coef: Vector
    log_kappa: Vector


def record_decisions(problem: Problem, budget: int, n_epochs: int, per_look: int = 60) -> list[Decision]:
    """Merging problems at 40 steps of a run with lookup-wd, one for each next row within the margin."""
    sgd = BudgetedSGD(settings_of(problem, budget, "lookup-wd"), problem.X, 1)
    signed_weights, rng, found = problem.y.astype(np.float64)[None], np.random.default_rng(1), []
    order = np.concatenate([rng.permutation(len(problem.y)) for _ in range(min(n_epochs, 4))])
    for part in np.array_split(order, 40):
        sgd.take_steps(problem.X, signed_weights, part, Progress(), 1)
        if len(sgd.machines[0]) == budget:
            found += list(_decisions_at(problem, sgd, rng, per_look))
    return found


def _decisions_at(problem: Problem, sgd: BudgetedSGD, rng: np.random.Generator, most: int) -> Iterator[Decision]:
    rows = rng.choice(len(problem.y), min(2000, len(problem.y)), replace=False)
    model, steps = sgd.model(), sgd.totals().steps
    y = problem.y[rows].astype(np.float64)
    weight = 1 / (sgd.settings.lam * steps)
    violating = rows[y * model.decision_values(problem.X[rows])[:, 0] < 1][:most]
    for row in violating:
        points = np.concatenate([model.points, problem.X[row : row + 1]]).astype(np.float64)
        coef = np.append(model.coef[0], problem.y[row] * weight)
        size = np.abs(coef)
        i = len(coef) - 1 if size[-1] <= size.min() * (1 + 1e-12) else int(size.argmin())
        candidates = np.flatnonzero(coef * coef[i] > 0)
        if len(candidates) > 1:
            log_kappa = -problem.gamma * np.sum((points[candidates] - points[i]) ** 2, axis=1)
            yield Decision(int(np.flatnonzero(candidates == i)[0]), coef[candidates] / weight, log_kappa)


def exact_degradations(decision: Decision) -> Vector:
    """Squared degradation with every candidate, the best h by bisection on the sign of s', in float64; inf for i."""
    m = decision.coef / (decision.coef + decision.coef[decision.i])
    log_odds, rate = np.log(m / np.maximum(1 - m, 1e-300)), -decision.log_kappa
    low, high = np.zeros_like(m), np.ones_like(m)
    for _ in range(55):
        u = (low + high) / 2
        with np.errstate(divide="ignore"):
            is_rising = log_odds - 2 * np.arctanh(u) + u * rate > 0
        low, high = np.where(is_rising, u, low), np.where(is_rising, high, u)
    lost = degradations(decision, (1 + low) / 2)
    lost[decision.i] = np.inf
    return lost


def degradations(decision: Decision, h: Vector) -> Vector:
    """Squared degradation of merging with each candidate at h.

    wd = m^2 (1 - A^2) + (1 - m)^2 (1 - B^2) - 2 m (1 - m) (A B - kappa) with A, B the kernel values of z: by expm1, as
    differences of nearly equal numbers would leave nothing of a small one.
    """
    total = decision.coef + decision.coef[decision.i]
    m, log_kappa = decision.coef / total, decision.log_kappa
    a, b = (1 - h) ** 2 * log_kappa, h**2 * log_kappa
    wd = -(m**2) * np.expm1(2 * a) - (1 - m) ** 2 * np.expm1(2 * b)
    wd -= 2 * m * (1 - m) * (np.exp(a + b) - np.exp(log_kappa))
    return np.asarray(total**2 * np.maximum(wd, 0))


def judge(decisions: list[Decision]) -> dict[str, float]:
    """Share of choices that agree with golden section search's, and the factor by which each rule exceeds the least.

    And the share of choices of `lookup-wd` that are those by the table as published.

    Golden section search is Algorithm 1 as published ("gss-paper"): over [0, 1] to 0.01.
    """
    chosen: dict[str, list[int]] = {rule: [] for rule in FAST}
    factor: dict[str, list[float]] = {rule: [] for rule in FAST}
    published = []
    for decision in decisions:
        kappa, n = np.exp(decision.log_kappa), len(decision.coef)
        published.append(full_square.partner(decision.i, decision.coef, kappa, n, full_square.tables()[1]))
        least = float(exact_degradations(decision).min())
        for rule in FAST:
            j, h, _ = find_partner(decision.i, decision.coef, decision.log_kappa, rule)
            lost = float(degradations(decision, np.full(len(decision.coef), h))[j])
            chosen[rule].append(j)
            if least > 1e-9 * decision.coef[decision.i] ** 2:  # equal points: any factor of nothing is nothing
                factor[rule].append(lost / least)
    # kappa and m are float32: what a rule does to the seventh digit is luck
    out = {f"factor {rule}": round(float(np.mean(factor[rule])), 6) if factor[rule] else 1.0 for rule in FAST}
    reference = np.array(chosen[PAPER_RULE])
    equal = {
        f"equal % {rule}": 100 * float(np.mean(np.array(chosen[rule]) == reference))
        for rule in FAST
        if rule != PAPER_RULE
    }
    same = 100 * float(np.mean(np.array(chosen["lookup-wd"]) == published))
    return {"decisions": len(decisions), **equal, "equal % full square": same, **out}
