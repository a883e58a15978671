"""Results of the solvers, converged or stopped, and their history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._threads import cached_property
from .._types import AnyArray, Labels, Mask, Matrix, RowIndices, Vector


class Certificate(NamedTuple):
    """The certificate of a point of a dual: intercept, primal objective, duality gap and KKT violation.

    Of many problems these are columns (P,).
    """

    intercept: Any
    primal_objective: Any
    gap: Any
    violation: Any

    @property
    def lower_bound(self) -> Any:
        """Of the optimum: minus the dual objective."""
        return self.primal_objective - self.gap


NO_CERTIFICATE = Certificate(0.0, np.inf, np.inf, np.inf)  # of a point whose decision values are not known


@dataclass
class History:
    """The progress of a fit: columns of equal length, one row for each round."""

    columns: dict[str, list[float]] = field(default_factory=dict)

    def record(self, **values: float) -> None:
        """Append one row."""
        if not self.columns:
            self.columns = {name: [float(value)] for name, value in values.items()}
            return
        for name, value in values.items():
            self.columns.setdefault(name, []).append(float(value))

    def record_point(self, elapsed: float, beta: Vector, certificate: Certificate) -> None:
        """Append the row of a point beta (n,), `elapsed` seconds after the start."""
        _, objective, gap, violation = certificate
        n_support = int(np.count_nonzero(beta))
        self.record(
            time=elapsed, objective=objective, lower_bound=objective - gap, violation=violation, n_support=n_support
        )

    def followed_by(self, other: History) -> History:
        """The rows of both."""
        return History({name: column + other.columns.get(name, []) for name, column in self.columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def as_arrays(self) -> dict[str, Vector]:
        """The columns as float64 arrays."""
        return {name: np.array(column) for name, column in self.columns.items()}


@dataclass
class DualResult:
    """A feasible point of the dual in beta = y * alpha (n,), with `decision` = K beta (n,), and its certificate.

    The intercept, which `decision` is without, is zero for machines without one; `objective` is the primal one, `gap`
    the duality gap, `violation` the KKT violation, which `tol` limits; `n_iter` counts the working sets solved.

    A solve that is stopped returns its best point so far. If that is its start, and its decision values are not known,
    then objective, gap and violation are infinite (`has_certificate`): any other result is better.

    The objective may be that of a machine near this point: `scale` times beta, and the intercept.
    """

    beta: Vector
    decision: Vector
    intercept: float
    objective: float
    gap: float
    violation: float
    converged: bool
    n_iter: int
    history: History
    scale: float = 1.0

    @property
    def has_certificate(self) -> bool:
        """Whether the decision values of the point are known."""
        return self.gap < np.inf

    @property
    def lower_bound(self) -> float:
        """What the optimum is at least."""
        return self.objective - self.gap if self.has_certificate else -np.inf

    def improves(self, before: DualResult | None) -> bool:
        """Whether this point, found from that of `before`, is the better one: converged, or of no larger objective."""
        if before is None or self.converged:
            return True
        return self.has_certificate and self.objective <= before.objective

    def following(self, before: DualResult | None) -> DualResult:
        """The better one of this result and of `before`, from which it started; with the counts and rows of both."""
        if before is None:
            return self
        history = before.history.followed_by(self.history)
        best = self if self.improves(before) else before
        return replace(best, n_iter=before.n_iter + self.n_iter, history=history)


@dataclass
class DualResults:
    """The results of P duals, as arrays: points as slices of common ones (N,), certificates as columns (P,).

    Problem p has the coordinates starts[p]:starts[p + 1]. `history` has the rows of all histories as columns, those of
    a problem in the order of time; "problem" is its number.
    """

    starts: RowIndices
    beta: Vector
    decision: Vector
    intercept: Vector
    objective: Vector
    gap: Vector
    violation: Vector
    converged: Mask
    n_iter: RowIndices
    history: dict[str, AnyArray]

    def __len__(self) -> int:
        return len(self.objective)

    def __getitem__(self, p: int) -> DualResult:
        part, is_own = slice(*self.starts[p : p + 2]), self.history["problem"] == p
        history = {name: column[is_own].tolist() for name, column in self.history.items() if name != "problem"}
        return DualResult(
            self.beta[part],
            self.decision[part],
            float(self.intercept[p]),
            float(self.objective[p]),
            float(self.gap[p]),
            float(self.violation[p]),
            bool(self.converged[p]),
            int(self.n_iter[p]),
            History(history),
        )

    def __iter__(self) -> Iterator[DualResult]:
        return (self[p] for p in range(len(self)))

    @cached_property
    def numbers(self) -> Labels:
        """The problem (N,) of each coordinate."""
        return np.arange(len(self)).repeat(self.starts[1:] - self.starts[:-1])

    def sums(self, values: Vector | Mask) -> Vector:
        """The sum (P,) of the values (N,) of each problem's coordinates."""
        return np.bincount(self.numbers, values, minlength=len(self)).astype(np.float64, copy=False)

    @classmethod
    def join(cls, results: Sequence[DualResult]) -> DualResults:
        """The arrays of several results; of their histories the columns of the first."""
        histories = [result.history for result in results]
        history: dict[str, AnyArray] = {
            name: np.array([value for history in histories for value in history.columns[name]])
            for name in histories[0].columns
        }
        history["problem"] = np.repeat(np.arange(len(results)), [len(history) for history in histories])
        columns = {name: np.array([getattr(result, name) for result in results]) for name in _COLUMNS}
        points = {name: np.concatenate([getattr(result, name) for result in results]) for name in _POINTS}
        starts = np.cumsum([0, *(len(result.beta) for result in results)])
        return cls(starts, **points, **columns, history=history)

    @classmethod
    def concatenate(cls, parts: Sequence[DualResults]) -> DualResults:
        """The results of all problems of the parts."""
        if len(parts) == 1:
            return parts[0]
        first = np.cumsum([0, *map(len, parts)])
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _POINTS + _COLUMNS}
        history = {name: np.concatenate([part.history[name] for part in parts]) for name in parts[0].history}
        history["problem"] += np.repeat(first[:-1], [len(part.history["problem"]) for part in parts])
        return cls(starts_of(sizes), **columns, history=history)

    def take(self, problems: RowIndices) -> DualResults:
        """The results of some of the problems."""
        coordinates, place = coordinates_of(self.starts, problems), np.full(len(self), -1)
        place[problems] = np.arange(len(problems))
        points = {name: getattr(self, name)[coordinates] for name in _POINTS}
        columns = {name: getattr(self, name)[problems] for name in _COLUMNS}
        is_kept = place[self.history["problem"]] >= 0
        history = {name: column[is_kept] for name, column in self.history.items()}
        history["problem"] = place[history["problem"]]
        starts = starts_of(np.diff(self.starts)[problems])
        return DualResults(starts, **points, **columns, history=history)

    def followed_by(self, problems: RowIndices, later: DualResults, is_better: Mask) -> DualResults:
        """With the later results of some problems where these are better; with the history and the counts of both."""
        joined = DualResults.concatenate([self, later])
        best = np.arange(len(self))
        best[problems[is_better]] = len(self) + np.flatnonzero(is_better)
        found, history = joined.take(best), joined.history
        found.n_iter[problems] = later.n_iter
        history["problem"] = np.concatenate([np.arange(len(self)), problems])[history["problem"]]
        return replace(found, history=history)


_POINTS = "beta", "decision"
_COLUMNS = "intercept", "objective", "gap", "violation", "converged", "n_iter"


def starts_of(sizes: RowIndices) -> RowIndices:
    """The first coordinate of each of P problems of these sizes (P,), and the number of all: (P + 1,)."""
    starts = np.zeros(len(sizes) + 1, np.intp)
    sizes.cumsum(out=starts[1:])
    return starts


def coordinates_of(starts: RowIndices, problems: RowIndices) -> RowIndices:
    """The coordinates of some problems, one after the other, of which p has starts[p]:starts[p + 1]."""
    sizes = starts[problems + 1] - starts[problems]
    ends = sizes.cumsum()
    return np.asarray((starts[problems] - (ends - sizes)).repeat(sizes) + np.arange(sizes.sum()))


@dataclass
class LinearResult:
    """A linear machine w (q, d) with intercepts (q,), and its certificate; `stopped_by` says what ended it unconverged.

    `points` (n_points, q * d) are those of the cutting planes with positive multipliers: the start of a next problem.
    """

    w: Matrix
    intercept: Vector
    objective: float
    gap: float
    converged: bool
    points: Matrix
    stopped_by: str | None = None

    @property
    def lower_bound(self) -> float:
        """What the optimum is at least."""
        return self.objective - self.gap
