"""BSGD: kernel machines with at most B support vectors, by one stochastic gradient step a row.

Sources: Wang, Crammer, Vucetic, Breaking the Curse of Kernelization, JMLR 13, 2012; Glasmachers, Qaadan, Speeding Up
Budgeted Stochastic Gradient Descent SVM Training with Precomputed Golden Section Search, 2018, section 2:

    for t = 1, 2, ...: take a row (x, y) of weight s
        w <- (1 - 1 / t) w
        if y f(x) < 1 before that:  w <- w + s y phi(x) / (lam t)
        if w has more than B support vectors:  budget maintenance: merge two, remove one, or project one onto the others

This minimises lam / 2 |w|^2 + mean_i s_i max(0, 1 - y_i f(x_i)): with lam = 1 / (C n), the objective of a C-SVM divided
by C n. An intercept is the weight of a constant feature 1, and so regularised like w.

The state of a machine is in `solvers.sgd.budgeted_machine`; the steps are compiled: in `_native/cpp`, `merging.hpp` and
`removal_projection.hpp` have the loops over rows and the budget maintenance, `sgd_state.hpp` the counts, the margin
test and the average. Several classes: one machine each against the rest, on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._memory import MemoryPlan
from .._progress import Progress
from .._threads import VALUES_PER_CHECK, ThreadTeam, blas_limit, row_blocks
from .._types import Matrix, RowIndices, Rows, Vector
from ..models.expansion import KernelExpansion
from ..solvers.results import History
from ..solvers.sgd.budgeted_machine import (
    TILE_STEPS,
    BudgetedMachine,
    StepSettings,
    StepTotals,
    make_machine,
    projection_bytes,
)

_ROW_VECTORS, _MACHINE_VECTORS = 12, 6  # float64 vectors (n,) of a training, and more of them for each machine
_POINT_COPIES = 4  # copies of a point: in a machine's slots, in the expansion of all machines, in the data's precision
_POINT_BYTES = 64  # bytes of a support vector beside its features
_SAMPLED_ROWS = 256  # rows of a `TimedSample` between two checks of the clock
_PATIENCE = 3  # stop early after so many passes without a better score on the validation rows


class BudgetedSGD:
    """One machine for each binary problem, and steps of all of them on the same rows.

    Parameters
    ----------
    settings : StepSettings
    like : ndarray or CSR array of shape (n, d), float32
        Rows of the kind that the steps will read.
    n_machines : int
    states : list of dict, optional
        Of the machines of an earlier `BudgetedSGD` of equal maintenance and budget, which these continue.
    """

    def __init__(
        self, settings: StepSettings, like: Any, n_machines: int, states: list[dict[str, Any]] | None = None
    ) -> None:
        self.settings = settings
        starts: list[dict[str, Any] | None] = [*states] if states else [None] * n_machines
        self.machines = [make_machine(settings, like, state) for state in starts]
        self.history = History()

    def take_steps(
        self, X: Rows, signed_weights: Matrix, order: RowIndices, progress: Progress, n_jobs: int | None = None
    ) -> bool:
        """One step of each machine on each of the rows X[order].

        Parameters
        ----------
        X : ndarray or CSR array of shape (n, d), float32
        signed_weights : ndarray of shape (n_machines, n), float64
            s_i y_i of each row, for each machine.
        order : ndarray of shape (r,), int64
        progress : Progress
        n_jobs : int or None
            Threads, at most one a machine.

        Returns
        -------
        bool
            Whether all steps were made: False if `progress` stopped them.
        """
        before, n_done, go_on = self.totals(), 0, True
        with blas_limit(1), ThreadTeam(min(len(self.machines), n_jobs) if n_jobs and n_jobs > 0 else n_jobs) as team:
            for machine in self.machines:
                machine.begin(X, order)
            X = self.machines[0].prepare(X)
            for block in self._blocks(order, X.shape[1]):
                if not go_on:
                    break
                team.map(partial(_run_steps, X, block), list(zip(self.machines, signed_weights, strict=True)))
                n_done += len(block)
                progress.advance(len(block))
                if n_done < len(order):
                    go_on = progress.go_on(**self._callback_state(before))
        self._record(before, progress)
        if n_done == len(order):
            self._end_round(before, progress)
        return n_done == len(order)

    def totals(self) -> StepTotals:
        """Sums over the machines; a row is one step."""
        totals = [machine.totals() for machine in self.machines]
        total = StepTotals(*(sum(column) for column in zip(*totals, strict=True)))
        return total._replace(steps=totals[0].steps)

    def model(self) -> KernelExpansion:
        """One expansion of q decision functions: (q, n) coefficients of the n support vectors of all machines."""
        expansions = [machine.expansion() for machine in self.machines]
        is_sparse = sp.issparse(expansions[0].points)
        own_points = [own.points for own in expansions]
        points = sp.vstack(own_points, "csr") if is_sparse else np.concatenate(own_points)
        coef = np.zeros((len(expansions), points.shape[0]))
        ends = np.cumsum([len(own.coef) for own in expansions])
        for row, own, end in zip(coef, expansions, ends, strict=True):
            row[end - len(own.coef) : end] = own.coef
        return KernelExpansion(self.settings.kernel, points, coef, np.array([own.intercept for own in expansions]))

    def states(self) -> list[dict[str, Any]]:
        """The arrays of the machines: not copied."""
        return [machine.state() for machine in self.machines]

    def _blocks(self, order: RowIndices, d: int) -> Iterator[RowIndices]:
        """Consecutive parts of `order` (r,), of about 2e8 operations each over all machines."""
        budget, maintenance = self.settings.budget, self.settings.maintenance
        work: float = (budget + 16) * (d + 16)  # of a step: a kernel row
        if maintenance == "projection":
            work += 3 * budget**2  # products with the inverse kernel matrix
        size = max(16, int(VALUES_PER_CHECK / (work * len(self.machines))))
        return (order[start : start + size] for start in range(0, len(order), size))

    def _callback_state(self, before: StepTotals) -> dict[str, float]:
        """The mean hinge loss of the steps since `before`, and the number of support vectors."""
        new = self.totals().since(before)
        return {"hinge": new.hinge / max(1, new.steps), "n_support": sum(map(len, self.machines))}

    def _end_round(self, before: StepTotals, progress: Progress) -> None:
        """Tell callbacks of the end of a pass, or a chunk."""
        if progress.is_observed:
            progress.current_solution = self, self.model()
        progress.go_on(round=len(self.history), **self._callback_state(before))

    def _record(self, before: StepTotals, progress: Progress) -> None:
        """Add a row to the history: the steps since `before`."""
        total = self.totals()
        new = total.since(before)
        n_steps, n_events = max(1, new.steps), max(1, new.mergers + new.removals)
        self.history.record(
            time=progress.elapsed,
            steps=total.steps,
            hinge=new.hinge / n_steps,
            violations=new.violations / n_steps,
            mergers=new.mergers,
            removals=new.removals,
            merging_frequency=new.mergers / n_steps,
            mean_degradation=new.degradation / n_events,
            n_support=sum(map(len, self.machines)),
        )


def needed_bytes(shape: tuple[int, int], row_bytes: float, n_machines: int, budget: int, maintenance: str) -> float:
    """The least memory for training on rows (n, d) in float32, of so many bytes each: vectors (n,), machines and model.

    A machine's points are dense where they are merged, else rows.
    """
    n, d = shape
    point_bytes = 4.0 * d if maintenance == "merge" else row_bytes
    points = n_machines * (budget + TILE_STEPS) * (_POINT_COPIES * point_bytes + _POINT_BYTES)
    vectors = 8 * n * (_ROW_VECTORS + _MACHINE_VECTORS * n_machines)
    return vectors + points + projection_bytes(n_machines, budget, maintenance)


def _run_steps(X: Rows, order: RowIndices, task: tuple[BudgetedMachine, Vector]) -> None:
    """Steps of one machine, given with its signed weights (n,)."""
    machine, signed_weights = task
    machine.run(X, order, signed_weights)


@dataclass(frozen=True)
class EpochSettings:
    """Passes over the rows of `run_epochs`.

    Attributes
    ----------
    n_epochs : int
    shuffle : bool
        Whether each pass has a new random order.
    score : callable, optional
        From a KernelExpansion to a number: early stopping. The best model of all passes is returned, and the passes end
        after three in a row without a better one.
    """

    n_epochs: int = 20
    shuffle: bool = True
    score: Callable[[KernelExpansion], float] | None = None


def run_epochs(
    sgd: BudgetedSGD,
    X: Rows,
    signed_weights: Matrix,
    epochs: EpochSettings,
    progress: Progress,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> tuple[KernelExpansion, bool]:
    """Make `n_epochs` passes over the rows, one step of each machine on each row of a weight other than 0.

    Parameters
    ----------
    sgd : BudgetedSGD
    X, signed_weights : as for `BudgetedSGD.take_steps`
    epochs : EpochSettings
    progress : Progress
    rng : numpy.random.Generator
    n_jobs : int or None

    Returns
    -------
    KernelExpansion
        The last model, or the one of best score.
    bool
        Whether all passes were made, or early stopping ended them.
    """
    rows = np.flatnonzero(signed_weights.any(axis=0))
    model, best, since_best = sgd.model(), -np.inf, 0
    for epoch in range(epochs.n_epochs):
        progress.stage(f"pass {epoch + 1} of {epochs.n_epochs}", len(rows))
        order = rows[rng.permutation(len(rows))] if epochs.shuffle else rows
        # for t = 1, 2, ... as on top of this file: `step` in `_native/cpp/merging.hpp`, or in removal_projection.hpp
        is_complete = sgd.take_steps(X, signed_weights, order, progress, n_jobs)
        if epochs.score is None:
            model = sgd.model()
        else:
            candidate = sgd.model()
            score = epochs.score(candidate)
            sgd.history.columns.setdefault("validation_score", []).append(score)
            if score > best:
                model, best, since_best = candidate, score, 0
            else:
                since_best += 1
        if not is_complete or (progress.stopped_by and epoch + 1 < epochs.n_epochs):
            return model, False
        if since_best >= _PATIENCE:
            break
    return model, True


class TimedSample:
    """Decision values of as many random rows as a time limit allows."""

    def __init__(self, seconds: float, rng: np.random.Generator) -> None:
        self.seconds = seconds
        self.rng = rng

    def __call__(self, model: KernelExpansion, X: Rows, **how: Any) -> tuple[RowIndices, Matrix]:
        """Row indices (m,) of X, and the rows' decision values (m, q)."""
        order, end = self.rng.permutation(X.shape[0]), perf_counter() + self.seconds
        values = [np.empty((0, len(model.intercept)))]
        for block in row_blocks(len(order), _SAMPLED_ROWS):
            values.append(model.decision_values(X[order[block]], **how))
            if perf_counter() > end:
                break
        joined = np.concatenate(values)
        return order[: len(joined)], joined


def primal_objective(
    model: KernelExpansion,
    X: Rows,
    signed_weights: Matrix,
    C: float,
    n_jobs: int | None,
    memory: MemoryPlan,
    sampler: TimedSample | None = None,
) -> float:
    """1/2 (|w|^2 + b^2) + C sum_i s_i max(0, 1 - y_i f(x_i)), summed over the machines.

    With a sampler both sums, over points and rows, are estimated from some of their terms.
    """
    predict = sampler or (lambda model, X, **how: (np.arange(X.shape[0]), model.decision_values(X, **how)))
    points, at_points = predict(model, model.points, n_jobs=n_jobs, memory=memory)
    norms = np.sum(model.coef.T[points] * (at_points - model.intercept)) * _inverse_fraction(model.points, points)
    rows, values = predict(model, X, n_jobs=n_jobs, memory=memory)
    margins, weights = np.sign(signed_weights[:, rows]) * values.T, np.abs(signed_weights[:, rows])
    losses = np.sum(weights * np.maximum(0.0, 1.0 - margins)) * _inverse_fraction(X, rows)
    return float(0.5 * (norms + np.sum(model.intercept**2)) + C * losses)


def _inverse_fraction(X: Rows, rows: RowIndices) -> float:
    """n / m, for m of the n rows of X."""
    return float(X.shape[0] / max(1, len(rows)))
